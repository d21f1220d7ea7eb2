#!/bin/sh
# clang-tidy (.clang-tidy) over every file that is no test, in parallel; fails if there is a finding.
# tidy.sh [PATTERN]: only translation units whose path matches, e.g. `scripts/tidy.sh aha_nn` or `scripts/tidy.sh kernels/`.
set -eu
cd "$(dirname "$0")/.."
cmake --preset tidy >/dev/null
ninja -C build/tidy aha_torch_pch >/dev/null
sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' build/tidy/compile_commands.json | sort -u |
  grep -v -e '_test\.' -e '_test\.dir' -e '/tests/' -e 'torch_pch' | grep -e "${1:-.}" |
  xargs -P "$(nproc)" -n 1 clang-tidy --quiet -p build/tidy 2>/dev/null
