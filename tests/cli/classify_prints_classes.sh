. "$(dirname "$0")/lib.subr"

expect 0 classify --target "$FIXTURES/tiny" --topk 3 "$FIXTURES/good/a.png" "$FIXTURES/good/b.jpg"
says "a.png"
says "%"
[ "$(grep -c "%" out)" -eq 6 ] || fail "expected three classes for each of two images"
