#!/usr/bin/python3
"""The soft device's speed over UDP on the loopback interface, alternated with what it is measured by:
the half round trip of a 64-byte SEND beside that of plain UDP sockets whose datagrams are as long,
and WRITEs of 64 KiB in bursts (UDP GSO) beside the same without.

    udp_speed_suite.py [ROUNDS]        default 9

Two pinned processes each. Prints every round and the median ratios; fails only beyond limits that no
noise explains. Budget: 1 minute. Prints "ok NAME" or "FAIL NAME: why"."""

import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROBE = os.environ.get("SPEED_PROBE", ROOT / "bazel-bin/tests/soft/speed_probe")
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 9


def probe(*args):
    done = subprocess.run([PROBE, *map(str, args)], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"speed_probe {args}: exit {done.returncode}, {done.stderr.strip()}")
    return json.loads(done.stdout)


def send_64():
    return probe("lat", 64, 300, "soft:link=udp")["p50_ns"]


def plain_64():
    return probe("udp", 64, 300)["p50_ns"]


def write_64k(gso, mtu):
    result = probe("write", 65536, 300, f"soft:link=udp,gso={gso},mtu={mtu}")
    if (result["bursts"] > 0) != (gso == "on"):
        raise RuntimeError(f"gso={gso}, and {result['bursts']} bursts")
    return result["bytes_per_s"] / 1e9


# NAME: (measured, by what, unit, the bar, the limit): a ratio below the limit passes if the limit is
# above the bar, and one above it if it is below.
CASES = {
    "Send64HalfRoundTripP50AgainstPlainSockets": (send_64, plain_64, "ns", 1.3, 2.0),
    # What an Ethernet of 1500 bytes carries, and what a loopback interface does: there copying and
    # the packet check are most of the time, and not calls.
    "Write64KiBInBurstsAgainstSinglePackets1024": (
        lambda: write_64k("on", 1024), lambda: write_64k("off", 1024), "GB/s", 3.0, 1.5),
    "Write64KiBInBurstsAgainstSinglePackets4096": (
        lambda: write_64k("on", 4096), lambda: write_64k("off", 4096), "GB/s", 1.7, 1.2),
}


def compare(name, measured, other, unit, bar, limit):
    ours, theirs = [], []
    for turn in range(ROUNDS):
        for which in (0, 1) if turn % 2 == 0 else (1, 0):
            (ours, theirs)[which].append((measured, other)[which]())
        print(f"#   {ours[-1]:.4g} beside {theirs[-1]:.4g} {unit}, ratio {ours[-1] / theirs[-1]:.2f}",
              flush=True)
    ratio = statistics.median(a / b for a, b in zip(ours, theirs))
    for what, values in (("measured", ours), ("beside", theirs)):
        print(f"# {what}: median {statistics.median(values):.4g}, {min(values):.4g} to {max(values):.4g} {unit}")
    smaller_is_better = limit > bar
    meets = ratio <= bar if smaller_is_better else ratio >= bar
    fails = ratio > limit if smaller_is_better else ratio < limit
    print(f"# {name}: median ratio {ratio:.2f} of {ROUNDS} rounds; the bar {bar} is "
          f"{'met' if meets else 'MISSED'}", flush=True)
    print(f"FAIL {name}: ratio {ratio:.2f}, beyond {limit}" if fails else f"ok {name}", flush=True)
    return not fails


def judge(name, *case):
    try:
        return compare(name, *case)
    except (RuntimeError, subprocess.TimeoutExpired) as problem:
        print(f"FAIL {name}: {' '.join(str(problem).split())}", flush=True)
        return False


print(f"# load {' '.join(f'{x:.2f}' for x in os.getloadavg())}")
sys.exit(0 if all([judge(name, *case) for name, case in CASES.items()]) else 1)
