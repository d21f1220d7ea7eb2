. "$(dirname "$0")/lib.subr"

# The explainer belongs to the weights, whichever file they are in.
AHA_MODELS=$FIXTURES/example
export AHA_MODELS
expect 0 explain --target target --json "$FIXTURES/example/image.png"
cp out first
cmp -s "$FIXTURES/example/target/model.safetensors" "$FIXTURES/example/same/model.safetensors" && fail "expected two different files"
expect 0 explain --target "$FIXTURES/example/same" --json "$FIXTURES/example/image.png"
grep -q "explainer: explainer" err || fail "expected the bundled explainer to be found"
[ "$(grep -v seconds out)" = "$(grep -v seconds first)" ] || fail "expected the same map for the same weights"

# A copy in 16 bits is offered it, with a warning.
expect 0 explain --target "$FIXTURES/example/half" --json "$FIXTURES/example/image.png"
grep -q "rounded to 16 bits" err || fail "expected a warning for the 16-bit copy"

# The hash is on the card and can be looked at; a card without it goes on working for its own file.
expect 0 inspect --identity --json "$FIXTURES/example/same"
identity=$(sed -n '/"identity"/,/}/s/.*"sha256": "\(.*\)".*/\1/p' out)
grep -q "$identity" "$FIXTURES/example/explainer/model.json" || fail "expected the identity $identity on the explainer's card"
AHA_MODELS=$FIXTURES/example/old
grep -q '"tensors"' "$AHA_MODELS/explainer/model.json" && fail "expected a card without the hash"
expect 0 explain --target "$FIXTURES/example/target" "$FIXTURES/example/image.png"
refuses "no explainer of" explain --target "$FIXTURES/example/same" "$FIXTURES/example/image.png"
