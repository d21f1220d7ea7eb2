. "$(dirname "$0")/lib.subr"

expect 0 --help
says "aha classify --target"
says "help environment"
cp out overview
expect 0 help
cmp -s out overview || fail "expected aha help and aha --help to say the same"
expect 0 --version
says "aha 0."
cp out version
expect 0 -V
cmp -s out version || fail "expected -V to be --version"
refuses "--help"
refuses "did you mean 'train'" help trin

for command in models classify inspect explain train eval compare fit data serve bench export; do
  expect 0 "$command" --help-all
  says "Usage: aha $command"
  grep -q '{false}\|{true}\|[0-9]e+[0-9]\|[0-9]e-0' out && fail "aha $command --help-all: expected plain defaults"
  says "Examples"
  [ "$(grep -c '^Run$' out)" -eq 1 ] || fail "aha $command --help-all: expected groups"
done
expect 0 explain --help
for group in Input Method Output Run; do grep -qx "$group" out || fail "expected the group $group"; done
grep -q -- '^  --\[no-\]score .*\[on\]$' out || fail "expected the default of --score"
cp out flags
expect 0 help explain
cmp -s out flags || fail "expected aha help explain to be aha explain --help"
expect 0 explain -h
cmp -s out flags || fail "expected -h to be --help"

# Only flags with a use, and of train's only a dozen until all are asked for.
expect 0 models --help
grep -q -- '--device\|--seed' out && fail "expected no flags that aha models has no use for"
expect 0 train --help
few=$(grep -c '^  --' out)
[ "$few" -le 16 ] || fail "expected about a dozen flags of train, found $few"
says "--help-all"
expect 0 train --help-all
[ "$(grep -c '^  --' out)" -gt 50 ] || fail "expected all flags of train"

expect 0 help environment
for variable in AHA_MODELS AHA_CACHE AHA_ISA NO_COLOR; do says "$variable"; done
# The README has them all.
for variable in $(grep -o '^  [A-Z_]* ' out); do grep -q "$variable" "$HERE/../../README.md" || fail "expected $variable in README.md"; done
