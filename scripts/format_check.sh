#!/bin/sh
# Fails on a tracked source file that clang-format would change, and on a line longer than the limit that clang-format
# cannot break. The text of a raw string is exempt: a line break would change it.
set -eu
cd "$(dirname "$0")/.."
limit=$(sed -n 's/^ColumnLimit: *//p' .clang-format)
files=$(git ls-files '*.cpp' '*.h' '*.inl')
status=0
# shellcheck disable=SC2086
clang-format --dry-run -Werror $files || status=1
# shellcheck disable=SC2086
awk -v limit="$limit" '
  FNR == 1 { raw = 0 }
  { was_raw = raw }
  !raw && match($0, /R"[a-zA-Z]*\(/) { close_mark = ")" substr($0, RSTART + 2, RLENGTH - 3) "\""; raw = 1; was_raw = 1
    if (index(substr($0, RSTART + RLENGTH), close_mark)) raw = 0; next }
  raw && index($0, close_mark) { raw = 0 }
  !was_raw && length($0) > limit { printf "%s:%d: %d columns, expected at most %d\n", FILENAME, FNR, length($0), limit; bad = 1 }
  END { exit bad }' $files || status=1
if [ $status -ne 0 ]; then echo 'aha: run `make format`, and break by hand what is still too long' >&2; fi
exit $status
