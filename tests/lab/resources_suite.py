#!/usr/bin/python3
"""devices --resources and doctor on the kernel's rxe device: the objects of a run that goes on are listed with their
process, depth and state, those of the kernel with its module, and they are gone afterwards. Budget: 40 s."""

import pathlib
import time

from harness import *

NAME = pathlib.Path(BINARY).name[:15]  # as the kernel cuts it
DEPTH = 300  # receives of the run: its CQs have at least as many entries


def objects():
    result = run("devices", "--resources", "--json")
    expect(result.code == 0, str(result))
    rows = [row for device in result.doc["resources"] for row in device["objects"]]
    expect(result.doc["resources"], "the kernel lists no device")
    return rows


def of(rows, kind, **members):
    return [row for row in rows if row["kind"] == kind and all(row[k] == v for k, v in members.items())]


with case("TheKernelOwnsAQueuePairAndACompletionQueue"):
    rows = objects()
    gsi = of(rows, "qp", owner="kernel", type="GSI")
    expect(gsi and gsi[0]["id"] == 1 and gsi[0]["pid"] is None, f"no GSI QP 1: {rows}")
    queues = of(rows, "cq", owner="kernel")
    expect(queues and queues[0]["cqe"] > 0, f"no CQ of the kernel: {rows}")
    expect(queues[0]["poll_context"] == "unbound-workqueue", f"the MAD layer polls otherwise: {queues}")
    expect(not of(rows, "qp", owner="user"), f"a process has a QP before the run: {rows}")

with case("ARunShowsItsObjectsWithItsProcess"):
    with server("--once") as (serve, port):
        with Process("send-lat", ADDRESS, "--port", port, "-D", "60s", "-r", DEPTH, "--json") as client:
            end = time.monotonic() + 20
            while not (rows := of(objects(), "qp", pid=client.pid, state="RTS")):
                expect(time.monotonic() < end, "no QP of the client reached RTS in 20 s")
                time.sleep(0.2)
            rows = objects()
            for process in (client, serve):
                mine = {kind: of(rows, kind, pid=process.pid) for kind in ("context", "pd", "cq", "qp", "mr")}
                for kind, found in mine.items():
                    expect(found, f"no {kind} of process {process.pid}: {rows}")
                    expect(all(row["owner"] == "user" and row["name"] == NAME for row in found), str(found))
                expect(max(row["cqe"] for row in mine["cq"]) >= DEPTH, f"no CQ is that deep: {mine['cq']}")
                expect(all(row["poll_context"] is None for row in mine["cq"]), str(mine["cq"]))
                expect(mine["qp"][0]["type"] == "RC" and mine["qp"][0]["rqpn"], str(mine["qp"]))
                expect(all(row["length_bytes"] > 0 for row in mine["mr"]), str(mine["mr"]))
                # The lab is root, who is shown keys.
                expect(all(row["rkey"] is not None for row in mine["mr"]), str(mine["mr"]))
            ends = {row["id"]: row["rqpn"] for row in of(rows, "qp", owner="user", type="RC")}
            expect(all(ends.get(peer) == qpn for qpn, peer in ends.items()), f"QPs do not name each other: {ends}")
            text = run("devices", "--resources").out
            expect(f"{client.pid} ({NAME})" in text and "kernel (ib_core)" in text, text)
            client.signal(signal.SIGINT)
            client.wait(20)

with case("AfterTheRunNothingOfItIsLeft"):
    expect(not of(objects(), "qp", owner="user"), "a QP of a process is left")

with case("DoctorReadsTheLab"):
    result = run("doctor", "--json")
    rows = {(row["name"], row["about"]): row for row in result.doc["preflight"]}
    about = next(about for name, about in rows if name == "port-state")
    expect(rows["port-state", about]["status"] == "ok", str(rows["port-state", about]))
    expect(rows["gids", about]["status"] == "ok" and rows["gid-type", about]["status"] == "ok", str(result.doc["preflight"]))
    expect(rows["memlock", "host"]["status"] == "ok", str(rows["memlock", "host"]))
    expect(result.code == 0, f"something fails: {[row for row in rows.values() if row['status'] == 'fail']}")

finish()
