#!/bin/sh
# The page in a real browser: sh run.sh AHA PLAYWRIGHT, the folder that `npm install --prefix FOLDER playwright-core` filled.
# Skips itself, and says so, where node, Chromium or playwright-core is missing.
set -eu
aha=$1
folder=$2
here=$(cd "$(dirname "$0")" && pwd)
skip() {
  echo "SKIPPED: $*"
  exit 77
}
command -v node >/dev/null || skip "node is not here (Debian: nodejs)"
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || skip "Chromium is not here (Debian: chromium)"
[ -d "$folder/node_modules/playwright-core" ] || skip "playwright-core is not here: npm install --prefix $folder playwright-core"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
CHROMIUM=$chromium PLAYWRIGHT=$folder/node_modules/playwright-core node "$here/page_test.mjs" "$aha"
