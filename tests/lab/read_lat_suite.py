#!/usr/bin/python3
"""read-lat and serve as two processes on the kernel's rxe device: every way of waiting, every kind of
size, valid documents, no wake-up lost. Budget: 60 s."""

import re

from harness import *

ITERATIONS = 1000


def exchange(size, wait):
    with server("--once", "--json") as (serve, port):
        client = run("read-lat", ADDRESS, "--port", port, "--size", size, "--iterations", ITERATIONS,
                     "--warmup", 50, "--wait", wait, "--json", "--deadline", "60s")
        served = serve.wait(20)
    expect(client.code == 0 and served.code == 0, f"{client}; server: {served}")
    for doc in (client.doc, served.doc):
        expect(doc["verdict"] == "pass" and len(doc["results"]) == 2, "no pass")
        mine, = (r for r in doc["results"] if r["side"] == "requester")
        expect(mine["point"]["size_bytes"] == size and mine["point"]["op"] == "read", str(mine["point"]))
        expect(mine["point"]["wait"] == re.sub("^hybrid:.*", "hybrid", wait), "way of waiting")
        metrics = mine["metrics"]
        expect(metrics["latency"]["samples"] == ITERATIONS, f"{metrics['latency']['samples']} samples")
        expect(metrics["latency"]["definition"] == "round_trip", "definition")
        expect(metrics["cpu"]["lost_wakeups"] == 0, "lost wake-ups")
        # On this device a READ of the same host is often done when its post returns.
        if wait == "event":
            expect(metrics["cpu"]["events"] <= ITERATIONS + metrics["cpu"]["empty_wakeups"], "events")


for wait in ("busy", "event", "hybrid:50us"):
    for size in (0, 1, 4096, 65536):
        with case(f"{wait.split(':')[0].capitalize()}{size}Bytes"):
            exchange(size, wait)

with case("LoopbackInOneProcess"):
    result = run("read-lat", "--loopback", "--iterations", 500, "--json")
    expect(result.code == 0, str(result))
    expect(latency(result.doc, "requester")[0]["samples"] == 500, "samples")

finish()
