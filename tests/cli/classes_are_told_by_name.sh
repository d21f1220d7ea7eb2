. "$(dirname "$0")/lib.subr"

explain() { expect 0 explain --target "$FIXTURES/tiny" --method center --no-score --json "$@" "$FIXTURES/good/a.png"; }
explain --class be
says '"name": "bee"'
explain --class ELK
says '"index": 4'
refuses "found 2 that contain it: 0 ant, 2 cat" explain --target "$FIXTURES/tiny" --method center --class t "$FIXTURES/good/a.png"
