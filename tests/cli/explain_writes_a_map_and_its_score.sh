. "$(dirname "$0")/lib.subr"

mkdir photos && cp "$FIXTURES/good/a.png" photos/a.png && cp "$FIXTURES/good/b.jpg" photos/b.jpg
expect 0 explain --target "$FIXTURES/tiny" --method gradient --out maps photos
says "deletion"
for stem in a b; do
  for end in map.npy heat.png overlay.png sheet.png json; do [ -s "maps/$stem.$end" ] || fail "expected maps/$stem.$end"; done
done
grep -q overwritten err && fail "expected nothing to be overwritten in a new folder"
expect 0 explain --target "$FIXTURES/tiny" --method center --no-score --out maps photos/a.png
grep -qF "maps/a.*: overwritten" err || fail "expected the overwritten files to be named"
head -c 6 maps/a.map.npy | grep -q NUMPY || fail "expected an npy file"

expect 0 explain --target "$FIXTURES/tiny" --method gradient --class cat --json --out again photos/a.png
for key in '"image"' '"index": 2' '"name": "cat"' '"probability"' '"method": "gradient"' '"refine": 0' '"file"' '"height": 32' '"width": 32' '"min"' '"max"' \
  '"deletion"' '"insertion"' '"random"' '"score_precision"' '"seconds"'; do
  says "$key"
done
expect 0 explain --target "$FIXTURES/tiny" --method center --no-score --json photos/a.png
grep -q insertion out && fail "expected no score after --no-score"

# The map of an image does not depend on its neighbors, the threads or the batch.
expect 0 explain --target "$FIXTURES/tiny" --method gradient --class cat --out alone --threads 1 --batch-size 1 photos
cmp alone/a.map.npy again/a.map.npy || fail "expected the same map alone and in a batch"

refuses "elk" explain --target "$FIXTURES/tiny" --method gradient --class cow --out bad photos/a.png
refuses "expected 0..4" explain --target "$FIXTURES/tiny" --method gradient --class 5 --out bad photos/a.png
refuses "chefer" explain --target "$FIXTURES/tiny" --method nonsense --out bad photos/a.png
refuses "explainer" explain --target "$FIXTURES/tiny" --out bad photos/a.png
refuses "broken.png" explain --target "$FIXTURES/tiny" --method gradient --out bad "$FIXTURES/broken/broken.png"
[ ! -e bad ] || [ -z "$(ls bad)" ] || fail "expected nothing written after a refusal"
