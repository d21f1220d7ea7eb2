. "$(dirname "$0")/lib.subr"

n=0
for call in "eval --target $FIXTURES/tiny --methods rise:masks=4000 --timing-runs 0" \
  "train --target $FIXTURES/tiny --holdout 4 --batch-size 4 --epochs 500 --perturbation-steps 2 --channels 8 --top-channels 8 --head-channels 8" \
  "fit --arch vit_mini_8 --holdout 4 --batch-size 4 --epochs 500" "fit --arch vit_mini_8 --holdout 4 --batch-size 4 --epochs 500 --workers 2"; do
  n=$((n + 1))
  "$AHA" $call --data cifar10:sample --out run$n >first_out 2>first_err </dev/null &
  first=$!
  until [ -s run$n/.lock ]; do kill -0 $first || fail "aha $call: ended at once: $(cat first_err)"; sleep 0.05; done
  refuses "process $first" $call --data cifar10:sample --out run$n
  # The lock of a process that was killed blocks nobody: the next one gets as far as its wrong data.
  kill -9 $first
  wait $first 2>/dev/null || true
  [ -s run$n/.lock ] || fail "aha $call: expected the killed process to leave its lock"
  expect 2 $call --data list:missing.csv --out run$n
  grep -q "missing.csv" err || fail "aha $call: expected no lock after kill -9"
done
