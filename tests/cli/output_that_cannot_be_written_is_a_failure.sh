. "$(dirname "$0")/lib.subr"
[ -w /dev/full ] || exit 0

# Every command, short output and long: exit code 1 and one line that says why.
for call in "--version" "--help" "explain --help" "models" "models --json" "inspect $FIXTURES/tiny/model.safetensors" "data info cifar10:sample" \
  "classify --target $FIXTURES/tiny $FIXTURES/good/a.png" "classify --target $FIXTURES/tiny --json $FIXTURES/good/a.png" \
  "explain --target $FIXTURES/tiny --method gradient --no-score $FIXTURES/good/a.png" "compare --target $FIXTURES/tiny --methods random $FIXTURES/good/a.png" \
  "eval --target $FIXTURES/tiny --data cifar10:sample --limit 2 --methods random --timing-runs 0 --out results"; do
  code=0
  "$AHA" $call >/dev/full 2>err || code=$?
  [ "$code" -eq 1 ] || fail "aha $call >/dev/full: expected exit code 1, found $code"
  grep -q "No space left" err || fail "aha $call >/dev/full: expected the reason"
done

# A reader that has gone, and no stdout at all.
(code=0; "$AHA" models 2>pipe_err || code=$?; echo $code >pipe_code) | true
[ "$(cat pipe_code)" -eq 1 ] || fail "expected exit code 1 for a closed pipe, found $(cat pipe_code)"
code=0
"$AHA" classify --target "$FIXTURES/tiny" "$FIXTURES/good/a.png" >&- 2>err || code=$?
[ "$code" -eq 1 ] || fail "expected exit code 1 without stdout, found $code"
