. "$(dirname "$0")/lib.subr"

expect 0 help --man
cp out aha.1
for word in '^[.]SH NAME' '^[.]SS aha explain' '^[.]SS aha serve' '\\-\\-target' '^[.]SH EXIT STATUS' AHA_MODELS; do
  grep -q -e "$word" aha.1 || fail "expected $word in the man page"
done
# Each flag of --help-all is there.
expect 0 train --help-all
for flag in $(grep -o '^  --[a-z][a-z-]*' out); do
  grep -qF -- "$(printf '%s' "$flag" | sed 's/-/\\-/g')" aha.1 || fail "expected $flag in the man page"
done
if command -v groff >/dev/null; then
  groff -man -K utf8 -Tutf8 -ww -W break -z aha.1 2>err && [ ! -s err ] || fail "expected a man page without warnings"
fi

expect 0 help --completion bash
cp out aha.bash
# completes WORD... : the last word is being typed; what bash would offer is in ./offered
completes() {
  bash -c '
    source ./aha.bash
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _aha
    printf "%s\n" "${COMPREPLY[@]}"' _ "$@" >offered
}
offers() { grep -qx -e "$1" offered || { cat offered; fail "expected $1 to be offered"; }; }
completes aha ex
offers explain
offers experiment
completes aha explain --t
offers --target
offers --threads
completes aha explain --target cifar10-vit
offers cifar10-vit4
completes aha explain --precision ''
offers bf16
completes aha eval --methods aha,rise,chef
offers aha,rise,chefer
completes aha explain --target cifar10-vit4 pho
[ -z "$(cat offered)" ] || fail "expected files to be left to the shell"

expect 0 help --completion zsh
cp out _aha
command -v zsh >/dev/null && { zsh -n _aha || fail "expected zsh to read its script"; }
grep -q '^#compdef aha$' _aha || fail "expected zsh to know the script"
expect 0 help --completion fish
cp out aha.fish
command -v fish >/dev/null && { fish -n aha.fish || fail "expected fish to read its script"; }
grep -q -- '-l target' aha.fish || fail "expected flags for fish"
refuses "expected bash, zsh or fish, found 'csh'" help --completion csh
