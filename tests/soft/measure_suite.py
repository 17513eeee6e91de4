#!/usr/bin/python3
"""The measuring commands on the soft device: every command over both links, and every lie of the device
found out, with exit 3 where a promise was broken. Needs no RDMA device. Budget: 3 minutes.

Prints "ok NAME" or "FAIL NAME: why" for each case; exit status 1 if any failed."""

import contextlib
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

BANDWIDTH = ("send-bw", "write-bw", "read-bw")
# Each with options that take another way through the loops.
VARIANTS = (("send-lat",), ("send-lat", "--imm"), ("send-lat", "-e"), ("write-lat",), ("write-lat", "--imm"),
            ("write-lat", "--imm", "-e"), ("write-lat", "--wait", "busy:pause"), ("read-lat",), ("read-lat", "-e"),
            ("atomic-lat",), ("atomic-lat", "--op", "compare-swap", "--wait", "hybrid:20us"),
            ("send-bw",), ("send-bw", "-b"), ("send-bw", "-e", "-q", "3", "-l", "5"), ("write-bw",),
            ("write-bw", "-b"), ("write-bw", "--imm"), ("read-bw",), ("read-bw", "-b", "-q", "2"),
            ("send-lat", "--rate", "5K"), ("send-lat", "--rate", "2K", "--arrival", "poisson", "-e"),
            ("read-lat", "--rate", "5K"), ("atomic-lat", "--rate", "5K"), ("write-lat", "--imm", "--rate", "5K"))


def of(doc, side):
    return [result for result in doc["results"] if result["side"] == side]


def measured(metrics):
    return metrics["latency"]["samples"] if "latency" in metrics else metrics["bandwidth"]["messages"]


for device, link in (("soft:link=memory", "memory"), ("soft:link=udp", "udp")):
    with case(f"EveryCommandInEveryVariantOver{link.title()}"):
        for variant in VARIANTS:
            with server("--device", device, "--once", "--json") as (serve, port):
                client = run(variant[0], "127.0.0.1", "--port", port, "--device", device, "-n", 300, "--warmup", 20,
                             "--verify", *variant[1:], "--json")
                served = serve.wait(20)
            expect(client.code == 0 and served.code == 0, f"{variant}: {client}; server: {served}")
            for side in ("requester", "responder"):
                expect(agreed(client.doc, side) == agreed(served.doc, side), f"{variant}: the sides' results differ")
            expect(client.doc["local"]["device"]["link"] == link, str(client.doc["local"]["device"]))
            expect([row["status"] for row in client.doc["checks"]] == ["pass"], f"{variant}: {client.doc['checks']}")
            mine, = of(client.doc, "requester")
            expect(measured(mine["metrics"]) == 300, f"{variant}: {mine['metrics']}")

with case("EveryCommandInOneProcessAndAsText"):
    for variant in VARIANTS:
        result = run(variant[0], "--loopback", "--device", "soft", "-n", 100, "--warmup", 0, *variant[1:])
        expect(result.code == 0, f"{variant}: {result}")
        words = ("Gb/s", "MiB/s", "messages/s") if variant[0] in BANDWIDTH else ("p50", "samples")
        for word in words:
            expect(word in result.out, f"{variant}: {word!r} is not in {result.out!r}")

with case("ARunForATimeEndsInTime"):
    for command in ("write-lat", "atomic-lat", *BANDWIDTH):
        result = run(command, "--loopback", "--device", "soft", "-D", "300ms", "--warmup", "50ms", "--json")
        expect(result.code == 0 and result.seconds < 10, f"{command}: {result}")

with case("ASweepIsOneDocumentAlsoBesideThePowersOfTwo"):
    for sizes, count in (("all", 24), ("all+-1", 67)):
        result = run("write-bw", "--loopback", "--device", "soft", "-n", 5, "--warmup", 0, "-s", sizes, "--json")
        expect(result.code == 0, str(result))
        listed = [r["point"]["size_bytes"] for r in of(result.doc, "requester")]
        expect(len(listed) == count and listed == sorted(set(listed)), f"{sizes}: {len(listed)} results")

with case("NothingIsMovedAsNothingAndNoBandwidthIsInvented"):
    for command in BANDWIDTH:
        result = run(command, "--loopback", "--device", "soft", "-n", 200, "-s", "0", "--json")
        moved = of(result.doc, "requester")[0]["metrics"]["bandwidth"]
        expect(result.code == 0 and moved["bytes"] == 0 and moved["gbit_per_s"] is None, f"{command}: {moved}")
        expect(moved["messages"] == 200 and moved["msg_per_s"] > 0, f"{command}: {moved}")

with case("TextAndDocumentAgreeInEveryUnit"):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "document.json")
        result = run("write-bw", "--loopback", "--device", "soft", "-n", 500, "--json-file", path)
        with open(path, encoding="utf-8") as file:
            moved = of(document(file.read()), "requester")[0]["metrics"]["bandwidth"]
        expect(moved["bytes"] == 500 * 65536, str(moved))
        row = next(line.split() for line in result.out.splitlines() if "Gb/s" in line and "MiB/s" in line
                   and "messages/s" in line)
        shown = [float(word.replace(",", "")) for word in row if word[0].isdigit()]
        exact = (moved["bytes"] * 8e-9 / moved["seconds"], moved["bytes"] / moved["seconds"] / 2**20,
                 500 / moved["seconds"])
        for value, right in zip(shown, exact):
            expect(abs(value - right) <= max(0.06, right * 1e-3) + 0.5, f"{shown} for {exact}")

with case("RandomCombinationsLoseNothing"):
    rng = random.Random(2)
    for _ in range(40):
        depth = rng.randint(1, 40)
        args = ["-n", rng.randint(1, 500), "-t", depth, "-l", rng.randint(1, depth), "-q", rng.randint(1, 6),
                "-r", rng.randint(1, 64), "-s", rng.choice((0, 1, 64, 9000)), "--warmup", rng.randint(0, 9)]
        if rng.random() < 0.5:
            args += ["--signal-every", rng.randint(1, 50)]
        args += rng.choice(([], [], ["-b"], ["-e"]))
        command = rng.choice(BANDWIDTH)
        result = run(command, "--loopback", "--device", "soft", "--json", *args, seconds=20)
        expect(result.code == 0, f"{command} {args}: {result}")
        expect(measured(of(result.doc, "requester")[0]["metrics"]) == args[1], f"{command} {args}: messages")


@contextlib.contextmanager
def configured(hooks, faults=None):
    """The device string of a device that does as `hooks` and `faults` say."""
    with tempfile.TemporaryDirectory() as folder:
        config = os.path.join(folder, "lie.json")
        with open(config, "w", encoding="utf-8") as file:
            json.dump({"hooks": hooks, **({"fault": faults} if faults else {})}, file)
        yield f"soft:config={config}"


def lying(hooks, command, *args, faults=None):
    """A run with both ends on such a device."""
    with configured(hooks, faults) as device:
        return run(command, "--loopback", "--device", device, "--json", *args)


def caught(result, what, *words):
    expect(result.code == 3 and result.doc["verdict"] == "fail" and result.doc["error"] is None, f"{what}: {result}")
    row, = result.doc["checks"]
    expect(row["status"] == "fail" and row["expected"] and row["why"], f"{what}: {row}")
    for word in words:
        expect(word in row["observed"] and word in result.err, f"{what}: {word!r} is not in {row['observed']!r}")


with case("VerifyFindsDamagedMissingAndMisplacedData"):
    for command in ("send-lat", "write-lat", "read-lat", *BANDWIDTH):
        for hook, word in (({"flip_bit": 0}, "byte"), ({"skip_last": 0}, "byte"), ({"write_past": 1}, "guard")):
            if command == "write-lat" and "skip_last" in hook:
                continue  # what it polls for never comes
            caught(lying({"data": hook}, command, "-n", 20, "--warmup", 0, "-s", "5000", "--verify"), f"{command} {hook}", word,
                   "expected 0x")
        # Who does not ask for it is not told.
        result = lying({"data": {"flip_bit": 0}}, command, "-n", 20, "-s", "5000")
        expect(result.code == 0, f"{command}: {result}")

with case("APayloadThatNeverArrivesEndsAtTheDeadline"):
    result = lying({"data": {"skip_last": 0}}, "write-lat", "-n", 20, "--deadline", "2s")
    expect(result.code == 6 and result.seconds < 6, str(result))

with case("CompletionsThatAreLostOrMisorderedAreFound"):
    for command in BANDWIDTH:
        for kind, nth, word in (("drop", 40, "never completed"), ("hold_behind", 40, "out of order")):
            rule = {"kind": "send", "nth": nth, kind: True}
            caught(lying({"completions": [rule]}, command, "-n", 3000, "-t", "64", "--signal-every", "4",
                         "--warmup", 0), f"{command} {rule}", word)
    # A receive completion that never comes: the sides' counts differ.
    rule = {"kind": "receive", "nth": 100, "drop": True}
    caught(lying({"completions": [rule]}, "send-bw", "-n", 3000, "--warmup", 0), str(rule), "3000", "2999")

with case("AMemoryRegionThatEndsTooEarlyIsNamedWithTheFirstSizeThatFails"):
    result = lying({"data": {"max_access_bytes": 2 * 65536}}, "write-bw", "-n", 5, "--warmup", 0, "-s", "32K:128K")
    expect(result.code == 5 and result.doc["error"]["status"] == "REM_ACCESS_ERR", str(result))
    passed = [r["point"]["size_bytes"] for r in of(result.doc, "requester") if r["complete"]]
    expect(passed and passed[0] == 32768 and 131072 not in passed, str(passed))

with case("OneFailingSizeFailsTheRunAndTheOthersStayInTheDocument"):
    rules = {"rules": [{"direction": "send", "packets": "request", "min_bytes": 1025, "action": "drop"}]}
    result = lying({}, "write-bw", "-n", 5, "--warmup", 0, "-s", "256:4K", "--timeout", "8", "--retry", "1", faults=rules)
    expect(result.code == 5 and result.doc["error"]["status"] == "RETRY_EXC_ERR", str(result))
    passed = [r["point"]["size_bytes"] for r in of(result.doc, "requester") if r["complete"]]
    expect(passed == [256, 512, 1024], str(passed))
    expect("1024" in result.err or "1,024" in result.err, f"the largest size that passes is not named: {result.err}")

with case("TheFirstFailureIsToldAndNotItsFlushes"):
    rule = {"kind": "send", "nth": 10, "status": "REM_OP_ERR", "vendor_err": 119, "garbage": True}
    result = lying({"completions": [rule]}, "write-bw", "-n", 3000, "--warmup", 0)
    expect(result.code == 5 and result.doc["error"]["status"] == "REM_OP_ERR", str(result))
    expect("WRITE" in result.doc["error"]["message"], str(result.doc["error"]))

with case("SlowFirstMessagesStayInTheWarmUp"):
    rules = {"rules": [{"direction": "send", "packets": "send", "hits": 10, "action": "delay", "delay": "5ms"}]}
    result = lying({}, "send-lat", "-n", 500, "--warmup", 100, faults=rules)
    metrics = of(result.doc, "requester")[0]["metrics"]
    expect(result.code == 0 and metrics["warmup"]["max_ns"] > 2_000_000, str(metrics["warmup"]))
    expect(metrics["latency"]["percentiles_ns"]["90"] < 1_000_000, str(metrics["latency"]))

with case("HalfARoundTripIsTheMeanOfBothWaysAndAReadIsTheWhole"):
    def slow(delay):
        rule = {"direction": "send", "packets": "any", "action": "delay", "delay": delay}
        return configured({}, {"rules": [rule]})

    for command, expected_ns in (("send-lat", 4_000_000), ("write-lat", 4_000_000), ("read-lat", 8_000_000)):
        with slow("2ms") as there, slow("6ms") as back, server("--device", back, "--once") as (serve, port):
            result = run(command, "127.0.0.1", "--port", port, "--device", there, "-n", 20, "--warmup", 1, "--json")
            expect(result.code == 0, str(result))
            serve.wait(20)
        shortest = latency(result.doc, "requester")[0]["min_ns"]
        expect(expected_ns <= shortest < expected_ns * 1.5, f"{command}: {shortest} ns for {expected_ns}")

def slower(result, limit_ns):
    """Samples of the requester that took longer."""
    expect(result.code == 0, str(result))
    buckets = of(result.doc, "requester")[0]["metrics"]["latency"]["histogram"]["buckets"]
    return sum(count for start, _, count in buckets if start > limit_ns)


# The client's link stands still in the middle of 40 ms at 100,000 messages a second, a run short enough for its
# two threads to be left alone by this host now and then. Other work only ever adds slow samples, so every run
# must show the stall, and the quietest one must show little else. In virtual time the number is exact:
# core/loops/open_loop_test.
STALL = {"rules": [{"action": "stall", "direction": "send", "packets": "send", "nth": 3000, "delay": "10ms"}]}


def stalled(*args):
    with configured({}, STALL) as device, server("--device", "soft", "--once") as (serve, port):
        result = run("send-lat", "127.0.0.1", "--port", port, "--device", device, "--warmup", 1000, *args, "--json")
        serve.wait(20)
        return result


with case("AStallOfTenMillisecondsDelaysAThousandMessagesOfAnOpenLoop"):
    counts = []
    while len(counts) < 12 and not any(count <= 1300 for count in counts):
        counts.append(slower(stalled("--rate", "100K", "-n", 4000), 100_000))
    print(f"# samples above 100 us: {counts}", flush=True)
    expect(all(count >= 900 for count in counts), f"the stall is not in {counts}")
    expect(min(counts) <= 1300, f"{counts} samples above 100 us")

with case("AndIsOneSampleOfAClosedLoop"):
    counts = []
    while len(counts) < 12 and 1 not in counts:
        # Half a round trip: the stall is a sample of 5 ms.
        counts.append(slower(stalled("-n", 10_000), 4_900_000))
    print(f"# samples above 4.9 ms: {counts}", flush=True)
    expect(all(count >= 1 for count in counts) and min(counts) == 1, str(counts))

with case("EveryDocumentIsValid"):
    files = sorted(map(str, DOCUMENTS.iterdir()))
    expect(len(files) > 100, f"only {len(files)} documents")
    judged = subprocess.run([ROOT / "tests/json/validate.py", *files], capture_output=True, text=True, check=False)
    expect(judged.returncode == 0, judged.stdout + judged.stderr)

finish()
