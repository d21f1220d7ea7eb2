. "$(dirname "$0")/lib.subr"

common="--target $FIXTURES/tiny --data cifar10:sample --limit 24 --holdout 4 --batch-size 4 --perturbation-steps 2 --grid-low 2 --grid-high 4 --channels 8
  --top-channels 8 --head-channels 8 --checkpoint-every 2 --log-every 1 --search-images 0"
expect 0 train $common --max-steps 4 --out whole
for file in model.json model.safetensors log.jsonl; do [ -s "whole/$file" ] || fail "expected whole/$file"; done
ls whole | grep -q tfevents || fail "expected TensorBoard events"
grep -q '"kind": "explainer"' whole/model.json || fail "expected an explainer's card"

# Ctrl-C ends it between two steps with a checkpoint; --resume continues bit for bit.
long="--epochs 5 --max-steps 25"
"$AHA" train $common $long --out parts >out 2>err &
until [ -e parts/checkpoint.safetensors ] || ! kill -0 $!; do sleep 0.05; done
kill -INT $!
code=0
wait $! || code=$?
[ "$code" -eq 130 ] || fail "expected exit code 130 after Ctrl-C, found $code"
grep -q -- --resume err || fail "expected the way to go on"
expect 0 train $common $long --out parts --resume
expect 0 train $common $long --out uninterrupted
cmp parts/model.safetensors uninterrupted/model.safetensors || fail "expected the same weights as without an interruption"

expect 0 explain --target "$FIXTURES/tiny" --explainer whole --json --out maps "$FIXTURES/good/a.png"
says '"method": "aha'
expect 0 explain --target "$FIXTURES/tiny" --explainer whole --method aha:T=2:guard=off --json --out refined "$FIXTURES/good/a.png"
says '"refine": 2'
cmp -s maps/a.map.npy refined/a.map.npy && fail "expected refinement to change the map"
expect 0 explain --target "$FIXTURES/tiny" --explainer whole --method aha:T=2:guard=off --json --out again --threads 1 "$FIXTURES/good/b.jpg" "$FIXTURES/good/a.png"
cmp refined/a.map.npy again/a.map.npy || fail "expected the same refined map beside another image and with one thread"
expect 0 explain --target "$FIXTURES/tiny" --explainer whole --refine 1000 --budget 50ms --no-score "$FIXTURES/good/a.png"
refuses "already" train $common --max-steps 4 --out whole
expect 0 train $common --max-steps 4 --out whole --resume

# The card says how refinement is done: 2 steps of 3 references, 2 directions and 3 perturbed images, after one forward for the features; 48 forwards are the guard's.
expect 0 train $common --max-steps 2 --refinement-perturbation-steps 3 --out three
expect 0 eval --target "$FIXTURES/tiny" --explainer three --data cifar10:sample --limit 2 --methods aha:T=2 --timing-runs 0 --out evaluated
says '85 F + 36 B'
sed -i 's/"S": 3/"S": 4/' three/model.json
# With another explainer, and other settings make another one, its rows are made again; those of other methods stay.
expect 0 eval --target "$FIXTURES/tiny" --explainer three --data cifar10:sample --limit 2 --methods aha:T=2,gradient --timing-runs 0 --out evaluated
says '97 F + 48 B'
grep -q "2 rows are made again" err || fail "expected a word on the rows of the other explainer"
expect 0 eval --target "$FIXTURES/tiny" --explainer whole --data cifar10:sample --limit 2 --methods aha,gradient --timing-runs 0 --out evaluated
[ "$(grep -c '"method":"gradient"' evaluated/rows.jsonl)" = 2 ] || fail "expected the rows of gradient to be made once"

# Another run goes on from an explainer: at a rate of nearly nothing its weights stay, and the card says where they came from.
expect 0 train $common --max-steps 1 --lr 1e-12 --from whole --out further
grep -q "\"began_with\": \"$(sha256sum <whole/model.safetensors | cut -d' ' -f1)\"" further/model.json || fail "expected the card to say what the run began with"
changed=$(cmp -l further/model.safetensors whole/model.safetensors | wc -l)
[ "$changed" -gt 0 ] && [ "$changed" -lt 1000 ] || fail "expected only BatchNorm's statistics to change, found $changed bytes of $(wc -c <whole/model.safetensors)"
expect 0 explain --target "$FIXTURES/tiny" --explainer further --out further_maps "$FIXTURES/good/a.png"

# With a prior (explainer_test says what the map begins as) the card keeps it, and refinement, other batches and other threads know it.
expect 0 train $common --max-steps 1 --lr 1e-12 --prior chefer --out prior
expect 0 explain --target "$FIXTURES/tiny" --explainer prior --out prior_maps "$FIXTURES/good/a.png" "$FIXTURES/good/b.jpg"
expect 0 explain --target "$FIXTURES/tiny" --explainer prior --out prior_alone --threads 1 "$FIXTURES/good/b.jpg"
cmp prior_maps/b.map.npy prior_alone/b.map.npy || fail "expected the same map beside another image and with one thread"
expect 0 explain --target "$FIXTURES/tiny" --explainer prior --method aha:T=2:guard=off --out prior_refined "$FIXTURES/good/b.jpg"
cmp -s prior_refined/b.map.npy prior_alone/b.map.npy && fail "expected refinement to change the map"
expect 0 train $common --max-steps 1 --from whole --prior chefer --out prior_later
expect 0 eval --target "$FIXTURES/tiny" --explainer prior_later --data cifar10:sample --limit 2 --methods aha --timing-runs 0 --out prior_evaluated
says '1 F + 1 B'
sed -i 's/"prior_weight": 25/"prior_weight": 26/' prior_later/model.json
expect 0 eval --target "$FIXTURES/tiny" --explainer prior_later --data cifar10:sample --limit 2 --methods aha --timing-runs 0 --out prior_evaluated
grep -q "2 rows are made again" err || fail "expected another weight of the prior to be another explainer"

# Wrong pairings say what was expected and found.
refuses "found $FIXTURES/fewer" explain --target "$FIXTURES/fewer" --explainer whole "$FIXTURES/good/a.png"
expect 0 train $common --max-steps 2 --encoder "$FIXTURES/fewer" --out independent
expect 0 explain --target "$FIXTURES/tiny" --explainer independent --encoder "$FIXTURES/fewer" "$FIXTURES/good/a.png"
refuses "expected an explainer of" train --target "$FIXTURES/fewer" --data cifar10:sample --limit 24 --from independent --encoder "$FIXTURES/fewer" --out never
refuses "5 classes" explain --target "$FIXTURES/fewer" --explainer independent --encoder "$FIXTURES/fewer" "$FIXTURES/good/a.png"
refuses "32" explain --target "$FIXTURES/larger" --explainer independent --encoder "$FIXTURES/fewer" "$FIXTURES/good/a.png"
refuses "expected" explain --target "$FIXTURES/tiny" --explainer "$FIXTURES/tiny" "$FIXTURES/good/a.png"
refuses "with attention" train --target cifar10-convnext --data cifar10:sample --limit 24 --prior chefer --out never
refuses "block." train $common --levels stage.0 --out never
refuses "missing.safetensors" train $common --encoder dinov3_vitl16:missing.safetensors --out never
[ ! -e never ] || fail "expected nothing written after a refusal"
