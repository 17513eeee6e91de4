#!/usr/bin/python3
"""Assertions and ab on the soft device: what passes, fails or cannot be told, the exit codes of both sides, baselines,
measuring on until it is decided, and what is refused before any traffic. Needs no RDMA device. Budget: 90 s.

Prints "ok NAME" or "FAIL NAME: why" for each case; exit status 1 if any failed."""

import contextlib
import json
import os
import pathlib
import re
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lab"))
os.environ.setdefault("VERBSCOPE_BIN", str(ROOT / "bazel-bin/cmd/verbscope"))
os.environ.setdefault("LAB_OUT", tempfile.mkdtemp())

from harness import *  # noqa: E402

FOLDER = pathlib.Path(tempfile.mkdtemp())
SOFT = ("--loopback", "--device", "soft")
SHORT = ("-D", "150ms", "--warmup", "20ms")


def gated(*args, command="send-lat", length=SHORT, **options):
    return run(command, *SOFT, *length, *args, "--json", **options)


def gate(doc, number=0):
    return doc["gates"][number]


with case("PassFailAndTheirExitCodes"):
    for expression, code, status in (("p50<1s", 0, "pass"), ("p50<1ns", 3, "fail"), ("max<1ns", 3, "fail"),
                                     ("mean<1s", 0, "pass"), ("count>=1000", 0, "pass"), ("count<1", 3, "fail"),
                                     ("errors==0", 0, "pass"), ("lost_wakeups==0", 0, "pass"),
                                     ("msgrate>=1/s", 0, "pass"), ("min>0ns", 0, "pass"), ("stdev<1s", 0, "pass"),
                                     ("cpu<=100%", 0, "pass"), ("counter.out_of_seq_request==0", 0, "pass"),
                                     ("p99{size=64,side=responder,wait=busy}<1s", 0, "pass")):
        result = gated("--assert", expression)
        expect(result.code == code and gate(result.doc)["status"] == status, f"{expression}: {result}; {result.doc['gates']}")
        expect(gate(result.doc)["expression"] == expression, str(result.doc["gates"]))
        if status == "fail":
            expect(expression in result.err, f"standard error does not name {expression!r}: {result.err!r}")

with case("EveryAssertionOfManyMustHold"):
    result = gated("--assert", "p50<1s", "--assert", "p50<1ns", "--assert", "p99<1s")
    expect(result.code == 3 and [g["status"] for g in result.doc["gates"]] == ["pass", "fail", "pass"], str(result))
    text = run("send-lat", *SOFT, *SHORT, "--assert", "p50<1s", "--assert", "p50<1ns")
    expect(text.code == 3 and "PASS" in text.out and "FAIL" in text.out and "p50<1ns" in text.out, text.out)

with case("AThousandSamplesDoNotDecideP99_9"):
    for policy, code in ((None, 4), ("report", 4), ("fail", 3), ("pass", 0)):
        options = () if policy is None else ("--on-inconclusive", policy)
        result = gated("--assert", "p99.9<1s", *options, length=("-n", 1000))
        row = gate(result.doc)
        expect(result.code == code, f"{policy}: {result}")
        expect(row["status"] == "inconclusive" and row["samples_needed"] == 2995, str(row))
        expect(row["samples"] == 1000 and row["effective_samples"] == 1000 and row["limit"] == 1e9, str(row))
    text = run("send-lat", *SOFT, "-n", 1000, "--assert", "p99.9<1s")
    expect(text.code == 4 and "INCONCLUSIVE" in text.out and "2,995" in text.out, text.out)
    expect("2,995" in text.err, f"standard error does not say what is needed: {text.err!r}")

with case("ExtendMeasuresOnUntilItIsDecided"):
    for command, samples in (("send-lat", "latency"), ("read-lat", "latency")):
        result = gated("--assert", "p99.9<1s", "--on-inconclusive", "extend", command=command, length=("-n", 1000))
        expect(result.code == 0 and gate(result.doc)["status"] == "pass", f"{command}: {result}")
        expect(gate(result.doc)["samples"] >= 2995, str(gate(result.doc)))
        for row in result.doc["results"]:
            metrics = row["metrics"]
            if "latency" in metrics and metrics["latency"]["samples"]:
                expect(metrics["latency"]["samples"] >= 2995, str(metrics["latency"]["samples"]))
            times = [(interval["from_s"], interval["to_s"]) for interval in row["intervals"]]
            expect(times == sorted(times), f"{command}: intervals {times}")
    # A sweep, an assertion for each size: every point is measured on for its own.
    result = gated("--assert", "p99{size=64}<1s", "--assert", "p99{size=128}<1s", "--on-inconclusive", "extend", "-s", "64:128",
                   length=("-n", 200))
    expect(result.code == 0 and all(g["samples"] >= 299 for g in result.doc["gates"]), f"{result}; {result.doc['gates']}")
    for row in result.doc["results"]:
        messages = sum(interval["messages"] for interval in row["intervals"])
        expect(messages == row["metrics"]["latency"]["samples"], f"{messages} in the intervals of {row['point']}")
    # The deadline of the command bounds it too: a verdict, and not a run that broke.
    result = gated("--assert", "p99.9999<5s", "--on-inconclusive", "extend", "--deadline", "5s",
                   "--rate", "2000", length=("-D", "500ms"))
    expect(result.code == 4, f"{result}; {result.doc['gates']}")
    # Decided already: no longer than asked for.
    result = gated("--assert", "p50<1s", "--on-inconclusive", "extend", length=("-n", 1000))
    expect(result.code == 0 and gate(result.doc)["samples"] == 1000, str(gate(result.doc)))
    # What cannot be decided ends at --max-duration.
    result = gated("--assert", "p99.9999<1s", "--on-inconclusive", "extend", "--max-duration", "400ms",
                   "--rate", "2000", length=("-D", "100ms", "--warmup", "0"))
    expect(result.code == 4 and result.seconds < 10, str(result))
    row, = [r for r in result.doc["results"] if r["side"] == "requester"]
    expect(row["intervals"][-1]["to_s"] > 0.3 and row["metrics"]["latency"]["samples"] > 600, str(row["intervals"][-1]))
    expect(result.doc["plan"]["extend_to_ns"] == 400_000_000, str(result.doc["plan"]))

with case("ASweepWithOneFailingSize"):
    # 8 MiB take longer than a microsecond on anything; 2 bytes take less than a second.
    result = gated("--assert", "p50<1s", "--assert", "p50{size=2}<1s", "--assert", "p50<50us", "-s", "2:8M",
                   length=("-n", 20, "--warmup", 0))
    expect(result.code == 3 and [g["status"] for g in result.doc["gates"]] == ["pass", "pass", "fail"], str(result))
    rows = {r["point"]["size_bytes"]: r["status"] for r in gate(result.doc, 2)["results"] if r["side"] == "requester"}
    expect(rows[2] == "pass" and rows[8 << 20] == "fail" and len(rows) == 23, str(rows))

with case("WhatIsRefusedBeforeAnyTraffic"):
    started = time.monotonic()
    for args, words in ((("--assert", "p99.9x<5us"), "p99.9x"), (("--assert", "p99<5"), "unit"),
                        (("--assert", "bw>=1Gb/s"), "does not measure bw"), (("--assert", ""), "empty"),
                        (("--assert", "p99{size=65}<5us"), "65 bytes"), (("--assert", "p99<=baseline"), "baseline"),
                        (("--assert", "p99{colour=red}<5us"), "colour"), (("--asserts", "/nonexistent"), "nonexistent"),
                        (("--asserts", "/dev/null"), "no assertion"),
                        (("--assert", "p99<5us", "--on-inconclusive", "maybe"), "maybe"),
                        (("--assert", "p99<5us", "--max-duration", "9s"), "extend"),
                        (("--assert", "p99<5us", "--on-inconclusive", "extend", "--max-duration", "1s", "-D", "2s"), "shorter"),
                        (("--assert", "p99<=baseline", "--baseline", "/nonexistent"), "nonexistent")):
        result = run("send-lat", *SOFT, *args, "--json")
        expect(result.code == 1 and result.doc["error"]["class"] == "usage", f"{args}: {result}")
        expect(words in str(result.doc["error"]), f"{args}: {result.doc['error']}")
        expect(result.doc["results"] == [], f"{args}: it ran")
        # A peer is not even looked for.
        away = run("send-lat", "203.0.113.1", "--device", "soft", *args, "--json")
        expect(away.code == 1 and away.seconds < 5, f"{args}: {away}")
    expect(time.monotonic() - started < 60, "it took as long as runs do")

with case("AFileOfAssertions"):
    path = FOLDER / "asserts.txt"
    path.write_text("# what this fabric must hold\np50<1s\n\nmax{side=requester}<10s\n")
    result = gated("--asserts", str(path), "--assert", "count>=1")
    expect(result.code == 0 and len(result.doc["gates"]) == 3, str(result))
    path.write_text("p50<1s\np99.9x<5us\n")
    result = gated("--asserts", str(path))
    expect(result.code == 1 and "line 2" in result.doc["error"]["message"], str(result))

with case("ABaseline"):
    path = FOLDER / "baseline.json"
    expect(gated("--json-file", str(path)).code == 0, "the baseline failed")
    baseline = json.loads(path.read_text())
    for factor, code in ((1000, 0), (0.001, 3)):
        result = gated("--baseline", str(path), "--assert", f"p50<=baseline*{factor}")
        expect(result.code == code, f"{factor}: {result}")
        mine, = [r for r in baseline["results"] if r["side"] == "requester"]
        limits = {r["side"]: r["limit"] for r in gate(result.doc)["results"]}
        expect(abs(limits["requester"] / factor - mine["metrics"]["latency"]["percentiles_ns"]["50"]) < 1e-6, str(limits))
    result = gated("--baseline", str(path), "--assert", "p50<=baseline*1000", "-s", "128")
    expect(result.code == 3 and "baseline has no" in gate(result.doc)["why"], str(result.doc["gates"]))
    result = gated("--baseline", str(path), "--assert", "p50<=baseline", command="read-lat")
    expect(result.code == 1 and "of send-lat" in result.doc["error"]["message"], str(result))
    path.write_text("{}")
    expect(gated("--baseline", str(path), "--assert", "p50<=baseline").code == 1, "an empty baseline was taken")

with case("WhatIsReadIsNotWrittenOver"):
    path, asserts = FOLDER / "kept.json", FOLDER / "kept.txt"
    expect(gated("--json-file", path).code == 0, "the baseline failed")
    asserts.write_text("p50<1s\n")
    before = (path.read_bytes(), asserts.read_bytes())
    for command in (("send-lat", *SOFT, "-n", 10, "--baseline", path, "--assert", "p50<baseline*9", "--json-file", path),
                    ("send-lat", *SOFT, "-n", 10, "--asserts", asserts, "--csv", asserts),
                    ("compare", path, "--new", path, "--html", path), ("report", path, "--junit", path)):
        result = run(*command)
        expect(result.code == 1 and "files to read" in result.err, f"{command}: {result}")
    expect(before == (path.read_bytes(), asserts.read_bytes()), "a file changed")

with case("ASignalEndsTheWaitForAPipe"):
    os.mkfifo(FOLDER / "pipe")
    for command in (("send-lat", *SOFT, "--asserts", FOLDER / "pipe"), ("report", FOLDER / "pipe"),
                    ("send-lat", *SOFT, "--baseline", FOLDER / "pipe", "--assert", "p50<baseline"),
                    ("compare", FOLDER / "pipe", "--new", FOLDER / "pipe")):
        with Process(*command, "--quiet") as process:
            time.sleep(0.3)  # until it reads, or a little later
            process.signal(signal.SIGTERM)
            result = process.wait(10)
        expect(result.code == 130, f"{command}: {result}")

with case("BothSidesExitAlike"):
    for expression, options, code in (("p50<1s", (), 0), ("p50<1ns", (), 3), ("p99.9<1s", ("-n", 1000), 4),
                                      ("p99.9<1s", ("-n", 1000, "--on-inconclusive", "fail"), 3),
                                      ("p99.9<1s", ("-n", 1000, "--on-inconclusive", "pass"), 0),
                                      ("p99.9<1s", ("-n", 1000, "--on-inconclusive", "extend"), 0)):
        with server("--device", "soft", "--once", "--json") as (serve, port):
            client = run("send-lat", "127.0.0.1", "--port", port, "--device", "soft", *(options or SHORT), "--assert",
                         expression, "--json")
            served = serve.wait(20)
        expect(client.code == served.code == code, f"{expression} {options}: {client}; server: {served}")
        mine, theirs = gate(client.doc), gate(served.doc)
        expect(theirs["results"] == [] and {**mine, "results": []} == theirs and served.doc["verdict"] == client.doc["verdict"], f"{mine}; {theirs}")

with case("ATruncatedRunNeverPasses"):
    with server("--device", "soft", "--once", "--json") as (serve, port):
        with Process("send-lat", "127.0.0.1", "--port", port, "--device", "soft", "-D", "20s", "--assert", "p50<1s",
                     "--assert", "count>=1", "--json") as client:
            time.sleep(1)  # into the run
            serve.signal(signal.SIGKILL)
            result = client.wait(20)
    expect(result.code == 5 and result.doc["verdict"] == "error", str(result))
    expect(all(g["status"] != "pass" for g in result.doc["gates"]), str(result.doc["gates"]))
    with Process("send-lat", *SOFT, "-D", "20s", "--assert", "p50<1s", "--json") as client:
        time.sleep(1)  # into the run
        client.signal(signal.SIGINT)
        result = client.wait(20)
    expect(result.code == 130 and gate(result.doc)["status"] != "pass", str(result))

with case("EveryCommandThatMeasuresCanBeGated"):
    for command, options, expression in (
            ("send-bw", ("-n", 500), "bw>=1Kb/s"), ("read-bw", ("-n", 500), "msgrate>=1/s"),
            ("write-lat", ("-n", 500), "p50<1s"), ("atomic-lat", ("-n", 500), "p50<1s"), ("imm", (), "errors==0"),
            ("zero-len-recv", (), "errors==0"), ("rnr-test", ("--quick",), "errors==0"),
            ("cq-overrun", (), "errors==0"), ("cq-scale", ("--quick",), "msgrate>=1/s"),
            ("event-vs-poll", ("--quick",), "lost_wakeups==0")):
        result = run(command, *SOFT, *options, "--assert", expression, "--json")
        expect(result.code == 0 and gate(result.doc)["status"] == "pass", f"{command}: {result}; {result.doc['gates']}")
    result = run("verb-cost", "--device", "soft", "--quick", "--verbs", "post_send", "--assert", "p50<1ns", "--json")
    expect(result.code == 3 and gate(result.doc)["status"] == "fail", str(result))
    result = run("imm", *SOFT, "--assert", "errors==0", "--on-inconclusive", "extend", "--json")
    expect(result.code == 1 and "cannot measure on" in result.doc["error"]["message"], str(result))

with case("AbOfTwoEqualSetsIsNotWorseAndAnInjectedDelayIs"):
    equal = run("ab", "--runs", 8, "--json", "send-lat", *SOFT, *SHORT, seconds=120)
    expect(equal.code == 0, str(equal))
    rows = [r for r in equal.doc["comparison"]["rows"] if r["gated"]]
    expect(rows and all(r["verdict"] != "worse" for r in rows), str(rows))
    expect(len(equal.doc["results"]) == 32 and {r["set"] for r in equal.doc["results"]} == {"a", "b"}, "results")
    # A microsecond, and the timer that waits for it. Sleepers do not mind that this host has other work.
    delayed = run("ab", "--runs", 10, "--a", "--device soft:link=udp", "--b", "--device soft:link=udp,delay=1us",
                  "send-lat", "--loopback", "--wait", "event", *SHORT, "--json", seconds=120)
    expect(delayed.code == 3, f"{delayed}: {delayed.doc['comparison']['rows']}")
    worse = {r["metric"] for r in delayed.doc["comparison"]["rows"] if r["verdict"] == "worse"}
    expect(worse & {"p50", "p99", "p99.9"}, f"{worse} of {delayed.doc['comparison']['rows']}")

with case("AbRefusesWhatItCannotRun"):
    for args, words in (((), "command"), (("serve",), "does not run serve"), (("--a", "--nonsense", "send-lat"), "set A"),
                        (("--b", "-s x", "send-lat", *SOFT), "set B"), (("--a", "--assert p50<1s", "send-lat"), "set A"),
                        (("--margin", "x", "send-lat", *SOFT), "margin")):
        result = run("ab", "--json", *args)
        expect(result.code == 1 and words in str(result.doc["error"]), f"{args}: {result} {result.doc['error']}")

finish()
