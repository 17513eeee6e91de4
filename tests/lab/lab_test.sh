#!/bin/bash
# Tests tools/lab itself, by what it promises its callers: tests/lab/lab_test.sh
#
# Needs python3, but no verbscope binary. Prints "ok NAME" or "FAIL NAME: why" for each case; exit status 1 if
# any failed. Time budget: one minute on idle cores (nine boots of 4 s, one wait of 25 s), four on
# busy ones; the first run ever also fetches a kernel (70 MB).
# shellcheck disable=SC2016  # the single-quoted texts are scripts for the guest
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

# lab [OPTION…] SCRIPT_TEXT: runs the text in the lab; leaves $out, $err, $status and $seconds.
lab() {
  local options=("${@:1:$#-1}") begin
  printf '%s\n' "${@: -1}" > "$work/script"
  begin=$(date +%s%N)
  "$root/tools/lab" run ${options[@]+"${options[@]}"} "$work/script" > "$work/out" 2> "$work/err"
  status=$?
  seconds=$((($(date +%s%N) - begin) / 1000000000))
  out=$(< "$work/out")
  err=$(< "$work/err")
}

# expect WHAT COMMAND…: one condition of the current case; the first that fails is its "why".
expect() {
  local what=$1
  shift
  "$@" && return
  why="${why:-$what; status $status after $seconds s, stdout '$out', stderr '$err'}"
}

# verdict NAME: closes the current case.
why=
verdict() {
  if [[ -z $why ]]; then
    echo "ok $1"
    passed=$((passed + 1))
  else
    echo "FAIL $1: $why"
    failed=$((failed + 1))
  fi
  why=
}

has() { [[ $1 == *"$2"* ]]; }

# First, because the very first lab run may have to fetch the kernel, which no later limit allows for.
lab 'exit 7'
expect 'status is not 7' [ "$status" -eq 7 ]
expect 'the kernel log is not named' has "$err" 'kernel log: /'
verdict ExitStatusOfTheScriptIsReturned

for attempt in 1 2 3; do  # other work on the machine may slow one of them
  lab ''
  [[ $seconds -ge 20 ]] || break
done
expect "status is not 0 (attempt $attempt)" [ "$status" -eq 0 ]
expect 'something on stdout' [ -z "$out" ]
expect 'something on stderr' [ -z "$err" ]
expect 'took 20 s or more' [ "$seconds" -lt 20 ]
verdict EmptyScriptIsQuickAndSilent

# /dev/stderr opened again must not cut off what was there; a leftover process must not hold us up.
lab $'echo one\necho two >&2\nsleep 1000 &\necho three > /dev/stderr\necho four\nkill -TERM $$'
expect 'stdout differs' [ "$out" = $'one\nfour' ]
expect 'stderr differs' has "$err" $'two\nthree\nlab: '
expect 'status is not 128+15' [ "$status" -eq 143 ]
verdict OutputStreamsAreSeparateAndSignalsBecomeStatus

lab '#!/usr/bin/env python3
import sys
for i in range(200000): print(i)
sys.exit(9)'
expect 'lines are missing' [ "$(md5sum < "$work/out")" = "$(seq 0 199999 | md5sum)" ]
expect 'status is not 9' [ "$status" -eq 9 ]
out='(200000 lines)'
verdict ShebangChoosesTheInterpreterAndNoLineIsLost

lab --out "$work/results" --env 'NAME=a b' --env EMPTY= --cpus 1 --memory 1G 'set -e
echo "$NAME,$EMPTY,$(hostname),$(nproc),$(ulimit -l)" | tee "$LAB_OUT/file"
touch /tmp/x /mnt/x /run/x /dev/shm/x
! touch /usr/x 2> /dev/null
ip netns add peer
ip link set v1 netns peer
ip -n peer addr add 10.9.0.2/24 dev v1
tc qdisc add dev v0 root netem delay 1ms
setpriv --reuid nobody --regid nogroup --clear-groups ibv_devinfo > /dev/null'
expect 'status is not 0' [ "$status" -eq 0 ]
expect 'stdout differs' [ "$out" = 'a b,,lab,1,unlimited' ]
expect '--out did not get the file' [ "$(cat "$work/results/file" 2>&1)" = "$out" ]
verdict GuestHasTheSurroundingsItPromises

lab 'ibv_devinfo -d rxe0; cat /sys/class/infiniband/rxe0/ports/1/gids/1'
expect 'port is not active' has "$out" 'PORT_ACTIVE'
expect 'active_mtu is not 4096' grep -q 'active_mtu:.*4096' "$work/out"
expect 'GID index 1 is not 10.9.0.1' has "$out" '0000:0000:0000:0000:0000:ffff:0a09:0001'
verdict RdmaDeviceIsActive

lab 'ib_send_lat -d rxe0 -x 1 -s 64 -n 1000 > /dev/null &
for i in {1..100}; do ss -Hltn "sport = :18515" | grep -q . && break; sleep 0.1; done
ib_send_lat -d rxe0 -x 1 -s 64 -n 1000 10.9.0.1 && wait $!'
expect 'status is not 0' [ "$status" -eq 0 ]
expect 'no line of results' grep -Eq '^ *64 +1000 +[0-9.]+' "$work/out"
verdict PerftestRuns

# A second for the pipe: what was written in the very moment of a panic goes with the guest.
lab 'echo before; sleep 1; echo c > /proc/sysrq-trigger; sleep 1000'
expect 'status is not 125' [ "$status" -eq 125 ]
expect 'output before the panic is lost' [ "$out" = before ]
expect 'the panic is not named' has "$err" 'Kernel panic'
expect 'took 60 s or more' [ "$seconds" -lt 60 ]
verdict KernelPanicEndsTheLab

lab --timeout 25 'echo before; trap "" TERM INT; sleep 1000'
expect 'status is not 124' [ "$status" -eq 124 ]
expect 'output before the end is lost' [ "$out" = before ]
expect 'it does not say so' has "$err" 'timed out'
expect 'took 35 s or more' [ "$seconds" -lt 35 ]
verdict WatchdogEndsAHangingScript

# SIGTERM: "ready" in the output shows that the VM runs; then its process must go with tools/lab.
printf 'echo ready; sleep 1000\n' > "$work/script"
"$root/tools/lab" run --timeout 120 "$work/script" > "$work/out" 2> "$work/err" &
lab_pid=$!
for ((i = 0; i < 600; ++i)); do
  grep -q ready "$work/out" && break
  sleep 0.1
done
children=$(cat "/proc/$lab_pid/task/$lab_pid/children" 2> /dev/null)
begin=$(date +%s)
kill -TERM "$lab_pid"
wait "$lab_pid"
status=$?
seconds=$(($(date +%s) - begin))
out=$(< "$work/out")
err=$(< "$work/err")
expect 'the script did not start' [ "$out" = ready ]
expect 'status is not 128+15' [ "$status" -eq 143 ]
expect 'took 10 s or more' [ "$seconds" -lt 10 ]
expect 'no child was seen' [ -n "$children" ]
for child in $children; do
  expect "process $child is still there" [ ! -d "/proc/$child" ]
done
verdict TerminationEndsTheVm

echo "$passed passed, $failed failed"
[[ $failed -eq 0 ]]
