. "$(dirname "$0")/lib.subr"

# Without --methods: ours where there is an explainer, the cheap ones of this kind of network, RISE with few masks, a control.
methods() { awk '$2 ~ /^[+-][0-9.]+$/ { printf "%s ", $1 }' out; }
expect 0 compare --target cifar10-vit4 --out sheets "$FIXTURES/good/a.png"
[ "$(methods)" = "aha chefer legrad gradcam gradient rise:masks=100 center " ] || fail "found $(methods)"
expect 0 compare --target "$FIXTURES/tiny" --out sheets "$FIXTURES/good/a.png"
[ "$(methods)" = "chefer legrad gradcam gradient rise:masks=100 center " ] || fail "found $(methods)"
AHA_MODELS=$FIXTURES/example "$AHA" eval --target target --data cifar10:sample --limit 2 --timing-runs 0 --out results >out 2>err </dev/null || fail "expected eval to choose"
for method in aha gradcam layercam rise:masks=100 center; do grep -q "^$method " out || fail "expected $method"; done
grep -q "^chefer" out && fail "expected no method of transformers for a ConvNet"

# An aligned table on stdout, Markdown in the file.
grep -q "|" out && fail "expected no Markdown on stdout"
grep -q "^| method |" results/table.md || fail "expected Markdown in table.md"
