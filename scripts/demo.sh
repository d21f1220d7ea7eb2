#!/bin/sh
# What `make demo` shows: what there is, and a bundled classifier at work on pictures from the tree. demo.sh AHA
set -eu
aha=$1
target=cifar10-small

echo "== aha models"
"$aha" models | sed -n '1,6p'
echo "   ..."
echo
echo "== aha classify --target $target --data cifar10:sample"
"$aha" classify --target $target --data cifar10:sample
echo
echo "== eight of those pictures, one by one"
mkdir -p demo
"$aha" data export cifar10:sample --limit 8 --out demo/pictures >/dev/null
"$aha" classify --target $target --topk 2 demo/pictures
echo
echo "Your own: $aha classify --target vit_b_16:WEIGHTS.pth photo.jpg"
echo "          $aha --help"
