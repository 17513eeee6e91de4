#!/usr/bin/python3
"""verb-cost on the soft device: every verb has its rows, lists and periods are swept, what is skipped says why,
an interrupt at any time leaves a valid document. Needs no RDMA device. Budget: 60 s.

Prints "ok NAME" or "FAIL NAME: why" for each case; exit status 1 if any failed."""

import collections
import json
import os
import pathlib
import random
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lab"))
os.environ.setdefault("VERBSCOPE_BIN", str(ROOT / "bazel-bin/cmd/verbscope"))
os.environ.setdefault("LAB_OUT", tempfile.mkdtemp())

from harness import *  # noqa: E402

VERBS = ("empty_timing", "post_send", "ibv_wr", "post_recv", "poll_cq", "start_poll", "req_notify_cq", "get_cq_event",
         "ack_cq_events", "reg_mr", "dereg_mr", "create_qp", "destroy_qp", "create_cq", "destroy_cq", "modify_qp")
SOFT = ("--device", "soft")
# What the thread that calls does on this device when everything is in memory; the rest depends on the machine.
OUTSIDE = ("post_send", "ibv_wr", "post_recv", "poll_cq", "start_poll", "req_notify_cq", "ack_cq_events", "create_cq")
INSIDE = ("get_cq_event",)


def cost(*args, **options):
    return run("verb-cost", *SOFT, *args, "--json", **options)


def rows(doc, op):
    return [result for result in doc["results"] if result["point"]["op"] == op]


def swept(doc, op, key):
    return [r["point"][key] for r in rows(doc, op) if key in r["point"]]


def judge(doc):
    """What holds of every row of every document."""
    for result in doc["results"]:
        metrics, point = result["metrics"], result["point"]
        group, times = metrics["cost"], metrics["latency"]
        expect(times["definition"] == "call" and times["ended_by"] == "return", str(point))
        expect(group["calls"] == times["samples"] > 0, f"{point}: {group}")
        expect(group["per_call_work"] >= 1 and result["side"] == "requester", f"{point}: {group}")
        median = times["percentiles_ns"]["50"]
        if median is not None:
            expect(abs(group["ns_per_request"] - median / group["per_call_work"]) < 1e-6, f"{point}: {group}")
        if group["syscalls_per_call"] is not None:
            expect(group["enters_kernel"] == (group["syscalls_per_call"] > 0), f"{point}: {group}")


with case("EveryVerbHasItsRows"):
    doc = cost("-n", 300, "--max-size", "16M").doc
    expect(doc["verdict"] == "pass" and doc["remote"] is None and doc["local"]["role"] == "local", str(doc["error"]))
    judge(doc)
    for verb in VERBS:
        expect(rows(doc, verb), f"no row of {verb}")
    expect(len(doc["results"]) == len({str(result["point"]) for result in doc["results"]}), "two rows of one point")
    overheads = {result["metrics"]["cost"]["overhead_ns"] for result in doc["results"]}
    expect(len(overheads) == 1 and None not in overheads, str(overheads))
    print(f"# {len(doc['results'])} rows in {doc['wall_s']:.2f} s", flush=True)

with case("ListsPeriodsAndSizesAreSwept"):
    expect(swept(doc, "post_send", "post_list") == [2, 4, 8, 16, 32, 64], str(swept(doc, "post_send", "post_list")))
    expect(swept(doc, "post_send", "signal_every") == [2, 4, 8, 16, 32, 64], "signal periods")
    limit = doc["local"]["device"]["inline_bytes"]
    plain = [r["point"] for r in rows(doc, "post_send") if not {"post_list", "signal_every"} & set(r["point"])]
    inline = [p["size_bytes"] for p in plain if p["inline"]]
    other = [p["size_bytes"] for p in plain if not p["inline"]]
    expect(max(inline) == limit and limit + 1 in other and limit in other, f"{inline} {other}, limit {limit}")
    for result in rows(doc, "post_send"):
        expect(result["metrics"]["cost"]["per_call_work"] == result["point"].get("post_list", 1), str(result["point"]))
    expect([r["metrics"]["cost"]["per_call_work"] for r in rows(doc, "ack_cq_events")] == [1, 16], "acknowledging")
    expect([r["point"]["variant"] for r in rows(doc, "modify_qp")] == ["RESET to INIT", "INIT to RTR", "RTR to RTS"],
           "the steps of a QP")

with case("WhichVerbsEnterTheKernel"):
    unknown = [check for check in doc["checks"] if check["name"] == "enters-kernel"]
    if unknown:
        print(f"# not counted here: {unknown[0]['why']}", flush=True)
        expect(all(r["metrics"]["cost"]["enters_kernel"] is None for r in doc["results"]), "unknown, and yet known")
    else:
        entered = collections.defaultdict(set)
        for result in doc["results"]:
            entered[result["point"]["op"]].add(result["metrics"]["cost"]["enters_kernel"])
        for verb in OUTSIDE:
            expect(entered[verb] == {False}, f"{verb}: {entered[verb]}")
        for verb in INSIDE:
            expect(entered[verb] == {True}, f"{verb}: {entered[verb]}")

with case("WhatIsSkippedSaysWhy"):
    doc = cost("--quick", "--verbs", "reg_mr", "--max-size", "64K").doc
    expect(doc["verdict"] == "pass", str(doc["error"]))
    expect(swept(doc, "reg_mr", "size_bytes") == [4096, 65536], str(swept(doc, "reg_mr", "size_bytes")))
    skipped = {check["name"]: check for check in doc["checks"]}
    for size in ("1 MiB", "1 GiB", "2 MiB huge pages"):
        row = skipped[f"reg_mr {size}"]
        expect(row["status"] == "skip" and "64 KiB" in row["why"], str(row))

with case("VerbsAreChosenByName"):
    doc = cost("--quick", "--verbs", "ack_cq_events,post_recv").doc
    expect([op for op in VERBS if rows(doc, op)] == ["empty_timing", "post_recv", "get_cq_event", "ack_cq_events"],
           str({r["point"]["op"] for r in doc["results"]}))

with case("QuickIsQuick"):
    start = time.monotonic()
    result = cost("--quick")
    took = time.monotonic() - start
    print(f"# {took:.2f} s", flush=True)
    expect(result.code == 0 and took < 15, str(result))
    judge(result.doc)
    expect("at most about" in result.err, result.err)

with case("BothLinksAndTheOtherRuleBook"):
    for device in ("soft:link=udp", "soft:link=memory", "soft:profile=rxe-6.1", "soft:inline=0"):
        result = run("verb-cost", "--device", device, "--quick", "--json")
        expect(result.code == 0, f"{device}: {result}")
        judge(result.doc)
        names = [check["name"] for check in result.doc["checks"]]
        expect(("post_send inline" in names) == (device == "soft:inline=0"), f"{device}: {names}")

with case("TextIsOneTable"):
    result = run("verb-cost", *SOFT, "--quick")
    expect(result.code == 0, str(result))
    for verb in VERBS:
        expect(any(line.startswith(verb) for line in result.out.splitlines()), f"no line of {verb}")
    expect("entered by" in result.out or "not known of" in result.out, "the kernel's sentence")
    expect("in a list of 64 a request costs" in result.out, result.out)
    expect(len(result.out.splitlines()) < 130, f"{len(result.out.splitlines())} lines")

with case("WithoutADeviceItIsNotReplacedInSilence"):
    result = run("verb-cost", "--quick", "--json")
    if result.code == 2:
        expect("--device soft" in result.doc["error"]["next_step"], str(result.doc["error"]))
    else:
        expect(result.doc["local"]["device"]["provider"] != "soft", "the soft device was taken unasked")

with case("BadOptionsAreNamed"):
    for args, word in ((("--verbs", "post"), "--verbs post"), (("--verbs", ""), "--verbs"), (("-n", "0"), "iterations"),
                       (("--max-size", "1X"), "--max-size 1X"), (("--deadline", "soon"), "--deadline soon"),
                       (("--loopback",), "--loopback"), (("HOST",), "HOST"), (("--cpu", "9999"), "9999")):
        result = run("verb-cost", *SOFT, *args, "--json")
        expect(result.code in (1, 2), f"{args}: {result}")
        expect(result.doc["verdict"] == "error" and word in result.err, f"{args}: {word!r} is not in {result.err!r}")

with case("ADeviceThatFailsIsAnErrorWithADocument"):
    codes = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder) / "faulty.json"
        calls = [{"control": [{"call": "any", "nth": nth, "errno": "ENOMEM"}]} for nth in range(1, 450, 37)]
        ends = [{"completions": [{"nth": nth, "status": "RETRY_EXC_ERR", "vendor_err": 129}]} for nth in (1, 100, 1000)]
        for hooks in calls + ends:
            config.write_text(json.dumps({"hooks": hooks}), encoding="utf-8")
            result = run("verb-cost", "--device", f"soft:config={config}", "--quick", "-n", 5, "--json")
            codes[result.code] += 1
            expect(result.code in ((0, 2) if "control" in hooks else (5,)), f"{hooks}: {result}")
            expect((result.doc["error"] is None) == (result.code == 0), str(result.doc["error"]))
            judge(result.doc)
            owed = [text for text in result.doc["notices"] if "not acknowledged" in text and " 0 events" not in text]
            expect(not owed, f"{hooks}: {owed}")
    print(f"# exit codes {dict(codes)}", flush=True)
    expect(codes[2] > 0, "no call failed")

with case("TheDeadlineEndsIt"):
    result = cost("-n", 10000000, "--deadline", "300ms")
    expect(result.code == 6 and result.seconds < 20, str(result))
    expect(result.doc["error"]["class"] == "deadline", str(result.doc["error"]))
    judge(result.doc)

with case("AnInterruptAtAnyTimeLeavesADocument"):
    rng = random.Random(5)
    codes = collections.Counter()
    for _ in range(25):
        with Process("verb-cost", *SOFT, "--json", "-n", 20000, "--max-size", "64M") as process:
            process.await_text("at most about")
            time.sleep(rng.uniform(0, 1.2))
            process.signal(signal.SIGINT if rng.random() < 0.5 else signal.SIGTERM)
            result = process.wait(20)
        codes[result.code] += 1
        expect(result.code in (0, 130), str(result))
        expect((result.doc["error"] is None) == (result.code == 0), str(result.doc["error"]))
        judge(result.doc)
        broken = [r["point"] for r in result.doc["results"] if not r["complete"]]
        expect(len(broken) <= (result.code == 130), f"{broken}")
    print(f"# exit codes {dict(codes)}", flush=True)
    expect(codes[130] > 0, "none was in time")

finish()
