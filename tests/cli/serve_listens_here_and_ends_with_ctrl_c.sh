. "$(dirname "$0")/lib.subr"

# Others reach it only with a token.
refuses "--token" serve --host 0.0.0.0
refuses "--token" serve --host 0.0.0.0 --token short
refuses "results.json" serve --results "$WORK"
refuses "unknown" serve --target no-such-model --port 0
refuses "--port" serve --port 70000

# Waits for the address of a server that runs with these arguments; its process is $pid.
start() {
  rm -f out
  "$AHA" serve --target cifar10-vit4 --port 0 "$@" >out 2>err </dev/null &
  pid=$!
  for _ in $(seq 300); do
    grep -q 'look:' out 2>/dev/null && return
    sleep 0.1
  done
  kill -9 $pid
  fail "aha serve $*: no address within 30 s"
}
ends_well() {
  kill -INT $pid
  code=0
  wait $pid || code=$?
  [ "$code" -eq 0 ] || fail "aha serve after Ctrl-C: expected exit code 0, found $code"
}

start
port=$(sed -n 's|look: http://localhost:\([0-9]*\)/.*|\1|p' out)
[ -n "$port" ] || fail "expected an address on localhost"
# The same port once more is refused, and says so.
code=0
"$AHA" serve --port "$port" >again 2>err </dev/null || code=$?
[ "$code" -eq 1 ] || fail "a port that is taken: expected exit code 1, found $code"
grep -q "port $port" err || fail "a port that is taken: expected its number on stderr"

# The examples of docs/http_api.md work, where there is a curl to try them.
if command -v curl >/dev/null; then
  "$AHA" data export cifar10:sample --limit 1 --out images >/dev/null
  cp images/*.png frog.png
  sed -n '/^```sh$/,/^```$/p' "$HERE/../../docs/http_api.md" | grep '^curl' >examples
  [ "$(wc -l <examples)" -gt 15 ] || fail "expected examples in docs/http_api.md"
  B=http://localhost:$port
  IMAGE=$(curl -s -H 'Content-Type: image/png' --data-binary @frog.png "$B/api/images?name=frog.png" | sed 's/.*"image":"\([^"]*\)".*/\1/')
  MAP=$(curl -s -H 'Content-Type: application/json' -d "{\"image\":\"$IMAGE\"}" "$B/api/explain" | sed 's/.*"map":{"id":"\([^"]*\)".*/\1/')
  "$AHA" explain --quiet --target cifar10-vit4 --out . frog.png >/dev/null
  curl -s -o map.npy "$B/api/maps/$MAP.npy"
  cmp map.npy frog.map.npy || fail "the map of the server differs from the command line's"
  export IMAGE MAP
  while read -r line; do
    case $line in *results*) continue ;; esac # this server has none
    line=$(echo "$line" | sed "s|localhost:8080|localhost:$port|; s|^curl|curl -f|")
    sh -c "$line" >out 2>>err || fail "example of docs/http_api.md: $line"
  done <examples
fi

# A job that runs and one that waits are canceled by it, and nothing is left behind.
if command -v curl >/dev/null; then
  long='"method":"rise:masks=50000","wait":false'
  for _ in 1 2; do
    curl -s -H 'Content-Type: application/json' -d "{\"image\":\"$IMAGE\",$long}" "$B/api/explain" >>jobs
  done
  [ "$(grep -o '"state":"\(queued\|running\)"' jobs | wc -l)" -eq 2 ] || fail "expected two jobs, found $(cat jobs)"
fi
ls -A >before
ends_well
ls -A | cmp -s - before || fail "expected nothing left behind, found $(ls -A)"

# SIGTERM ends it as well.
start
kill -TERM $pid
code=0
wait $pid || code=$?
[ "$code" -eq 0 ] || fail "aha serve after SIGTERM: expected exit code 0, found $code"
