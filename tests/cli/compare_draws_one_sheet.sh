. "$(dirname "$0")/lib.subr"

expect 0 compare --target "$FIXTURES/tiny" --methods gradient,rollout,rise:masks=20 --class cat --out sheets "$FIXTURES/good/a.png"
says "rollout"
[ -s sheets/a.compare.png ] || fail "expected sheets/a.compare.png"
expect 0 compare --target "$FIXTURES/tiny" --methods gradient --json --out sheets "$FIXTURES/good/a.png"
says '"insertion"'
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
