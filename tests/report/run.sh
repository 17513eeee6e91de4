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

fail() {
  echo "FAIL report: $1"
  exit 1
}

[[ -x $program ]] || fail "no program $program; run bazel build //cmd:verbscope"
command -v chromium > /dev/null || fail "chromium is not installed; run tools/setup report"
cache=$("$root/tests/npm_install.sh" "$here" report 2>&1) || fail "$cache"

exec node "$here/html_suite.js" "$cache" "$program" "$root/testdata/records" "$folder"
