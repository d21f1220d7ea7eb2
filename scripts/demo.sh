#!/bin/sh
# What `make demo` shows: what there is, pictures from the tree, and maps of them. demo.sh AHA
# (The tiny network has random weights: it shows the whole chain at work, not a trained classifier's reasons.)
set -eu
aha=$1
programs=$(dirname "$aha")

echo "== aha models"
"$aha" models | sed -n '1,12p'
echo "  ..."
echo
echo "== aha data export cifar10:sample --limit 6 --out demo/pictures"
mkdir -p demo
"$aha" data export cifar10:sample --limit 6 --out demo/pictures
echo
echo "== a tiny network with random weights: aha classify, aha compare"
"$programs/make_fixtures" demo/model >/dev/null
"$aha" classify --target demo/model/tiny --topk 2 demo/pictures
"$aha" compare --quiet --target demo/model/tiny --methods gradient,smoothgrad,ig,rollout,chefer,rise --out demo/compare demo/pictures
echo
echo "Pictures: demo/compare"
echo "Your own: $aha classify --target vit_b_16:WEIGHTS.pth photo.jpg"
echo "          $aha compare --target vit_b_16:WEIGHTS.pth --methods gradient,chefer,rise --out maps photo.jpg"
