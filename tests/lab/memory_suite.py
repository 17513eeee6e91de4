#!/usr/bin/python3
"""Peak memory does not depend on the length of a run. Budget: 90 s."""

import os

from harness import *

# Rows of the time series and their text grow with a run until they are joined; three bytes kept of every message of
# the longer run would be more.
LIMIT = 2 << 20


def peak(*length):
    """Peak resident set of a client run of this length, in bytes."""
    with server("--once") as (_, port):
        with Process("send-lat", ADDRESS, "--port", port, "--warmup", 100, *length) as client:
            _, status, usage = os.wait4(client.pid, 0)
            expect(status == 0, f"status {status}: {client.err()}")
            return usage.ru_maxrss * 1024


with case("TwoHundredThousandAndAMillionIterations"):
    # 10^6 round trips take half a minute on an emulated CPU: this case is most of the budget.
    # The first run is not counted: pages of the program's file that are not cached yet are not resident.
    peak("-n", 100)
    # The samples cut by time fill their fixed amount, some 1.5 MiB with their text, within 64 intervals.
    small, large = peak("-n", 200_000, "--deadline", "300s"), peak("-n", 1_000_000, "--deadline", "300s")
    print(f"# peak {small / 1024:.0f} KiB at 2*10^5, {large / 1024:.0f} KiB at 10^6", flush=True)
    expect(large - small <= LIMIT, f"{small} and {large} bytes")

with case("TheReportOfALongRunHasEverySample"):
    with server("--once") as (_, port):
        result = run("send-lat", ADDRESS, "--port", port, "-D", "3s", "--json")
        expect(result.code == 0, str(result))
        rows = [r for r in result.doc["results"] if r["side"] == "requester"][0]
        counted = sum(bucket[2] for bucket in rows["metrics"]["latency"]["histogram"]["buckets"])
        expect(counted == rows["metrics"]["latency"]["samples"], f"{counted} in the buckets")

with case("OneAndTenSeconds"):
    short, long = peak("-D", "1s"), peak("-D", "10s")
    print(f"# peak {short / 1024:.0f} KiB at 1 s, {long / 1024:.0f} KiB at 10 s", flush=True)
    expect(long - short <= LIMIT, f"{short} and {long} bytes")

finish()
