#!/usr/bin/python3
"""rnr-test and serve as two processes on the kernel's rxe device: both sides say the same, no wait is
shorter than its timer, retries and flushes are counted, a starved receiver shows. Budget: 60 s."""

import time

from harness import *

# rxe waits in ticks of the kernel: 4 ms at HZ=250, rounded up. Wide, since the machine is emulated.
MOST_EXTRA_NS = 200e6
TICK_NS = 4e6  # and short by one where ticks are late


def exchange(*args):
    with server("--once", "--json") as (serve, port):
        client = run("rnr-test", ADDRESS, "--port", port, "--json", *args, seconds=120)
        served = serve.wait(30)
    expect(client.code == served.code, f"{client.code} here, {served.code} at the server")
    docs = (client.doc, served.doc)
    for key in ("verdict", "checks", "results"):
        expect(docs[0][key] == docs[1][key], f"{key} differ")
    return docs[0]


def by_code(doc, has):
    return {r["point"]["timer_code"]: r["metrics"] for r in doc["results"]
            if has(r["metrics"]) and r["point"]["tx_depth"] in (1, 32)}


def judge(doc):
    for check in doc["checks"]:
        expect(check["status"] in ("pass", "deviation"), str(check))
    for result in doc["results"]:
        for attempt in result["metrics"].get("rnr", {}).get("attempts", ()):
            predicted, took = attempt["predicted_ns"], attempt["time_to_error_ns"]
            ticks = attempt["rnr_retry"] * TICK_NS
            expect(took >= predicted - ticks, f"sooner than its waits: {attempt}")
            expect(took <= predicted * 1.5 + (attempt["rnr_retry"] + 1) * MOST_EXTRA_NS, str(attempt))
            # The kernel counts for the whole device: other queue pairs may have had some too.
            expect(attempt["naks"] is not None and attempt["naks"] >= attempt["rnr_retry"], str(attempt))


with case("QuickPassesAndTakesUnderFiveSeconds"):
    start = time.monotonic()
    doc = exchange("--quick")
    took = time.monotonic() - start
    print(f"# {doc['wall_s']:.2f} s, {took:.2f} s with the server's start", flush=True)
    expect(doc["verdict"] == "pass", str(doc["checks"]))
    expect(doc["wall_s"] < 5, f"{doc['wall_s']} s")
    judge(doc)
    names = [check["name"] for check in doc["checks"]]
    for name in ("timer-code-1", "exhaustion-retry-0", "exhaustion-retry-6", "recovery", "starvation",
                 "write-imm-no-receive"):
        expect(name in names, f"{name} is not among {names}")
    for code, metrics in by_code(doc, lambda m: "rnr" in m and "latency" not in m).items():
        print(f"# code {code}: nominal {metrics['rnr']['nominal_ns'] / 1e6} ms, measured "
              f"{metrics['rnr']['measured_ns'] / 1e6:.3f} ms", flush=True)

with case("ATickOfTheKernelIsANamedDeviation"):
    doc = exchange("--quick", "--timer-codes", "1,2")
    rows = [c for c in doc["checks"] if c["name"].startswith("timer-code-")]
    expect(len(rows) == 2, str(rows))
    for row in rows:
        if row["status"] == "deviation":
            expect("jiffies" in row["why"] or "longer than known" in row["why"], str(row))

with case("AStarvedReceiverShowsByItsTimer"):
    doc = exchange("--quick", "--timer-codes", "13,0")
    judge(doc)
    starved = by_code(doc, lambda m: "rnr" in m and "latency" in m)
    rates = {code: m["bandwidth"]["msg_per_s"] for code, m in starved.items()}
    print(f"# messages per second by timer code: {rates}", flush=True)
    expect(rates[13] > 3 * rates[0], f"code 0 is 655 ms, code 13 0.96 ms: {rates}")
    expect(starved[0]["latency"]["max_ns"] > 655_360_000, "a wait of code 0")
    expect(any("655.36 ms" in notice for notice in doc["notices"]), "the warning")

with case("EveryCodeIsMeasured"):
    codes = ",".join(str(code) for code in range(1, 24))
    doc = exchange("--quick", "--timer-codes", codes)
    judge(doc)
    for code, metrics in sorted(by_code(doc, lambda m: "rnr" in m and "latency" not in m).items()):
        print(f"# code {code}: {metrics['rnr']['nominal_ns'] / 1e6} ms, measured "
              f"{metrics['rnr']['measured_ns'] / 1e6:.3f} ms, ratio {metrics['rnr']['ratio']:.2f}",
              flush=True)

with case("BothExitsAreTheSameWhenTheDeadlineIsTooShort"):
    result = run("rnr-test", ADDRESS, "--timer-codes", "0", "--deadline", "1s", "--json")
    expect(result.code == 1 and "--timer-codes" in result.err, str(result))

with case("TheServersLongestRunIsAPlanRefused"):
    with server("--once", "--max-run", "1s") as (serve, port):
        result = run("rnr-test", ADDRESS, "--port", port, "--timer-codes", "0", "--json")
        expect(result.code == 2 and "it would run for" in result.err, str(result))
        serve.wait(20)

finish()
