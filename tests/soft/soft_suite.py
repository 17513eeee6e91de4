#!/usr/bin/python3
"""The soft device as users run it: the README's command, two processes, captures that tshark and scapy
judge, event mode's CPU time, what is left behind. Needs no RDMA device. Budget: 3 minutes.

Prints "ok NAME" or "FAIL NAME: why" for each case; exit status 1 if any failed."""

import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lab"))
os.environ.setdefault("VERBSCOPE_BIN", str(ROOT / "bazel-bin/cmd/verbscope"))
os.environ.setdefault("LAB_OUT", tempfile.mkdtemp())

from harness import *  # noqa: E402

PROBE = ROOT / "bazel-bin/tests/soft/speed_probe"
CAPTURE_TEST = ROOT / "bazel-bin/tests/soft/capture_test"
NO_HARDWARE = "no statement about hardware"

# Wireshark guesses at payload; here it is random bytes, so only the transport is to be judged.
GUESSES = ("eth_over_ib", "fc_infiniband", "sdp_infiniband", "iser_infiniband", "lnet_ib",
           "rpcrdma_infiniband", "smb_direct_infiniband", "smcr_infiniband")


def software(doc, link="memory"):
    for side in ("local", "remote"):
        device = doc[side]["device"]
        expect(device["kind"] == "software" and device["provider"] == "soft", f"{side}: {device}")
        expect(device["link"] == link, f"{side}: {device}")


with case("LoopbackNeedsNothingAndSaysWhatItIs"):
    result = run("send-lat", "--loopback", "--device", "soft", "-D", "200ms")
    expect(result.code == 0 and "half round trip" in result.out and "p99" in result.out, str(result))
    expect(NO_HARDWARE in result.out, "the report says nothing of hardware")

with case("EveryWayOfWaitingAndEverySizeGivesAValidDocument"):
    for args in (("--wait", "busy:pause"), ("--wait", "event"), ("--wait", "solicited"),
                 ("--wait", "hybrid:20us"), ("-s", "0"), ("-s", "1:4K"), ("-s", "1M"),
                 ("-m", "256", "-s", "1000"), ("-I", "off"), ("--repeat", "2")):
        result = run("send-lat", "--loopback", "--device", "soft", "-D", "50ms", "--warmup", "10ms",
                     *args, "--json")
        expect(result.code == 0, f"{args}: {result}")
        software(result.doc)
        expect(latency(result.doc, "requester")[0]["samples"] > 0, f"{args}: no samples")

with case("ReadLatOverBothLinksByEveryWayOfWaitingAndOfEverySize"):
    for device, link in (("soft", "memory"), ("soft:link=udp", "udp")):
        for args in ((), ("--wait", "busy:pause"), ("--wait", "event"), ("--wait", "hybrid:20us"),
                     ("-s", "0"), ("-s", "1:4K"), ("-s", "1M"), ("-m", "256", "-s", "1000")):
            result = run("read-lat", "--loopback", "--device", device, "-D", "50ms", "--warmup",
                         "10ms", *args, "--json")
            expect(result.code == 0, f"{device} {args}: {result}")
            expect(result.doc["local"]["device"]["link"] == link, str(result.doc["local"]))
            for measured in result.doc["results"]:
                metrics = measured["metrics"]
                expect(measured["complete"] and measured["point"]["op"] == "read", str(measured))
                if measured["side"] == "responder":
                    expect("latency" not in metrics, "the responder measures nothing")
                    continue
                expect(metrics["latency"]["samples"] > 0, f"{device} {args}: no samples")
                expect(metrics["latency"]["definition"] == "round_trip", str(metrics["latency"]))
    with server("--device", "soft", "--once") as (serve, port):
        result = run("read-lat", "127.0.0.1", "--port", port, "--device", "soft", "-D", "200ms")
        expect(result.code == 0 and "round trip: time from posting a READ" in result.out, str(result))
        served = serve.wait(20)
        expect(served.code == 0 and " 0 samples" not in served.out, f"the server: {served}, {served.out}")

def checked(*args, device="soft"):
    """The documents of both sides of a command of steps, which must agree."""
    with server("--device", device, "--once", "--json") as (serve, port):
        client = run(args[0], "127.0.0.1", "--port", port, "--device", device, *args[1:], "--json")
        served = serve.wait(30)
    expect(client.code == served.code, f"client: {client}; server: {served}")
    expect(client.doc["checks"] == served.doc["checks"], "the sides' checks differ")
    expect(client.doc["results"] == served.doc["results"], "the sides' results differ")
    return client


with case("ImmAndZeroLenRecvOverBothLinksAndOfEverySize"):
    for device, link in (("soft:link=memory", "memory"), ("soft:link=udp", "udp")):
        for args in (("imm", "--quick"), ("imm", "--quick", "-s", "0"), ("imm", "--quick", "-s", "10000"),
                     ("imm", "-n", "5", "-m", "256", "-s", "1M"), ("zero-len-recv", "--quick"),
                     ("zero-len-recv", "-n", "5", "-s", "1"), ("zero-len-recv", "-n", "5", "-s", "5000")):
            result = checked(*args, device=device)
            expect(result.code == 0, f"{device} {args}: {result}")
            software(result.doc, link)
            bad = [row for row in result.doc["checks"] if row["status"] != "pass"]
            expect(not bad, f"{device} {args}: {bad}")

with case("ImmWithLossStillPasses"):
    result = run("imm", "--loopback", "--device", "soft:drop=1%,reorder=1%,seed=3", "--quick", "--timeout",
                 "10", "--json")
    expect(result.code == 0, str(result))

with case("TheRxeProfileDeviatesAsRxeDoes"):
    result = checked("zero-len-recv", "--quick", device="soft:profile=rxe-6.1")
    expect(result.code == 0, str(result))
    rows = {row["name"]: row for row in result.doc["checks"]}
    expect(rows["send-n-receive-0"]["status"] == "deviation", str(rows["send-n-receive-0"]))
    expect("LOC_QP_OP_ERR" in rows["send-n-receive-0"]["observed"], str(rows["send-n-receive-0"]))

with case("EveryLieOfACompletionFailsItsCheckAndIsNamed"):
    for rule, *words in (({"kind": "receive", "nth": 25, "imm_xor": 16}, "message 24: immediate", "1 bit of 32"),
                         ({"kind": "receive", "nth": 25, "imm_swap": True}, "byte order swapped"),
                         ({"kind": "receive", "nth": 25, "drop_imm_flag": True}, "WITH_IMM is not set"),
                         ({"kind": "receive", "nth": 25, "byte_len": 3}, "byte_len is 3"),
                         ({"kind": "receive", "nth": 25, "opcode": "RECV_RDMA_WITH_IMM"}, "opcode is RECV_RDMA"),
                         ({"kind": "receive", "nth": 25, "wr_id_xor": 256}, "message 24: wr_id is"),
                         ({"kind": "receive", "nth": 25, "status": "LOC_PROT_ERR"}, "LOC_PROT_ERR"),
                         ({"kind": "receive", "nth": 5, "drop": True}, "message 4: no receive completion within 2s"),
                         ({"kind": "receive", "nth": 25, "drop": True}, "message 24: no receive completion"),
                         ({"kind": "send", "nth": 25, "drop": True}, "message 24: no send completion within 2s"),
                         ({"kind": "receive", "nth": 5, "hold_behind": True}, "out of order"),
                         ({"kind": "send", "nth": 25, "hold_behind": True}, "out of order")):
        with tempfile.TemporaryDirectory() as folder:
            config = os.path.join(folder, "lie.json")
            with open(config, "w", encoding="utf-8") as file:
                json.dump({"hooks": {"completions": [rule]}}, file)
            result = run("imm", "--loopback", "--device", f"soft:config={config}", "--quick", "--json")
            expect(result.code == 3 and result.doc["verdict"] == "fail", f"{rule}: {result}")
            expect(result.doc["error"] is None and result.seconds < 10, f"{rule}: {result}")
            for word in words:
                expect(word in result.err, f"{rule}: {word!r} is not in {result.err!r}")

with case("ServeCountsChecks"):
    with server("--device", "soft", "--once") as (serve, port):
        result = run("imm", "127.0.0.1", "--port", port, "--device", "soft", "--quick")
        expect(result.code == 0 and "PASS       write-imm-64" in result.out, str(result))
        served = serve.wait(20)
        expect("imm 64 B: pass, 11 of 11 checks passed" in served.out, served.out)

with case("RnrTestPassesOverBothLinksAndCountsEveryTry"):
    for device, link in (("soft", "memory"), ("soft:link=udp", "udp"),
                         ("soft:profile=rxe-6.1", "memory")):
        result = run("rnr-test", "--loopback", "--device", device, "--quick", "--json")
        expect(result.code == 0, f"{device}: {result}")
        software(result.doc, link)
        expect(result.doc["wall_s"] < 5, f"{device}: {result.doc['wall_s']} s")
        rows = {check["name"]: check for check in result.doc["checks"]}
        for name in ("timer-code-1", "timer-code-12", "exhaustion-retry-0", "exhaustion-retry-6",
                     "recovery", "starvation", "write-imm-no-receive"):
            expect(rows[name]["status"] in ("pass", "deviation"), f"{device}: {rows[name]}")
        expect("in the responder's memory" in rows["write-imm-no-receive"]["observed"], str(rows))
        attempts = [attempt for r in result.doc["results"]
                    for attempt in r["metrics"].get("rnr", {}).get("attempts", ())]
        expect(len(attempts) == 19, f"{len(attempts)} attempts")
        for attempt in attempts:
            expect(attempt["naks"] == attempt["rnr_retry"] + 1, str(attempt))
            expect(attempt["time_to_error_ns"] >= attempt["predicted_ns"] * 0.999, str(attempt))
        expect(any("rnr-test takes up to" in notice for notice in result.doc["notices"]), "the time")

with case("RnrTestOfTwoProcessesGivesOneVerdict"):
    with server("--device", "soft", "--once", "--json") as (serve, port):
        result = run("rnr-test", "127.0.0.1", "--port", port, "--device", "soft", "--quick",
                     "--timeout", "0", "--json")
        served = serve.wait(20)
        expect(result.code == served.code == 0, f"{result}; server: {served}")
        expect(result.doc["checks"] == served.doc["checks"], "the checks differ")
        expect(result.doc["results"] == served.doc["results"], "the results differ")

# Field experience: a timer field left at 0 is 655 ms, and starvation then looks like a slow network.
with case("StarvationShowsByItsTimerCode"):
    for codes in ("12,0", "13,31"):
        result = run("rnr-test", "--loopback", "--device", "soft", "--quick", "--timer-codes", codes,
                     "--json")
        expect(result.code == 0, f"{codes}: {result}")
        starved = {r["point"]["timer_code"]: r["metrics"] for r in result.doc["results"]
                   if "rnr" in r["metrics"] and "latency" in r["metrics"]}
        fast, slow = (starved[int(code)] for code in sorted(codes.split(","), key=lambda c: -(
            starved[int(c)]["bandwidth"]["msg_per_s"])))
        expect(slow["bandwidth"]["msg_per_s"] * 10 < fast["bandwidth"]["msg_per_s"], str(codes))
        expect(slow["latency"]["max_ns"] >= slow["rnr"]["nominal_ns"], "no message waited")
        expect(slow["counters"]["rcvd_rnr_err"] >= 3, str(slow["counters"]))
        told = any("655.36 ms" in notice for notice in result.doc["notices"])
        expect(told == ("0" in codes.split(",")), f"{codes}: the warning of code 0")
        expect(any("on purpose" in notice for notice in result.doc["notices"]), "the warning of depth")

with case("TimerCode0IsSaidByEveryCommand"):
    result = run("send-lat", "--loopback", "--device", "soft", "-n", "10", "--rnr-timer", "0",
                 "--json")
    expect(result.code == 0 and any("655.36 ms" in n for n in result.doc["notices"]), str(result))

with case("APeerThatIsKilledInsideAStepIsSaidToBeGone"):
    slow = "soft:link=udp,delay=100ms"
    for command in ("zero-len-recv", "rnr-test"):
        for moment in (0.6, 1.3):
            with server("--device", slow, "--once") as (serve, port):
                with Process(command, "127.0.0.1", "--port", port, "--device", slow, "-n", 1, "--timeout", 17,
                             "--json") as client:
                    time.sleep(moment)  # somewhere in the middle of a step
                    serve.process.kill()
                    result = client.wait(20)
            expect(result.code == 5, f"{command} after {moment} s: {result}")
            error = result.doc["error"]
            expect("closed" in error["message"] or "reset" in error["message"], f"{command}: {error}")
            expect("protocol" not in error["message"], f"{command}: {error}")

with case("TwoProcessesOnOneHost"):
    with server("--device", "soft", "--once") as (serve, port):
        result = run("send-lat", "127.0.0.1", "--port", port, "--device", "soft", "-D", "300ms",
                     "--json")
        expect(result.code == 0, str(result))
        software(result.doc)
        expect(serve.wait(20).code == 0, "the server's exit code")

with case("AForeignPeerDeviceIsRefusedInASentence"):
    # The soft device is only taken when asked for: with a HOST the tool never measures something else.
    if not list(pathlib.Path("/sys/class/infiniband").glob("*")):
        result = run("send-lat", "127.0.0.1", "--json")
        expect(result.code == 2 and "--device soft" in result.doc["error"]["next_step"], str(result))

with case("BadDeviceStringsAreUsageErrorsThatNameTheKey"):
    for text, word in (("soft:dorp=1%", "drop"), ("soft:drop=2", "drop"), ("soft:mtu=1500", "4096"),
                       ("soft:profile=mlx5", "rxe-6.1"), ("soft:config=/no/such/file", "/no/such")):
        result = run("send-lat", "--loopback", "--device", text, "--json")
        expect(result.code == 1 and word in str(result.doc["error"]), f"{text}: {result}")

with case("ALossyWireIsRepaired"):
    result = run("send-lat", "--loopback", "--device",
                 "soft:drop=1%,duplicate=1%,reorder=1%,corrupt=1%,seed=5", "-n", "1000", "--warmup",
                 "0", "-s", "3000", "-m", "1024", "--timeout", "12", "--retry", "7", "--json",
                 seconds=100)
    expect(result.code == 0, str(result))
    expect(latency(result.doc, "requester")[0]["samples"] == 1000, "samples")

with case("BothProfilesRun"):
    for profile in ("ibta", "rxe-6.1"):
        result = run("send-lat", "--loopback", "--device", f"soft:profile={profile}", "-D", "50ms",
                     "--json")
        expect(result.code == 0, str(result))


def packets(path):
    data = pathlib.Path(path).read_bytes()
    at = 24
    while at < len(data):
        size = struct.unpack_from("<I", data, at + 8)[0]
        yield data[at + 16:at + 16 + size]
        at += 16 + size


def icrc(packet):
    """By annex A17, with nothing of ours: zlib's CRC-32 over the packet with the variant fields set."""
    masked = bytearray(packet[:-4])
    if packet[0] >> 4 == 4:
        transport = 28
        masked[1] = 0xff
        masked[8] = 0xff
        masked[10:12] = b"\xff\xff"
    else:
        transport = 48
        masked[0] |= 0x0f
        masked[1:4] = b"\xff\xff\xff"
        masked[7] = 0xff
    masked[transport - 2:transport] = b"\xff\xff"
    masked[transport + 4] = 0xff
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(masked)))


with case("CapturesOfAllOpcodesSatisfyTsharkAndHaveARightIcrc"):
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run([CAPTURE_TEST], env={**os.environ, "VERBSCOPE_CAPTURES": folder},
                              capture_output=True, text=True, timeout=120, check=False)
        expect(made.returncode == 0, made.stdout[-2000:])
        for name in ("ipv4.pcap", "ipv6.pcap"):
            path = os.path.join(folder, name)
            guesses = [word for guess in GUESSES for word in ("--disable-heuristic", guess)]
            shark = subprocess.run(["tshark", *guesses, "-r", path, "-T", "fields", "-e",
                                    "infiniband.bth.opcode", "-e", "_ws.malformed"],
                                   capture_output=True, text=True, timeout=120, check=False)
            expect(shark.returncode == 0, shark.stderr)
            rows = [row.split("\t") for row in shark.stdout.splitlines()]
            wrong = [packet for packet in packets(path) if icrc(packet) != packet[-4:]]
            expect(len(rows) > 1000 and not wrong, f"{name}: {len(rows)} rows, {len(wrong)} wrong")
            expect(all(row[0] for row in rows), f"{name}: a packet that is not RoCEv2 for tshark")
            expect(not [row for row in rows if len(row) > 1 and row[1]], f"{name}: malformed")

with case("ScapyComputesTheSameIcrcForEveryPacket"):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([CAPTURE_TEST, "--gtest_filter=*Ipv4*"], timeout=120, check=True,
                       env={**os.environ, "VERBSCOPE_CAPTURES": folder}, capture_output=True)
        judged = subprocess.run(["/usr/bin/python3", ROOT / "tests/soft/scapy_icrc.py",
                                 os.path.join(folder, "ipv4.pcap")],
                                capture_output=True, text=True, timeout=120, check=False)
        expect(judged.returncode == 0, judged.stdout + judged.stderr)
        print("#", judged.stdout.strip(), flush=True)

with case("EventModeAtAThousandMessagesPerSecondUsesUnderHalfACore"):
    measured = json.loads(subprocess.run([PROBE, "paced", "1000", "2000"], capture_output=True,
                                         text=True, timeout=60, check=True).stdout)
    print(f"# {measured}", flush=True)
    expect(measured["messages"] > 1500, str(measured))
    expect(measured["cpu_fraction"] < 0.5, str(measured))
    # Woken by the sender itself: no thread in between.
    expect(measured["channels_woken"] > measured["messages"] / 2, str(measured))


def soft_sockets():
    with open("/proc/net/unix", encoding="ascii") as table:
        return [line.split()[-1] for line in table if "@verbscope" in line]


with case("AKilledPeerEndsTheRunAndLeavesNothing"):
    before = len(soft_sockets())
    for _ in range(3):
        with server("--device", "soft") as (serve, port):
            client = subprocess.Popen([BINARY, "send-lat", "127.0.0.1", "--port", str(port),
                                       "--device", "soft", "-D", "20s", "--json"],
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            time.sleep(0.7)  # somewhere in the middle of the run
            serve.process.kill()
            start = time.monotonic()
            out, _ = client.communicate(timeout=20)
            expect(client.returncode == 5, f"exit code {client.returncode}: {out[:300]}")
            expect(time.monotonic() - start < 6, "more than 5 s")
            document(out)
    expect(len(soft_sockets()) == before, f"left: {soft_sockets()}")
    expect(not [name for name in os.listdir("/dev/shm") if "verbscope" in name], "shared memory")

finish()
