. "$(dirname "$0")/lib.subr"

mkdir photos && cp "$FIXTURES/good/a.png" photos/a.png && cp "$FIXTURES/good/b.jpg" photos/b.jpg
printf 'photos/a.png,1\nphotos/b.jpg,2\n' > list.csv
# Another image: a heat map.
expect 0 explain --target "$FIXTURES/tiny" --method gradient --no-score --out other photos/a.png
count() { grep -c '"state"\|"timing"' results/rows.jsonl 2>/dev/null || true; }
evaluate() {
  before=$(count)
  expect 0 eval --target "$FIXTURES/tiny" --data list:list.csv --class truth --out results "$@"
  rows=$(($(count) - ${before:-0}))
}
made() { [ "$rows" -eq "$1" ] || fail "$2: expected $1 rows, found $rows"; }

evaluate --methods gradient --timing-runs 0
made 2 "at first"
evaluate --methods gradient --timing-runs 0
made 0 "the same call"
cp other/a.heat.png photos/b.jpg
evaluate --methods gradient --timing-runs 0
made 1 "another image under the same name"
printf 'photos/a.png,1\nphotos/b.jpg,3\n' > list.csv
evaluate --methods gradient --timing-runs 0
made 1 "another label"
evaluate --methods gradient --timing-runs 0 --seed 1
made 2 "another seed"
evaluate --methods gradient --timing-runs 0 --protocol equations
made 2 "another protocol"
evaluate --methods gradient --timing-runs 0
made 0 "what was there before"
evaluate --methods gradient --timing-runs 1 --threads 1
made 1 "a timing with one thread"
evaluate --methods gradient --timing-runs 1 --threads 1
made 0 "the same timing"
evaluate --methods gradient --timing-runs 1 --threads 2
made 1 "a timing with two threads"

# The report of another slice shows that slice's own image.
evaluate --methods gradient --timing-runs 0 --limit 1
cp results/report.html first.html
printf 'photos/a.png,1\nphotos/c.jpg,2\n' > list.csv && cp other/a.overlay.png photos/c.jpg
evaluate --methods gradient --timing-runs 0 --skip 1 --limit 1
grep -q 'title="photos/c.jpg"' results/report.html && ! grep -q 'title="photos/a.png"' results/report.html || fail "expected the report to show the second image alone"
grep '<img alt="photos' first.html | grep -o 'base64,[^"]*' | head -1 >first.image
grep '<img alt="photos' results/report.html | grep -o 'base64,[^"]*' | head -1 >second.image
cmp -s first.image second.image && fail "expected another image in the report"
exit 0
