. "$(dirname "$0")/lib.subr"

mkdir photos
for i in 1 2 3; do cp "$FIXTURES/good/a.png" photos/$i.png; done
cp "$FIXTURES/broken/broken.png" photos/2_broken.png

# left_out aha-arguments...: the bad image is named with its reason, the others are done, the exit code says that one failed.
left_out() {
  expect 1 "$@"
  grep -q "photos/2_broken.png: " err || fail "aha $*: expected the image and its reason on stderr"
  grep -qF "3 of 4 images" err || fail "aha $*: expected '3 of 4 images' on stderr"
}

left_out classify --target "$FIXTURES/tiny" photos
[ "$(grep -c '^photos/' out)" -eq 3 ] || fail "expected the classes of three images"
left_out explain --target "$FIXTURES/tiny" --method gradient --no-score --out maps photos
[ "$(ls maps | grep -c map.npy)" -eq 3 ] || fail "expected three maps"
left_out compare --target "$FIXTURES/tiny" --methods random,gradient --out sheets photos
[ "$(ls sheets | grep -c compare.png)" -eq 3 ] || fail "expected three sheets"
left_out compare --target "$FIXTURES/tiny" --methods random --together --out together photos
left_out classify --target "$FIXTURES/tiny" --quiet photos
command -v python3 >/dev/null || { echo "no python3: the JSON is not looked at"; exit 0; }

# The JSON has an object for each image, in order; that of the bad one says why.
for command in "classify" "explain --method gradient --no-score" "compare --methods random --out json_sheets"; do
  left_out $command --target "$FIXTURES/tiny" --json photos
  python3 - "$command" <<'PY' || fail "$command: expected four objects"
import json, sys
found = json.load(open("out"))
assert [one["image"] for one in found] == ["photos/1.png", "photos/2.png", "photos/2_broken.png", "photos/3.png"], found
assert ["error" in one for one in found] == [False, False, True, False], found
assert found[2].keys() == {"image", "error"} and "2_broken.png" in found[2]["error"], found[2]
PY
done

# --strict stops at the first; so does a call for one image only.
for command in "classify" "explain --method gradient" "compare --methods random"; do
  refuses "2_broken.png" $command --target "$FIXTURES/tiny" --json --strict photos/2_broken.png photos/1.png
  refuses "2_broken.png" $command --target "$FIXTURES/tiny" photos/2_broken.png
done

# Accuracy is that of the others.
printf 'path,label\nphotos/1.png,1\nphotos/2_broken.png,1\nphotos/3.png,2\n' > list.csv
expect 1 classify --target "$FIXTURES/tiny" --data list:list.csv --json
grep -qF "2 of 3 images" err || fail "expected '2 of 3 images' on stderr"
says '"images": 2'
says '2_broken.png'
refuses "2_broken.png" classify --target "$FIXTURES/tiny" --data list:list.csv --strict
