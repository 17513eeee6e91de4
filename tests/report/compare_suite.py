#!/usr/bin/python3
"""compare: documents of known difference and real runs on the soft device; every verdict, every exit code, what is
refused and how it is said. Needs no RDMA device. Budget: 60 s.

Prints "ok NAME" or "FAIL NAME: why" for each case; exit status 1 if any failed."""

import copy
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lab"))
os.environ.setdefault("VERBSCOPE_BIN", str(ROOT / "bazel-bin/cmd/verbscope"))
os.environ.setdefault("LAB_OUT", tempfile.mkdtemp())

from harness import *  # noqa: E402

RECORDS = ROOT / "testdata/records"
FOLDER = pathlib.Path(tempfile.mkdtemp())
TIMES = ("min_ns", "mean_ns", "max_ns")


def scaled(value, factor):
    return None if value is None else round(value * factor) if isinstance(value, int) else value * factor


def with_latency(result, factor):
    """The result with every time of its latency times factor. The text form of the histogram, which no comparison
    reads, stays."""
    latency = result["metrics"]["latency"]
    for key in TIMES:
        latency[key] = scaled(latency[key], factor)
    latency["percentiles_ns"] = {key: scaled(value, factor) for key, value in latency["percentiles_ns"].items()}
    return result


def with_rate(result, factor):
    bandwidth = result["metrics"]["bandwidth"]
    for key in ("gbit_per_s", "msg_per_s"):
        bandwidth[key] *= factor
    return result


def write(name, doc):
    path = FOLDER / name
    path.write_text(json.dumps(doc), encoding="utf-8")
    return str(path)


def made(name, factor=1.0, runs=10, spread=0.004, record="send-lat.json", seed=1, change=None):
    """A document of so many runs around factor times what the record has; `change` edits it before it is written."""
    doc = json.loads((RECORDS / record).read_text(encoding="utf-8"))
    rng = random.Random(seed)
    of_one_run, doc["results"] = doc["results"], []
    for run_number in range(runs):
        for result in of_one_run:
            result = copy.deepcopy(result)
            result["run"] = run_number
            by = factor * (1 + rng.uniform(-spread, spread))
            (with_latency if "latency" in result["metrics"] else with_rate)(result, by)
            doc["results"].append(result)
    doc["plan"]["repeat"] = runs
    if change:
        change(doc)
    return write(name, doc)


def compare(base, new, *args):
    base, new = ([paths] if isinstance(paths, str) else paths for paths in (base, new))
    return run("compare", *base, "--new", *new, "--json", *args)


def verdicts(result):
    return {row["metric"]: row["verdict"] for row in result.doc["comparison"]["rows"] if row["gated"]}


BASE = made("base.json")
# 1 us of a 50 ns margin: beyond 5 %.
SLOWER = made("slower.json", 1.2, seed=2)
AGAIN = made("again.json", 1.0, seed=3)
EDGE = made("edge.json", 1.05, seed=4, spread=0.03)

with case("WorseIsExit3AndNamesTheMetric"):
    result = compare(BASE, SLOWER)
    expect(result.code == 3 and result.doc["verdict"] == "fail" and result.doc["exit_code"] == 3, str(result))
    expect(verdicts(result) == {"p50": "worse", "p99": "worse", "p99.9": "worse"}, str(verdicts(result)))
    row = result.doc["comparison"]["rows"][0]
    expect(abs(row["ratio"] - 1.2) < 0.01 and row["ratio_low"] < row["ratio"] < row["ratio_high"], str(row))
    expect(row["base_runs"] == row["new_runs"] == 10 and row["p_worse"] <= 0.05, str(row))
    expect(abs(row["margin"] - 50 / row["base"]) < 1e-9, f"the floor of 50 ns: {row}")
    text = run("compare", BASE, "--new", SLOWER)
    expect(text.code == 3 and "WORSE: p" in text.out and "p50" in text.out, text.out)
    expect(all(len(line) <= 80 or "/" in line for line in text.out.splitlines()), text.out)

with case("BetterIsExit0"):
    result = compare(SLOWER, BASE, "--require-decision")
    expect(result.code == 0 and set(verdicts(result).values()) == {"better"}, f"{result} {verdicts(result)}")

with case("TheSameIsProven"):
    for new in (BASE, AGAIN):
        result = compare(BASE, new, "--require-decision")
        expect(result.code == 0 and result.doc["verdict"] == "pass", str(result))
        expect(set(verdicts(result).values()) == {"same"}, str(verdicts(result)))

with case("UndecidedIsExit4OnlyWhereADecisionIsRequired"):
    result = compare(BASE, EDGE)
    expect(result.code == 0 and "undecided" in verdicts(result).values(), f"{result} {verdicts(result)}")
    result = compare(BASE, EDGE, "--require-decision")
    expect(result.code == 4 and result.doc["verdict"] == "inconclusive", str(result))
    # What is proven worse is no lack of a decision.
    expect(compare(BASE, SLOWER, "--require-decision").code == 3, "worse")

with case("ThreeRunsSayHowManyAreMissing"):
    few = made("few.json", 1.5, runs=3)
    result = compare(few, few, "--require-decision")
    expect(result.code == 4, str(result))
    for row in result.doc["comparison"]["rows"]:
        expect(row["verdict"] == "undecided" and row["runs_needed"] == 5 and "below 4" in row["why"], str(row))
        expect(row["ratio_low"] is None and row["p_worse"] is None, str(row))
    text = run("compare", few, "--new", few)
    expect(text.code == 0 and "2 more runs of each set" in " ".join(text.out.split()), text.out)

with case("RunsOfSeveralFilesAreOneSet"):
    parts = [made(f"part{i}.json", 1.0, runs=1, seed=10 + i) for i in range(6)]
    result = compare(parts, SLOWER)
    expect(result.code == 3 and result.doc["comparison"]["rows"][0]["base_runs"] == 6, str(result))
    result = compare(parts + parts[:1], SLOWER)
    expect(result.code == 1 and "twice" in result.err and "part0.json" in result.err, str(result))
    linked = FOLDER / "linked.json"
    linked.symlink_to(parts[0])
    expect("twice" in compare(parts + [str(linked)], SLOWER).err, "the same file under another name")

with case("TheMarginIsTheUsers"):
    expect(compare(BASE, SLOWER, "--margin", "30", "--require-decision").code == 0, "30 %")
    expect(set(verdicts(compare(BASE, SLOWER, "--margin", "30")).values()) == {"same"}, "same within 30 %")
    result = compare(BASE, SLOWER, "--margin", "30,p99=1")
    expect(result.code == 3 and verdicts(result) == {"p50": "same", "p99": "worse", "p99.9": "same"},
           str(verdicts(result)))
    result = compare(BASE, made("little.json", 1.01, spread=0.001), "--margin", "0")
    expect(result.code == 3 and result.doc["comparison"]["rows"][0]["margin"] == 0, str(result))
    for margin in ("-1", "x", "p98=3", "3,x"):
        result = compare(BASE, BASE, f"--margin={margin}")
        expect(result.code == 1 and "margin" in result.err, f"{margin!r}: {result}")

with case("BandwidthIsBetterWhenMore"):
    bandwidth = made("bandwidth.json", record="write-bw.json")
    result = compare(bandwidth, made("less.json", 0.8, record="write-bw.json"))
    expect(result.code == 3 and verdicts(result) == {"bw": "worse"}, f"{result} {verdicts(result)}")
    expect(len(result.doc["comparison"]["rows"]) > 3, "two sizes")
    expect(compare(bandwidth, made("more.json", 1.2, record="write-bw.json")).code == 0, "more")

with case("DifferentParametersAreNamedAndRefused"):
    def four_qps(doc):
        doc["plan"]["qps"] = 4
        for result in doc["results"]:
            result["point"]["qps"] = 4
    other = made("qps.json", change=four_qps)
    result = compare(BASE, other)
    expect(result.code == 1 and "plan.qps (1, new 4)" in result.err, str(result))
    expect("--allow-diff qps" in result.err and result.doc["error"]["class"] == "usage", result.err)
    for allowed in ("qps", "all", "qps,wait"):
        result = compare(BASE, other, "--allow-diff", allowed)
        expect(result.code == 0, f"{allowed}: {result}")
        listed = result.doc["comparison"]["parameters"]
        expect(listed == [{"field": "plan.qps", "base": "1", "new": "4"}], str(listed))
    expect(compare(BASE, other, "--allow-diff", "wait").code == 1, "another name allowed")
    result = compare(BASE, other, "--allow-diff", "speed")
    expect(result.code == 1 and "speed" in result.err and "tx_depth" in result.err, str(result))

with case("AnotherWayOfWaitingIsRefusedToo"):
    def events(doc):
        for result in doc["results"]:
            result["point"]["wait"] = "event"
    other = made("event.json", 1.5, change=events)
    result = compare(BASE, other)
    expect(result.code == 1 and "wait (busy, new event)" in result.err, str(result))
    result = compare(BASE, other, "--allow-diff", "wait")
    expect(result.code == 3, str(result))

with case("ADifferentFirmwareIsPrintedFirstAndRefusesNothing"):
    def newer(doc):
        doc["local"]["device"]["firmware"] = "20.40.1000"
        doc["remote"]["kernel"] = "6.12.0"
    other = made("firmware.json", change=newer)
    text = run("compare", BASE, "--new", other)
    expect(text.code == 0, str(text))
    expect("local.device.firmware: 20.39.3004 -> 20.40.1000" in text.out, text.out)
    expect(text.out.index("20.40.1000") < text.out.index("95 % interval"), "it is not first")
    listed = compare(BASE, other).doc["comparison"]["environment"]
    expect([row["field"] for row in listed] == ["local.device.firmware", "remote.kernel"], str(listed))

with case("ACounterThatMovedIsNamedAsACause"):
    def sequence(doc):
        for result in doc["results"]:
            result["metrics"]["counters"]["out_of_sequence"] = 812
    result = compare(BASE, made("sequence.json", 1.5, change=sequence))
    expect(result.doc["comparison"]["causes"] == ["out_of_sequence of the requester: 0 -> 812 per run"],
           str(result.doc["comparison"]["causes"]))
    expect(not compare(BASE, made("calm.json", change=sequence)).doc["comparison"]["causes"], "nothing changed")

with case("FilesThatAreNoReportAreRefusedByName"):
    bad = {"empty.json": "", "spaces.json": " \n", "broken.json": '{"schema_version": 1,', "list.json": "[]",
           "other.json": '{"hello": 1}', "two.json": "{}\n{}", "deep.json": "[" * 100000, "bytes.json": "\xff\xfe\x00",
           "newer.json": '{"schema_version": 2}'}
    for name, text in bad.items():
        path = FOLDER / name
        path.write_text(text, encoding="latin-1")
        for base, new in ((BASE, str(path)), (str(path), BASE)):
            result = compare(base, new)
            expect(result.code == 1 and name in result.err, f"{name}: {result}")
            expect(result.doc["verdict"] == "error" and result.doc["error"]["class"] == "usage", f"{name}: {result}")
    for path in (str(FOLDER), str(FOLDER / "absent.json")):
        result = compare(BASE, path)
        expect(result.code == 1 and path in result.err, str(result))

with case("ReportsThatCannotBeComparedAreRefusedByName"):
    def break_one(doc):
        doc["results"][3]["complete"] = False
    for path, word in ((made("incomplete.json", change=break_one), "broke"), (str(RECORDS / "devices.json"), "devices"),
                       (str(RECORDS / "write-bw.json"), "write-bw"), (str(RECORDS / "broken-run.json"), "error")):
        result = compare(BASE, path)
        expect(result.code == 1 and pathlib.Path(path).name in result.err and word in result.err, f"{path}: {result}")
    def larger(doc):
        for result in doc["results"]:
            result["point"]["size_bytes"] = 128
    result = compare(BASE, made("larger.json", change=larger))
    expect(result.code == 1 and "no result in common" in result.err and "128 bytes" in result.err, str(result))
    done = FOLDER / "done.json"
    run("compare", BASE, "--new", BASE, "--json-file", done)
    result = compare(BASE, str(done))
    expect(result.code == 1 and "done.json" in result.err, str(result))

with case("StandardInputIsADocumentToo"):
    with open(BASE, "rb") as stdin:
        done = subprocess.run([BINARY, "compare", "-", "--new", SLOWER, "--json"], stdin=stdin, capture_output=True,
                              timeout=60, check=False)
    expect(done.returncode == 3 and document(done.stdout.decode())["comparison"]["base"] == "-", str(done.stderr))
    result = compare("-", "-")
    expect(result.code == 1 and "standard input" in result.err, str(result))

with case("ADocumentCutAnywhereNeverCrashes"):
    text = pathlib.Path(RECORDS / "send-lat.json").read_bytes()
    rng = random.Random(7)
    for _ in range(60):
        changed = bytearray(text[:rng.randrange(len(text))] if rng.random() < 0.5 else text)
        for _ in range(rng.randrange(4)):
            if changed:
                changed[rng.randrange(len(changed))] = rng.randrange(256)
        path = FOLDER / "mutated.json"
        path.write_bytes(changed)
        result = run("compare", path, "--new", path)
        expect(result.code in (0, 1), f"{result}")

with case("MissingOptionsAreUsageErrors"):
    for args in ((), (BASE,), ("--new", BASE)):
        result = run("compare", *args, "--json")
        expect(result.code == 1 and result.doc["verdict"] == "error", f"{args}: {result}")
    expect(run("compare", BASE, "--new").code == 1, "--new without a file")

with case("RealRunsAgainstThemselvesAreNotWorse"):
    runs = []
    for name in ("first.json", "second.json"):
        path = str(FOLDER / name)
        result = run("send-lat", "--loopback", "--device", "soft", "-D", "200ms", "--warmup", "50ms", "--repeat", 10,
                     "--json-file", path)
        expect(result.code == 0, str(result))
        runs.append(path)
    # A busy machine may have changed between the two; the runs themselves, mixed, have not.
    docs = [json.loads(pathlib.Path(path).read_text(encoding="utf-8")) for path in runs]
    mixed = [copy.deepcopy(doc) for doc in docs]
    for doc, half in zip(mixed, (0, 1)):
        doc["results"] = [r for source in docs for r in source["results"] if r["run"] % 2 == half]
    result = compare(write("mixed0.json", mixed[0]), write("mixed1.json", mixed[1]))
    expect(result.code == 0, f"{result} {verdicts(result)}")
    expect({"p50", "p99", "p99.9"} >= set(verdicts(result)) >= {"p50", "p99"}, str(verdicts(result)))
    for base, new in (runs, runs[::-1]):
        result = compare(base, new)
        expect(result.code in (0, 3), str(result))
        expect(not result.doc["comparison"]["parameters"] and not result.doc["comparison"]["unmatched"], "same plan")
    text = run("compare", *runs[:1], "--new", *runs[1:], "--verbose")
    expect("responder: 10 against 10 runs" in text.out and "where it moved" in text.out, text.out)

finish()
