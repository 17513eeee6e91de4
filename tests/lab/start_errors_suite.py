#!/usr/bin/python3
"""What cannot start says why in one sentence, with the documented code and a valid document; and the
order in which both sides start does not matter. Budget: 60 s."""

import subprocess
import threading
import time

from harness import *


def shell(*command):
    subprocess.run(command, check=True, capture_output=True)


def refused(result, code, *words):
    """One clear message: the code, one error line that has the words, the same in the document."""
    expect(result.code == code, f"code {result.code}, not {code}: {result}")
    doc = result.doc
    expect(doc["exit_code"] == code and doc["verdict"] == "error", "document's verdict")
    lines = [line for line in result.err.splitlines() if "error:" in line]
    expect(len(lines) == 1, f"not one error line: {result.err!r}")
    for word in words:
        expect(word.lower() in result.err.lower(), f"{word!r} is not in: {result.err}")
    expect(doc["error"]["next_step"], f"no next step: {doc['error']}")
    return doc


with case("ClientStartedFiveSecondsBeforeTheServer"):
    port = next_port()
    with Process("send-lat", ADDRESS, "--port", port, "-n", 200, "--json") as client:
        time.sleep(5)  # the case itself: five seconds without a server
        with server("--once", port=port) as (serve, _):
            result = client.wait(30)
            expect(result.code == 0, str(result))

with case("WrongPort"):
    result = run("send-lat", ADDRESS, "--port", 9, "--connect-timeout", "500ms", "--json")
    refused(result, 2, "10.9.0.1", "9", "refused", "serve")

with case("UnreachableHost"):
    result = run("send-lat", "10.99.0.1", "--connect-timeout", "1s", "--json")
    refused(result, 2, "10.99.0.1", "unreachable")

with case("SilentHost"):
    # A neighbour that nobody is: packets leave and nothing ever answers, as behind a firewall.
    shell("ip", "neighbour", "add", "10.9.0.77", "lladdr", "02:00:00:00:00:77", "dev", "v0",
          "nud", "permanent")
    result = run("send-lat", "10.9.0.77", "--connect-timeout", "1s", "--json")
    refused(result, 2, "10.9.0.77", "firewall")

with case("UnknownHostName"):
    result = run("send-lat", "no-such-host.invalid", "--connect-timeout", "1s", "--json")
    refused(result, 2, "no-such-host.invalid")

with case("RefusedPlanIsRefusedOnBothSidesAndTheServerGoesOn"):
    with server("--max-memory", "512K") as (serve, port):
        result = run("send-lat", ADDRESS, "--port", port, "-s", "4M", "--json")
        doc = refused(result, 2, "memory")
        expect(doc["error"]["side"] == "peer", "side")
        serve.await_text("memory", stream="out")
        expect(run("send-lat", ADDRESS, "--port", port, "-n", 100).code == 0, "next client")
    with server("--max-run", "1s") as (serve, port):
        result = run("send-lat", ADDRESS, "--port", port, "-D", "10s", "--json")
        refused(result, 2, "max-run")

USER = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all",
        "--bounding-set=-all")
with case("LockedMemoryLimitOfAnUnprivilegedUser"):
    with server() as (serve, port):
        result = run("send-lat", ADDRESS, "--port", port, "-s", "1M", "-n", 10, "--json",
                     prefix=USER, preexec=memlock(65536))
        refused(result, 2, "64 KiB", "locked memory", "ulimit -l")
        expect(run("send-lat", ADDRESS, "--port", port, "-n", 100).code == 0, "next client")

with case("UnprivilegedUserWithEnoughLockedMemoryRuns"):
    with server() as (serve, port):
        result = run("send-lat", ADDRESS, "--port", port, "-n", 100, "--json", prefix=USER,
                     preexec=memlock(64 << 20))
        expect(result.code == 0, str(result))

with case("PortDown"):
    shell("ip", "link", "set", "v0", "down")
    try:
        # Without a name the software device takes over, and a note says why.
        result = run("send-lat", "--loopback", "-n", 100, "--json")
        expect(result.code == 0, str(result))
        expect(result.doc["local"]["device"]["kind"] == "software", "the device's kind")
        expect("rxe0 port 1 DOWN" in result.err, f"no note: {result.err!r}")
        result = run("send-lat", "--loopback", "--device", "rxe0", "--json")
        refused(result, 2, "rxe0", "down", "v0")
    finally:
        shell("ip", "link", "set", "v0", "up")
        end = time.monotonic() + 10
        while "ACTIVE" not in subprocess.run(["rdma", "link"], capture_output=True,
                                             text=True).stdout:
            expect(time.monotonic() < end, "the link stays down")
            time.sleep(0.05)
    result = run("send-lat", "--loopback", "-n", 100)
    expect(result.code == 0, f"after the link came back: {result}")

with case("UnknownDeviceNamesTheExistingOnes"):
    refused(run("send-lat", "--loopback", "--device", "mlx5_9", "--json"), 2, "mlx5_9", "rxe0")

with case("ADeviceOfAnotherNetworkIsNeverChosen"):
    shell("ip", "link", "add", "other", "type", "dummy")
    shell("ip", "address", "add", "10.77.0.1/24", "dev", "other")
    shell("ip", "link", "set", "other", "up")
    try:
        port = next_port()
        with Process("serve", "--port", port, "--bind", "10.77.0.1") as serve:
            serve.await_text("serving on")
            result = run("send-lat", "10.77.0.1", "--port", port, "--json")
            refused(result, 2, "rxe0", "--device")
    finally:
        shell("ip", "link", "del", "other")

with case("ForcedHopelessGidPairIsRefusedBeforeTheRun"):
    with server() as (serve, port):
        result = run("send-lat", ADDRESS, "--port", port, "--gid-index", 0, "--peer",
                     "gid-index=1", "--json")
        refused(result, 2, "fe80", "10.9.0.1", "--gid-index")

with case("LargerMtuThanThePortIsRefused"):
    with server() as (serve, port):
        result = run("send-lat", ADDRESS, "--port", port, "-m", 1024, "-n", 100, "--json")
        expect(result.code == 0 and result.doc["path_mtu_bytes"] == 1024, str(result))
    refused(run("send-lat", "--loopback", "-m", 8192, "--json"), 1, "mtu")

with case("InlineAboveTheLimitNamesIt"):
    refused(run("send-lat", "--loopback", "--inline", "60000", "--json"), 2, "limit", "rxe0")

with case("AddressInUse"):
    with server() as (serve, port):
        result = run("serve", "--port", port, "--once", "--json")
        refused(result, 2, str(port), "in use")

for name, args, words in (
        ("OptionWithoutValue", ("send-lat", "--loopback", "--size"), ("--size",)),
        ("MissingHost", ("send-lat",), ("HOST", "--loopback", "serve")),
        ("HostAndLoopback", ("send-lat", ADDRESS, "--loopback"), ("--loopback",)),
        ("UnknownOption", ("send-lat", "--loopback", "--sise", "4"), ("--sise",)),
        ("UnknownCommand", ("sendlat",), ("sendlat",)),
        ("BadSize", ("send-lat", "--loopback", "-s", "64x"), ("64x",)),
        ("BadDuration", ("send-lat", "--loopback", "-D", "10 parsecs"), ("parsecs",)),
        ("TimeoutZero", ("send-lat", "--loopback", "--timeout", "0"), ("timeout",)),
        ("BadWait", ("send-lat", "--loopback", "--wait", "lazy"), ("lazy",)),
        ("ServeDocumentNeedsOnce", ("serve",), ("--once",))):
    with case(name):
        refused(run(*args, "--json") if name != "OptionWithoutValue"
                else run(args[0], "--json", *args[1:]), 1, *words)

finish()
