#!/usr/bin/python3
"""verb-cost on the kernel's rxe device: which verbs enter the kernel, as its provider and driver are known to do,
and rows for all it has. Budget: 60 s."""

import pathlib
import time

from harness import *

# rdma-core's providers/rxe: a post of sends ends with one write(2), whatever the list; receives, polls and
# acknowledgements stay in memory; arming is a command; an event is a read(2).
ENTERED = ("post_send", "req_notify_cq", "get_cq_event", "reg_mr", "dereg_mr", "create_qp", "destroy_qp", "create_cq",
           "destroy_cq", "modify_qp")
NOT_ENTERED = ("empty_timing", "post_recv", "poll_cq", "ack_cq_events")
ONE_CALL = ("post_send", "req_notify_cq", "get_cq_event")


def rows(doc, op):
    return [result for result in doc["results"] if result["point"]["op"] == op]


with case("TheVerbsThatEnterTheKernelAreThoseOfTheProvider"):
    start = time.monotonic()
    result = run("verb-cost", "--quick", "--json")
    took = time.monotonic() - start
    print(f"# {took:.2f} s", flush=True)
    expect(result.code == 0 and took < 20, str(result))
    doc = result.doc
    expect(doc["local"]["device"]["provider"] == "rxe", str(doc["local"]["device"]))
    expect(not [check for check in doc["checks"] if check["name"] == "enters-kernel"], str(doc["checks"]))
    for verbs, entered in ((ENTERED, True), (NOT_ENTERED, False)):
        for verb in verbs:
            expect(rows(doc, verb), f"no row of {verb}")
            for row in rows(doc, verb):
                expect(row["metrics"]["cost"]["enters_kernel"] is entered, f"{row['point']}: {row['metrics']['cost']}")
    for verb in ONE_CALL:
        for row in rows(doc, verb):
            expect(row["metrics"]["cost"]["syscalls_per_call"] == 1, f"{row['point']}: {row['metrics']['cost']}")

with case("AListSharesItsSystemCall"):
    each = {r["point"].get("post_list", 1): r["metrics"]["cost"]["ns_per_request"] for r in rows(doc, "post_send")
            if r["point"]["size_bytes"] == 64 and "signal_every" not in r["point"] and not r["point"]["inline"]}
    print(f"# ns per request by list length: {each}", flush=True)
    expect(sorted(each) == [1, 2, 4, 8, 16, 32, 64], str(each))

with case("WhatTheProviderLacksIsSkipped"):
    skipped = {check["name"] for check in doc["checks"] if check["status"] == "skip"}
    # Each is measured where the driver makes such queues, and else said to be missing.
    measured = {r["point"]["op"] for r in doc["results"]}
    for extended in ("ibv_wr", "start_poll"):
        expect((extended in skipped) != (extended in measured), f"{extended}: {skipped} {measured}")
    expect(all(check["why"] for check in doc["checks"]), str(doc["checks"]))

with case("TheLimitOfLockedMemoryIsAReasonToSkip"):
    # Root is exempt from the limit unless it gives that up.
    result = run("verb-cost", "--quick", "--json", "--verbs", "reg_mr", preexec=memlock(1 << 20),
                 prefix=("setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock"))
    expect(result.code == 0, str(result))
    skipped = {check["name"]: check["why"] for check in result.doc["checks"]}
    measured = [row["point"]["size_bytes"] for row in rows(result.doc, "reg_mr")]
    expect(4096 in measured and 16 << 20 not in measured, f"{measured} {skipped}")
    expect("locked memory" in skipped["reg_mr 16 MiB"], str(skipped))

with case("HugePagesAreMeasuredWhereTheyAreReserved"):
    pages = pathlib.Path("/proc/sys/vm/nr_hugepages")
    pages.write_text("4")
    try:
        expect(int(pages.read_text()) >= 1, "the kernel has no huge page to give")
        doc = run("verb-cost", "--quick", "--json", "--verbs", "reg_mr").doc
    finally:
        pages.write_text("0")
    huge = [row["point"] for row in rows(doc, "reg_mr") if row["point"].get("variant") == "huge pages"]
    expect([point["size_bytes"] for point in huge] == [2 << 20], f"{huge} {doc['checks']}")

with case("TheWholeCommandEndsInTime"):
    start = time.monotonic()
    result = run("verb-cost", "--json", seconds=120)
    took = time.monotonic() - start
    print(f"# {took:.2f} s", flush=True)
    expect(result.code == 0 and took < 60, str(result))
    print("# " + ", ".join(f"{r['point']['op']} {r['metrics']['cost']['ns_per_request']:.0f}"
                           for r in result.doc["results"] if "variant" not in r["point"]
                           and "post_list" not in r["point"]), flush=True)

finish()
