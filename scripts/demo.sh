#!/bin/sh
# What `make demo` shows: three photos explained for an ImageNet ResNet-50, a dozen small images explained by the bundled explainers beside the baselines, and a table
# over the 300 sample images. demo.sh AHA
# Everything is kept in demo/: a second call only looks at what is there. Without network the photos are left out.
set -eu
aha=$1
scripts=$(cd "$(dirname "$0")" && pwd)
targets="cifar10-vit4 cifar10-convnext"
shown="demo/images/00006_automobile.png" # on a sheet of its own
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

say "aha explain --target cifar10-convnext --refine 3 --contours --out demo/maps $shown"
test -e demo/explain.txt || {
  "$aha" explain --quiet --target cifar10-convnext --refine 3 --contours --out demo/maps $shown > demo/explain.part
  mv demo/explain.part demo/explain.txt
}
cat demo/explain.txt

for target in $targets; do
  methods=$(methods_of $target)
  say "aha compare --precision $precision --target $target --methods $methods --out demo/$target/sheets demo/images"
  test -e demo/$target/sheets/sheets.json || {
    "$aha" compare --quiet --json --precision $precision --target $target --methods $methods --out demo/$target/sheets demo/images > demo/$target.part
    mv demo/$target.part demo/$target/sheets/sheets.json
  }
  awk -v form=text -f "$scripts/demo_sheets.awk" demo/$target/sheets/sheets.json | head -8
  say "aha eval --precision $precision --target $target --data cifar10:sample --methods $methods --out demo/$target"
  "$aha" eval --precision $precision --target $target --data cifar10:sample --methods $methods --out demo/$target
done

# Images themselves instead of their paths: the page is one file.
with_images() {
  awk '{ while (match($0, /src="[^":]*[.]png"/)) {
           inside = "base64 -w 0 \"demo/" substr($0, RSTART + 5, RLENGTH - 6) "\""
           inside | getline data; close(inside)
           $0 = substr($0, 1, RSTART - 1) "src=\"data:image/png;base64," data "\"" substr($0, RSTART + RLENGTH) }
         print }'
}

{
  cat <<'HEAD'
<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><title>aha demo</title>
<style>
:root{color-scheme:light dark;--ink:#222;--soft:#666;--paper:#fff;--line:#ddd}
@media (prefers-color-scheme:dark){:root{--ink:#ddd;--soft:#999;--paper:#1b1b1b;--line:#444}}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:1250px;margin:0 auto;padding:1rem} p{max-width:50rem} a{color:inherit}
h1{font-size:1.5rem} h2{margin-top:2.5rem;font-size:1.25rem} h3{font-size:1rem;margin:0 0 .5rem} h3 span,.soft{font-weight:normal;color:var(--soft)} h3 span{margin-left:.8em}
section{border-top:1px solid var(--line);padding:1rem 0} img{width:100%;height:auto;display:block;border-radius:4px}
.wide{overflow-x:auto} .wide img{min-width:760px} table{border-collapse:collapse;font-size:.9rem;margin:.5rem 0} th,td{padding:.15rem .7rem .15rem 0;text-align:right} th:first-child,td:first-child{text-align:left}
</style></head><body>
<h1>Which pixels drove the decision?</h1>
<p>Photos and a public ResNet-50 where they could be fetched, then twelve test images of CIFAR-10 and two networks that come with <b>aha</b>. <b>aha</b> is one forward pass of the bundled explainer; <b>aha:T=3</b> adds three refinement steps on the
image. <i>Deletion</i>: the mean probability of the class while the most important pixels are removed first, lower is better. <i>Insertion</i>: while they are shown first, higher is better.
<i>Ins-del</i>: their difference.</p>
HEAD
  echo "<div class=\"wide\"><a href=\"maps/$(basename $shown .png).sheet.png\"><img alt=\"one explanation with its curves\" src=\"maps/$(basename $shown .png).sheet.png\"></a></div>"
  if [ $photos = yes ]; then
    echo '<h2>Photos: ResNet-50, ImageNet</h2>'
    for sheet in demo/resnet50-imagenet/*.compare.png; do
      echo "<div class=\"wide\"><img alt=\"maps of ${sheet##*/}\" src=\"${sheet#demo/}\"></div>"
    done
  fi
  for target in $targets; do
    echo "<h2>$target</h2><p><a href=\"$target/report.html\">Table, intervals and curves of 300 images</a></p>"
    awk -v form=html -f "$scripts/demo_sheets.awk" demo/$target/sheets/sheets.json
  done
  echo '</body></html>'
} | with_images > demo/report.part
mv demo/report.part demo/report.html

say "done"
echo "Look at:      demo/report.html (images)$(for target in $targets; do printf ', demo/%s/report.html' $target; done) (table and curves)"
echo "Your own:     $aha explain --target vit_b_16:WEIGHTS.pth --method chefer --out maps photo.jpg"
echo "An explainer: $aha train --target vit_b_16:WEIGHTS.pth --data folder:PHOTOS --out my-explainer"
echo "look:         $aha serve"
