. "$(dirname "$0")/lib.subr"

mkdir many && for i in $(seq 200); do ln -s "$FIXTURES/good/a.png" many/$i.png; done
slow="rise:masks=4000"
small="--data cifar10:sample --holdout 4 --batch-size 4 --epochs 500"

# stopped SIGNAL CODE aha-arguments...: the signal ends the work with its own exit code and a word; nothing half-written is left.
stopped() {
  signal=$1 wanted=$2
  shift 2
  : >err
  "$AHA" "$@" --verbose >out 2>err </dev/null &
  process=$!
  until grep -q "OpenBLAS runs" err; do kill -0 $process || fail "aha $*: ended at once"; sleep 0.05; done
  sleep 0.7
  kill -$signal $process || fail "aha $*: ended before the signal"
  code=0
  wait $process || code=$?
  [ "$code" -eq "$wanted" ] || fail "aha $*: expected exit code $wanted after SIG$signal, found $code"
  grep -q "aha: stopped" err || fail "aha $*: expected a word on stderr"
  [ -z "$(find . -name '*.part-*' -o -name .lock)" ] || fail "aha $*: expected nothing half-written"
}

n=0
for call in "classify --target $FIXTURES/tiny --batch-size 1 $(for i in $(seq 60); do echo many; done)" \
  "explain --target $FIXTURES/tiny --method $slow --out maps many" "compare --target $FIXTURES/tiny --methods $slow --out sheets many" \
  "eval --target $FIXTURES/tiny --data cifar10:sample --methods $slow --timing-runs 0 --out results" \
  "train --target $FIXTURES/tiny $small --perturbation-steps 2 --channels 8 --top-channels 8 --head-channels 8 --out run" \
  "fit --arch vit_mini_8 $small --out model" "fit --arch vit_mini_8 $small --workers 2 --out together" "bench"; do
  n=$((n + 1))
  if [ $((n % 2)) -eq 0 ]; then stopped INT 130 $call; else stopped TERM 143 $call; fi
done
