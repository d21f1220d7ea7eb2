. "$(dirname "$0")/lib.subr"

# onnx:FILE is a target with gradients; FILE.onnx alone is recognized.
expect 0 classify --target "onnx:$FIXTURES/network.onnx" --topk 1 "$FIXTURES/good/a.png" "$FIXTURES/good/b.jpg"
cp out named
expect 0 classify --target "$FIXTURES/network.onnx" --topk 1 "$FIXTURES/good/a.png" "$FIXTURES/good/b.jpg"
cmp -s out named || fail "expected the same classes with and without onnx:"
grep -q "taken as onnx:" err || fail "expected a word on ONNX"

for method in gradient gradcam layercam rise:masks=20; do
  expect 0 explain --target "onnx:$FIXTURES/network.onnx" --method $method --out maps --overwrite "$FIXTURES/good/a.png"
done
expect 2 explain --target "onnx:$FIXTURES/network.onnx" --method chefer "$FIXTURES/good/a.png"
grep -q "needs attention" err || fail "expected a word on attention"
expect 0 train --target "onnx:$FIXTURES/network.onnx" --data cifar10:sample --limit 16 --epochs 1 --batch-size 4 --holdout 2 --no-search --out explainer
expect 0 explain --target "onnx:$FIXTURES/network.onnx" --explainer explainer --refine 1 --no-score "$FIXTURES/good/a.png"

# An exported transformer: attention is found in its graph. What takes its blocks apart is refused at once.
vit="onnx:$FIXTURES/transformer.onnx"
for method in chefer rollout; do
  expect 0 explain --target "$vit" --method $method --no-score --out vit_maps --overwrite "$FIXTURES/good/a.png"
done
for method in tis transformer-attribution logit-attribution vit-cx; do
  refuses "method $method needs a vision transformer of a known architecture" explain --quiet --target "$vit" --method $method "$FIXTURES/good/a.png"
  grep -q "fits vision transformers" err || fail "$method: expected the targets that it fits"
done

head -c 400 "$FIXTURES/network.onnx" > cut.onnx
refuses "cut.onnx" classify --target onnx:cut.onnx "$FIXTURES/good/a.png"
refuses "nowhere.onnx" classify --target onnx:nowhere.onnx "$FIXTURES/good/a.png"
refuses "expected 32, which the file fixes" classify --target "onnx:$FIXTURES/network.onnx" --input-size 64 "$FIXTURES/good/a.png"
