#!/usr/bin/python3
"""The soft device over UDP against the kernel's rxe, and over a cable that netem spoils: every operation,
the errors of both rule books, the program as users run it. rxe stays in the first network namespace, whose
port 4791 is the kernel's; soft devices have namespaces of their own. Budget: 3 minutes.

VERBSCOPE_INTEROP_TEST names the test program (bazel-bin/tests/lab/rxe_interop_test)."""

import contextlib
import ipaddress
import os
import pathlib
import subprocess
import time

from gtest_cases import run_gtest
from harness import *

PROGRAM = os.environ.get("VERBSCOPE_INTEROP_TEST", str(ROOT / "bazel-bin/tests/lab/rxe_interop_test"))
CAPTURES = DOCUMENTS.parent / "captures"
CAPTURES.mkdir(exist_ok=True)
PEER = ("ip", "netns", "exec", "peer")


def ip(*args):
    subprocess.run(["ip", *map(str, args)], check=True)


def up(namespace, link, *addresses):
    for address in addresses:
        nodad = ("nodad",) if ":" in address else ()
        ip("-n", namespace, "address", "add", address, "dev", link, *nodad)
    ip("-n", namespace, "link", "set", "lo", "up")
    ip("-n", namespace, "link", "set", link, "up")


def set_up_networks():
    for namespace in ("peer", "left", "right"):
        ip("netns", "add", namespace)
    ip("link", "set", "v1", "netns", "peer")
    up("peer", "v1", "10.9.0.2/24", "fd09::2/64")
    ip("link", "add", "w0", "mtu", 4200, "netns", "left", "type", "veth", "peer", "name", "w1", "mtu", 4200,
       "netns", "right")
    up("left", "w0", "10.9.1.1/24")
    up("right", "w1", "10.9.1.2/24")
    end = time.monotonic() + 20
    state = pathlib.Path("/sys/class/infiniband/rxe0/ports/1/state")
    while "ACTIVE" not in state.read_text():
        expect(time.monotonic() < end, "rxe0 did not come back when its cable was moved")
        time.sleep(0.02)


LINKS = {"v0": (), "v1": ("-n", "peer"), "w0": ("-n", "left"), "w1": ("-n", "right")}


@contextlib.contextmanager
def spoiled(links, *netem):
    """netem on what these links send, for the time of a block."""
    for link in links:
        subprocess.run(["tc", *LINKS[link], "qdisc", "add", "dev", link, "root", "netem", "limit", "10000",
                        *netem], check=True)
    try:
        yield
    finally:
        for link in links:
            subprocess.run(["tc", *LINKS[link], "qdisc", "delete", "dev", link, "root"], check=True)


IMPAIRMENTS = {
    "loss": ("loss", "5%"),
    # 90 % go at once, the others 300 us later, behind those that were sent meanwhile.
    "reorder": ("delay", "300us", "reorder", "90%"),
    "duplicate": ("duplicate", "2%"),
    "corrupt": ("corrupt", "2%"),
}


def over_both(doc, soft_side, soft_address):
    """A run between the two devices: each is described as what it is."""
    rxe_side = "remote" if soft_side == "local" else "local"
    soft, rxe = doc[soft_side]["device"], doc[rxe_side]["device"]
    expect(rxe["name"] == "rxe0" and rxe["kind"] == "software" and rxe["provider"] == "rxe", f"rxe: {rxe}")
    expect(rxe.get("link") is None and rxe.get("icrc") is None, f"rxe: {rxe}")
    expect(soft["provider"] == "soft" and soft["link"] == "udp" and "checked" in soft["icrc"], f"soft: {soft}")
    address = ipaddress.ip_address(soft_address)
    gid = f"::ffff:{address}" if address.version == 4 else str(address)
    expect(ipaddress.ip_address(soft["gid"]["value"]) == ipaddress.ip_address(gid), f"GID: {soft}")
    expect(soft["gid"]["type"] == rxe["gid"]["type"] == "RoCE v2", f"GIDs: {soft} {rxe}")
    expect(latency(doc, "requester")[0]["samples"] == 300, "samples")
    expect(doc["path_mtu_bytes"] == 4096, "path MTU")


def program_case(soft_serves, rxe_address, soft_address, rxe_gid):
    soft = ("--device", f"soft:link=udp,addr={soft_address}")
    rxe = ("--device", "rxe0", "--gid-index", rxe_gid)
    serve, client, to = (soft, rxe, soft_address) if soft_serves else (rxe, soft, rxe_address)
    with server(*serve, "--once", "--json", prefix=PEER if soft_serves else ()) as (serving, port):
        result = run("send-lat", to, "--port", port, *client, "-n", 300, "--warmup", 50, "-s", 9000,
                     "--json", prefix=() if soft_serves else PEER)
        expect(result.code == 0, str(result))
        served = serving.wait(20)
    expect(served.code == 0, str(served))
    over_both(result.doc, "remote" if soft_serves else "local", soft_address)
    over_both(served.doc, "local" if soft_serves else "remote", soft_address)


set_up_networks()
for role, soft_serves in (("RxeServes", False), ("SoftServes", True)):
    for family, addresses in (("Ipv4", ("10.9.0.1", "10.9.0.2", 1)), ("Ipv6", ("fd09::1", "fd09::2", 2))):
        with case(f"TheProgramItself{role}{family}"):
            program_case(soft_serves, *addresses)



def gated(*args):
    """A short run of rxe against the soft device at the other end of the cable. Both sides sleep: two pollers on the
    guest's two CPUs would leave rxe's own work to the ticks of the scheduler, some 4 ms, now and then."""
    with server("--device", "soft:link=udp,addr=10.9.0.2", "--once", "--json", prefix=PEER) as (serving, port):
        result = run("send-lat", "10.9.0.2", "--port", port, "--device", "rxe0", "--gid-index", 1, "-n", 100,
                     "--warmup", 10, "--wait", "event", "--peer", "wait=event", *args, "--json")
        served = serving.wait(20)
    expect(result.code == served.code, f"{result}; server: {served}")
    return result


with case("ABaselineFailsOnASlowCableAndPassesWhenItIsMended"):
    baseline = DOCUMENTS.parent / "baseline.json"
    expect(gated("--json-file", baseline).code == 0, "the baseline")
    # Wide: on a host with other work the same cable takes several times as long. The round trip over the slow one
    # stays below the device's ACK timeout of 67 ms.
    limit = ("--baseline", baseline, "--assert", "p50<=baseline*20")
    with spoiled(("v0", "v1"), "delay", "25ms"):
        slow = gated(*limit)
    expect(slow.code == 3 and slow.doc["gates"][0]["observed"] > 20e6, f"slow: {slow}; {slow.doc['gates']}")
    mended = gated(*limit)
    expect(mended.code == 0 and mended.doc["gates"][0]["status"] == "pass", f"mended: {mended}; {mended.doc['gates']}")

with case("CountersOfTheKernelsDeviceAreInTheResultAndInAssertions"):
    counted = gated("--assert", "counter.rcvd_pkts{side=requester}>=100", "--assert", "counter.sent_pkts{side=requester}>=100",
                    "--assert", "counter.retry_exceeded_err{side=requester}==0")
    expect(counted.code == 0, f"{counted}; {counted.doc['gates']}")
    expect(counted.doc["gates"][0]["observed"] < 10000, str(counted.doc["gates"]))

with case("ThePortThatTheKernelHoldsIsSaidWithTheChoices"):
    for device in ("soft:link=udp", "soft:link=udp,addr=10.9.0.1"):
        result = run("send-lat", "--loopback", "--device", device, "--json")
        expect(result.code == 2, str(result))
        error = result.doc["error"]
        expect("rdma_rxe" in error["cause"] and "4791" in error["message"], str(error))
        for choice in ("network namespace", "link=memory"):
            expect(choice in error["next_step"], str(error))

run_gtest(PROGRAM, only="RxeMessages.*", seconds=150, env={"VERBSCOPE_CAPTURES": str(CAPTURES)})
run_gtest(PROGRAM, only="RxeErrors.*", seconds=100)
with spoiled(["v0"], "loss", "5%"):
    run_gtest(PROGRAM, only="ReadResume.*", seconds=60)
# What may happen beside rxe 6.1, in less than one of 100 runs, and is rxe's own: the ACK for the last packet
# of a long SEND or WRITE comes while rxe is sending that message again. It counts the PSNs as acknowledged
# and does not complete the message; if it goes back once more before another ACK, it finds nothing left to
# send, and sends an empty ONLY packet with the PSN of the next request (req_retry, retry_first_write_send in
# rxe_req.c). On the wire: SEND 7237..7250 with immediate, FETCH_ADD 7251, then SEND_ONLY_WITH_IMMEDIATE 7251
# without payload. PSNs are one too high from there, and some NAK 0x61 ends the connection.
for name, netem in IMPAIRMENTS.items():
    with spoiled(LINKS, *netem):
        run_gtest(PROGRAM, only="Netem.*", prefix=f"{name.capitalize()}.", seconds=100,
                  env={"VERBSCOPE_IMPAIRMENT": name})
finish()
