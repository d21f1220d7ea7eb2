. "$(dirname "$0")/lib.subr"

mkdir photos && cp "$FIXTURES/good/a.png" photos/a.png && cp "$FIXTURES/broken/broken.png" photos/broken.png && cp "$FIXTURES/good/b.jpg" photos/b.jpg
printf 'path,label\nphotos/a.png,1\nphotos/broken.png,1\nphotos/b.jpg,2\n' > list.csv
eval="eval --target $FIXTURES/tiny --data list:list.csv --methods random,gradient --timing-runs 0"

# The broken image is counted, named with its reason and left out; the others are evaluated; the exit code says that something failed.
expect 1 $eval --out results
says "2 of 3 images"
says "broken.png"
for file in table.md report.html results.json; do grep -q "broken.png" "results/$file" || fail "expected results/$file to name the image"; done
[ "$(wc -l <results/per_image.csv)" -eq 5 ] || fail "expected 2 images x 2 methods and a header"
expect 1 $eval --out results --json
says '"failures"'
says '"target_evaluations": 0'

# --strict stops at once.
expect 2 $eval --out strict --strict
grep -q "broken.png" err || fail "expected the image on stderr"
[ ! -e strict/results.json ] || fail "expected no results"

# Mended, it joins the others, whose rows stay.
cp "$FIXTURES/good/a.png" photos/broken.png
lines=$(wc -l <results/rows.jsonl)
expect 0 $eval --out results
[ "$(wc -l <results/rows.jsonl)" -eq $((lines + 2)) ] || fail "expected two more rows"
[ "$(wc -l <results/per_image.csv)" -eq 7 ] || fail "expected 3 images x 2 methods and a header"
