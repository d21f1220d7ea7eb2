#!/bin/sh
# clang-tidy (.clang-tidy) over every file that is no test, in parallel; fails if there is a finding.
# tidy.sh [PATTERN]: only translation units whose path matches, such as kernels/ or, for any other module, aha_nn.
set -eu
cd "$(dirname "$0")/.."
cmake --preset tidy >/dev/null
ninja -C build/tidy aha_torch_pch >/dev/null
status=0
sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' build/tidy/compile_commands.json | sort -u |
  grep -v -e '_test\.' -e '/tests/' -e 'torch_pch' | grep -e "${1:-.}" |
  xargs -P "$(nproc)" -n 1 clang-tidy --quiet -p build/tidy 2>build/tidy/stderr.log || status=$?
grep -av 'warnings\{0,1\} generated' build/tidy/stderr.log >&2 || true
exit $status
