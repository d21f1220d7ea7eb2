#!/bin/sh
# The evaluations behind docs/results.md and docs/results_wide.md: the bundled CIFAR-10 targets, rule `paper`, three references. results.sh AHA [OUT [TIMES]]
# Methods by what a map costs, on nested sets of test images: cheap ones on many, searches on few. TIMES more images of each (4 = 1,000 of the cheap ones); a second call
# continues. Leaves OUT/tables/NAME/results.csv, from which scripts/results_page.py writes the pages. Needs `aha get cifar10`. About an hour on one core at bf16.
set -eu
aha=$1 out=${2:-results} times=${3:-1}
one=aha,center,random,sobel,gradient,gradcam
attention=raw-attention,rollout,chefer,chefer:relu=heads,legrad,transformer-attribution,ig:space=attention,trans-att,bi-att,bi-att:variant=tokens
features=gradcam++,hirescam,layercam,ablationcam,ablationcam:ablation=zero
sampled=aha:T=1,aha:T=3,smoothgrad,smoothgrad:blur=2,ig,ig:blur=2,gradient:blur=2,gradcam:blur=2,random:cell=4,blurred-random,rise:masks=400
slow=aha:T=5,mda,occlusion
few=aha,chefer,transformer-attribution,legrad,gradcam,rollout,gradient,random
ceilings=optimized,greedy
plain=deletion,insertion,ins-del,positive,negative,neg-pos
wide=$plain,adp,pic,saco,idsds,sparseness,road-morf,road-lerf,mas-deletion,mas-insertion

# stage NAME TARGET METHODS EVERY LIMIT METRICS [FLAGS]
stage() {
  name=$1 target=$2 methods=$3 every=$4 limit=$5 metrics=$6
  shift 6
  "$aha" eval --target "cifar10-$target" --data cifar10:test --every "$every" --limit $((limit * times)) --methods "$methods" --metrics "$metrics" \
    --precision bf16 --timing-runs 0 --keep-maps --images 0 --quiet --out "$out/$target" "$@" >/dev/null
  mkdir -p "$out/tables/$name"
  for file in results.csv table.md report.html; do cp "$out/$target/$file" "$out/tables/$name/"; done
  echo "$name"
}

for target in vit8 vit4 convnext; do
  case $target in
    convnext) cheap=$one,$features more=$sampled,scorecam ;;
    *) cheap=$one,$attention more=$sampled,chefer:blur=2,vit-cx,tis ;;
  esac
  case $target in vit8) a=500 every=2 b=100 w=50 c=25 ;; vit4) a=250 every=2 b=50 w=25 c=13 ;; *) a=100 every=5 b=50 w=25 c=13 ;; esac
  stage $target-A $target "$cheap" $every $a "$plain"
  stage $target-B $target "$cheap,$more" 10 $b "$plain"
  stage $target-W $target "$cheap,$more" 20 $w "$wide"
  stage $target-C $target "$cheap,$more,$slow" 40 $c "$plain"
  case $target in
    vit8) stage vit8-foreign vit8 "$few" 20 $w ins-del,model-gap:foreign=cifar10-vit4
          stage vit8-again vit8 "$few" 40 $c ins-del,sensitivity-max,infidelity,class-sensitivity,parameter-randomization ;;
  esac
  [ $target = convnext ] || stage $target-gap $target "$few" 20 $w ins-del,model-gap,random-class-leakage
  stage $target-both $target "$cheap" 10 $b "$plain" --class both
  stage $target-D $target "$cheap,$more,$slow,$ceilings" 80 $((c / 2 + 1)) "$plain"
done
