#!/bin/sh
# The ImageNet evaluations behind docs/results.md and docs/results_wide.md: the explainer of the public ViT-Tiny/16 beside every method. imagenet.sh AHA WEIGHTS EXPLAINER LIST OUT [TIMES [BOXES PETS]]
#   WEIGHTS  the public ViT-Tiny/16 as safetensors      EXPLAINER  what recipes/imagenet-vit-ti-16.toml made of it      LIST  a .csv of photos with their classes
#   TIMES    more photos: 9 = 180 for the cheap methods      BOXES, PETS  .csv lists with boxes and with masks
# A second call continues. A photo takes 17 s of one core at bf16 for the cheap methods and 30 s more for the samplers. Leaves OUT/tables/NAME/results.csv for scripts/results_page.py.
set -eu
aha=$1 weights=$2 explainer=$3 list=$4 out=$5 times=${6:-1} boxes=${7:-} pets=${8:-}
one=aha,center,random,sobel,gradient,gradcam
attention=logit-attribution,raw-attention,rollout,chefer,chefer:relu=heads,legrad,transformer-attribution,ig:space=attention,trans-att,bi-att,bi-att:variant=tokens
sampled=aha:T=1,aha:T=3,smoothgrad,smoothgrad:blur=10,ig,ig:blur=10,gradient:blur=10,gradcam:blur=10,random:cell=16,blurred-random,rise:masks=400,chefer:blur=10,vit-cx,tis
few=aha,logit-attribution,chefer,chefer:relu=heads,transformer-attribution,legrad,rollout,raw-attention,gradcam,bi-att,trans-att,ig:space=attention,gradient,center,random

# stage NAME DATA METHODS EVERY LIMIT METRICS [FLAGS]; LIMIT 0 = all
stage() {
  name=$1 data=$2 methods=$3 every=$4 limit=$5 metrics=$6
  shift 6
  "$aha" eval --target "vit_ti_16:$weights" --explainer "$explainer" --data "list:$data" --every "$every" --limit "$limit" --methods "$methods" --metrics "$metrics" \
    --precision bf16 --timing-runs 0 --images 0 --quiet --out "$out/${data##*/}" "$@" >/dev/null
  mkdir -p "$out/tables/$name"
  for file in results.csv table.md report.html; do cp "$out/${data##*/}/$file" "$out/tables/$name/"; done
  echo "$name"
}

plain=deletion,insertion,ins-del,positive,negative,neg-pos
stage ti-A "$list" "$one,$attention" $((27 / (times > 27 ? 27 : times))) $((20 * times)) "$plain" --keep-maps
stage ti-B "$list" "$one,$attention,$sampled" $((81 / (times > 81 ? 81 : times))) $((7 * times)) "$plain" --keep-maps
[ -z "$boxes" ] || stage ti-boxes "$boxes" "$few" 54 0 pointing,energy,box-iou
[ -z "$pets" ] || stage ti-pets "$pets" "$few" 12 0 seg-accuracy,seg-miou,seg-map,seg-map-binary,seg-f1,seg-f1-rows --protocol segmentation
