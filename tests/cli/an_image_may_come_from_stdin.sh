. "$(dirname "$0")/lib.subr"

"$AHA" classify --target "$FIXTURES/tiny" - <"$FIXTURES/good/a.png" >piped 2>err || fail "expected stdin to be read"
expect 0 classify --target "$FIXTURES/tiny" "$FIXTURES/good/a.png"
[ "$(tail -n +2 piped)" = "$(tail -n +2 out)" ] || fail "expected the same classes from stdin"
cat "$FIXTURES/good/a.png" | "$AHA" explain --target "$FIXTURES/tiny" --method gradient --no-score --out maps - >out 2>err || fail "expected a pipe to be read"
[ -s maps/stdin.map.npy ] || fail "expected maps/stdin.map.npy"
refuses "stdin: expected a JPEG" classify --target "$FIXTURES/tiny" -
