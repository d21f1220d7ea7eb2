#!/bin/sh
# Real networks on real photos: sh real_weights.sh AHA SHARED. Skips (77) where the folder with them is absent.
set -eu
aha=$1
shared=$2
data=$shared/data
if [ ! -f "$data/imagenet/check.csv" ]; then
  echo "skipped: no real weights and photos at $shared (set AHA_SHARED to the folder that has them)"
  exit 77
fi

# at_least PERCENT NAME aha-arguments...
at_least() {
  wanted=$1
  name=$2
  shift 2
  found=$("$aha" classify --quiet --json --data "list:$data/imagenet/check.csv" "$@" | sed -n 's/.*"top1": \([0-9.]*\).*/\1/p')
  echo "$name: top-1 $found, expected at least $wanted"
  awk -v found="$found" -v wanted="$wanted" 'BEGIN { exit !(found >= wanted) }'
}

at_least 0.73 vit_tiny --target "vit_ti_16:$data/weights/vit_tiny_patch16_224_in1k.safetensors"
at_least 0.67 mobilenetv2 --target "script:$data/weights/mobilenetv2_in1k.torchscript.pt"
at_least 0.54 squeezenet1_1 --target "script:$data/weights/squeezenet1_1_in1k.torchscript.pt"

# Memory does not grow with the number of images: 1,000 of them in at most 200 MB more than 100.
peak() { /usr/bin/env sh -c '"$@" >/dev/null & pid=$!; best=0; while kill -0 $pid 2>/dev/null; do
  now=$(sed -n "s/VmHWM:[^0-9]*\([0-9]*\).*/\1/p" /proc/$pid/status 2>/dev/null || true); [ -n "$now" ] && best=$now; sleep 0.1; done; wait $pid; echo $best' peak "$@"; }
few=$(peak "$aha" classify --quiet --target "vit_ti_16:$data/weights/vit_tiny_patch16_224_in1k.safetensors" --data "list:$data/imagenet/check.csv" --limit 100)
many=$(peak "$aha" classify --quiet --target "vit_ti_16:$data/weights/vit_tiny_patch16_224_in1k.safetensors" "$data/imagenet/check")
echo "peak memory: $few kB for 100 images, $many kB for 1,000"
[ "$many" -le $((few + 200000)) ]

# The bundled explainer of these weights is found by their tensors and is above chefer on photos it never saw: by 0.029 of Ins-Del on the first 16.
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
"$aha" eval --quiet --target "vit_ti_16:$data/weights/vit_tiny_patch16_224_in1k.safetensors" --data "list:$data/imagenet/check.csv" --limit 16 --methods aha,chefer \
  --metrics ins-del --images 6 --timing-runs 0 --out "$out" >/dev/null
bytes=$(wc -c <"$out/report.html")
echo "report.html with six photos and two methods: $bytes bytes"
[ "$bytes" -lt 500000 ]
mean_of() { awk -F, -v method="$1" '$1 == method && $3 == "ins-del" { print $4 }' "$out/results.csv"; }
echo "ins-del of 16 photos: aha $(mean_of aha), chefer $(mean_of chefer)"
awk -v aha="$(mean_of aha)" -v chefer="$(mean_of chefer)" 'BEGIN { exit !(aha > chefer + 0.02) }'
