#!/usr/bin/python3
"""The soft device over UDP as users run it: addresses of their own and shared ones, IPv4 and IPv6,
network namespaces, all ways of waiting, losses, a switch that drops large packets, a peer that dies,
a port that is taken. Needs no RDMA device; the cases with namespaces need root and say so. Budget:
2 minutes.

Prints "ok NAME" or "FAIL NAME: why" for each case; exit status 1 if any failed."""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lab"))
os.environ.setdefault("VERBSCOPE_BIN", str(ROOT / "bazel-bin/cmd/verbscope"))
os.environ.setdefault("LAB_OUT", tempfile.mkdtemp())

from harness import *  # noqa: E402

ROCE_PORT = 4791
SHORT = ("-D", "100ms", "--warmup", "20ms")


def over_udp(doc):
    for side in ("local", "remote"):
        device = doc[side]["device"]
        expect(device["kind"] == "software" and device["link"] == "udp", f"{side}: {device}")
        expect("checked" in device["icrc"], f"{side}: {device}")
    expect(latency(doc, "requester")[0]["samples"] > 0, "no samples")


def gid(doc, side):
    return doc[side]["device"]["gid"]["value"]


def two_processes(host, device, *args, peer_device=None, prefixes=((), ())):
    with server("--device", peer_device or device, "--once", prefix=prefixes[0]) as (serve, port):
        result = run("send-lat", host, "--port", port, "--device", device, *args, "--json",
                     prefix=prefixes[1])
        if result.code == 0:
            expect(serve.wait(20).code == 0, "the server's exit code")
        return result


def root_only():
    if os.geteuid() != 0:
        print("# needs root")
    return os.geteuid() == 0


with case("EachProcessTakesALoopbackAddressOfItsOwn"):
    result = two_processes("127.0.0.1", "soft:link=udp", *SHORT)
    expect(result.code == 0, str(result))
    over_udp(result.doc)
    expect(gid(result.doc, "local") != gid(result.doc, "remote"), "one address for both")
    expect(":ffff:7f" in gid(result.doc, "local"), gid(result.doc, "local"))

with case("TwoProcessesShareAnAddress"):
    result = two_processes("127.0.0.1", "soft:link=udp,addr=127.0.0.9", *SHORT)
    expect(result.code == 0, str(result))
    over_udp(result.doc)
    expect(gid(result.doc, "local") == gid(result.doc, "remote"), "two addresses")

with case("WithoutALinkItIsMemoryBetweenProcessesOfOneUser"):
    result = two_processes("127.0.0.1", "soft", *SHORT)
    expect(result.code == 0, str(result))
    for side in ("local", "remote"):
        expect(result.doc[side]["device"]["link"] == "memory", f"{side}: {result.doc[side]}")

with case("AndUdpBetweenThoseOfTwoUsers"):
    if root_only():
        nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
        result = two_processes("127.0.0.1", "soft", *SHORT, prefixes=(nobody, ()))
        expect(result.code == 0, str(result))
        over_udp(result.doc)
        for side in ("local", "remote"):
            expect("32 bits" in result.doc[side]["device"]["icrc"], f"{side}: {result.doc[side]}")
        result = two_processes("127.0.0.1", "soft:link=memory", *SHORT, prefixes=(nobody, ()))
        expect(result.code == 2 and "user" in result.doc["error"]["cause"], str(result))

with case("AnAddressThatIsGivenIsTaken"):
    result = run("send-lat", "--loopback", "--device", "soft:link=udp,addr=127.0.0.1", *SHORT, "--json")
    expect(result.code == 0, str(result))
    expect(gid(result.doc, "local").endswith(":ffff:7f00:0001"), gid(result.doc, "local"))

with case("Ipv6WithASharedAddress"):
    if not socket.has_ipv6 or not pathlib.Path("/proc/net/if_inet6").exists():
        print("# no IPv6 on this host")
    else:
        result = two_processes("::1", "soft:link=udp,addr=::1", *SHORT)
        expect(result.code == 0, str(result))
        over_udp(result.doc)

with case("EveryWayOfWaitingAndEverySize"):
    for args in (("--wait", "busy:pause"), ("--wait", "event"), ("--wait", "solicited"),
                 ("--wait", "hybrid:20us"), ("-s", "0"), ("-s", "1:4K"), ("-s", "1M"),
                 ("-m", "256", "-s", "1000"), ("--repeat", "2")):
        result = run("send-lat", "--loopback", "--device", "soft:link=udp", *SHORT, *args, "--json")
        expect(result.code == 0, f"{args}: {result}")
        over_udp(result.doc)

with case("ALossyWireIsRepaired"):
    result = run("send-lat", "--loopback", "--device",
                 "soft:link=udp,drop=1%,duplicate=1%,reorder=1%,corrupt=1%,seed=5", "-n", "1000",
                 "--warmup", "0", "-s", "3000", "-m", "1024", "--timeout", "12", "--retry", "7",
                 "--json", seconds=100)
    expect(result.code == 0, str(result))
    expect(latency(result.doc, "requester")[0]["samples"] == 1000, "samples")

with case("ALinkThatThePeerDoesNotHaveIsRefusedInASentence"):
    result = two_processes("127.0.0.1", "soft:link=memory", *SHORT, peer_device="soft:link=udp")
    expect(result.code == 2, str(result))
    expect("link=udp" in result.doc["error"]["next_step"], str(result.doc["error"]))

with case("APortThatIsTakenIsSaid"):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.77", ROCE_PORT))
        result = run("send-lat", "--loopback", "--device", "soft:link=udp,addr=127.0.0.77", "--json")
        expect(result.code == 2, str(result))
        error = result.doc["error"]
        expect("4791" in error["message"] + (error["cause"] or ""), str(error))
        expect("addr=" in error["next_step"], str(error))

with case("AnAddressOfAnotherHostIsRefused"):
    result = run("send-lat", "--loopback", "--device", "soft:link=udp,addr=203.0.113.9", "--json")
    expect(result.code == 2 and "203.0.113.9" in result.err, str(result))

with case("PacketsFromElsewhereAreToldOf"):
    def told(result):
        return [notice for notice in result.doc["notices"] if "is no peer's" in notice]

    with server("--device", "soft:link=udp,addr=127.0.0.9", "--once") as (serve, port):
        with Process("send-lat", "127.0.0.1", "--port", port, "--device", "soft:link=udp,addr=127.0.0.10",
                     "-D", "1s", "--json") as client, \
                socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.bind(("127.0.0.11", 0))
            while client.process.poll() is None:
                stranger.sendto(os.urandom(100), ("127.0.0.10", ROCE_PORT))
                time.sleep(0.001)
            result = client.wait()
    expect(result.code == 0, str(result))
    expect(len(told(result)) == 1 and "dropped" in told(result)[0], str(result.doc["notices"]))
    # And there is nothing to tell otherwise.
    for device in ("soft:link=udp", "soft:link=udp,addr=127.0.0.9"):
        result = two_processes("127.0.0.1", device, *SHORT, "-s", "64:64K")
        expect(result.code == 0 and not told(result), str(result.doc["notices"]))

with case("AKilledPeerEndsTheRunAndTheAddressIsFreeAgain"):
    for device in ("soft:link=udp", "soft:link=udp,addr=127.0.0.9"):
        with server("--device", device) as (serve, port):
            with Process("send-lat", "127.0.0.1", "--port", port, "--device", device, "-D", "20s",
                         "--json") as client:
                time.sleep(0.7)  # somewhere in the middle of the run
                serve.signal(signal.SIGKILL)
                begin = time.monotonic()
                result = client.wait(20)
                expect(result.code == 5, str(result))
                expect(time.monotonic() - begin < 6, "more than 5 s")
                document(result.out)
        result = two_processes("127.0.0.1", device, *SHORT)
        expect(result.code == 0, f"afterwards: {result}")


def ip(*args):
    subprocess.run(["ip", *map(str, args)], check=True, capture_output=True, text=True)


@contextlib.contextmanager
def namespaces(count):
    """Names of network namespaces that exist as long as the block."""
    names = [f"verbscope-{os.getpid()}-{number}" for number in range(count)]
    try:
        for name in names:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def set_up_hosts(hosts):
    """The end "va" of a cable in each: 10.81.0.1 and .2, fd81::1 and ::2."""
    for number, name in enumerate(hosts, 1):
        for address in (f"10.81.0.{number}/24", f"fd81::{number}/64"):
            nodad = ("nodad",) if ":" in address else ()
            ip("-n", name, "address", "add", address, "dev", "va", *nodad)
        ip("-n", name, "link", "set", "va", "up")
    return [("ip", "netns", "exec", name) for name in hosts]


@contextlib.contextmanager
def two_namespaces(mtu):
    """Two hosts with a cable between them. Yields the prefixes of commands there."""
    with namespaces(2) as hosts:
        ip("link", "add", "va", "mtu", mtu, "netns", hosts[0], "type", "veth", "peer", "name", "va",
           "mtu", mtu, "netns", hosts[1])
        yield set_up_hosts(hosts)


@contextlib.contextmanager
def small_switch(host_mtu, switch_mtus):
    """Two hosts with a switch between them, whose port to each has an MTU of its own: what is longer
    is dropped there without a word, as real switches do."""
    with namespaces(3) as (first, second, switch):
        ip("-n", switch, "link", "add", "bridge", "type", "bridge")
        ip("-n", switch, "link", "set", "bridge", "up")
        for number, (host, mtu) in enumerate(zip((first, second), switch_mtus)):
            ip("link", "add", "va", "mtu", host_mtu, "netns", host, "type", "veth", "peer", "name",
               f"port{number}", "mtu", mtu, "netns", switch)
            # Real switches see packets, not the bursts that virtual cables carry whole.
            ip("-n", host, "link", "set", "va", "gso_max_segs", 1)
            ip("-n", switch, "link", "set", f"port{number}", "master", "bridge", "up")
        yield set_up_hosts((first, second))


with case("TwoNetworkNamespacesWithBothFamiliesAndTwoMtus"):
    for mtu, path_mtu in ((1500, 1024), (4200, 4096)) if root_only() else ():
        with two_namespaces(mtu) as prefixes:
            for serve_address, client_address in (("10.81.0.1", "10.81.0.2"), ("fd81::1", "fd81::2")):
                result = two_processes(
                    serve_address, f"soft:link=udp,addr={client_address}", *SHORT, "-s", "1:1M",
                    "--timeout", "17",  # where the CPUs are busy, a poller may have none for long
                    peer_device=f"soft:link=udp,addr={serve_address}", prefixes=prefixes)
                expect(result.code == 0, f"MTU {mtu}, {serve_address}: {result}")
                over_udp(result.doc)
                device = result.doc["local"]["device"]
                expect(device["active_mtu_bytes"] == path_mtu, f"MTU {mtu}: {device}")


with case("ASizeThatIsLostIsNamedBesideTheLargestThatPassed"):
    config = pathlib.Path(os.environ["LAB_OUT"]) / "small_packets_only.json"
    config.write_text('{"fault": {"rules": [{"action": "drop", "packets": "send", "min_bytes": 1025}]}}',
                      encoding="ascii")
    result = run("send-lat", "--loopback", "--device", f"soft:link=udp,config={config}", "-s", "256:64K",
                 "--timeout", "10", "-D", "20ms", "--warmup", "5ms", "--json")
    expect(result.code == 5, str(result))
    expect("messages up to 1024 bytes passed, 2048 bytes did not" in result.doc["error"]["cause"],
           str(result.doc["error"]))


def through_the_switch(prefixes, *args):
    """A client at 10.81.0.2, and the server's own report if it has one."""
    with server("--device", "soft:link=udp,addr=10.81.0.1", "--once", prefix=prefixes[0]) as (serve, port):
        result = run("send-lat", "10.81.0.1", "--port", port, "--device", "soft:link=udp,addr=10.81.0.2",
                     "-D", "20ms", "--warmup", "5ms", *args, "--json", prefix=prefixes[1])
        return result, serve.wait(20)


with case("ASwitchThatDropsLargePacketsIsNamedWithItsLimit"):
    # Both ways, and one way only: then the server is the one whose message is lost.
    for mtus in ((1500, 1500), (4200, 1500), (1500, 4200)) if root_only() else ():
        with small_switch(4200, mtus) as prefixes:
            result, serve = through_the_switch(prefixes, "-s", "1:64K")
            expect(result.code == 5 and serve.code == 5, f"{mtus}: {result}, server: {serve}")
            error = result.doc["error"]
            expect(error["status"] == "RETRY_EXC_ERR", f"{mtus}: {error}")
            expect("messages up to 1024 bytes passed, 2048 bytes did not" in error["cause"],
                   f"{mtus}: {error}")
            expect("--mtu 1024" in error["next_step"], f"{mtus}: {error}")
            passed = [r["point"]["size_bytes"] for r in result.doc["results"]
                      if r["side"] == "requester" and r["complete"]]
            expect(passed == [2**n for n in range(11)], f"{mtus}: {passed}")
            # What it proposes works.
            result, serve = through_the_switch(prefixes, "-s", "1:64K", "-m", "1024")
            expect(result.code == 0 and serve.code == 0, f"{mtus}: {result}, server: {serve}")
            expect(len(latency(result.doc, "requester")) == 17, f"{mtus}: sizes are missing")

with case("ALargeMessageAloneThatIsLostMentionsThePathMtu"):
    if root_only():
        with small_switch(4200, (1500, 1500)) as prefixes:
            result, _ = through_the_switch(prefixes, "-s", "64K")
            expect(result.code == 5, str(result))
            error = result.doc["error"]
            expect("less than the path MTU 4096" in error["cause"], str(error))
            expect("--mtu" in error["next_step"], str(error))

with case("BetweenHostsTheAddressIsThatOfTheControlConnection"):
    if root_only():
        with two_namespaces(1500) as prefixes:
            for address, gid_end in (("10.81.0.1", ":ffff:0a51:0002"), ("fd81::1", ":0000:0002")):
                for device in ("soft", "soft:link=udp"):
                    result = two_processes(address, device, *SHORT, prefixes=prefixes)
                    expect(result.code == 0, f"{device} to {address}: {result}")
                    over_udp(result.doc)
                    expect(gid(result.doc, "local").endswith(gid_end), gid(result.doc, "local"))
                    expect(result.doc["path_mtu_bytes"] == 1024, "path MTU")
                result = two_processes(address, "soft:link=memory", *SHORT, prefixes=prefixes)
                expect(result.code == 2 and result.doc["error"]["next_step"], str(result))

finish()
