#!/usr/bin/python3
"""send-lat beside ib_send_lat on the same device: nine alternated pairs after one discarded, and
perftest against itself as the noise floor. Prints the ratios; fails only when the median ratio is above
1.25, which no noise explains. Budget: 120 s."""

import re
import statistics
import subprocess
import time

from harness import *

PAIRS = 9
ITERATIONS = 10_000
BAR, LIMIT = 1.05, 1.25


def ib_send_lat():
    """perftest's t_typical (its median) in microseconds."""
    port = str(next_port())
    common = ["ib_send_lat", "-d", "rxe0", "-x", "1", "-s", "64", "-n", str(ITERATIONS), "-p", port,
              "-F"]
    with subprocess.Popen(common, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as serve:
        try:
            end = time.monotonic() + 10
            while True:
                with open("/proc/net/tcp", encoding="ascii") as table:
                    if f":{int(port):04X} 00000000:0000 0A" in table.read():
                        break
                expect(time.monotonic() < end, "ib_send_lat does not listen")
                time.sleep(0.02)
            client = subprocess.run([*common, ADDRESS], capture_output=True, text=True, timeout=60)
            expect(client.returncode == 0, f"ib_send_lat: {client.stderr}")
            row = re.search(r"^\s*64\s+\d+\s+(.*)$", client.stdout, re.MULTILINE)
            return float(row.group(1).split()[2])
        finally:
            serve.wait(20)


def send_lat():
    """Our p50 in microseconds."""
    with server("--once") as (serve, port):
        result = run("send-lat", ADDRESS, "--port", port, "-n", ITERATIONS, "--warmup", 0, "--json")
        expect(result.code == 0, str(result))
        serve.wait(20)
        return latency(result.doc, "requester")[0]["percentiles_ns"]["50"] / 1000


with case("SendLatBesideIbSendLat"):
    ratios, floor, ours, theirs = [], [], [], []
    for pair in range(PAIRS + 1):
        if pair % 2 == 0:
            a, b = send_lat(), ib_send_lat()
        else:
            b, a = ib_send_lat(), send_lat()
        again = ib_send_lat()
        if pair == 0:
            continue  # the first one warms caches and the emulator
        ours.append(a)
        theirs.append(b)
        ratios.append(a / b)
        floor.append(again / b)
        print(f"# pair {pair}: send-lat p50 {a:.2f} us, ib_send_lat typical {b:.2f} us, "
              f"ratio {a / b:.3f}; ib_send_lat again {again:.2f} us, ratio {again / b:.3f}",
              flush=True)
    median = statistics.median(ratios)
    print(f"# medians: send-lat {statistics.median(ours):.2f} us, ib_send_lat "
          f"{statistics.median(theirs):.2f} us", flush=True)
    print(f"# median ratio {median:.3f} ({min(ratios):.3f} to {max(ratios):.3f}), bar {BAR}: "
          f"{'met' if median <= BAR else 'not met'}; noise floor {statistics.median(floor):.3f} "
          f"({min(floor):.3f} to {max(floor):.3f})", flush=True)
    expect(median <= LIMIT, f"median ratio {median:.3f} is above {LIMIT}")

finish()
