. "$(dirname "$0")/lib.subr"

expect 0 classify --target "$FIXTURES/tiny" --topk 1 "$FIXTURES/good/a.png"
predicted=$(awk '/%/ { print $4 }' out)
# One folder, called as the class that the target predicts: truth and prediction explain the same class, whatever its number is.
mkdir -p "right/$predicted" && cp "$FIXTURES/good/a.png" "right/$predicted"
expect 0 eval --target "$FIXTURES/tiny" --methods gradient --class both --data folder:right --out both
[ "$(grep -c "a.png" both/per_image.csv)" -ge 2 ] || fail "expected a row for each class"
python3 - <<'PY' || fail "expected the class of the folder's name"
import csv
rows = list(csv.DictReader(open("both/per_image.csv")))
figures = [{name: value for name, value in row.items() if name != "class"} for row in rows]
assert {row["class"] for row in rows} == {"predicted", "truth"} and all(one == figures[0] for one in figures), rows
PY
mkdir -p wrong/cows wrong/sheep && cp "$FIXTURES/good/a.png" wrong/cows && cp "$FIXTURES/good/a.png" wrong/sheep
refuses "2 of 2 names are no class of $FIXTURES/tiny: cows, sheep" eval --quiet --target "$FIXTURES/tiny" --methods gradient --class truth --data folder:wrong --out wrong_out
refuses "2 of 2 names are no class of $FIXTURES/tiny: cows, sheep" train --quiet --target "$FIXTURES/tiny" --class truth --data folder:wrong --out wrong_train
# The predicted class needs no names.
expect 0 eval --target "$FIXTURES/tiny" --methods gradient --data folder:wrong --out any
