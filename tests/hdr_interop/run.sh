#!/usr/bin/env bash
# Checks the histogram encoding against hdr-histogram-js: ours read by theirs, theirs read by ours.
#
#   bazel build //tests/hdr_interop:hdr_vectors && tests/hdr_interop/run.sh [PATH_OF_HDR_VECTORS]
#
# Prints `ok NAME` or `FAIL NAME: why` for each check; exit 1 on any failure.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
helper=$(realpath -m "${1:-$root/bazel-bin/tests/hdr_interop/hdr_vectors}")

fail() {
  echo "FAIL hdr_interop: $1"
  exit 1
}

[[ -x $helper ]] || fail "no program $helper; run bazel build //tests/hdr_interop:hdr_vectors"
cache=$("$root/tests/npm_install.sh" "$here" hdr_interop 2>&1) || fail "$cache"

exec node "$here/interop.js" "$cache" "$helper"
