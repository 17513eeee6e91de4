#!/usr/bin/python3
"""The measuring commands and serve as two processes on the kernel's rxe device: every command, ways of
waiting and sizes, payloads verified, valid documents, no wake-up lost, nothing unaccounted for.
Budget: 150 s."""

import random
import re

from harness import *

ITERATIONS = 500
LATENCY = {
    "send-lat": ("half_round_trip", "recv_completion"),
    "write-lat": ("half_round_trip", "payload_poll"),
    "read-lat": ("round_trip", "send_completion"),
    "atomic-lat": ("round_trip", "send_completion"),
}
BANDWIDTH = ("send-bw", "write-bw", "read-bw")


def both(command, *args, seconds=60):
    """A client and its server; the documents of both."""
    with server("--once", "--json") as (serve, port):
        client = run(command, ADDRESS, "--port", port, "--json", "--deadline", f"{seconds}s", *args,
                     seconds=seconds + 10)
        served = serve.wait(20)
    expect(client.code == 0 and served.code == 0, f"{client}; server: {served}")
    for doc in (client.doc, served.doc):
        expect(doc["verdict"] == "pass", "no pass")
    return client.doc, served.doc


def of(doc, side):
    return [result for result in doc["results"] if result["side"] == side]


def latency_case(command, wait, sizes, *more, ended_by=None):
    definition, ends = LATENCY[command]
    fixed = () if command == "atomic-lat" else ("--size", sizes)
    docs = both(command, "-n", ITERATIONS, "--warmup", 50, "--wait", wait, "--verify", *fixed, *more)
    for doc in docs:
        for result in of(doc, "requester"):
            metrics = result["metrics"]
            expect(metrics["latency"]["samples"] == ITERATIONS, f"{metrics['latency']['samples']} samples")
            expect(metrics["latency"]["definition"] == definition, "definition")
            expect(metrics["latency"]["ended_by"] == (ended_by or ends), "ended_by")
            expect(metrics["cpu"]["lost_wakeups"] == 0, "lost wake-ups")
            expect(result["point"]["wait"] == re.sub("^hybrid:.*", "hybrid", wait), "way of waiting")
            # A request of the same host is often done when its post returns: then no event comes.
            if wait == "event":
                expect(metrics["cpu"]["events"] <= ITERATIONS + metrics["cpu"]["empty_wakeups"], "events")


for wait in ("busy", "event", "hybrid:50us"):
    name = wait.split(":")[0].capitalize()
    with case(f"ReadLat{name}"):
        latency_case("read-lat", wait, "0:1")
        latency_case("read-lat", wait, "65536")
    for op in ("fetch-add", "compare-swap"):
        with case(f"AtomicLat{name}{op.title().replace('-', '')}"):
            latency_case("atomic-lat", wait, "8", "--op", op)
    with case(f"WriteLatImm{name}"):
        for size in (0, 64):
            latency_case("write-lat", wait, size, "--imm", ended_by="recv_completion")
with case("WriteLatBusy"):
    for size in (1, 64, 4096, 65536):
        latency_case("write-lat", "busy", size)
with case("WriteLatCannotWaitForEvents"):
    result = run("write-lat", "--loopback", "-e", "--json")
    expect(result.code == 1 and "--imm" in result.doc["error"]["next_step"], str(result))

for command in BANDWIDTH:
    for more in ((), ("-b",), ("-e",), ("-q", "4", "-l", "8")):
        with case(f"{command.title().replace('-', '')}{''.join(more).title().replace('-', '')}"):
            docs = both(command, "-n", 2000, "--size", 4096, "--verify", *more)
            for doc in docs:
                for side in ("requester", "responder"):
                    result, = of(doc, side)
                    if side == "responder" and command != "send-bw" and "-b" not in more:
                        expect("bandwidth" not in result["metrics"], "a passive side has a bandwidth")
                        continue
                    moved = result["metrics"]["bandwidth"]
                    expect(moved["messages"] == 2000 and moved["bytes"] == 2000 * 4096, str(moved))
for command in ("send-bw", "write-bw"):
    with case(f"{command.title().replace('-', '')}WithImmediateIsCountedByBothSides"):
        docs = both(command, "-n", 1000, "--size", 64, "--imm")
        for side in ("requester", "responder"):
            expect(of(docs[0], side)[0]["metrics"]["bandwidth"]["messages"] == 1000, side)

with case("ASweepIsOneDocument"):
    doc, _ = both("write-bw", "-n", 10, "--warmup", 0, "--size", "all")
    expect([r["point"]["size_bytes"] for r in of(doc, "requester")] == [2**k for k in range(24)], "sizes")

with case("NothingIsNoBandwidth"):
    doc, _ = both("send-bw", "-n", 500, "--size", 0)
    moved = of(doc, "requester")[0]["metrics"]["bandwidth"]
    expect(moved["gbit_per_s"] is None and moved["msg_per_s"] > 0, str(moved))

with case("TheMeasuredTimeIsTheRequestedOne"):
    doc, _ = both("send-lat", "-D", "3s")
    result = of(doc, "requester")[0]
    took = result["intervals"][-1]["to_s"]
    expect(abs(took - 3) < 0.03, f"{took} s instead of 3")
    samples = result["metrics"]["latency"]["samples"]
    counted = sum(row[2] for row in result["metrics"]["latency"]["histogram"]["buckets"])
    expect(samples == counted, f"{samples} samples, {counted} in the histogram")

with case("AnOpenLoopOffersItsRate"):
    for wait in ("busy", "event"):
        doc, _ = both("send-lat", "--rate", 500, "-D", "2s", "--wait", wait)
        metrics = of(doc, "requester")[0]["metrics"]
        expect(metrics["latency"]["definition"] == "response_time", "definition")
        expect(abs(metrics["load"]["achieved_per_s"] - 500) < 25, str(metrics["load"]))
        # Between two messages it sleeps, and its CPU time says so.
        expect(wait == "busy" or metrics["cpu"]["utilization"] < 0.9, str(metrics["cpu"]))

with case("RandomCombinationsLoseNothing"):
    rng = random.Random(11)
    for _ in range(40):
        depth = rng.randint(1, 40)
        args = ["-n", rng.randint(1, 300), "-t", depth, "-l", rng.randint(1, depth), "-q", rng.randint(1, 4),
                "-r", rng.randint(1, 64), "--size", rng.choice((0, 1, 64, 5000)), "--warmup", rng.randint(0, 5)]
        if rng.random() < 0.5:
            args += ["--signal-every", rng.randint(1, 50)]
        if rng.random() < 0.3:
            args += ["-b"]
        command = rng.choice(BANDWIDTH)
        result = run(command, "--loopback", "--json", *args, seconds=20)
        expect(result.code == 0, f"{command} {args}: {result}")
        moved = of(result.doc, "requester")[0]["metrics"]["bandwidth"]["messages"]
        expect(moved == args[1], f"{command} {args}: {moved}")

finish()
