#!/bin/sh
# Runs every fuzz target for the given number of seconds; a finding stops it with the input kept beside the program.
set -eu
seconds=${1:-60}
folder=build/fuzz/bin
for target in "$folder"/*_fuzz; do
  echo "== $target for $seconds s"
  log="$target.log"
  if ! "$target" -max_total_time="$seconds" -rss_limit_mb=2048 -artifact_prefix="$target." >"$log" 2>&1; then
    tail -n 40 "$log"
    exit 1
  fi
  tail -n 2 "$log"
done
