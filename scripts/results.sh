#!/bin/sh
# The tables of docs/results.md: every bundled CIFAR-10 target on test images 0..999, rule `paper`, three references, predicted class. results.sh AHA [OUT [IMAGES]]
# Needs `aha get cifar10`. A second call continues. Hours on two cores: the searching methods take a second an image.
set -eu
aha=$1 out=${2:-results} images=${3:-1000}
own=aha,aha:T=1,aha:T=3,aha:T=5
common=random,random:cell=4,blurred-random,center,sobel,gradient,gradient:blur=2,smoothgrad,smoothgrad:blur=2,ig,ig:blur=2,gradcam,gradcam:blur=2,occlusion,rise:masks=400,mda
attention=raw-attention,rollout,rollout:blur=2,chefer,chefer:blur=2,chefer:relu=heads,transformer-attribution,legrad,legrad:blur=2,ig:space=attention,trans-att,bi-att,bi-att:variant=tokens,tis,vit-cx
features=gradcam++,hirescam,layercam,scorecam,ablationcam,ablationcam:ablation=zero
for target in vit4 vit8 convnext; do
  methods=$own,$common
  case $target in convnext) methods=$methods,$features ;; *) methods=$methods,$attention ;; esac
  echo "aha eval --target cifar10-$target --data cifar10:test --limit $images --methods $methods --out $out/$target"
  "$aha" eval --target cifar10-$target --data cifar10:test --limit "$images" --methods "$methods" --images 40 --out "$out/$target"
  # How far the possible is away: two ceilings, seconds a map, on every tenth image.
  "$aha" eval --target cifar10-$target --data cifar10:test --limit $((images / 10)) --every 10 --methods aha,aha:T=3,optimized,greedy --out "$out/$target-ceilings"
done
echo "aha eval --target cifar10-vit4 --explainer aha-cifar10-vit4-independent --data cifar10:test --limit $images --methods aha,aha:T=3 --out $out/vit4-independent"
"$aha" eval --target cifar10-vit4 --explainer aha-cifar10-vit4-independent --data cifar10:test --limit "$images" --methods aha,aha:T=3 --out "$out/vit4-independent"
