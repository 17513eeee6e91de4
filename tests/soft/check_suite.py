#!/usr/bin/python3
"""check on the soft device: all checks pass, in one process and in two; with the profile of another device only
what is listed for it deviates; each check is seen to fail when the device breaks its promise, and no other with it
but those that are named. Needs no RDMA device. Budget: 240 s.

Prints "ok NAME" or "FAIL NAME: why" for each case; exit status 1 if any failed."""

import json
import os
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lab"))
os.environ.setdefault("VERBSCOPE_BIN", str(ROOT / "bazel-bin/cmd/verbscope"))
os.environ.setdefault("LAB_OUT", tempfile.mkdtemp())

from harness import *  # noqa: E402

SOFT = ("--loopback", "--device")


def check(*args, device="soft", **options):
    return run("check", *SOFT, device, *args, "--quick", "--json", **options)


def statuses(doc, *wanted):
    return {c["name"] for c in doc["checks"] if c["status"] in wanted}


def parts(doc):
    return {f"{c['name']}/{p['name']}": p for c in doc["checks"] for p in c.get("parts", ())}


def catalog():
    result = run("check", "--list", "--json")
    expect(result.code == 0, str(result))
    return [row["name"] for row in result.doc["catalog"]]


with case("AllPassInOneProcess"):
    result = check()
    print(f"# {result.doc['wall_s']:.1f} s, {len(parts(result.doc))} parts", flush=True)
    for row in result.doc["checks"]:
        expect(row["status"] == "pass" and row["source"] and row["parts"], json.dumps(row, indent=1))
    expect(result.code == 0 and result.doc["verdict"] == "pass", str(result))

with case("TheListNamesThemInOrder"):
    names = catalog()
    expect(names == [row["name"] for row in check().doc["checks"]], str(names))
    text = run("check", "--list")
    expect(text.code == 0 and all(name in text.out for name in names), str(text))

with case("TwoProcessesSayTheSame"):
    with server("--once", "--json", "--device", "soft") as (serve, port):
        client = run("check", "127.0.0.1", "--port", port, "--device", "soft", "--quick", "--json", seconds=120)
        served = serve.wait(30)
    expect(client.code == served.code == 0, f"{client}; {served}")
    for row, other in zip(client.doc["checks"], served.doc["checks"], strict=True):
        expect(row == other, f"{row}; {other}")
        expect(row["status"] == "pass", json.dumps(row, indent=1))

with case("SomeAreChosenByName"):
    result = check("rnr", "fence")
    expect([row["name"] for row in result.doc["checks"]] == ["rnr", "fence"] and result.code == 0, str(result))
    expect(result.doc["plan"]["checks"] == ["rnr", "fence"], str(result.doc["plan"]))
    result = check("fense")
    expect(result.code == 1 and "fense" in result.err and "fence" in result.err, str(result))
    result = run("check", "fence")
    expect(result.code == 1 and "--loopback" in result.err, str(result))

with case("AnotherDevicesDeviationsAreListed"):
    result = check(device="soft:profile=rxe-6.1")
    for row in result.doc["checks"]:
        expect(row["status"] != "fail", json.dumps(row, indent=1))
        for part in row["parts"]:
            expect((part["status"] == "deviation") == bool(part["why"]) or part["status"] == "skip", str(part))
    print("# deviates: " + ", ".join(sorted(n for n, p in parts(result.doc).items() if p["status"] == "deviation")),
          flush=True)
    expect(result.code == 0 and "errors" in statuses(result.doc, "deviation"), str(result))

sys.exit(finish())
