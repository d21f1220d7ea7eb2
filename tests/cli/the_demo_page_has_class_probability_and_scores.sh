. "$(dirname "$0")/lib.subr"

expect 0 compare --target "$FIXTURES/tiny" --methods gradient,center --json --out demo/sheets "$FIXTURES/good/a.png" "$FIXTURES/good/b.jpg"
awk -v form=html -f "$HERE/../../scripts/demo_sheets.awk" out > page
awk -v form=text -f "$HERE/../../scripts/demo_sheets.awk" out > text
[ "$(grep -c '<section>' page)" -eq 2 ] || fail "expected two images, found $(cat page)"
[ "$(grep -c '<tr><td>' page)" -eq 4 ] || fail "expected two methods for each image, found $(cat page)"
for file in a.png b.jpg; do
  grep -qE "<h3>$file<span>[a-z]+, probability 0\.[0-9]{3}</span>" page || fail "expected file, class and probability, found $(cat page)"
done
grep -q 'src="sheets/a.compare.png"' page || fail "expected the sheet beside the page, found $(cat page)"
# The scores are those of the JSON.
insertion=$(sed -n 's/^ *"insertion": \([0-9.]*\),*$/\1/p' out | head -1)
grep -q "<td>gradient</td><td>$(printf %.3f "$insertion")</td>" page || fail "expected insertion $insertion, found $(cat page)"
[ "$(wc -l <text)" -eq 6 ] || fail "expected six lines of text, found $(cat text)"
