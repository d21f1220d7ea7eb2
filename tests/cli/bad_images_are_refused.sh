. "$(dirname "$0")/lib.subr"

refuses "no_such.png" classify --target "$FIXTURES/tiny" no_such.png
refuses "broken.png" classify --target "$FIXTURES/tiny" "$FIXTURES/broken/broken.png"
refuses "broken.jpg" classify --target "$FIXTURES/tiny" "$FIXTURES/broken/broken.jpg"
: > empty.png
refuses "empty.png" classify --target "$FIXTURES/tiny" empty.png
mkdir none
refuses "found none" classify --target "$FIXTURES/tiny" none
