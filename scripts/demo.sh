#!/bin/sh
# What `make demo` shows: a dozen images explained by the bundled explainers beside the baselines, and a table over the 300 sample images. demo.sh AHA
# Everything is kept in demo/: a second call only looks at what is there.
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
mkdir -p demo

say() { printf '\n== %s\n' "$*"; }

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
  say "aha compare --target $target --methods $methods --out demo/$target/sheets demo/images"
  test -e demo/$target/sheets.json || {
    "$aha" compare --quiet --json --target $target --methods $methods --out demo/$target/sheets demo/images > demo/$target.part
    mv demo/$target.part demo/$target/sheets.json
  }
  awk -v form=text -f "$scripts/demo_sheets.awk" demo/$target/sheets.json | head -8
  say "aha eval --target $target --data cifar10:sample --methods $methods --out demo/$target"
  "$aha" eval --target $target --data cifar10:sample --methods $methods --out demo/$target
done

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
<p>Twelve test images of CIFAR-10 and the two networks that come with <b>aha</b>. <b>aha</b> is one forward pass of the bundled explainer; <b>aha:T=3</b> adds three refinement steps on the
image. <i>Deletion</i>: the mean probability of the class while the most important pixels are removed first, lower is better. <i>Insertion</i>: while they are shown first, higher is better.
<i>Ins-del</i>: their difference.</p>
HEAD
  echo "<div class=\"wide\"><a href=\"maps/$(basename $shown .png).sheet.png\"><img alt=\"one explanation with its curves\" src=\"maps/$(basename $shown .png).sheet.png\"></a></div>"
  for target in $targets; do
    echo "<h2>$target</h2><p><a href=\"$target/report.html\">Table, intervals and curves of 300 images</a></p>"
    awk -v form=html -f "$scripts/demo_sheets.awk" demo/$target/sheets.json
  done
  echo '</body></html>'
} > demo/report.part
mv demo/report.part demo/report.html

say "done"
echo "Look at:      demo/report.html (images)$(for target in $targets; do printf ', demo/%s/report.html' $target; done) (table and curves)"
echo "Your own:     $aha explain --target vit_b_16:WEIGHTS.pth --method chefer --out maps photo.jpg"
echo "An explainer: $aha train --target vit_b_16:WEIGHTS.pth --data folder:PHOTOS --out my-explainer"
echo "look:         $aha serve"
