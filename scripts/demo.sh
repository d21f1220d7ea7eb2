#!/bin/sh
# What `make demo` shows: three photos explained for an ImageNet ResNet-50, a dozen small images explained by the bundled explainers beside the baselines, and a table
# over the 300 sample images. demo.sh AHA
# Everything is kept in demo/: a second call only looks at what is there. Without network the photos are left out.
set -eu
aha=$1
targets="cifar10-vit4 cifar10-convnext"
methods_of() { # target
  case $1 in
    *vit*) echo center,gradient,gradcam,chefer,rise:masks=100,aha,aha:T=3 ;;
    *) echo center,gradient,gradcam,rise:masks=100,aha,aha:T=3 ;;
  esac
}
# Nearly twice as fast where the CPU multiplies bf16 itself; Ins-Del over 300 images moves by less than 0.001.
precision=f32
if grep -qwE 'avx512_bf16|amx_bf16' /proc/cpuinfo 2>/dev/null; then precision=bf16; fi
mkdir -p demo

say() { printf '\n== %s\n' "$*"; }

# chelsea, coffee and rocket: CC0 photos of Debian's python3-skimage, unpacked without being installed.
bring_photos() {
  test -e demo/photos/rocket.jpg && return
  rm -rf demo/skimage && mkdir -p demo/skimage demo/photos
  (cd demo/skimage && apt-get download python3-skimage >/dev/null 2>&1 && dpkg-deb -x python3-skimage_*.deb .) || return 1
  for photo in chelsea.png coffee.png rocket.jpg; do
    cp demo/skimage/usr/lib/python3/dist-packages/skimage/data/$photo demo/photos/ || return 1
  done
  rm -rf demo/skimage
}

photos=no
say "aha get resnet50-imagenet"
if ! "$aha" get resnet50-imagenet; then
  echo "The photos are left out: the ImageNet network cannot be fetched here. CIFAR-10 needs no network."
elif ! bring_photos; then
  rm -rf demo/skimage demo/photos
  echo "The photos are left out: apt-get cannot download python3-skimage here. CIFAR-10 needs no network."
else
  photos=yes
  methods=cam,gradcam,rise:masks=200
  # Its own explainer, where one is bundled.
  test -e models/aha-imagenet-resnet50/model.json && methods=$methods,aha,aha:T=3
  say "aha compare --target resnet50-imagenet --methods $methods --out demo/resnet50-imagenet demo/photos"
  test -e demo/resnet50-imagenet.txt || {
    "$aha" compare --quiet --target resnet50-imagenet --methods $methods --out demo/resnet50-imagenet demo/photos > demo/resnet50-imagenet.part
    mv demo/resnet50-imagenet.part demo/resnet50-imagenet.txt
  }
  cat demo/resnet50-imagenet.txt
fi

say "aha data export cifar10:sample --limit 12 --out demo/images"
"$aha" data export cifar10:sample --limit 12 --out demo/images

for target in $targets; do
  methods=$(methods_of $target)
  say "aha compare --precision $precision --target $target --methods $methods --out demo/$target/sheets demo/images"
  test -e demo/$target/sheets.txt || {
    "$aha" compare --quiet --precision $precision --target $target --methods $methods --out demo/$target/sheets demo/images > demo/$target.part
    mv demo/$target.part demo/$target/sheets.txt
  }
  sed -n '1,7p' demo/$target/sheets.txt
  say "aha eval --precision $precision --target $target --data cifar10:sample --methods $methods --out demo/$target"
  "$aha" eval --precision $precision --target $target --data cifar10:sample --methods $methods --out demo/$target
done

# The image itself instead of its path: the page is one file.
picture() { printf '<p><img alt="%s" src="data:image/png;base64,' "$1"; base64 -w 0 "$2"; echo '"></p>'; }

{
  echo '<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>aha demo</title>'
  echo '<style>body{font:15px sans-serif;max-width:1200px;margin:2em auto;padding:0 1em}img{max-width:100%}h2{margin-top:2em}</style>'
  echo '<h1>Which pixels drove the decision?</h1>'
  echo '<p>Under each map: insertion, deletion and their difference for that map (ins-del, higher is better), and the time it took. <b>aha</b> is one forward pass of the explainer; <b>aha:T=3</b> adds three refinement steps on the image.</p>'
  if [ $photos = yes ]; then
    echo '<h2>Photos: ResNet-50, ImageNet</h2>'
    for sheet in demo/resnet50-imagenet/*.compare.png; do picture "maps of ${sheet##*/}" "$sheet"; done
  fi
  for target in $targets; do
    echo "<h2>$target</h2><p><a href=\"$target/report.html\">Table, intervals and curves of 300 images</a></p>"
    for sheet in demo/$target/sheets/*.compare.png; do picture "maps of ${sheet##*/}" "$sheet"; done
  done
} > demo/report.part
mv demo/report.part demo/report.html

say "done"
echo "Look at:      demo/report.html (images)$(for target in $targets; do printf ', demo/%s/report.html' $target; done) (table and curves)"
echo "Your own:     $aha explain --target vit_b_16:WEIGHTS.pth --method chefer --out maps photo.jpg"
echo "An explainer: $aha train --target vit_b_16:WEIGHTS.pth --data folder:PHOTOS --out my-explainer"
