. "$(dirname "$0")/lib.subr"

expect 0 inspect "$FIXTURES/tiny/model.safetensors"
says "parameters"
expect 0 inspect --json "$FIXTURES/tiny/model.safetensors"
says "\"architecture\""

# Model directories and bundled names.
expect 0 inspect "$FIXTURES/tiny"
says "classifier (vit)"
says "--target $FIXTURES/tiny"
expect 0 inspect cifar10-vit4 aha-cifar10-vit4
says "--target cifar10-vit4"
says "explains      cifar10-vit4"
says "--explainer aha-cifar10-vit4"
expect 0 inspect --json cifar10-vit4
says '"kind": "classifier"'
refuses "did you mean 'cifar10-vit4'" inspect cifar10-vit5
refuses "missing.pth" inspect missing.pth
refuses "this one fits dinov3_vits16" classify --target "$FIXTURES/dinov3_vits16.safetensors" "$FIXTURES/good/a.png"
# An ONNX graph.
expect 0 inspect "$FIXTURES/network.onnx"
says "opset 13, 5 nodes"
says "--target onnx:$FIXTURES/network.onnx"
says "libtorch's operators"
