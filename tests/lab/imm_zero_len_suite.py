#!/usr/bin/python3
"""imm and zero-len-recv on the kernel's rxe device, as two processes and in one: what rxe does right, and
what it is known to do otherwise. Budget: 60 s."""

from harness import *

# Measured on Linux 6.1: see core/scenario/expectations.cc.
RXE_TOO_LONG = "requester REM_OP_ERR, responder LOC_QP_OP_ERR"


def checks(doc):
    names = [row["name"] for row in doc["checks"]]
    expect(len(names) == len(set(names)), f"a check occurs twice: {names}")
    return {row["name"]: row for row in doc["checks"]}


def pair(command, *args):
    """Both documents of a run of two processes; both sides must say the same."""
    with server("--once", "--json") as (serve, port):
        client = run(command, ADDRESS, "--port", port, *args, "--json", "--deadline", "60s", seconds=90)
        served = serve.wait(20)
    expect(client.code == 0 and served.code == 0, f"client: {client}; server: {served}")
    expect(client.doc["checks"] == served.doc["checks"], "the sides' checks differ")
    expect(client.doc["results"] == served.doc["results"], "the sides' results differ")
    return client.doc


with case("ImmOfEverySizeAndForm"):
    doc = pair("imm", "-n", 500)
    rows = checks(doc)
    expect({row["status"] for row in rows.values()} == {"pass"}, f"{rows}")
    for name in ("send-imm-0", "send-imm-64", "write-imm-64", "write-imm-64-empty-sge",
                 "write-imm-64-null-sge", "write-imm-64-buffer", "send-64-control", "write-64-control"):
        expect(name in rows, f"no check {name}")
    for result in doc["results"]:
        metrics = result["metrics"]["latency"]
        expect(metrics["samples"] == 500 and metrics["definition"] == "half_round_trip", str(metrics))

with case("ImmAbovePathMtu"):
    doc = pair("imm", "-s", 10000, "-n", 100)
    expect({row["status"] for row in doc["checks"]} == {"pass"}, str(doc["checks"]))

with case("ImmInOneProcessIsReadable"):
    result = run("imm", "--loopback", "--quick")
    expect(result.code == 0, str(result))
    for word in ("PASS", "write-imm-64-null-sge", "RECV_RDMA_WITH_IMM", "half round trip"):
        expect(word in result.out, f"{word!r} is not in the report")

with case("ZeroLenRecvWithTheKnownDeviationsOfRxe"):
    doc = pair("zero-len-recv", "-n", 200)
    rows = checks(doc)
    expect(not [row for row in rows.values() if row["status"] == "fail"], f"{rows}")
    for name in ("send-n-receive-0", "send-n-receive-n-1", "send-imm-n-receive-0",
                 "send-imm-n-receive-n-1"):
        row = rows[name]
        expect(row["status"] == "deviation" and row["observed"] == RXE_TOO_LONG, str(row))
        expect("rxe" in row["why"] and "LOC_LEN_ERR" in row["expected"], str(row))
    late = rows["send-n-receive-0-later-receive"]
    expect(late["status"] == "deviation" and late["observed"] == "no completion", str(late))
    for name in ("send-n-receive-0-qp-state", "send-n-receive-0-reset", "send-n-receive-n",
                 "write-nothing-bad-rkey", "read-nothing-bad-rkey", "send-nothing-no-receive"):
        expect(rows[name]["status"] == "pass", str(rows[name]))
    expect("RNR_RETRY_EXC_ERR" in rows["send-nothing-no-receive"]["observed"], "RNR")

finish()
