#!/usr/bin/env bash
# Checks the histogram encoding against hdr-histogram-js: ours read by theirs, theirs read by ours.
#
#   bazel build //tests/hdr_interop:hdr_vectors && tests/hdr_interop/run.sh [PATH_OF_HDR_VECTORS]
#
# Installs the pinned package once into .cache/hdr_interop (the only step that needs a registry).
# Prints `ok NAME` or `FAIL NAME: why` for each check; exit 1 on any failure.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
helper=$(realpath -m "${1:-$root/bazel-bin/tests/hdr_interop/hdr_vectors}")
cache="$root/.cache/hdr_interop"

fail() {
  echo "FAIL hdr_interop: $1"
  exit 1
}

[[ -x $helper ]] || fail "no program $helper; run bazel build //tests/hdr_interop:hdr_vectors"
command -v node > /dev/null && command -v npm > /dev/null || fail "node or npm is not installed"

# The installed lock file says what lies in the cache: the same one means there is nothing to do.
if ! cmp -s "$here/package-lock.json" "$cache/installed-lock.json"; then
  rm -rf "$cache"
  mkdir -p "$cache"
  cp "$here/package.json" "$here/package-lock.json" "$here/.npmrc" "$cache/"
  (cd "$cache" && npm ci --ignore-scripts --no-audit --no-fund > npm.log 2>&1) ||
    fail "npm ci failed: $(tail -n 1 "$cache/npm.log"); see .cache/hdr_interop/npm.log"
  cp "$here/package-lock.json" "$cache/installed-lock.json"
fi

exec node "$here/interop.js" "$cache" "$helper"
