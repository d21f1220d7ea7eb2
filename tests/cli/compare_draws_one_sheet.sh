. "$(dirname "$0")/lib.subr"

expect 0 compare --target "$FIXTURES/tiny" --methods gradient,rollout,rise:masks=20 --class cat --out sheets "$FIXTURES/good/a.png"
says "rollout"
[ -s sheets/a.compare.png ] || fail "expected sheets/a.compare.png"
expect 0 compare --target "$FIXTURES/tiny" --methods gradient --json --out sheets "$FIXTURES/good/a.png"
says '"insertion"'
grep -qF "sheets/a.compare.png: overwritten" err || fail "expected the overwritten sheet to be named"
expect 0 compare --target "$FIXTURES/tiny" --methods gradient --contours --out lines "$FIXTURES/good/a.png"
grep -q overwritten err && fail "expected nothing to be overwritten in a new folder"
refuses "elk" compare --target "$FIXTURES/tiny" --methods gradient --class cow --out sheets "$FIXTURES/good/a.png"

# Images that share a name have a sheet each.
expect 0 explain --target "$FIXTURES/tiny" --method gradient --no-score --out heat "$FIXTURES/good/a.png"
mkdir one two && cp "$FIXTURES/good/a.png" one/a.png && cp heat/a.heat.png two/a.png
expect 0 compare --target "$FIXTURES/tiny" --methods gradient --out both one two
[ "$(ls both)" = "a-2.compare.png
a.compare.png" ] || fail "expected two sheets, found $(ls both)"
says "a-2.compare.png"
first=$(sed -n 's/^one.*(\(.*\) %).*/\1/p' out) second=$(sed -n 's/^two.*(\(.*\) %).*/\1/p' out)
[ "$first" != "$second" ] || fail "expected two different images, found $first % twice"

# Several images on one sheet, without a list of methods: the quick ones of this target and a control.
expect 0 compare --target "$FIXTURES/tiny" --together --out joint one two
[ "$(ls joint)" = "compare.png" ] || fail "expected one sheet, found $(ls joint)"
says "chefer"
says "center"
expect 0 compare --target "$FIXTURES/tiny" --methods all --out all "$FIXTURES/good/a.png"
for method in random gradient rollout rise; do says " $method "; done
mkdir many && for i in $(seq 33); do cp "$FIXTURES/good/a.png" many/$i.png; done
refuses "expected at most 32 images, found 33" compare --target "$FIXTURES/tiny" --together --out joint many
