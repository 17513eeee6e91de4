#!/usr/bin/python3
"""Ways of waiting on the kernel's rxe device: event-vs-poll in one process and in two, and no wake-up lost in
200 runs under load. Budget: 4 minutes."""

import os
import subprocess
import sys

from harness import *
from modes_judge import judge, of, row

COMMAND = "event-vs-poll"

with case("EventVsPollInTwoProcesses"):
    with server("--once", "--json") as (serve, port):
        client = run(COMMAND, ADDRESS, "--port", port, "-D", "300ms", "--rates", "100,2000,80%", "--json",
                     seconds=120)
        served = serve.wait(20)
    expect(client.code == 0 and served.code == 0, f"{client}; server: {served}")
    judge(client.doc)
    # An emulated CPU sustains no rate worth comparing times at; that a sleeper takes less CPU time shows.
    busy, event = (row(client.doc, mode, "100/s") for mode in ("busy", "event"))
    expect(event["utilization"] < 0.8 * busy["utilization"], f"CPU at 100/s: {busy}; {event}")
    for side in ("requester", "responder"):
        expect(agreed(client.doc, side) == agreed(served.doc, side), "the sides' results differ")

with case("QuickInOneProcess"):
    result = run(COMMAND, "--loopback", "--quick", "--json", seconds=60)
    expect(result.code == 0, str(result))
    judge(result.doc)
    print(f"# --quick took {result.seconds:.1f} s", flush=True)

with case("RxeHoldsNoEventsBackAndThatIsSaid"):
    result = run(COMMAND, "--loopback", "--quick", "--modes", "busy,event", "--moderation", "16:8us", "--rates",
                 "1000", "--json")
    expect(result.code == 0, str(result))
    left_out = result.doc["modes"]["unsuited"]
    expect(len(left_out) == 3 and all("ibv_modify_cq" in text for text in left_out), str(left_out))
    judge(result.doc, ("busy", "event"), loads=3)

with case("NoWakeUpIsLostInHundredsOfRunsUnderLoad"):
    spinners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count())]
    try:
        result = run("send-bw", "--loopback", "-e", "-q", 16, "-l", 64, "-t", 64, "-s", 64, "-n", 1024,
                     "--warmup", 0, "--repeat", 200, "--deadline", "300s", "--json", seconds=320)
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()
    expect(result.code == 0, str(result))
    for side in ("requester", "responder"):
        results = of(result.doc, side)
        lost, events = (sum(r["metrics"]["cpu"][key] for r in results) for key in ("lost_wakeups", "events"))
        expect(len(results) == 200 and lost == 0, f"{len(results)} runs, {lost} wake-ups lost")
        # A send to a device of this host is done when its post returns, and raises no event.
        expect(events > 200 or side == "requester", f"the {side} never slept: {events} events")

finish()
