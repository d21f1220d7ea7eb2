. "$(dirname "$0")/lib.subr"

# The same photo under another path has the same masks and the same random map.
mkdir -p here there/deeper && cp "$FIXTURES/good/a.png" here/a.png && cp "$FIXTURES/good/a.png" there/deeper/a.png
for method in rise:masks=40 random smoothgrad; do
  expect 0 explain --target "$FIXTURES/tiny" --method $method --no-score --out one --overwrite here/a.png
  expect 0 explain --target "$FIXTURES/tiny" --method $method --no-score --out two --overwrite there/deeper/a.png
  cmp one/a.map.npy two/a.map.npy || fail "$method: expected one map of one photo"
done
