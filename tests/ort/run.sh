#!/bin/sh
# Exported explainers in another runtime: sh run.sh AHA NPM SHARED. SHARED may hold real weights, NPM is the folder that
# `npm install --ignore-scripts --prefix NPM onnxruntime-node` filled. Skips itself, and says so, where that is
# missing.
set -eu
aha=$1
folder=$2
here=$(cd "$(dirname "$0")" && pwd)
skip() {
  echo "SKIPPED: $*"
  exit 77
}
command -v node >/dev/null || skip "node is not here (Debian: nodejs)"
[ -d "$folder/node_modules/onnxruntime-node" ] || skip "onnxruntime-node is not here: npm install --ignore-scripts --prefix $folder onnxruntime-node"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
AHA_SHARED=$3 ORT=$folder/node_modules/onnxruntime-node node "$here/exported_explainers.mjs" "$aha"
