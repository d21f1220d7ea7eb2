. "$(dirname "$0")/lib.subr"

expect 0 train --target "$FIXTURES/tiny" --data cifar10:sample --limit 8 --holdout 4 --batch-size 4 --perturbation-steps 2 --grid-low 2 --grid-high 4 --channels 8 \
  --top-channels 8 --head-channels 8 --search-images 0 --max-steps 1 --refinement-perturbation-steps 3 --out explainer
explain="explain --target $FIXTURES/tiny --explainer explainer --no-score"

# T in the method's own options is a refinement like any other: 3 steps of 3 references, 2 directions and 3 perturbed images, after one forward pass. The guard looks at two maps,
# each with 3 references, 2 directions and 4 perturbed images.
expect 0 $explain --method aha:T=3 --json --out spec "$FIXTURES/good/a.png"
for key in '"refine": 3' '"forwards": 103' '"backwards": 54'; do says "$key"; done
expect 0 $explain --method aha:T=3:guard=off --json --out paper "$FIXTURES/good/a.png"
for key in '"refine": 3' '"forwards": 55' '"backwards": 54'; do says "$key"; done
grep -q '"loss": -\?0\.[0-9]' out || fail "expected the loss of the last step"
expect 0 $explain --refine 3 --json --out flag "$FIXTURES/good/a.png"
says '"refine": 3'
cmp spec/a.map.npy flag/a.map.npy || fail "expected the same map from aha:T=3 and --refine 3"
expect 0 $explain --method aha:T=3:guard=off "$FIXTURES/good/a.png"
says "refined 3 steps to loss"
says "55 F + 54 B"
# What the steps change costs the target nothing more.
for form in head map:moves=1 map:moves=3 head-then-map:head-steps=1; do
  expect 0 $explain --method aha:T=3:refine=$form --json "$FIXTURES/good/a.png"
  for key in '"refine": 3' '"forwards": 103' '"backwards": 54'; do says "$key"; done
done
# Steps that gain nothing are noticed, and the map before is kept.
expect 0 $explain --method aha:T=3:refine=head:lr=1e-30 --out kept "$FIXTURES/good/a.png"
says "refined 3 steps without gain: the map before is kept, 103 F + 54 B"
expect 0 $explain --out plain "$FIXTURES/good/a.png"
cmp kept/a.map.npy plain/a.map.npy || fail "expected the explainer's own map"
expect 0 $explain --json "$FIXTURES/good/a.png"
for key in '"refine": 0' '"loss": null' '"forwards": 1' '"backwards": 0'; do says "$key"; done

# A budget decides by itself how many steps there are, and says so.
for budget in "--budget 3s" "--method aha:budget=3000"; do
  expect 0 $explain $budget --json "$FIXTURES/good/a.png"
  steps=$(sed -n 's/.*"refine": \([0-9]*\).*/\1/p' out)
  [ "$steps" -gt 0 ] && [ "$steps" -lt 100000 ] || fail "$budget: expected the steps done, found $steps"
  says "\"backwards\": $((18 * steps))"
done

# Two overrides for one thing are a contradiction.
refuses "T once" $explain --method aha:T=3 --refine 5 "$FIXTURES/good/a.png"
refuses "budget once" $explain --method aha:budget=100 --budget 200ms "$FIXTURES/good/a.png"
refuses "T once" $explain --method aha:T=3:T=5 "$FIXTURES/good/a.png"
refuses "expected method aha" $explain --method gradient --refine 5 "$FIXTURES/good/a.png"
