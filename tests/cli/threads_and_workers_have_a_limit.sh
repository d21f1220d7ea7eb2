. "$(dirname "$0")/lib.subr"

expect 0 classify --target "$FIXTURES/tiny" --threads 1000 "$FIXTURES/good/a.png"
grep -q -- "--threads 1000: this machine has" err || fail "expected a warning on the threads"
mv out many
expect 0 classify --target "$FIXTURES/tiny" "$FIXTURES/good/a.png"
[ ! -s err ] || fail "expected no warning"
cmp many out || fail "expected the same answer"
expect 0 eval --target "$FIXTURES/tiny" --data cifar10:sample --limit 2 --methods random --timing-runs 0 --workers 256 --out results
grep -q -- "--workers 256: this machine has" err || fail "expected a warning on the workers"
