. "$(dirname "$0")/lib.subr"

refuses "aha train --target $FIXTURES/tiny --data folder:PHOTOS --out my-explainer" explain --target "$FIXTURES/tiny" "$FIXTURES/good/a.png"
grep -q -- "--method chefer|legrad|gradcam" err || fail "expected methods for a transformer"
grep -q -- "--method optimized" err || fail "expected the ceiling"
refuses "--encoder" explain --target "script:$FIXTURES/colors.pt" --quiet "$FIXTURES/good/a.png"
grep -q chefer err && fail "expected no method of transformers for a TorchScript target"
refuses "aha train" eval --target "$FIXTURES/tiny" --data cifar10:sample --limit 2 --methods aha --out results
