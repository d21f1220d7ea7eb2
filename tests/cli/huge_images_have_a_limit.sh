. "$(dirname "$0")/lib.subr"
command -v python3 >/dev/null || { echo "no python3: skipped"; exit 0; }

python3 - <<'PY'
import struct, zlib
def png(name, width, height, rows):
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = zlib.compress(rows * (b"\0" + b"\1\2\3" * width))
    open(name, "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b""))
png("tall.png", 1, 5000, 5000)
png("wide.png", 20000, 3, 3)
png("claim.png", 20000, 20000, 1)
PY

# Refused from its header; the flag moves the limit.
refuses "--max-megapixels" classify --target "$FIXTURES/tiny" claim.png
refuses "at most 0.001 megapixels" classify --target "$FIXTURES/tiny" --max-megapixels 0.001 "$FIXTURES/good/a.png"
expect 2 classify --target "$FIXTURES/tiny" --max-megapixels 500 claim.png
grep -q "max-megapixels" err && fail "expected another limit"

# A strip is not blown up before it is cropped: 224 x 1120000 pixels would be 750 MB.
if [ -x /usr/bin/time ]; then
  /usr/bin/time -f %M -o kilobytes "$AHA" classify --target "$FIXTURES/tiny" "$FIXTURES/good/a.png" >out 2>err || fail "small image"
  small=$(cat kilobytes)
  /usr/bin/time -f %M -o kilobytes "$AHA" classify --target "$FIXTURES/larger" tall.png wide.png >out 2>err || fail "strips"
  [ "$(cat kilobytes)" -lt $((small + 60000)) ] || fail "expected bounded memory, found $(cat kilobytes) kB against $small kB"
else
  expect 0 classify --target "$FIXTURES/larger" tall.png wide.png
fi
