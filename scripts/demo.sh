#!/bin/sh
# What `make demo` shows: a dozen images explained by the bundled explainers beside the baselines, and a table over the 300 sample images. demo.sh AHA
# Everything is kept in demo/: a second call only looks at what is there.
set -eu
aha=$1
targets="cifar10-vit4 cifar10-convnext"
methods_of() { # target
  case $1 in
    *vit*) echo center,gradient,gradcam,chefer,rise:masks=100,aha,aha:T=3 ;;
    *) echo center,gradient,gradcam,rise:masks=100,aha,aha:T=3 ;;
  esac
}
mkdir -p demo

say() { printf '\n== %s\n' "$*"; }

say "aha data export cifar10:sample --limit 12 --out demo/images"
"$aha" data export cifar10:sample --limit 12 --out demo/images

for target in $targets; do
  methods=$(methods_of $target)
  say "aha compare --target $target --methods $methods --out demo/$target/sheets demo/images"
  test -e demo/$target/sheets.txt || {
    "$aha" compare --quiet --target $target --methods $methods --out demo/$target/sheets demo/images > demo/$target.part
    mv demo/$target.part demo/$target/sheets.txt
  }
  sed -n '1,7p' demo/$target/sheets.txt
  say "aha eval --target $target --data cifar10:sample --methods $methods --out demo/$target"
  "$aha" eval --target $target --data cifar10:sample --methods $methods --out demo/$target
done

{
  echo '<!doctype html><meta charset="utf-8"><title>aha demo</title>'
  echo '<style>body{font:15px sans-serif;max-width:1200px;margin:2em auto;padding:0 1em}img{max-width:100%}h2{margin-top:2em}</style>'
  echo '<h1>Which pixels drove the decision?</h1>'
  echo '<p>Under each map: insertion, deletion and their difference for that map (ins-del, higher is better), and the time it took. <b>aha</b> is one forward pass of the explainer; <b>aha:T=3</b> adds three refinement steps on the image.</p>'
  for target in $targets; do
    echo "<h2>$target</h2><p><a href=\"$target/report.html\">Table, intervals and curves of 300 images</a></p>"
    for sheet in demo/$target/sheets/*.compare.png; do echo "<p><img src=\"${sheet#demo/}\" alt=\"\"></p>"; done
  done
} > demo/report.part
mv demo/report.part demo/report.html

say "done"
echo "Look at:      demo/report.html (images)$(for target in $targets; do printf ', demo/%s/report.html' $target; done) (table and curves)"
echo "Your own:     $aha explain --target vit_b_16:WEIGHTS.pth --method chefer --out maps photo.jpg"
echo "An explainer: $aha train --target vit_b_16:WEIGHTS.pth --data folder:PHOTOS --out my-explainer"
echo "look:         $aha serve"
