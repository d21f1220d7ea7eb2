. "$(dirname "$0")/lib.subr"

expect 0 classify --target "$FIXTURES/tiny" --json --topk 2 "$FIXTURES/good"
[ ! -s err ] || fail "expected nothing on stderr"
says "\"probability\""
if command -v python3 >/dev/null 2>&1; then
  python3 -c "import json,sys; d=json.load(open(sys.argv[1])); assert len(d)==2 and len(d[0][\"classes\"])==2, d" out || fail "not the JSON that was promised"
fi
