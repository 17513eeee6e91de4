#!/usr/bin/env bash
# Opens HTML reports in a browser without a screen and compares what they show with the documents
# they were made of.
#
#   bazel build //cmd:verbscope && tests/report/run.sh [FOLDER]
#
# Screenshots and a PDF of each page go to FOLDER; without it they are not made. The program is
# bazel-bin/cmd/verbscope, or VERBSCOPE_BIN. Needs tools/setup report and node. Installs the pinned
# package once into .cache/report (the only step that needs a registry). Prints `ok NAME` or
# `FAIL NAME: why` for each check; exit 1 on any failure.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
program=$(realpath -m "${VERBSCOPE_BIN:-$root/bazel-bin/cmd/verbscope}")
folder=${1:-}
cache="$root/.cache/report"

fail() {
  echo "FAIL report: $1"
  exit 1
}

[[ -x $program ]] || fail "no program $program; run bazel build //cmd:verbscope"
command -v node > /dev/null && command -v npm > /dev/null || fail "node or npm is not installed"
command -v chromium > /dev/null || fail "chromium is not installed; run tools/setup report"

# The installed lock file says what lies in the cache: the same one means there is nothing to do.
if ! cmp -s "$here/package-lock.json" "$cache/installed-lock.json"; then
  rm -rf "$cache"
  mkdir -p "$cache"
  cp "$here/package.json" "$here/package-lock.json" "$here/.npmrc" "$cache/"
  (cd "$cache" && npm ci --ignore-scripts --no-audit --no-fund > npm.log 2>&1) ||
    fail "npm ci failed: $(tail -n 1 "$cache/npm.log"); see .cache/report/npm.log"
  cp "$here/package-lock.json" "$cache/installed-lock.json"
fi

exec node "$here/html_suite.js" "$cache" "$program" "$root/testdata/records" "$folder"
