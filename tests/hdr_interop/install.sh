#!/usr/bin/env bash
# Installs the pinned package hdr-histogram-js once into .cache/hdr_interop (the only step that needs
# a registry) and prints that folder. On failure: one sentence on standard error, exit 1.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cache="$root/.cache/hdr_interop"

fail() {
  echo "$1" >&2
  exit 1
}

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
echo "$cache"
