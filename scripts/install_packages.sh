#!/bin/sh
# Installs the Debian packages that are missing (those named, or all that the build needs). Does nothing where all are present.
set -eu

BUILD_PACKAGES="g++ cmake ninja-build pkg-config libtorch-dev libgloo-dev libopenblas-dev libdnnl-dev
  libcli11-dev nlohmann-json3-dev libtomlplusplus-dev libfmt-dev libspdlog-dev libboost-dev libeigen3-dev libhdf5-dev libonnx-dev libprotobuf-dev
  libjpeg62-turbo-dev libspng-dev libwebp-dev libgif-dev libtiff-dev libavif-dev libfreetype-dev fonts-dejavu-core zlib1g-dev libcpp-httplib-dev libjs-chart.js esbuild libgtest-dev libgmock-dev
  python3-dev python3-numpy pybind11-dev"

missing=""
for package in ${@:-$BUILD_PACKAGES}; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
[ -z "$missing" ] && exit 0

if ! command -v apt-get >/dev/null 2>&1; then
  echo "aha: these packages are missing, and there is no apt-get here to install them:$missing" >&2
  exit 1
fi
run=""
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null 2>&1; then
    echo "aha: root or sudo is needed once, to install:$missing" >&2
    exit 1
  fi
  run="sudo"
fi
echo "aha: installing$missing"
$run apt-get update -qq
DEBIAN_FRONTEND=noninteractive $run apt-get install -y -qq --no-install-recommends $missing >/dev/null
