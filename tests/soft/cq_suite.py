#!/usr/bin/python3
"""cq-scale and cq-overrun on the soft device: what must hold on both links, and every lie about a completion
found out. Needs no RDMA device. Budget: 1 minute.

Prints "ok NAME" or "FAIL NAME: why" for each case; exit status 1 if any failed."""

import json
import os
import pathlib
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lab"))
os.environ.setdefault("VERBSCOPE_BIN", str(ROOT / "bazel-bin/cmd/verbscope"))
os.environ.setdefault("LAB_OUT", tempfile.mkdtemp())

from harness import *  # noqa: E402

LINKS = ("soft", "soft:link=udp")


def both(*args, device="soft"):
    """The client's result of a run of two processes, whose sides must agree."""
    with server("--device", device, "--once", "--json") as (serve, port):
        client = run(args[0], "127.0.0.1", "--port", port, "--device", device, *args[1:], "--json")
        served = serve.wait(30)
    expect(client.code == served.code, f"client: {client}; server: {served}")
    for key in ("checks", "results", "verdict"):
        expect(client.doc[key] == served.doc[key], f"the sides' {key} differ")
    return client


def rows_of(doc):
    return {row["name"]: row for row in doc["checks"]}


def lying(rule, *args):
    with tempfile.TemporaryDirectory() as folder:
        config = os.path.join(folder, "lie.json")
        with open(config, "w", encoding="utf-8") as file:
            json.dump({"hooks": {"completions": [rule]}}, file)
        return run(args[0], "--loopback", "--device", f"soft:config={config}", "--quick", *args[1:], "--json")


with case("CqScaleMeasuresEveryPointOverBothLinks"):
    for device in LINKS:
        result = both("cq-scale", "--quick", "-q", "8", "-t", "4", "--cqs", "1,2,4", "--cq-depth", "32,1024",
                      device=device)
        expect(result.code == 0, f"{device}: {result}")
        points = [(r["point"]["cqs"], r["point"]["threads"], r["point"].get("cq_depth"))
                  for r in result.doc["results"]]
        expect(points == [(1, 1, None), (2, 2, None), (1, 2, None), (4, 4, None), (1, 4, None), (1, 1, 32),
                          (1, 1, 1024), (1, 1, None)], str(points))
        expect([r["run"] for r in result.doc["results"]] == [0] * 7 + [1], "the first again")
        base = result.doc["results"][0]["metrics"]["bandwidth"]["msg_per_s"]
        for measured in result.doc["results"]:
            metrics = measured["metrics"]
            expect(metrics["bandwidth"]["messages"] >= 32, str(metrics))
            expect(abs(metrics["scale"]["speedup"] - metrics["bandwidth"]["msg_per_s"] / base) < 1e-6, str(metrics))
            expect(metrics["scale"]["cpu_us_per_message"] > 0, str(metrics))
        expect(all(row["status"] == "pass" for row in result.doc["checks"]), str(result.doc["checks"]))

with case("MoreThreadsThanCpusAreANotice"):
    cpu = min(os.sched_getaffinity(0))
    result = run("cq-scale", "--loopback", "--device", "soft", "--quick", "--cqs", "2", "--cpu", cpu, "--json")
    expect(result.code == 0, str(result))
    expect(any("bounded by the CPUs" in notice for notice in result.doc["notices"]), str(result.doc["notices"]))
    expect(all(r["metrics"]["scale"]["cores"] == 1 for r in result.doc["results"]), str(result.doc["results"]))

with case("SeveralThreadsAtOneCqLoseAndDoubleNothing"):
    for device in LINKS:
        for _ in range(3):
            result = both("cq-scale", "--quick", "--cqs", "1", "-D", "5ms", device=device)
            row = rows_of(result.doc)["cq-threads"]
            expect(row["status"] == "pass" and "taken once each" in row["observed"], f"{device}: {row}")

# Of 800 receives of cq-threads; the completions of WRITEs begin behind its 800 sends.
with case("EveryLieAboutACompletionIsFoundAndNamed"):
    for rule, name, *words in (
            ({"kind": "send", "nth": 1000, "wr_id_xor": 256}, "cqs-1-threads-1", "wr_id 0x", "qp_num"),
            ({"kind": "send", "nth": 1000, "wr_id_xor": 0xff0000}, "cqs-1-threads-1", "no request in this CQ"),
            ({"kind": "send", "nth": 1000, "wr_id_xor": 1 << 60}, "cqs-1-threads-1", "not in flight"),
            ({"kind": "send", "nth": 1000, "opcode": "SEND"}, "cqs-1-threads-1", "opcode is"),
            ({"kind": "send", "nth": 1000, "drop": True}, "cqs-1-threads-1", "expected"),
            ({"kind": "receive", "nth": 400, "wr_id_xor": 256}, "cq-threads", "1 of a wr_id or qp_num"),
            ({"kind": "receive", "nth": 400, "drop": True}, "cq-threads", "1 lost"),
            ({"kind": "receive", "nth": 400, "wr_id_xor": 1 << 24}, "cq-threads", "1 lost, 1 came twice")):
        result = lying(rule, "cq-scale", "--cqs", "1")
        expect(result.code == 3 and result.doc["verdict"] == "fail", f"{rule}: {result}")
        row = rows_of(result.doc)[name]
        expect(row["status"] == "fail", f"{rule}: {row}")
        for word in words:
            expect(word in row["observed"], f"{rule}: {word!r} is not in {row['observed']!r}")

with case("APlantedQueuePairMismatchNamesBothNumbers"):
    result = lying({"kind": "send", "nth": 1000, "wr_id_xor": 256}, "cq-scale", "--cqs", "1")
    expect(result.code == 3, str(result))
    observed = rows_of(result.doc)["cqs-1-threads-1"]["observed"]
    expect("whose qp_num is 0x" in observed and "but qp_num is 0x" in observed, observed)

with case("CqOverrunTellsWhatWasLost"):
    for device in (*LINKS, "soft:profile=rxe-6.1"):
        result = both("cq-overrun", "--quick", device=device)
        expect(result.code == 0, f"{device}: {result}")
        rows = rows_of(result.doc)
        expect(set(rows) == {"overrun-by-sends", "overrun-by-receives", "recovery", "avoidance", "sizing-requester",
                             "sizing-responder"}, str(list(rows)))
        numbers = {(r["point"]["variant"], r["side"]): r["metrics"]["overrun"] for r in result.doc["results"]}
        for key in (("overrun by sends", "requester"), ("overrun by receives", "responder")):
            seen = numbers[key]
            expect(seen["lost"] == seen["outstanding"] - seen["cqe"] == 16, f"{device}: {key} {seen}")
            expect(seen["event"].startswith("CQ_ERR") and seen["qp_state"] == "ERR", f"{device}: {key} {seen}")
            expect("16 lost" in rows[key[0].replace(" ", "-")]["observed"], str(rows))
        for key in (("made again", "requester"), ("posts that pause", "requester"),
                    ("filled to the brim", "requester"), ("filled to the brim", "responder")):
            seen = numbers[key]
            expect(seen["lost"] == 0 and seen["event"] is None, f"{device}: {key} {seen}")
            expect(seen["delivered"] == seen["outstanding"] and seen["qp_state"] == "RTS", f"{device}: {key} {seen}")

with case("ALossIsNeverASuccess"):
    # One of the first overrun, one of the SENDs whose own CQ has room, one of the recovery's and of the pauses'
    # traffic: 32 and one more of the first, 32 SENDs, 32 of the second overrun, then 50 and 50.
    for nth, name in ((8, "overrun-by-sends"), (40, "overrun-by-receives"), (110, "recovery"), (170, "avoidance")):
        result = lying({"kind": "send", "nth": nth, "drop": True}, "cq-overrun")
        expect(result.code == 3, f"{nth}: {result}")
        expect(rows_of(result.doc)[name]["status"] == "fail", f"{nth}: {result.doc['checks']}")

with case("WhatCannotBeMeasuredIsRefused"):
    for args, words in ((("cq-scale", "--cqs", "32"), "some CQs would have none"),
                        (("cq-scale", "--cq-depth", "64"), "or the CQ overruns"),
                        (("cq-scale", "--cqs", "0"), "not a list of numbers"),
                        (("cq-scale", "-D", "20s"), "for 10s at most"),
                        (("cq-scale", "-s", "1,2"), "size"),
                        (("cq-scale", "-e"), "waits busily")):
        result = run(*args, "--loopback", "--device", "soft", "--json")
        expect(result.code == 1 and words in result.err, f"{args}: {result}")
    result = run("cq-scale", "--loopback", "--device", "soft:max_cqe=128", "--quick", "--json")
    expect(result.code == 2 and "max_cqe" in result.err, str(result))

with case("ThreadsStopWhenThePeerDiesAndOnCtrlC"):
    with server("--device", "soft", "--once") as (serve, port):
        with Process("cq-scale", "127.0.0.1", "--port", port, "--device", "soft", "-D", "9s", "--json") as client:
            time.sleep(1.5)
            serve.signal(signal.SIGKILL)
            died = client.wait(20)
    expect(died.code == 5 and died.seconds < 12, str(died))
    expect(died.doc["error"]["class"] == "run", str(died.doc["error"]))
    with Process("cq-scale", "--loopback", "--device", "soft", "-D", "9s", "--json") as client:
        time.sleep(1.5)
        client.signal(signal.SIGINT)
        stopped = client.wait(20)
    expect(stopped.code == 130 and stopped.seconds < 8, str(stopped))
    result = run("cq-scale", "--loopback", "--device", "soft", "-D", "9s", "--cqs", "1", "--deadline", "5s", "--json")
    expect(result.code == 1 and "--deadline" in result.err, str(result))

with case("TheTextsSayWhatTheTablesMean"):
    result = run("cq-scale", "--loopback", "--device", "soft", "--quick")
    expect(result.code == 0 and "2 threads on 2 CQs:" in result.out, str(result))
    result = run("cq-overrun", "--loopback", "--device", "soft", "--quick")
    expect(result.code == 0 and "overrun by sends             16      32" in result.out, str(result))

finish()
