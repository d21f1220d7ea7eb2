. "$(dirname "$0")/lib.subr"

# An explainer on the target's own features: the target is found by itself, and is in the file.
expect 0 export aha-cifar10-vit4 --out vit4.onnx
says "logits [N, 10]"
expect 0 export aha-cifar10-vit4 --out vit4.onnx --opset 13 --json
says '"target": "cifar10-vit4"'
expect 0 export aha-cifar10-vit4 --out half.onnx --weights f16
[ $(($(wc -c <half.onnx) * 10)) -lt $(($(wc -c <vit4.onnx) * 6)) ] || fail "expected half of the size"
grep -aq '"airplane","automobile"' half.onnx || fail "expected the names of the classes"
# One with an encoder of its own needs no target.
expect 0 export aha-cifar10-vit4-independent --out independent.onnx
grep -q logits out && fail "expected no logits without a target"
# One beside its target.
expect 0 export "$FIXTURES/example/explainer" --out example.onnx
says "map [N, 16, 16]"

# Nothing is written where something is wrong.
refuses "expected that classifier as --target" export aha-imagenet-vit-ti-16 --out no.onnx
refuses "expected an explainer" export cifar10-vit4 --out no.onnx
refuses "aha-cifar10-vit4" export aha-cifar10-vit5 --out no.onnx
refuses "13..17" export aha-cifar10-vit4 --out no.onnx --opset 12
refuses "--out" export aha-cifar10-vit4
refuses "trained on the activations of cifar10-vit4" export aha-cifar10-vit4 --target cifar10-vit8 --out no.onnx
refuses "found a folder" export aha-cifar10-vit4 --out "$FIXTURES"
[ ! -e no.onnx ] || fail "expected no file"
echo mine >kept.onnx
refuses "was not made by aha" export aha-cifar10-vit4 --out kept.onnx
[ "$(cat kept.onnx)" = mine ] || fail "expected the file as it was"
expect 0 export aha-cifar10-vit4 --out kept.onnx --overwrite
# It is no classifier.
refuses "expected one input of images" classify --target onnx:vit4.onnx "$FIXTURES/good/a.png"
