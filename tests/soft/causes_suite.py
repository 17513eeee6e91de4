#!/usr/bin/python3
"""Likely causes on the soft device: known faults end in the right first cause, seen from either side, and a run
that is well has none. Needs no RDMA device. Budget: 1 minute.

Prints "ok NAME" or "FAIL NAME: why" for each case; exit status 1 if any failed."""

import json
import os
import pathlib
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lab"))
os.environ.setdefault("VERBSCOPE_BIN", str(ROOT / "bazel-bin/cmd/verbscope"))
os.environ.setdefault("LAB_OUT", tempfile.mkdtemp())

from harness import *  # noqa: E402


def first(doc):
    expect(doc["causes"], f"no cause; error {doc['error']}, notes {doc['counter_notes']}")
    expect(len(doc["causes"]) <= 3, str(doc["causes"]))
    return doc["causes"][0]


def pair(client_device, server_device, *args, seconds=60):
    """Client and server document of a run of two processes."""
    with server("--device", server_device, "--once", "--json") as (serve, port):
        client = run(args[0], "127.0.0.1", "--port", port, "--device", client_device, *args[1:], "--json",
                     seconds=seconds)
        return client, serve.wait(30)


with case("ARunThatIsWellHasNoCause"):
    result = run("send-lat", "--loopback", "--device", "soft", "-n", 300, "--json")
    expect(result.code == 0 and result.doc["causes"] == [], f"{result}: {result.doc['causes']}")
    expect(result.doc["counter_notes"] == [], str(result.doc["counter_notes"]))
    counters = result.doc["local"]["counters"]
    expect(counters["sent_pkts"] > 300 and result.doc["remote"]["counters"]["rcvd_pkts"] > 300, str(counters))

with case("FivePercentLossIsLossOnBothSides"):
    for device in ("soft:link=memory,drop=5%,seed=7", "soft:link=udp,drop=5%,seed=7"):
        for result in pair(device, device, "write-bw", "-n", 2000, "-s", "64", "--timeout", 10):
            expect(result.code == 0, f"{device}: {result}")
            expect("lost" in first(result.doc)["cause"], str(result.doc["causes"]))
            names = {note["name"] for note in result.doc["counter_notes"]}
            expect(names & {"out_of_seq_request", "rcvd_seq_err"}, str(names))

with case("LossIsSaidInTheTextWithItsMeaning"):
    result = run("write-bw", "--loopback", "--device", "soft:drop=5%,seed=7", "-n", 2000, "-s", "64", "--timeout", 10)
    for word in ("likely", "seen:", "counter", "lost"):
        expect(word in result.out, f"{word!r} is not in {result.out!r}")

with case("DamagedPacketsAreDamage"):
    result = run("write-bw", "--loopback", "--device", "soft:link=udp,corrupt=5%,seed=7", "-n", 2000, "-s", "64",
                 "--timeout", 10, "--json")
    expect("damaged" in first(result.doc)["cause"], f"{result}: {result.doc['causes']}")

with case("NothingArrives"):
    result = run("send-lat", "--loopback", "--device", "soft:drop=100%", "-n", 100, "--timeout", 8, "--json")
    expect(result.code == 5 and result.doc["error"]["status"] == "RETRY_EXC_ERR", str(result))
    expect("4791" in first(result.doc)["cause"], str(result.doc["causes"]))
    expect("sent_pkts" in first(result.doc)["evidence"], str(result.doc["causes"]))

with case("AKilledPeerIsThePeer"):
    with server("--device", "soft", "--once") as (serve, port):
        with Process("send-lat", "127.0.0.1", "--port", port, "--device", "soft", "-D", "30s", "--json") as client:
            serve.await_text("client")
            time.sleep(2)  # the case itself: in the middle of the run
            serve.process.kill()
            result = client.wait(20)
    expect(result.code == 5, str(result))
    cause = first(result.doc)
    expect("peer" in cause["cause"] or "other side" in cause["cause"], str(result.doc["causes"]))
    expect(cause["next_step"], str(cause))

with case("ProvokedFaultsOfRnrTestAreNoCause"):
    result = run("rnr-test", "--loopback", "--device", "soft", "--quick", "--json", seconds=120)
    expect(result.code == 0 and result.doc["causes"] == [], f"{result}: {result.doc['causes']}")

finish()
