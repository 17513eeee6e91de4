#!/usr/bin/python3
"""doctor and devices --resources as a user runs them: this host, the hosts of testdata/sysfs, exit codes, documents
and what is refused. Needs no RDMA device. Budget: 20 s.

Prints "ok NAME" or "FAIL NAME: why" for each case; exit status 1 if any failed."""

import os
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/lab"), str(ROOT / "testdata/sysfs"), str(ROOT / "tests/json")]
os.environ.setdefault("VERBSCOPE_BIN", str(ROOT / "bazel-bin/cmd/verbscope"))
os.environ.setdefault("LAB_OUT", tempfile.mkdtemp())

from harness import *  # noqa: E402
import expand  # noqa: E402
import validate  # noqa: E402

TREES = {path.stem: path for path in sorted((ROOT / "testdata/sysfs").glob("*.tree"))}
FOLDER = pathlib.Path(tempfile.mkdtemp())
SCHEMA = validate.load_schema()


def root(tree):
    folder = FOLDER / tree
    if not folder.exists():
        expand.expand(TREES[tree], folder)
    return folder


def valid(result):
    problems = validate.problems(result.out.encode(), SCHEMA)
    expect(not problems, f"{problems[:3]} of {result}")
    return result.doc


def wrong(doc, *statuses):
    return [row["name"] for row in doc["preflight"] if row["status"] in statuses]


with case("EveryTreeMakesAValidDocument"):
    for tree in TREES:
        result = run("doctor", "--root", root(tree), "--json")
        doc = valid(result)
        failed = wrong(doc, "fail")
        expect(result.code == (3 if failed else 0), f"{tree}: {failed}, {result}")
        expect(doc["verdict"] == ("fail" if failed else "pass"), f"{tree}: {doc['verdict']}")
        expect(doc["checks"] == [] and doc["results"] == [], f"{tree}: other groups have rows")

with case("FaultsAreFoundAndHealthyHostsAreNot"):
    for tree, failed, warned in (("mlx5", [], []), ("mlx5-ib", [], []), ("bnxt", [], []), ("rxe", [], []),
                                 ("fault-memlock", ["memlock"], []), ("fault-port-down", ["port-state"], []),
                                 ("fault-gid-zero", ["gids"], []), ("fault-netns", [], ["netns-mode"]),
                                 ("fault-pcie-width", [], ["pcie-width"]), ("fault-mtu", [], ["netdev-mtu"]),
                                 ("fault-gid-v1", [], ["gid-type"])):
        doc = run("doctor", "--root", root(tree), "--json").doc
        expect(wrong(doc, "fail") == failed and wrong(doc, "warn") == warned,
               f"{tree}: failed {wrong(doc, 'fail')}, warned {wrong(doc, 'warn')}")

with case("TheTextNamesWhatToFixFirst"):
    result = run("doctor", "--root", root("fault-memlock"))
    expect(result.code == 3 and "FAIL" in result.out and "first    fix" in result.out, str(result))
    expect("ulimit -l unlimited" in result.out and "ENOMEM" in result.out, result.out)
    expect("(why: --verbose)" in result.out, result.out)
    expect("for root" in run("doctor", "--root", root("mlx5"), "--verbose").out, "no reason of a skip")
    expect("nothing to fix" in run("doctor", "--root", root("mlx5")).out, "a healthy host has something to fix")

with case("OneDeviceOrPort"):
    doc = run("doctor", "--root", root("irdma"), "-d", "irdma1", "--json").doc
    expect(doc["exit_code"] == 3 and not any("irdma0" in row["about"] for row in doc["preflight"]), str(doc["preflight"]))
    expect(run("doctor", "--root", root("irdma"), "-i", 1).code == 0, "port 1 of both")
    for args, words in ((("-d", "mlx5_9"), "irdma0, irdma1"), (("-i", "2"), "port 2")):
        result = run("doctor", "--root", root("irdma"), *args, "--json")
        expect(result.code == 2 and words in str(valid(result)["error"]), f"{args}: {result}")

with case("ThisHost"):
    result = run("doctor", "--json")
    doc = valid(result)
    names = [row["name"] for row in doc["preflight"]]
    for name in ("devices", "memlock", "governor", "clocksource", "kernel", "environment"):
        expect(name in names, f"{name} is not among {names}")
    expect(result.code == (3 if wrong(doc, "fail") else 0), str(result))
    soft = run("doctor", "-d", "soft", "--json", env={"MLX5_SINGLE_THREADED": "1"})
    expect(soft.code == 0 and "environment" in wrong(valid(soft), "warn"), str(soft))

with case("BadOptionsAreUsage"):
    for args in (("HOST",), ("--root", "/no/such/folder"), ("-i", "0"), ("-i", "x"), ("--nonsense",)):
        result = run("doctor", *args, "--json")
        expect(result.code == 1 and result.doc["error"]["class"] == "usage", f"{args}: {result}")

with case("ADocumentBecomesTheSameText"):
    path = FOLDER / "doctor.json"
    expect(run("doctor", "--root", root("fault-mtu"), "--json-file", path).code == 0, "doctor")
    result = run("report", path)
    expect("netdev-mtu" in result.out and "first    fix" in result.out, str(result))

with case("ResourcesAreAListAlsoWithoutADevice"):
    result = run("devices", "--resources", "--json")
    doc = valid(result)
    expect(result.code == 0 and isinstance(doc["resources"], list), str(result))
    if not doc["resources"]:
        expect(any("no objects" in notice for notice in doc["notices"]), str(doc["notices"]))
    expect("resources" not in run("devices", "--json").doc, "resources were not asked for")

finish()
