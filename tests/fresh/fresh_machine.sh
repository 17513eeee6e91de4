#!/bin/bash
# A machine with only git and apt: a debootstrap tree in which this checkout's HEAD is cloned, set up,
# built and run.  tests/fresh/fresh_machine.sh [SUITE…]
#
# Runs `tools/lab demo` there and looks for the histogram, then `tools/test SUITE…` if suites are named.
# Needs root (chroot) and the package registry; about 1 GiB of disk, which is freed. Mounts live in a
# mount namespace of their own and vanish with it. Budget: 12 minutes without suites.
# Prints "ok NAME" or "FAIL NAME: why"; exit status 1 if any failed.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
if [[ ${FRESH_NAMESPACE:-} != 1 ]]; then
  FRESH_NAMESPACE=1 exec unshare --mount --propagation private "${BASH_SOURCE[0]}" "$@"
fi

"$root/tools/setup" fresh || exit 2
tree=$(mktemp -d)
trap 'umount -l "$tree"/{proc,sys,dev} 2>/dev/null; rm -rf --one-file-system "$tree"' EXIT
failed=0
verdict() {  # verdict NAME STATUS LOG
  if [[ $2 -eq 0 ]]; then
    echo "ok $1"
  else
    echo "FAIL $1: $(tail -n 15 "$3" | tr '\n' ' ')"
    failed=1
  fi
}

debootstrap --variant=minbase --include=git,ca-certificates bookworm "$tree" >"$tree.log" 2>&1
verdict DebootstrapTree $? "$tree.log"
cp /etc/resolv.conf "$tree/etc/resolv.conf"
cp -r /etc/apt/apt.conf.d/. "$tree/etc/apt/apt.conf.d/"
git clone -q --no-hardlinks "$root" "$tree/root/verbscope" >"$tree.log" 2>&1
verdict Clone $? "$tree.log"
mount --rbind /dev "$tree/dev"
mount -t proc proc "$tree/proc"
mount --rbind /sys "$tree/sys"

inside() { chroot "$tree" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 "$@"; }
# shows NAME WORD…: the last command ended with 0 and printed all words.
shows() {
  local name=$1 status=$2 word
  shift 2
  for word in "$@"; do
    grep -q "$word" "$tree.out" || { status=1; echo "no '$word' in the output" >>"$tree.log"; }
  done
  verdict "$name" "$status" "$tree.log"
}
inside /root/verbscope/tools/run send-lat --loopback >"$tree.out" 2>"$tree.log"
shows RunLoopbackPrintsTheHistogram $? 'half round trip' 'p99.9' 'samples' 'soft0 (software)' \
  'no statement about hardware'
inside /root/verbscope/tools/lab demo >"$tree.out" 2>"$tree.log"
shows LabDemoPrintsTheHistogram $? 'half round trip' 'p99.9' 'samples' 'rxe0'

if [[ $# -gt 0 ]]; then
  inside /root/verbscope/tools/test "$@" >"$tree.out" 2>&1
  verdict "Test $*" $? "$tree.out"
fi
inside sh -c 'cd /root/verbscope && bazel shutdown' >/dev/null 2>&1
rm -f "$tree.out" "$tree.log"
exit "$failed"
