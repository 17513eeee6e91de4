#!/usr/bin/python3
"""Every output format, of real runs on the soft device, read by parsers of other projects: the values must be
those of the JSON document. Needs no RDMA device; the packages of `tools/setup report`. Budget: 2 minutes.

Prints "ok NAME" or "FAIL NAME: why" for each case; exit status 1 if any failed."""

import json
import os
import pathlib
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lab"))
os.environ.setdefault("VERBSCOPE_BIN", str(ROOT / "bazel-bin/cmd/verbscope"))
os.environ.setdefault("LAB_OUT", tempfile.mkdtemp())

from harness import *  # noqa: E402
from readers import *  # noqa: E402

FORMATS = {"--json-file": "json", "--html": "html", "--csv": "csv", "--junit": "xml", "--openmetrics": "prom",
           "--hdr": "hlog", "--markdown": "md", "--bmf": "bmf.json", "--gha-smaller": "smaller.json",
           "--gha-bigger": "bigger.json"}
SOFT = ("--device", "soft")
MODULES = subprocess.run([ROOT / "tests/npm_install.sh", ROOT / "tests/hdr_interop", "hdr_interop"], capture_output=True,
                         text=True).stdout.strip()
FOLDER = tempfile.TemporaryDirectory()
_stems = iter(range(10 ** 6))


def destinations(options=None):
    """(arguments, {option: path}) for a file of each format, of a name of its own."""
    stem = pathlib.Path(FOLDER.name) / f"{next(_stems)}"
    paths = {option: pathlib.Path(f"{stem}.{FORMATS[option]}") for option in options or FORMATS}
    return [str(word) for pair in paths.items() for word in pair], paths


def text_of(path):
    return path.read_bytes().decode("utf-8")  # strict, and line ends as they are


def check_files(paths, docs):
    """Every file of `paths` says what `docs` say."""
    for option, check in (("--csv", check_csv), ("--junit", check_junit), ("--openmetrics", check_openmetrics),
                          ("--markdown", check_markdown)):
        check(text_of(paths[option]), docs)
    expect(text_of(paths["--html"]).lower().startswith("<!doctype html>"), "no page")
    check_hdr(paths["--hdr"], docs, MODULES)
    check_bmf([text_of(paths[o]) for o in ("--bmf", "--gha-smaller", "--gha-bigger")], docs)
    if "--json-file" in paths:
        expect([json.loads(text_of(paths["--json-file"]))] == docs, "--json-file is not the document")


def report(*args, feed=None):
    """`report` to its end, with `feed` on standard input."""
    done = subprocess.run([BINARY, "report", *map(str, args)], input=feed, capture_output=True, timeout=60)
    return Finished(done.returncode, done.stdout.decode(), done.stderr.decode(), 0)


def several():
    """Arguments and paths of the formats that hold more than one document."""
    return destinations([option for option in FORMATS if option != "--json-file"])


KEPT = {}  # name: path of a document of a real run

RUNS = {
    "Sweep": ("send-lat", "--loopback", "--size", "64:1024", "-n", "3000"),
    "Repeat": ("write-lat", "--loopback", "--repeat", "3", "-n", "1000"),
    "OpenLoop": ("send-lat", "--loopback", "-D", "300ms", "--rate", "2000", "-e"),
    "Bandwidth": ("send-bw", "--loopback", "-n", "2000"),
    "Imm": ("imm", "--loopback", "--quick"),
    "Rnr": ("rnr-test", "--loopback", "--quick"),
    "Modes": ("event-vs-poll", "--loopback", "--quick"),
    "Cost": ("verb-cost", "--quick"),
    "Scale": ("cq-scale", "--loopback", "--quick", "--cqs", "1,2"),
    "Overrun": ("cq-overrun", "--loopback", "--quick"),
}
for run_name, words in RUNS.items():
    with case(f"EveryFormatAgreesWithTheDocument{run_name}"):
        arguments, files = destinations()
        result = run(*words, *SOFT, *arguments, "--json")
        expect(result.code == 0, str(result))
        check_files(files, [result.doc])
        KEPT[run_name] = files["--json-file"]

with case("DevicesHaveEveryFormatToo"):
    arguments, files = destinations()
    result = run("devices", *arguments, "--json")
    check_junit(text_of(files["--junit"]), [result.doc])
    check_openmetrics(text_of(files["--openmetrics"]), [result.doc])
    check_csv(text_of(files["--csv"]), [result.doc])

with case("ASweepHasARowForEachSizeAndSide"):
    _, files = destinations(["--csv"])
    expect(report(KEPT["Sweep"], "--csv", files["--csv"]).code == 0, "report")
    with open(files["--csv"], newline="", encoding="utf-8") as file:
        rows = [(int(row["size_bytes"]), row["side"]) for row in csv.DictReader(file)]
    expect(sorted(rows) == sorted((64 << i, side) for i in range(5) for side in ("requester", "responder")), str(rows))

with case("ADistributionIsThatOfTheHistogram"):
    for name in ("Sweep", "Cost", "Modes"):
        path = pathlib.Path(FOLDER.name) / "all.hgrm"
        expect(report(KEPT[name], "--hdr", path).code == 0, name)
        check_hgrm(text_of(path), [json.loads(text_of(KEPT[name]))])

with case("ReportConvertsSeveralDocumentsAtOnce"):
    arguments, files = several()
    result = report(*KEPT.values(), *arguments)
    expect(result.code == 0 and result.out == "" and result.err == "", str(result))
    check_files(files, [json.loads(text_of(path)) for path in KEPT.values()])

with case("ReportShowsAndPassesOnADocument"):
    for path in KEPT.values():
        expect(json.loads(report(path, "--json").out) == json.loads(text_of(path)), f"{path}: --json")
        expect(report("-", feed=path.read_bytes()).out == report(path).out != "", f"{path}: standard input")
    both = report(KEPT["Imm"], KEPT["Sweep"])
    expect(both.out.count("\nverbscope ") == 2 and "document 2: " in both.out, both.out[:300])
    for option in (["--json"], ["--json-file", pathlib.Path(FOLDER.name) / "no.json"]):
        refused = report(KEPT["Imm"], KEPT["Sweep"], *option)
        expect(refused.code == 1 and f"{option[0]} is one document" in refused.err, str(refused))

with case("WhatIsNoDocumentIsRefusedByNameAndNothingIsWritten"):
    inputs = {"none": None, "empty": b" \n", "garbage": b"\x00\xff{", "array": b"[1]", "other": b'{"a": 1}',
              "deep": b"[" * 200000, "version": b'{"schema_version": 2, "command": "x", "results": []}'}
    for bad in sorted((ROOT / "testdata/records/broken").glob("*.json")):
        inputs["golden-" + bad.name] = bad.read_bytes()
    refused = 0
    for name, content in inputs.items():
        source = pathlib.Path(FOLDER.name) / f"bad-{name}"
        if content is not None:
            source.write_bytes(content)
        arguments, files = several()
        result = report(KEPT["Imm"], source, *arguments)
        written = [path for path in files.values() if path.exists()]
        # Some goldens are wrong only in what a reader of one document does not recompute.
        if name.startswith("golden-") and result.code == 0:
            continue
        refused += 1
        expect(result.code == 1 and source.name in result.err and not written, f"{name}: {result} {written}")
        expect(result.err.count("\n") == 1, f"{name}: more than a sentence: {result.err}")
    expect(refused >= 13, f"{refused} of {len(inputs)}")

with case("ADocumentIsNotOverwrittenByItsReport"):
    before = text_of(KEPT["Imm"])
    result = report(KEPT["Imm"], "--csv", KEPT["Imm"])
    expect(result.code == 1 and "files to read" in result.err and text_of(KEPT["Imm"]) == before, str(result))

with case("HostileNamesStayText"):
    for text in ('</script>]]>&<!--"\'`|', "a,b;c=d\r\ne\tf", "\x00\x1b[31m\u202e\ufffe\uffff\U0001ffff",
                 '{="}\\', "# EOF", "*b* [c](d) __e__ <img src=x>", "Tag=x, 1"):
        document_ = json.loads(text_of(KEPT["Sweep"]))
        document_["local"]["host"] = document_["local"]["device"]["name"] = document_["remote"]["host"] = text
        document_["checks"] = [{"name": text, "status": "fail", "expected": text, "observed": text, "why": text,
                                "source": text}]
        document_["verdict"], document_["exit_code"], document_["notices"] = "fail", 3, [text]
        for result in document_["results"]:
            result["point"]["variant"] = text
        source = pathlib.Path(FOLDER.name) / "hostile.json"
        source.write_text(json.dumps(document_), encoding="utf-8")
        arguments, files = destinations()
        expect(report(source, *arguments).code == 0, text)
        check_files(files, [json.loads(text_of(files["--json-file"]))])



def judged(statuses, verdicts, exit_code):
    """A document whose assertions and gated rows came out so, checked in every format; its JUnit cases."""
    doc = json.loads(text_of(KEPT["Sweep"]))
    point = doc["results"][0]["point"]
    figures = {"observed": 6000.5, "bound": 5900, "limit": 5000, "samples": 1000, "effective_samples": 70,
               "samples_needed": None, "why": "a sentence"}
    doc["gates"] = [{"expression": f"p99<{i}us", "unit": "ns", "status": status, **figures,
                     "results": [{"point": point, "side": "requester", "run": 0, "status": status, **figures}]}
                    for i, status in enumerate(statuses)]
    rows = [{"point": point, "side": "requester", "metric": "p99", "unit": "ns", "gated": gated, "base_runs": 10,
             "new_runs": 9, "base": 1000, "new": 1100, "ratio": 1.1, "ratio_low": 1.05, "ratio_high": 1.2,
             "margin": 0.03, "p_worse": 0.001, "verdict": verdict, "runs_needed": 20, "why": None}
            for verdict in verdicts for gated in (True, False)]
    doc["comparison"] = {"base": "a|b.json", "new": "c.json", "environment": [], "parameters": [], "rows": rows,
                         "shifts": [], "causes": ["out_of_sequence moved"], "unmatched": []}
    doc["exit_code"] = exit_code
    doc["verdict"] = {0: "pass", 3: "fail", 4: "inconclusive"}[exit_code]
    source = pathlib.Path(FOLDER.name) / "judged.json"
    source.write_text(json.dumps(doc), encoding="utf-8")
    arguments, paths = destinations()
    done = report(source, *arguments)
    expect(done.code == 0, str(done))
    check_files(paths, [json.loads(text_of(paths["--json-file"]))])
    expect("**" not in text_of(paths["--markdown"]), "an error in a run without one")
    suite = check_junit(text_of(paths["--junit"]), [doc])[0]
    return {row.get("name"): [(child.tag, child.get("type")) for child in row] for row in suite.iter("testcase")}


with case("AssertionsAndComparisonsAreTestCases"):
    cases = judged(["pass", "fail", "inconclusive"], ["same", "worse", "better", "undecided"], 3)
    expect(len(cases) == 8 and cases["assert p99<0us"][0][0] == "system-out", str(cases))
    expect(cases["assert p99<1us"] == [("failure", "fail")], str(cases))
    expect(cases["assert p99<2us"] == [("failure", "inconclusive")], str(cases))
    outcomes = sorted(str(found) for name, found in cases.items() if name.startswith("compare p99"))
    expect(outcomes == sorted(str(o) for o in ([("failure", "fail")], [("failure", "inconclusive")],
                                               [("system-out", None)], [("system-out", None)])), str(cases))
    cases = judged(["inconclusive"], ["undecided"], 0)
    expect([tag for name, found in cases.items() if name != "run" for tag, _ in found] == ["skipped"] * 2, str(cases))

with case("StretchesOfTimeAreIntervalsOfTheLog"):
    document_ = json.loads(text_of(KEPT["Repeat"]))
    whole, *parts = [r["metrics"]["latency"] for r in document_["results"] if r["side"] == "requester"]
    counts = {}
    for part in parts:
        for from_ns, to_ns, count in part["histogram"]["buckets"]:
            counts[from_ns, to_ns] = counts.get((from_ns, to_ns), 0) + count
    whole["samples"], whole["max_ns"] = sum(counts.values()), max(part["max_ns"] for part in parts)
    whole["histogram"].update(
        buckets=[[*edges, count] for edges, count in sorted(counts.items())],
        blocks=[{"from_s": i, "to_s": i + 0.5, "hdr_v2": part["histogram"]["hdr_v2"]} for i, part in enumerate(parts)])
    source = pathlib.Path(FOLDER.name) / "blocks.json"
    source.write_text(json.dumps(document_), encoding="utf-8")
    _, files = destinations(["--hdr"])
    expect(report(source, "--hdr", files["--hdr"]).code == 0, "report")
    check_hdr(files["--hdr"], [document_], MODULES)

LIE = {"hooks": {"completions": [{"kind": "send", "nth": 40, "drop": True}]}}


def fault_unreachable(*files):
    return run("send-lat", "127.0.0.1", "--port", next_port(), "--connect-timeout", "300ms", *SOFT, *files), 2


def fault_usage(*files):
    return run("send-lat", "--loopback", "--size", "12parsecs", *SOFT, *files), 1


def fault_option(*files):
    return run("send-lat", "--loopback", *SOFT, *files, "--no-such-option"), 1


def fault_device(*files):
    return run("send-lat", "--loopback", "--device", "nosuch0", *files), 2


def fault_check(*files):
    config = pathlib.Path(FOLDER.name) / "lie.json"
    config.write_text(json.dumps(LIE), encoding="utf-8")
    return run("cq-overrun", "--loopback", "--device", f"soft:config={config}", "--quick", *files), 3


def fault_killed(*files):
    with server(*SOFT) as (serve, port):
        with Process("send-lat", "127.0.0.1", "--port", port, *SOFT, "-D", "30s", *files) as client:
            time.sleep(1.5)
            serve.signal(signal.SIGKILL)
            return client.wait(40), 5


def fault_interrupted(*files):
    with Process("send-lat", "--loopback", *SOFT, "-D", "30s", *files) as client:
        time.sleep(1.5)
        client.signal(signal.SIGINT)
        return client.wait(30), 130


for fault in (fault_unreachable, fault_usage, fault_option, fault_device, fault_check, fault_killed, fault_interrupted):
    with case("CodeDocumentAndEveryFileAgreeAfter" + fault.__name__[6:].capitalize()):
        arguments, files = destinations()
        result, code = fault(*arguments, "--json", "--verbose")
        expect(result.code == code, str(result))
        expect(result.doc["exit_code"] == code and result.doc["verdict"] != "pass", "the document")
        check_files(files, [result.doc])
        root = check_junit(text_of(files["--junit"]), [result.doc])
        expect(int(root.get("failures")) + int(root.get("errors")) > 0, "a green file of a broken run")
        expect(report(files["--json-file"]).code == 0, "converted")
        expect(report(files["--json-file"], KEPT["Imm"], "--verdict").code == code, "--verdict")

with case("StandardOutputIsOneDocumentWithVerboseAndNotices"):
    for name in ("Sweep", "Imm", "Cost", "Scale"):
        result = run(*RUNS[name], *SOFT, "--json", "--verbose")
        expect(result.code == 0 and result.doc["command"] == RUNS[name][0], str(result))
    result = report(KEPT["Modes"], "--json", "--verbose")
    expect(json.loads(result.out)["notices"], "a document with notices")

with case("KilledInTheMiddleTheOldFilesStandAndInterruptedTheNewAreWhole"):
    for number in (signal.SIGKILL, signal.SIGTERM):
        arguments, files = destinations()
        for path in files.values():
            path.write_text("old", encoding="utf-8")
        with Process("send-lat", "--loopback", *SOFT, "-D", "30s", *arguments, "--json") as client:
            time.sleep(1)
            client.signal(number)
            result = client.wait(30)
        if number == signal.SIGKILL:
            expect(all(text_of(path) == "old" for path in files.values()), "an old file is gone")
        else:
            check_files(files, [result.doc])
            expect(result.doc["exit_code"] == result.code == 130, str(result))
        left = [name for name in os.listdir(FOLDER.name) if name.endswith(".tmp")]
        expect(not left, str(left))

with case("AServerWritesEveryFileToo"):
    arguments, files = destinations()
    with server(*SOFT, "--once", *arguments) as (serve, port):
        client = run("send-lat", "127.0.0.1", "--port", port, *SOFT, "-n", "500", "--json")
        expect(client.code == serve.wait(30).code == 0, str(client))
    check_files(files, [json.loads(text_of(files["--json-file"]))])
    refused = run("serve", "--port", next_port(), *SOFT, "--csv", files["--csv"])
    expect(refused.code == 1 and "--once" in refused.err, str(refused))

with case("WrongDestinationsAreRefusedBeforeTheRunAndTheOthersWritten"):
    folder = pathlib.Path(FOLDER.name)
    link = folder / "link.csv"
    link.symlink_to(folder / "same.xml")
    for words, sentence in ((("--csv", "-"), "standard output"), (("--csv", "/no/such/x"), "No such file"),
                            (("--junit", folder), "Is a directory"),
                            (("--csv", folder / "a", "--junit", folder / "." / "a"), "name the same file"),
                            (("--csv", link, "--junit", folder / "same.xml"), "name the same file"),
                            (("--csv", "no.csv", "--junit", pathlib.Path.cwd() / "no.csv"), "name the same file")):
        arguments, files = destinations(["--json-file", "--markdown"])
        result = run("send-lat", "--loopback", *SOFT, "-D", "20s", *words, *arguments, seconds=10)
        expect(result.code == 1 and sentence in result.err, f"{words}: {result}")
        doc = json.loads(text_of(files["--json-file"]))
        expect(doc["exit_code"] == 1 and sentence in doc["error"]["message"], f"{words}: {doc['error']}")
        check_markdown(text_of(files["--markdown"]), [doc])
        expect(not os.path.lexists("-") and not (folder / "a").exists() and not (folder / "same.xml").exists(), words)
    arguments, files = destinations(["--csv"])
    twice = run("devices", "--json-file", "/dev/null", "--junit", "/dev/null", *arguments)
    expect(twice.code == 0 and files["--csv"].exists(), str(twice))

with case("APipeIsWrittenInPlaceAndAFileThatGoesBadLateCostsNoOther"):
    folder = pathlib.Path(FOLDER.name)
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(text_of(pipe)), daemon=True)
    reader.start()
    result = run("imm", "--loopback", *SOFT, "--quick", "--csv", pipe, "--json")
    reader.join(20)
    check_csv(read[0], [result.doc])
    expect(stat.S_ISFIFO(os.stat(pipe).st_mode), "the pipe was replaced")
    arguments, files = destinations(["--json-file", "--junit"])
    result = run("imm", "--loopback", *SOFT, "--quick", "--csv", "/dev/full", *arguments, "--json")
    expect(result.code == 1 and result.doc["exit_code"] == 1, str(result))
    expect(json.loads(text_of(files["--json-file"])) == result.doc, "the file is not the document")
    check_junit(text_of(files["--junit"]), [result.doc])

finish()
