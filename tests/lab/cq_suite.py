#!/usr/bin/python3
"""cq-scale and cq-overrun as two processes on the kernel's rxe device: several threads at one CQ lose and double
nothing, what an overrun loses is named, and what cannot overrun does not. Budget: 60 s."""

from harness import *


def exchange(*args):
    with server("--once", "--json") as (serve, port):
        client = run(args[0], ADDRESS, "--port", port, "--json", *args[1:], seconds=120)
        served = serve.wait(30)
    expect(client.code == served.code, f"{client} here, {served} at the server")
    for key in ("verdict", "checks", "results"):
        expect(client.doc[key] == served.doc[key], f"{key} differ")
    return client


def rows_of(doc):
    return {row["name"]: row for row in doc["checks"]}


with case("SeveralThreadsAtOneCqLoseAndDoubleNothing"):
    for _ in range(3):
        result = exchange("cq-scale", "--quick", "--cqs", "1", "-D", "20ms")
        expect(result.code == 0, str(result))
        row = rows_of(result.doc)["cq-threads"]
        expect(row["status"] == "pass", str(row))
        print(f"# {row['observed']}", flush=True)

with case("CqScaleAccountsForEveryMessage"):
    result = exchange("cq-scale", "--quick", "--cq-depth", "256,4096")
    expect(result.code == 0, str(result))
    for row in result.doc["checks"]:
        expect(row["status"] == "pass", str(row))
    for measured in result.doc["results"]:
        point, metrics = measured["point"], measured["metrics"]
        print(f"# {point['cqs']} CQs, {point['threads']} threads, {metrics['scale']['cqe']} entries: "
              f"{metrics['bandwidth']['msg_per_s']:.0f}/s, {metrics['scale']['speedup']:.2f} times, "
              f"{metrics['scale']['cpu_us_per_message']:.1f} us of CPU per message", flush=True)
        expect(metrics["bandwidth"]["messages"] >= 256, str(metrics))
    expect(any("bounded by the CPUs" in notice for notice in result.doc["notices"]), str(result.doc["notices"]))

with case("AnOverrunIsNamedWithWhatItLost"):
    result = exchange("cq-overrun")
    expect(result.code == 0, str(result))
    rows = rows_of(result.doc)
    expect(rows["overrun-by-sends"]["status"] == "deviation", str(rows["overrun-by-sends"]))
    expect("rxe raises CQ_ERR" in rows["overrun-by-sends"]["why"], str(rows["overrun-by-sends"]))
    expect(rows["overrun-by-receives"]["status"] == "pass", str(rows["overrun-by-receives"]))
    numbers = {(r["point"]["variant"], r["side"]): r["metrics"]["overrun"] for r in result.doc["results"]}
    for key, state in ((("overrun by sends", "requester"), "RTS"), (("overrun by receives", "responder"), "ERR")):
        seen = numbers[key]
        print(f"# {key[0]}: {seen}", flush=True)
        expect(seen["delivered"] == seen["cqe"] and seen["lost"] == 16, str(seen))
        expect(seen["event"].startswith("CQ_ERR") and seen["qp_state"] == state, str(seen))
    expect(numbers["overrun by sends", "requester"]["cq_usable"] is True, str(numbers))

with case("WhatCannotOverrunLosesNothing"):
    result = exchange("cq-overrun", "--quick")
    rows = rows_of(result.doc)
    for name in ("recovery", "avoidance", "sizing-requester", "sizing-responder"):
        expect(rows[name]["status"] == "pass", str(rows[name]))
    brim = [r["metrics"]["overrun"] for r in result.doc["results"] if r["point"]["variant"] == "filled to the brim"]
    expect(len(brim) == 2, str(brim))
    for seen in brim:
        expect(seen["cqe"] - seen["outstanding"] < 4 and seen["lost"] == 0, f"not full: {seen}")

finish()
