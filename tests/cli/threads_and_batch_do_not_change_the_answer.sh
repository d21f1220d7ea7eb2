. "$(dirname "$0")/lib.subr"

expect 0 classify --target "$FIXTURES/tiny" --json --threads 1 --batch-size 1 "$FIXTURES/good/a.png" "$FIXTURES/good/b.jpg"
mv out one
expect 0 classify --target "$FIXTURES/tiny" --json --threads 2 --batch-size 2 "$FIXTURES/good/a.png" "$FIXTURES/good/b.jpg"
cmp -s one out || fail "expected the same JSON for 1 thread and 2, batch 1 and 2"
