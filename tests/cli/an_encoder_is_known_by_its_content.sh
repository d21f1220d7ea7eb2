. "$(dirname "$0")/lib.subr"

# The card of an explainer with an encoder of its own says which weights, not where they were.
cp "$FIXTURES/dinov3_vits16.safetensors" encoder.safetensors
cp "$FIXTURES/good/a.png" third.png
images="$FIXTURES/good/a.png $FIXTURES/good/b.jpg third.png"
expect 0 train --target "$FIXTURES/tiny" --data cifar10:sample --limit 24 --holdout 4 --batch-size 4 --perturbation-steps 2 --grid-low 2 --grid-high 4 \
  --channels 8 --top-channels 8 --head-channels 8 --search-images 0 --encoder dinov3_vits16:encoder.safetensors --max-steps 2 --out run
grep -q '"architecture": "dinov3_vits16"' run/model.json || fail "expected the encoder's architecture on the card"
grep -q "encoder.safetensors" run/model.json && fail "expected no path on the card"

mkdir elsewhere models
mv encoder.safetensors elsewhere/weights.safetensors
explain="explain --target $FIXTURES/tiny --explainer run --no-score"
refuses "--encoder FILE" $explain $images
expect 0 $explain --encoder elsewhere/weights.safetensors --out given $images
expect 0 $explain --encoder dinov3_vits16:elsewhere/weights.safetensors --out spec $images

mv elsewhere/weights.safetensors run/any_name.safetensors
expect 0 $explain --out beside $images
mv run/any_name.safetensors models
AHA_MODELS=$PWD/models expect 0 $explain --out folder $images
for name in a b third; do
  for found in spec beside folder; do
    cmp given/$name.map.npy $found/$name.map.npy || fail "expected the same map wherever the encoder is"
  done
done

# Other weights are refused, and so is an encoder for an explainer that has none.
refuses "sha256" $explain --encoder "$FIXTURES/fewer" $images
expect 0 train --target "$FIXTURES/tiny" --data cifar10:sample --limit 24 --holdout 4 --batch-size 4 --perturbation-steps 2 --grid-low 2 --grid-high 4 \
  --channels 8 --top-channels 8 --head-channels 8 --search-images 0 --max-steps 1 --out own
refuses "has no encoder of its own" explain --target "$FIXTURES/tiny" --explainer own --encoder models/any_name.safetensors $images
