. "$(dirname "$0")/lib.subr"

# Every example of every command, as it would be pasted; those of a command come after its images.
mkdir bin && ln -s "$AHA" bin/aha && PATH=$PWD/bin:$PATH
count=0
for command in models classify inspect explain train eval compare fit data bench export; do
  mkdir "$command" && cd "$command"
  "$AHA" "$command" --help | awk '/^Examples$/ { on = 1; next } /^$/ { on = 0 } on' >examples
  [ -s examples ] || fail "expected examples of aha $command"
  while read -r line; do
    sh -c "$line" >out 2>err </dev/null || fail "an example of aha $command does not run: $line"
    count=$((count + 1))
  done <examples
  cd ..
done
[ "$count" -ge 15 ] || fail "expected at least 15 examples, found $count"
