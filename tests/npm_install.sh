#!/usr/bin/env bash
# Installs the packages that a folder's package-lock.json pins, once (the only step that needs a
# registry), and prints where:  tests/npm_install.sh FOLDER NAME  installs into .cache/NAME.
# On failure: one sentence on standard error, exit 1.
set -euo pipefail

folder=$1
cache="$(cd "$(dirname "$0")/.." && pwd)/.cache/$2"

fail() {
  echo "$1" >&2
  exit 1
}

command -v node > /dev/null && command -v npm > /dev/null || fail "node or npm is not installed"

# The installed lock file says what lies in the cache: the same one means there is nothing to do.
if ! cmp -s "$folder/package-lock.json" "$cache/installed-lock.json"; then
  rm -rf "$cache"
  mkdir -p "$cache"
  cp "$folder/package.json" "$folder/package-lock.json" "$folder/.npmrc" "$cache/"
  (cd "$cache" && npm ci --ignore-scripts --no-audit --no-fund > npm.log 2>&1) ||
    fail "npm ci failed: $(tail -n 1 "$cache/npm.log"); see .cache/$2/npm.log"
  cp "$folder/package-lock.json" "$cache/installed-lock.json"
fi
echo "$cache"
