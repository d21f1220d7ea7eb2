. "$(dirname "$0")/lib.subr"

expect 0 models --methods-markdown
cmp -s out "$HERE/../../docs/methods.md" || fail "docs/methods.md differs from the records: run make docs"
for command in explain compare eval; do
  expect 0 $command --help
  says "docs/methods.md"
done
