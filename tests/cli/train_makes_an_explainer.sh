. "$(dirname "$0")/lib.subr"

common="--target $FIXTURES/tiny --data cifar10:sample --limit 24 --holdout 4 --batch-size 4 --perturbation-steps 2 --grid-low 2 --grid-high 4 --channels 8
  --top-channels 8 --head-channels 8 --checkpoint-every 2 --log-every 1 --search-pictures 0"
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
[ "$code" -eq 1 ] || fail "expected exit code 1 after Ctrl-C, found $code"
grep -q -- --resume err || fail "expected the way to go on"
expect 0 train $common $long --out parts --resume
expect 0 train $common $long --out uninterrupted
cmp parts/model.safetensors uninterrupted/model.safetensors || fail "expected the same weights as without an interruption"

expect 0 explain --target "$FIXTURES/tiny" --explainer whole --json --out maps "$FIXTURES/good/a.png"
says '"method": "aha'
expect 0 explain --target "$FIXTURES/tiny" --explainer whole --refine 2 --json --out refined "$FIXTURES/good/a.png"
says '"refine": 2'
cmp -s maps/a.map.npy refined/a.map.npy && fail "expected refinement to change the map"
expect 0 explain --target "$FIXTURES/tiny" --explainer whole --refine 2 --json --out again --threads 1 "$FIXTURES/good/b.jpg" "$FIXTURES/good/a.png"
cmp refined/a.map.npy again/a.map.npy || fail "expected the same refined map beside another picture and with one thread"
expect 0 explain --target "$FIXTURES/tiny" --explainer whole --refine 1000 --budget 50ms --no-score "$FIXTURES/good/a.png"
refuses "already" train $common --max-steps 4 --out whole
expect 0 train $common --max-steps 4 --out whole --resume

# The card says how refinement is done: 2 steps of 3 references, 2 directions and 3 perturbed pictures, after one forward for the features.
expect 0 train $common --max-steps 2 --refinement-perturbation-steps 3 --out three
expect 0 eval --target "$FIXTURES/tiny" --explainer three --data cifar10:sample --limit 2 --methods aha:T=2 --timing-runs 0 --out judged
says '37 F + 36 B'
sed -i 's/"S": 3/"S": 4/' three/model.json
refuses '"S":3' eval --target "$FIXTURES/tiny" --explainer three --data cifar10:sample --limit 2 --methods aha:T=2 --timing-runs 0 --out judged

# Another run goes on from an explainer: at a rate of nearly nothing its weights stay, and the card says where they came from.
expect 0 train $common --max-steps 1 --lr 1e-12 --from whole --out further
grep -q "\"began_with\": \"$(sha256sum <whole/model.safetensors | cut -d' ' -f1)\"" further/model.json || fail "expected the card to say what the run began with"
changed=$(cmp -l further/model.safetensors whole/model.safetensors | wc -l)
[ "$changed" -gt 0 ] && [ "$changed" -lt 1000 ] || fail "expected only BatchNorm's statistics to change, found $changed bytes of $(wc -c <whole/model.safetensors)"
expect 0 explain --target "$FIXTURES/tiny" --explainer further --out further_maps "$FIXTURES/good/a.png"

# Wrong pairings say what was expected and found.
refuses "found $FIXTURES/fewer" explain --target "$FIXTURES/fewer" --explainer whole "$FIXTURES/good/a.png"
expect 0 train $common --max-steps 2 --encoder "$FIXTURES/fewer" --out independent
expect 0 explain --target "$FIXTURES/tiny" --explainer independent "$FIXTURES/good/a.png"
refuses "expected an explainer of" train --target "$FIXTURES/fewer" --data cifar10:sample --limit 24 --from independent --out never
refuses "5 classes" explain --target "$FIXTURES/fewer" --explainer independent "$FIXTURES/good/a.png"
refuses "32" explain --target "$FIXTURES/larger" --explainer independent "$FIXTURES/good/a.png"
refuses "expected" explain --target "$FIXTURES/tiny" --explainer "$FIXTURES/tiny" "$FIXTURES/good/a.png"
refuses "block." train $common --levels stage.0 --out never
refuses "missing.safetensors" train $common --encoder dinov3_vitl16:missing.safetensors --out never
[ ! -e never ] || fail "expected nothing written after a refusal"
