#!/bin/sh
# The ImageNet table of docs/results.md: the explainer of the public ViT-Tiny/16 beside every method. imagenet.sh AHA WEIGHTS EXPLAINER LIST OUT [FLAGS]
#   WEIGHTS  the public ViT-Tiny/16 as safetensors      EXPLAINER  what recipes/imagenet-vit-ti-16.toml made of it      LIST  a .csv of photos with their classes
#   FLAGS    more for `aha eval`: --every 3 takes a third of a list that is sorted by class, --precision bf16 is faster where the CPU has it
# A second call continues, more images extend it. 17 s a photo on two cores of an AMD EPYC (bf16); the cheap methods come first.
set -eu
aha=$1 weights=$2 explainer=$3 list=$4 out=$5
shift 5
methods=
for more in aha,chefer,chefer:blur=10,chefer:relu=heads,transformer-attribution,raw-attention,rollout,legrad,gradcam trans-att,bi-att,bi-att:variant=tokens,ig:space=attention,vit-cx aha:T=1,aha:T=3,aha:T=5,center,random \
  rollout:blur=10,legrad:blur=10,gradcam:blur=10,gradient,gradient:blur=10 smoothgrad,smoothgrad:blur=10,ig,ig:blur=10 rise:masks=400,occlusion tis mda; do
  methods=${methods:+$methods,}$more
  echo "aha eval --target vit_ti_16:$weights --explainer $explainer --data list:$list --methods $methods --out $out $*"
  "$aha" eval --target "vit_ti_16:$weights" --explainer "$explainer" --data "list:$list" --methods "$methods" --metrics ins-del --images 40 --out "$out" "$@"
done
