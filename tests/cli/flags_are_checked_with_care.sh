. "$(dirname "$0")/lib.subr"

refuses "unknown flag --tpk; did you mean --topk?" classify --target "$FIXTURES/tiny" --tpk 3 "$FIXTURES/good/a.png"
refuses "it is one of aha explain" classify --target "$FIXTURES/tiny" --refine 3 "$FIXTURES/good/a.png"
refuses "--target is given twice, 'a' and 'b'" classify --target a --target=b "$FIXTURES/good/a.png"
refuses "a list is --methods aha,rise" eval --methods aha --methods rise
# Short forms of the two flags one types most.
expect 0 classify -q --target "$FIXTURES/tiny" "$FIXTURES/good/a.png"
expect 0 classify -v --target "$FIXTURES/tiny" "$FIXTURES/good/a.png"
[ -s err ] || fail "expected -v to say what was chosen"
refuses "exclude each other" classify -q -v --target "$FIXTURES/tiny" "$FIXTURES/good/a.png"
