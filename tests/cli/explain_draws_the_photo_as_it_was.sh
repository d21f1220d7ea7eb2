. "$(dirname "$0")/lib.subr"

size_of() { # PNG: width and height from its header
  od -An -tu1 -j16 -N8 "$1" | awk '{ print $1 * 16777216 + $2 * 65536 + $3 * 256 + $4, $5 * 16777216 + $6 * 65536 + $7 * 256 + $8 }'
}

# A photo that is not square.
expect 0 compare --target "$FIXTURES/tiny" --methods gradient,center,random --out wide "$FIXTURES/good/a.png"
photo=wide/a.compare.png
photo_size=$(size_of $photo)

expect 0 explain --target "$FIXTURES/tiny" --method center --out network $photo
[ "$(size_of network/a.compare.overlay.png)" = "32 32" ] || fail "expected the network's size"
[ -s network/a.compare.sheet.png ] || fail "expected a sheet"
says "network/a.compare.sheet.png"
expect 0 explain --target "$FIXTURES/tiny" --method center --size original --json --out original $photo
for kind in overlay heat; do
  [ "$(size_of original/a.compare.$kind.png)" = "$photo_size" ] || fail "expected $kind at $photo_size, found $(size_of original/a.compare.$kind.png)"
done
says '"part"'
says '"sheet": "original/a.compare.sheet.png"'
cmp -s network/a.compare.map.npy original/a.compare.map.npy || fail "expected one map whatever the size of the images"

expect 0 explain --target "$FIXTURES/tiny" --method center --size original --contours --out lines $photo
cmp -s lines/a.compare.overlay.png original/a.compare.overlay.png && fail "expected lines in the overlay"
expect 0 explain --target "$FIXTURES/tiny" --method center --no-score --no-sheet --out plain $photo
[ ! -e plain/a.compare.sheet.png ] || fail "expected no sheet after --no-sheet"
refuses "original" explain --target "$FIXTURES/tiny" --method center --size huge --out plain $photo

# A photo that its EXIF tag turns by a quarter (an eXIf chunk behind the header): the images stand upright.
{ head -c 33 "$FIXTURES/good/a.png"; printf '\000\000\000\032\145\130\111\146\111\111\052\000\010\000\000\000\001\000\022\001\003\000\001\000\000\000\006\000\000\000\000\000\000\000\267\110\021\051'; tail -c +34 "$FIXTURES/good/a.png"; } > turned.png
[ "$(size_of turned.png)" = "48 40" ] || fail "expected a photo of 48 x 40 pixels as stored, found $(size_of turned.png)"
expect 0 explain --target "$FIXTURES/tiny" --method center --no-score --size original --out turned turned.png
[ "$(size_of turned/turned.overlay.png)" = "40 48" ] || fail "expected 40 x 48, found $(size_of turned/turned.overlay.png)"
