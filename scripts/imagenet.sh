#!/bin/sh
# The ImageNet table of docs/results.md: the explainer of the public ViT-Tiny/16 beside every method. imagenet.sh AHA WEIGHTS LIST OUT [PICTURES]
#   WEIGHTS  vit_tiny_patch16_224.augreg_in21k_ft_in1k of timm as safetensors      LIST  a .csv of photos with their classes
# A second call continues, more pictures extend it. Two hours for 300 photos on two cores; the cheap methods come first.
set -eu
aha=$1 weights=$2 list=$3 out=$4 pictures=${5:-300}
methods=
for more in aha,chefer,chefer:blur=10,rollout,legrad,gradcam aha:T=1,aha:T=3,aha:T=5,center,random \
  rollout:blur=10,legrad:blur=10,gradcam:blur=10,gradient,gradient:blur=10 smoothgrad,smoothgrad:blur=10,ig,ig:blur=10 rise:masks=400; do
  methods=${methods:+$methods,}$more
  echo "aha eval --target vit_ti_16:$weights --data list:$list --limit $pictures --methods $methods --out $out"
  "$aha" eval --target "vit_ti_16:$weights" --data "list:$list" --limit "$pictures" --methods "$methods" --metrics ins-del --pictures 40 --out "$out"
done
