. "$(dirname "$0")/lib.subr"

expect 0 compare --target "$FIXTURES/tiny" --methods gradient,rollout,rise:masks=20 --class cat --out sheets "$FIXTURES/good/a.png"
says "rollout"
[ -s sheets/a.compare.png ] || fail "expected sheets/a.compare.png"
expect 0 compare --target "$FIXTURES/tiny" --methods gradient --json --out sheets "$FIXTURES/good/a.png"
says '"insertion"'
refuses "elk" compare --target "$FIXTURES/tiny" --methods gradient --class cow --out sheets "$FIXTURES/good/a.png"

# Images that share a name have a sheet each.
mkdir one two && cp "$FIXTURES/good/a.png" one/a.png && cp "$FIXTURES/good/b.jpg" two/a.jpg
expect 0 compare --target "$FIXTURES/tiny" --methods gradient --out both one two
[ "$(ls both)" = "a-2.compare.png
a.compare.png" ] || fail "expected two sheets, found $(ls both)"
cmp -s both/a.compare.png both/a-2.compare.png && fail "expected two different sheets"
says "a-2.compare.png"
