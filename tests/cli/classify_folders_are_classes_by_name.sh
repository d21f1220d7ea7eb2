. "$(dirname "$0")/lib.subr"

expect 0 classify --target "$FIXTURES/tiny" --topk 1 "$FIXTURES/good/a.png"
predicted=$(awk '/%/ { print $4 }' out)
# One folder of five classes, called as the predicted one: its place among the folders is not its class.
mkdir -p "right/$predicted" && cp "$FIXTURES/good/a.png" "right/$predicted"
expect 0 classify --target "$FIXTURES/tiny" --data folder:right
says "top-1 100.00 %"
mkdir -p wrong/cows wrong/sheep && cp "$FIXTURES/good/a.png" wrong/cows && cp "$FIXTURES/good/a.png" wrong/sheep
refuses "2 of 2 names are no class of $FIXTURES/tiny: cows, sheep" classify --target "$FIXTURES/tiny" --data folder:wrong
# As many folders as classes: in their order, with a word.
for name in v w x y z; do mkdir -p "order/$name" && cp "$FIXTURES/good/a.png" "order/$name"; done
expect 0 classify --target "$FIXTURES/tiny" --data folder:order
says "top-1 20.00 %"
grep -q "in the order of the names" err || fail "expected a word on the order"
