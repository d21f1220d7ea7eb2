#!/bin/sh
# The tables of docs/results.md: every bundled CIFAR-10 target on test images 0..999, rule `paper`, three references, predicted class. results.sh AHA [OUT [IMAGES]]
# Needs `aha data get cifar10`. A second call continues. An hour and a half on two cores.
set -eu
aha=$1 out=${2:-results} images=${3:-1000}
own=aha,aha:T=1,aha:T=3,aha:T=5
common=random,center,gradient,gradient:blur=2,smoothgrad,smoothgrad:blur=2,ig,ig:blur=2,gradcam,gradcam:blur=2,rise:masks=400
attention=legrad,legrad:blur=2,rollout,rollout:blur=2,chefer,chefer:blur=2
for target in vit4 vit8 convnext; do
  methods=$own,$common
  test $target = convnext || methods=$methods,$attention
  echo "aha eval --target cifar10-$target --data cifar10:test --limit $images --methods $methods --out $out/$target"
  "$aha" eval --target cifar10-$target --data cifar10:test --limit "$images" --methods "$methods" --images 40 --out "$out/$target"
done
echo "aha eval --target cifar10-vit4 --explainer aha-cifar10-vit4-independent --data cifar10:test --limit $images --methods aha,aha:T=3 --out $out/vit4-independent"
"$aha" eval --target cifar10-vit4 --explainer aha-cifar10-vit4-independent --data cifar10:test --limit "$images" --methods aha,aha:T=3 --out "$out/vit4-independent"
