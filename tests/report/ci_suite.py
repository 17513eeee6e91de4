#!/usr/bin/python3
"""The CI job of docs/ci.md as it stands there: its blocks of shell, one after the other, in an empty folder; then the same
with a system that became worse, with limits that are broken, and without a baseline. Needs no RDMA device. Budget: 60 s.

Prints "ok NAME" or "FAIL NAME: why" for each case; exit status 1 if any failed."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lab"))
os.environ.setdefault("VERBSCOPE_BIN", str(ROOT / "bazel-bin/cmd/verbscope"))
os.environ.setdefault("LAB_OUT", tempfile.mkdtemp())

from harness import *  # noqa: E402

BASELINE, LIMITS, WORSE = re.findall(r"```sh\n(.*?)```", (ROOT / "docs/ci.md").read_text(encoding="utf-8"), re.DOTALL)
FOLDER = pathlib.Path(tempfile.mkdtemp())
(FOLDER / "bin").mkdir()
(FOLDER / "bin/verbscope").symlink_to(pathlib.Path(os.environ["VERBSCOPE_BIN"]).resolve())


def job(block, *changes):
    """The block as a job runs it, after text changes that must each apply."""
    for old, new in changes:
        expect(old in block, f"{old!r} is not in {block!r}")
        block = block.replace(old, new)
    return subprocess.run(["bash", "-euo", "pipefail", "-c", block], cwd=FOLDER, capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PATH": f"{FOLDER / 'bin'}:{os.environ['PATH']}"})


def cases(name):
    """Status of each test case of a JUnit file: the tag within it, or ok."""
    return [case[0].tag if len(case) and case[0].tag != "system-out" else "ok"
            for case in xml.etree.ElementTree.parse(FOLDER / name).iter("testcase")]


with case("TheRecipePassesAsWritten"):
    for block, files in ((BASELINE, ("baseline.json",)), (LIMITS, ("new.json", "limits.xml", "limits.md", "report.html")),
                         (WORSE, ("worse.xml", "worse.md"))):
        result = job(block)
        # Two sets of runs one after the other on a busy machine may differ; that they do is then proven, and said.
        allowed = (0, 3) if block is WORSE else (0,)
        expect(result.returncode in allowed, f"{block}: exit {result.returncode}: {result.stderr}")
        for name in files:
            expect((FOLDER / name).stat().st_size > 0, f"{name} is missing or empty")
    expect(set(cases("limits.xml")) == {"ok"}, str(cases("limits.xml")))
    gates = json.loads((FOLDER / "new.json").read_text())["gates"]
    expect([g["status"] for g in gates] == ["pass"] * 3, str(gates))

with case("ABrokenLimitFailsTheJob"):
    result = job(LIMITS, ("p99<50ms", "p99<1ns"))
    expect(result.returncode == 3 and "p99<1ns" in result.stderr, f"exit {result.returncode}: {result.stderr}")
    expect("failure" in cases("limits.xml"), str(cases("limits.xml")))
    result = job(LIMITS, ("baseline*100", "baseline*0.0001"))
    expect(result.returncode == 3, f"exit {result.returncode}: {result.stderr}")

with case("ASystemThatBecameWorseFailsTheJob"):
    slower = json.loads((FOLDER / "baseline.json").read_text())
    for result in slower["results"]:
        latency = result["metrics"]["latency"]
        latency["percentiles_ns"] = {key: value and value * 3 for key, value in latency["percentiles_ns"].items()}
        latency.update({key: latency[key] * 3 for key in ("min_ns", "mean_ns", "max_ns")})
    (FOLDER / "slower.json").write_text(json.dumps(slower))
    result = job(WORSE, ("new.json", "slower.json"))
    expect(result.returncode == 3 and "worse" in result.stderr, f"exit {result.returncode}: {result.stderr}")
    expect("failure" in cases("worse.xml"), str(cases("worse.xml")))

with case("AJobWithoutItsBaselineOrItsPeerDoesNotPass"):
    expect(job(LIMITS, ("--baseline baseline.json", "--baseline gone.json")).returncode == 1, "a baseline that is gone")
    result = job(LIMITS, ("--loopback --device soft", "127.0.0.1 --device soft -p 19999 --connect-timeout 100ms"))
    expect(result.returncode == 2, f"exit {result.returncode}: {result.stderr}")
    expect("error" in cases("limits.xml"), str(cases("limits.xml")))
    expect(json.loads((FOLDER / "new.json").read_text())["verdict"] == "error", "new.json")

finish()
