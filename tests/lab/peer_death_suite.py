#!/usr/bin/python3
"""A peer that dies: at every protocol step in three ways, by kill -9 and by SIGSTOP in mid-run, and
peers that are something else. The survivor ends within 5 s with the documented code and a valid
document, and a serving server takes the next client. Budget: 150 s."""

import contextlib
import os
import socket
import threading
import time

from harness import *
from proxy import MANNERS, STEPS, DyingProxy

LIMIT = 5.0
RUN = ("--duration", "30s", "--warmup", "0", "--json")
# Starting and reaping a process in an emulated guest is not part of the survivor's time.
GRACE = 1.0


def survivor(process, died_at, codes):
    result = process.wait(20)
    late = time.monotonic() - died_at
    expect(late <= LIMIT + GRACE, f"took {late:.1f} s: {result}")
    expect(result.code in codes, f"code {result.code}, not {codes}: {result}")
    doc = result.doc
    expect(doc["exit_code"] == result.code and doc["verdict"] == "error", "document's verdict")
    expect(doc["error"]["message"], "no message")
    expect("FLUSH" not in (doc["error"]["status"] or ""), f"a flush as the cause: {doc['error']}")
    expect(len([line for line in result.err.splitlines() if "error:" in line]) == 1,
           f"not one error line: {result.err!r}")
    return doc


for step in STEPS:
    for manner in MANNERS:
        with case(f"PeerDiesAt{step.capitalize()}By{manner.capitalize()}"):
            duration = "500ms" if step == "results" else "30s"
            with server("--once", "--json") as (serve, port), DyingProxy(port, step, manner) as proxy:
                with Process("send-lat", "127.0.0.1", "--device", "rxe0", "--port", proxy.port,
                             "--duration", duration, "--warmup", "0", "--json") as client:
                    end = time.monotonic() + 20
                    while proxy.died_at is None and time.monotonic() < end:
                        time.sleep(0.01)
                    expect(proxy.died_at is not None, f"step not reached: {client.err()}")
                    # Before the peer has said who it is, nothing has begun: cannot start.
                    survivor(client, proxy.died_at, [2] if step == "connect" else [5])
                    if step != "connect":
                        survivor(serve, proxy.died_at, [5])


def next_client_works(port):
    result = run("send-lat", ADDRESS, "--port", port, "--quick", "--json", seconds=30)
    expect(result.code == 0, f"the next client: {result}")


def sent_packets():
    with open("/sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts", encoding="ascii") as file:
        return int(file.read())


def catches_sigint(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        caught = next(line for line in status if line.startswith("SigCgt:"))
    return int(caught.split()[1], 16) >> (signal.SIGINT - 1) & 1


def wait_for_run():
    """The run is on once the device sends hundreds of packets: no set-up does."""
    start, end = sent_packets(), time.monotonic() + 20
    while sent_packets() < start + 500:
        expect(time.monotonic() < end, "the run never began")
        time.sleep(0.02)


for wait in ("busy", "event"):
    for name, number in (("Kill", signal.SIGKILL), ("Stop", signal.SIGSTOP)):
        with case(f"{wait.capitalize()}ServerGetsSig{name}InMidRun"):
            with server("--wait", wait) as (serve, port):
                with Process("send-lat", ADDRESS, "--port", port, "--wait", wait, *RUN) as client:
                    wait_for_run()
                    died_at = time.monotonic()
                    serve.signal(number)
                    doc = survivor(client, died_at, [5])
                    expect(doc["results"] and not doc["results"][0]["complete"], "no partial result")
                    expect(doc["results"][0]["metrics"]["latency"]["samples"] > 0, "no samples")
                if number == signal.SIGSTOP:
                    serve.signal(signal.SIGCONT)
                    next_client_works(port)

        with case(f"{wait.capitalize()}ClientGetsSig{name}InMidRun"):
            with server("--wait", wait) as (serve, port):
                with Process("send-lat", ADDRESS, "--port", port, "--wait", wait, *RUN) as client:
                    wait_for_run()
                    died_at = time.monotonic()
                    client.signal(number)
                    serve.await_text("error", seconds=LIMIT + GRACE, stream="out")
                    next_client_works(port)
                    expect(len(serve.out().splitlines()) == 2, f"lines: {serve.out()!r}")

with case("InterruptedClientIs130AndTheServerGoesOn"):
    with server() as (serve, port):
        with Process("send-lat", ADDRESS, "--port", port, *RUN) as client:
            wait_for_run()
            client.signal(signal.SIGINT)
            result = client.wait(LIMIT + GRACE)
            expect(result.code == 130, str(result))
            expect(result.doc["error"]["class"] == "interrupted", "class")
        next_client_works(port)

with case("InterruptedServerGivesItsClient5"):
    with server() as (serve, port):
        with Process("send-lat", ADDRESS, "--port", port, *RUN) as client:
            wait_for_run()
            serve.signal(signal.SIGTERM)
            result = client.wait(LIMIT + GRACE)
            expect(result.code == 5, str(result))
            expect(result.doc["error"]["side"] == "peer", "side")
        expect(serve.wait(10).code == 130, "server's code")


with case("InterruptAtAnyMomentOfALoopbackIs130WithADocument"):
    for wait in ("busy", "event", "hybrid:20us"):
        for delay_ms in (0, 20, 60, 120, 250, 600):
            with Process("send-lat", "--loopback", "--wait", wait, *RUN) as client:
                # Before the handlers stand, a signal ends any program the hard way.
                end = time.monotonic() + 10
                while not catches_sigint(client.pid):
                    expect(time.monotonic() < end, "never ready for a signal")
                time.sleep(delay_ms / 1000)  # the moment is the case, not a condition
                client.signal(signal.SIGINT)
                result = client.wait(LIMIT + GRACE)
                expect(result.code == 130, f"{wait} after {delay_ms} ms: {result}")
                expect(result.doc["error"]["class"] == "interrupted", "class")


def talk(port, data):
    with socket.create_connection(("127.0.0.1", port), timeout=8) as connection:
        if data:
            connection.sendall(data)
        answer = b""
        while chunk := connection.recv(4096):
            answer += chunk
        return answer


for name, data, word in (("HttpClient", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP"),
                         ("RandomBytes", bytes(range(200, 256)) * 4, "verbscope"),
                         ("PerftestClient", b"6.29" + bytes(12), "perftest"),
                         ("SilentClient", b"", "verbscope")):
    with case(f"{name}IsToldAndTheServerGoesOn"):
        with server() as (serve, port):
            answer = talk(port, data)
            expect(b"verbscope" in answer, f"answer: {answer!r}")
            serve.await_text(word, seconds=8)
            next_client_works(port)


@contextlib.contextmanager
def foreign_server(answer, wait_for_data=True):
    """Accepts one connection, perhaps reads, answers, stays open."""
    listener = socket.create_server(("127.0.0.1", 0))
    release = threading.Event()

    def serve():
        connection, _ = listener.accept()
        with connection:
            if wait_for_data:
                connection.recv(16)
            connection.sendall(answer)
            release.wait(20)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield listener.getsockname()[1]
    release.set()
    thread.join()
    listener.close()


for name, answer, word in (("HttpServer", b"HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP"),
                           ("PerftestServer", b"6.29" + bytes(12), "perftest"),
                           ("RandomServer", bytes(range(200, 256)), "verbscope"),
                           ("SshServer", b"SSH-2.0-OpenSSH_9.2\r\n", "SSH")):
    with case(f"{name}IsNamed"):
        with foreign_server(answer) as port:
            result = run("send-lat", "127.0.0.1", "--port", port, "--device", "rxe0", "--json")
            expect(result.code == 2, str(result))
            expect(word.lower() in result.doc["error"]["message"].lower(), result.doc["error"])

finish()
