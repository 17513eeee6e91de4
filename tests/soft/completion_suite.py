#!/usr/bin/python3
"""Ways of waiting on the soft device: event-vs-poll over both links, no wake-up lost in hundreds of runs
under load, and nothing left hanging by interrupts at any moment. Needs no RDMA device. Budget: 4 minutes.

Prints "ok NAME" or "FAIL NAME: why" for each case; exit status 1 if any failed."""

import concurrent.futures
import contextlib
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lab"))
os.environ.setdefault("VERBSCOPE_BIN", str(ROOT / "bazel-bin/cmd/verbscope"))
os.environ.setdefault("LAB_OUT", tempfile.mkdtemp())

from harness import *  # noqa: E402
from modes_judge import judge, judge_orders, of, row  # noqa: E402

COMMAND = "event-vs-poll"
SHORT = ("--quick", "-D", "40ms", "--warmup", "10ms", "--rates", "2000")
INTERRUPTS = 200


@contextlib.contextmanager
def busy_host():
    """One process per CPU that does nothing but compute."""
    spinners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count())]
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


with case("TheDefaultSetOrdersTheModesWithinAMinute"):
    result = run(COMMAND, "--loopback", "--device", "soft", "--json", seconds=90)
    expect(result.code == 0 and result.seconds < 60, str(result))
    expect("event-vs-poll takes about" in result.err, "it does not say how long it takes")
    judge(result.doc)
    judge_orders(result.doc)
    event = row(result.doc, "event", "streaming")
    expect(event["completions_per_event"] > 1, f"streaming: {event}")

with case("QuickIsQuickOverBothLinksAndAsText"):
    for device in ("soft:link=memory", "soft:link=udp"):
        result = run(COMMAND, "--loopback", "--device", device, "--quick", "--json")
        expect(result.code == 0 and result.seconds < 10, f"{device}: {result}")
        judge(result.doc)
    text = run(COMMAND, "--loopback", "--device", "soft", "--quick")
    for words in ("closed loop", "80 % of busy", "p50 against offered rate", "jitter floor",
                  "where they cross", "which to use", "lowest latency"):
        expect(text.code == 0 and words in text.out, f"{words!r} is not in {text.out!r}")

with case("BothSidesOfTwoProcessesAgree"):
    with server("--device", "soft", "--once", "--json") as (serve, port):
        client = run(COMMAND, "127.0.0.1", "--port", port, "--device", "soft", "--quick", "--json")
        served = serve.wait(20)
    expect(client.code == 0 and served.code == 0, f"{client}; server: {served}")
    judge(client.doc)
    for side in ("requester", "responder"):
        expect(agreed(client.doc, side) == agreed(served.doc, side), "the sides' results differ")

with case("WhatCannotBeComparedIsListedWithItsReason"):
    result = run(COMMAND, "--loopback", "--device", "soft", "--modes", "busy,solicited", "--moderation", "4:50us",
                 *SHORT, "--json")
    expect(result.code == 0, str(result))
    left_out = result.doc["modes"]["unsuited"]
    expect(len(left_out) == 1 and left_out[0].startswith("solicited, streaming: "), str(left_out))
    modes = {r["mode"] for r in result.doc["modes"]["rows"]}
    expect(modes == {"busy", "solicited", "event 4:50us"}, str(modes))

with case("ModerationHoldsEventsBack"):
    result = run(COMMAND, "--loopback", "--device", "soft", "--modes", "event", "--moderation", "8:1ms", *SHORT,
                 "--json")
    expect(result.code == 0 and result.doc["modes"]["sentences"] == [], str(result))
    plain, held = (row(result.doc, mode, "streaming") for mode in ("event", "event 8:1000us"))
    expect(held["completions_per_event"] >= 4 and held["lost_wakeups"] == 0, f"{held}; without: {plain}")

with case("ATerminalShowsWhichPointIsUnderWay"):
    leader, follower = os.openpty()
    with subprocess.Popen([BINARY, COMMAND, "--loopback", "--device", "soft", *SHORT], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=follower) as process:
        os.close(follower)
        shown = b""
        # Reading fails once the last writer is gone.
        with contextlib.suppress(OSError):
            while chunk := os.read(leader, 4096):
                shown += chunk
        expect(process.wait(20) == 0, f"exit {process.returncode}")
    os.close(leader)
    for words in (b"\rwatching the host for gaps", b"\r1 of 18: busy, closed loop"):
        expect(words in shown, f"{words!r} is not in {shown!r}")
    expect(shown.rstrip().endswith(b"\x1b[K"), f"a line of progress stays: {shown[-200:]!r}")

with case("BadListsAreRefusedByTheirOption"):
    for args, word in ((("--modes", "poll"), "--modes"), (("--rates", "0"), "--rates"), (("--rates", "200%"), "--rates"),
                       (("--moderation", "8"), "--moderation"), (("--p99", "soon"), "--p99"),
                       (("--wait", "event"), "--modes"), (("-n", "5"), ""), (("-s", "1:64"), "--size"),
                       (("--rates", "0.5"), "--rates"), (("--deadline", "2s"), "--deadline")):
        result = run(COMMAND, "--loopback", "--device", "soft", *args)
        expect(result.code == 1 and word in result.err, f"{args}: {result}")

with case("NoWakeUpIsLostInHundredsOfRunsUnderLoad"):
    with busy_host():
        for wait in ("event", "hybrid:20us"):
            result = run("send-bw", "--loopback", "--device", "soft", "--wait", wait, "-q", 16, "-l", 64, "-t", 64,
                         "-s", 64, "-n", 2048, "--warmup", 0, "--repeat", 200, "--json", seconds=180)
            expect(result.code == 0, f"{wait}: {result}")
            for side in ("requester", "responder"):
                results = of(result.doc, side)
                lost, events = (sum(r["metrics"]["cpu"][key] for r in results) for key in ("lost_wakeups", "events"))
                expect(len(results) == 200 and lost == 0, f"{wait}: {len(results)} runs, {lost} wake-ups lost")
                expect(events > 200, f"{wait}: {side} slept in vain, {events} events")


def interrupted(after_s):
    """Exit code, document and time of a loopback run that is interrupted."""
    with Process(COMMAND, "--loopback", "--device", "soft", "--modes", "event,hybrid:20us", *SHORT, "--repeat", 30,
                 "--json") as process:
        process.await_text("takes about")  # its handler of signals is in place
        time.sleep(after_s)
        process.signal(signal.SIGINT)
        return process.wait(15)


def without_server(after_s):
    """The same of a client whose server is killed."""
    with server("--device", "soft", "--once", port=ports.pop()) as (serve, port):
        with Process(COMMAND, "127.0.0.1", "--port", port, "--device", "soft", "--modes", "event", *SHORT,
                     "--repeat", 30, "--json") as client:
            client.await_text("takes about")
            time.sleep(after_s)
            serve.signal(signal.SIGKILL)
            return client.wait(15)


rng = random.Random(5)
ports = [next_port() for _ in range(INTERRUPTS)]
for name, broken, codes in (("AnInterruptAtAnyMomentLeavesADocument", interrupted, (130,)),
                            ("AServerThatDiesAtAnyMomentEndsTheRun", without_server, (2, 5))):
    with case(name):
        delays = [rng.uniform(0, 1.2) for _ in range(INTERRUPTS // 2)]
        # Few enough that each still runs; all of them sleep most of the time.
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            ends = list(pool.map(broken, delays))
        partial = 0
        for end, delay in zip(ends, delays):
            expect(end.code in codes and end.seconds < delay + 10, f"after {delay:.2f} s: {end}")
            expect(end.doc["error"] is not None and end.doc["verdict"] == "error", f"after {delay:.2f} s: {end.doc}")
            partial += 1 if end.doc["results"] else 0
        expect(partial > INTERRUPTS // 8, f"only {partial} documents hold results")

with case("ADeadlineEndsItWithWhatWasMeasured"):
    result = run(COMMAND, "--loopback", "--device", "soft:drop=100%", "--modes", "event", *SHORT, "--timeout", 31,
                 "--deadline", "4s", "--json", seconds=30)
    expect(result.code == 6 and result.seconds < 12, str(result))
    expect(result.doc["error"]["class"] == "deadline", str(result.doc["error"]))

finish()
