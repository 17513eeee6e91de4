#!/usr/bin/python3
"""The measuring commands beside their perftest twins on the same device: nine alternated pairs each after
one discarded, and perftest against itself as the noise floor. Latency compares medians, bandwidth message
rates. Prints the ratios; fails only where no noise explains the median ratio: latency above 1.25, rate
below 0.8. The bars 1.05 and 0.95 are reported. Budget: 8 minutes."""

import re
import statistics
import subprocess
import time

from harness import *

PAIRS = 9
LATENCY_BAR, LATENCY_LIMIT = 1.05, 1.25
RATE_BAR, RATE_LIMIT = 0.95, 0.8
SIZE = 64
# Both have 128 in flight; perftest signals one in 100, verbscope one in 64.
LATENCY_ITERATIONS, RATE_ITERATIONS = 3000, 20_000


def listening(port):
    end = time.monotonic() + 10
    while True:
        with open("/proc/net/tcp", encoding="ascii") as table:
            if f":{port:04X} 00000000:0000 0A" in table.read():
                return
        expect(time.monotonic() < end, "perftest does not listen")
        time.sleep(0.02)


def perftest(program, iterations, column, *more):
    """One figure of the result row of `program`."""
    port = next_port()
    common = [program, "-d", "rxe0", "-x", "1", "-s", str(SIZE), "-n", str(iterations), "-p", str(port),
              "-F", *more]
    with subprocess.Popen(common, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as serve:
        try:
            listening(port)
            client = subprocess.run([*common, ADDRESS], capture_output=True, text=True, timeout=60)
            expect(client.returncode == 0, f"{program}: {client.stderr}")
            row = re.search(rf"^\s*{SIZE}\s+\d+\s+(.*)$", client.stdout, re.MULTILINE)
            return float(row.group(1).split()[column])
        finally:
            serve.wait(20)


def verbscope(command, iterations, *more):
    """The requester's metrics."""
    with server("--once") as (serve, port):
        result = run(command, ADDRESS, "--port", port, "-n", iterations, "--size", SIZE, "--warmup", 0, *more,
                     "--json")
        expect(result.code == 0, str(result))
        serve.wait(20)
    return next(r["metrics"] for r in result.doc["results"] if r["side"] == "requester")


def our_latency(command):
    return verbscope(command, LATENCY_ITERATIONS)["latency"]["percentiles_ns"]["50"] / 1000


def their_latency(program):
    return perftest(program, LATENCY_ITERATIONS, 2)  # t_typical, their median, in us


def our_rate(command):
    # perftest puts nothing inline in its bandwidth tests unless asked.
    return verbscope(command, RATE_ITERATIONS, "--inline", "off")["bandwidth"]["msg_per_s"] / 1e6


def their_rate(program):
    return perftest(program, RATE_ITERATIONS, 2)  # Mpps


def compare(command, program, ours, theirs, unit):
    ratios, floor, mine, other = [], [], [], []
    for pair in range(PAIRS + 1):
        if pair % 2 == 0:
            a, b = ours(command), theirs(program)
        else:
            b, a = theirs(program), ours(command)
        again = theirs(program)
        if pair == 0:
            continue  # the first one warms caches and the emulator
        mine.append(a)
        other.append(b)
        ratios.append(a / b)
        floor.append(again / b)
    ratio = statistics.median(ratios)
    print(f"# {command} {statistics.median(mine):.3f} {unit}, {program} {statistics.median(other):.3f} {unit}; "
          f"median ratio {ratio:.3f} ({min(ratios):.3f} to {max(ratios):.3f}); {program} against itself "
          f"{statistics.median(floor):.3f} ({min(floor):.3f} to {max(floor):.3f})", flush=True)
    return ratio


for command in ("send-lat", "write-lat", "read-lat"):
    program = "ib_" + command.replace("-", "_")
    with case(f"{command.title().replace('-', '')}BesidePerftest"):
        ratio = compare(command, program, our_latency, their_latency, "us")
        print(f"# bar {LATENCY_BAR}: {'met' if ratio <= LATENCY_BAR else 'not met'}", flush=True)
        expect(ratio <= LATENCY_LIMIT, f"median ratio {ratio:.3f} is above {LATENCY_LIMIT}")
for command in ("send-bw", "write-bw"):
    program = "ib_" + command.replace("-", "_")
    with case(f"{command.title().replace('-', '')}BesidePerftest"):
        ratio = compare(command, program, our_rate, their_rate, "M messages/s")
        print(f"# bar {RATE_BAR}: {'met' if ratio >= RATE_BAR else 'not met'}", flush=True)
        expect(ratio >= RATE_LIMIT, f"median ratio {ratio:.3f} is below {RATE_LIMIT}")

finish()
