#!/usr/bin/python3
"""send-lat and serve as two processes on the kernel's rxe device: every way of waiting, every kind of
size, valid documents, both records agree, no wake-up lost. Budget: 100 s."""

import re

from harness import *

ITERATIONS = 2000


def check_pair(client, serve, size, samples, waits):
    """Both documents are valid and say the same of both sides."""
    expect(client.code == 0, f"client: {client}")
    expect(serve.code == 0, f"server: {serve}")
    docs = [client.doc, serve.doc]
    for doc in docs:
        expect(doc["verdict"] == "pass" and doc["exit_code"] == 0, "no pass")
        expect(len(doc["results"]) == 2, f"{len(doc['results'])} results")
        for result in doc["results"]:
            expect(result["point"]["size_bytes"] == size, "size of the point")
            expect(result["metrics"]["latency"]["samples"] == samples,
                   f"{result['metrics']['latency']['samples']} samples at {result['side']}")
            expect(result["metrics"]["cpu"]["lost_wakeups"] == 0, "lost wake-ups")
    for side in ("requester", "responder"):
        one, two = (agreed(doc, side)[0] for doc in docs)
        expect(one["metrics"]["latency"] == two["metrics"]["latency"], f"records of the {side} differ")
        expect(one["point"]["wait"] == re.sub("^hybrid:.*", "hybrid", waits[side]), f"way of waiting of the {side}")
    expect(docs[0]["local"] == docs[1]["remote"], "the requester is described differently")
    expect(docs[0]["remote"] == docs[1]["local"], "the responder is described differently")
    return docs[0]


def exchange(size, iterations, client_wait="busy", server_wait=None):
    waits = {"requester": client_wait, "responder": server_wait or client_wait}
    with server("--once", "--json", "--wait", waits["responder"]) as (serve, port):
        client = run("send-lat", ADDRESS, "--port", port, "--size", size, "--iterations", iterations,
                     "--warmup", 100, "--wait", client_wait, "--json", "--deadline", "60s")
        return check_pair(client, serve.wait(20), size, iterations, waits)


with case("Busy64BytesHundredThousand"):
    doc = exchange(64, 100_000)
    expect(doc["local"]["device"]["name"] == "rxe0", "device")
    expect(doc["local"]["device"]["kind"] == "software", "kind")
    expect(doc["local"]["device"]["gid"]["type"] == "RoCE v2", "GID type")
    expect(doc["path_mtu_bytes"] == 4096, "path MTU")
    expect(sum(i["messages"] for r in doc["results"] if r["side"] == "requester"
               for i in r["intervals"]) == 100_000, "the intervals do not cover the run")

for wait in ("busy", "event", "hybrid:50us"):
    for size in (0, 1, 4096, 65536):
        with case(f"{wait.split(':')[0].capitalize()}{size}Bytes"):
            exchange(size, ITERATIONS, wait)

for wait in ("event", "hybrid:20us", "solicited", "busy:pause"):
    with case(f"{wait.replace(':', '').capitalize()}64Bytes"):
        doc = exchange(64, ITERATIONS, wait)
        if wait in ("event", "solicited"):
            for result in doc["results"]:
                cpu = result["metrics"]["cpu"]
                expect(0 < cpu["events"] <= ITERATIONS + 2 + cpu["empty_wakeups"], f"events: {cpu}")

with case("EachSideWaitsItsOwnWay"):
    exchange(64, ITERATIONS, "event", "busy")

with case("LoopbackInOneProcess"):
    result = run("send-lat", "--loopback", "--iterations", 2000, "--json")
    expect(result.code == 0, str(result))
    expect(result.doc["loopback"], "not marked as loopback")
    expect(latency(result.doc, "requester")[0]["samples"] == 2000, "samples")

with case("SeveralSizesAndRepeatsAreOneDocument"):
    with server("--once") as (serve, port):
        result = run("send-lat", ADDRESS, "--port", port, "-s", "1:16", "-n", 200, "--repeat", 2,
                     "--json")
        expect(result.code == 0, str(result))
        points = [(r["run"], r["point"]["size_bytes"], r["side"]) for r in result.doc["results"]]
        expect(len(points) == len(set(points)) == 20, f"points: {points}")

with case("TextReportNamesWhatRanWhereAndTheDefinition"):
    with server("--once") as (serve, port):
        result = run("send-lat", ADDRESS, "--port", port, "--quick", "--json-file", "/tmp/doc.json")
        expect(result.code == 0, str(result))
        for word in ("rxe0", "half round trip", "p99.9", "maximum", "samples"):
            expect(word in result.out, f"{word!r} is not in the report")
        with open("/tmp/doc.json", encoding="utf-8") as file:
            document(file.read())

with case("DevicesListsTheDeviceWithItsGids"):
    result = run("devices", "--json")
    expect(result.code == 0, str(result))
    device = result.doc["devices"][0]
    expect(device["name"] == "rxe0" and device["kind"] == "software", f"device: {device['name']}")
    gids = device["ports"][0]["gids"]
    expect(any(g["value"].endswith("ffff:0a09:0001") and g["netdev"] == "v0" for g in gids), "GIDs")
    text = run("devices")
    expect(text.code == 0 and "rxe0" in text.out and "RoCE v2" in text.out, str(text))

with case("QueuedClientsHearTheirPlaceAndAreServed"):
    with server() as (serve, port):
        first = Process("send-lat", ADDRESS, "--port", port, "-D", "4s", "--json")
        serve_busy = Process("send-lat", ADDRESS, "--port", port, "--quick", "--json",
                             "--connect-timeout", "1s")
        with first, serve_busy:
            results = [first.wait(40), serve_busy.wait(40)]
        expect([r.code for r in results] == [0, 0], f"{results[0]} {results[1]}")
        expect(any("place 1" in r.err for r in results), "nobody was told a place")
        serve.signal(signal.SIGTERM)
        ended = serve.wait(10)
        expect(ended.code == 0, f"server: {ended}")
        expect(len(ended.out.splitlines()) == 2, f"one line per run: {ended.out!r}")

finish()
