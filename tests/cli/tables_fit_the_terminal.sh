. "$(dirname "$0")/lib.subr"

command -v script >/dev/null || { echo "skipped: script(1) gives no terminal here"; exit 0; }
# on COLUMNS COMMAND...: its output on a terminal of this width, without the carriage returns
on() {
  columns=$1
  shift
  TERM=xterm script -qec "stty cols $columns; $*" /dev/null </dev/null | tr -d '\r' >out
}
plain() { sed 's/\x1b\[[0-9;]*[mK]//g' out; }
widest() { plain | LC_ALL=C.UTF-8 awk '{ if (length($0) > most) most = length($0) } END { print most }'; }

compare="$AHA compare -q --target $FIXTURES/tiny --methods gradient,rise:masks=20:cells=3:share=0.4,center --out sheets $FIXTURES/good/a.png"
$compare >out 2>err </dev/null || fail "expected a table"
wide=$(tail -n +2 out | awk '{ if (length($0) > most) most = length($0) } END { print most }')
grep -q "$(printf '\033')" out && fail "expected no colors in a file"
on 60 "$compare"
[ "$(plain | tail -n +2 | awk '{ if (length($0) > most) most = length($0) } END { print most }')" -le 62 ] || fail "expected at most 60 columns, $wide in a file"
grep -q "$(printf '\033')\[" out || fail "expected colors on a terminal"
plain | grep -q "rise.*…" || fail "expected the long name shortened in the middle"
NO_COLOR=1 on 60 "$compare"
grep -q "$(printf '\033')\[[0-9;]*m" out && fail "expected no colors with NO_COLOR"

on 70 "$AHA models -q"
[ "$(widest)" -le 74 ] || fail "expected the list of models in 70 columns"
on 90 "$AHA train --help-all"
plain | grep -v '^  aha ' >flags # examples stay whole, so that they can be pasted
mv flags out
[ "$(widest)" -le 90 ] || fail "expected the help in 90 columns, found $(widest)"
