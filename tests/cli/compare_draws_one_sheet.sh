. "$(dirname "$0")/lib.subr"

expect 0 compare --target "$FIXTURES/tiny" --methods gradient,rollout,rise:masks=20 --class cat --out sheets "$FIXTURES/good/a.png"
says "rollout"
[ -s sheets/a.compare.png ] || fail "expected sheets/a.compare.png"
expect 0 compare --target "$FIXTURES/tiny" --methods gradient --json --out sheets "$FIXTURES/good/a.png"
says '"insertion"'
refuses "elk" compare --target "$FIXTURES/tiny" --methods gradient --class cow --out sheets "$FIXTURES/good/a.png"
