. "$(dirname "$0")/lib.subr"

unset OPENBLAS_CORETYPE DNNL_MAX_CPU_ISA AHA_HAS_SET AHA_STARTED_AGAIN
expect 0 classify --target "$FIXTURES/tiny" --verbose "$FIXTURES/good/a.png"
grep -q "OpenBLAS runs its" err || fail "expected the OpenBLAS core on stderr"
if grep -q avx512f /proc/cpuinfo; then
  grep -q "OPENBLAS_CORETYPE=SKYLAKEX: this CPU has AVX-512" err || fail "expected the program's own choice and why"
  grep -q "OpenBLAS runs its SkylakeX core" err || fail "expected the choice to have reached OpenBLAS"
fi
OPENBLAS_CORETYPE=HASWELL expect 0 classify --target "$FIXTURES/tiny" --verbose "$FIXTURES/good/a.png"
grep -q "OPENBLAS_CORETYPE=HASWELL: set by the user" err || fail "expected the user's choice to stand"
