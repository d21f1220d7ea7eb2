. "$(dirname "$0")/lib.subr"

# limited CODES ulimit-arguments -- command: ends within seconds, with one of the codes and at most one line.
call="explain --target $FIXTURES/tiny --method rise --no-score $FIXTURES/good/a.png"
failed=0
for kilobytes in 200000 500000 700000 800000 900000 1000000 1100000 1300000; do
  code=0
  (ulimit -v $kilobytes && exec timeout -s KILL 60 "$AHA" $call) >out 2>err </dev/null || code=$?
  [ "$code" -eq 0 ] || [ "$code" -eq 1 ] || fail "ulimit -v $kilobytes: expected exit code 0 or 1, found $code"
  [ "$code" -eq 0 ] || [ "$(grep -c . err)" -eq 1 ] || fail "ulimit -v $kilobytes: expected one line"
  failed=$((failed + code))
done
[ "$failed" -gt 2 ] || fail "expected some of these limits to be too low"
(ulimit -v 8000000 && exec "$AHA" $call) >out 2>err </dev/null || fail "expected enough memory"

# The limit of processes does not hold for root.
command -v prlimit >/dev/null || exit 0
as_nobody=
if [ "$(id -u)" -eq 0 ]; then
  command -v setpriv >/dev/null || exit 0
  as_nobody="setpriv --reuid 65534 --regid 65534 --clear-groups"
  $as_nobody "$AHA" --version >/dev/null 2>&1 || exit 0
  cd /
fi
running=$(ps -L -u "$([ -n "$as_nobody" ] && echo 65534 || id -u)" 2>/dev/null | wc -l)
for more in 1 2 4; do
  code=0
  $as_nobody prlimit --nproc=$((running + more)) timeout -s KILL 60 "$AHA" $call >"$WORK/out" 2>"$WORK/err" </dev/null || code=$?
  cd "$WORK"
  [ "$code" -eq 1 ] || fail "ulimit -u: expected exit code 1, found $code"
  [ "$(grep -c . err)" -eq 1 ] || fail "ulimit -u: expected one line"
  cd /
done
