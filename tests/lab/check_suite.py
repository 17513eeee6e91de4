#!/usr/bin/python3
"""check on the kernel's rxe device, in one process and in two: what differs from the standard is listed with its
reason, everything listed for rxe is seen, and the soft device that imitates rxe differs in the same parts.
Budget: 180 s."""

import json

from harness import *

RXE_ONLY = {"ownership", "fence"}  # need a device that loses packets on demand


def parts(doc, *wanted):
    return {f"{c['name']}/{p['name']}": p for c in doc["checks"] for p in c.get("parts", ()) if p["status"] in wanted}


def judge(doc):
    for row in doc["checks"]:
        expect(row["status"] != "fail", json.dumps(row, indent=1))
        expect((row["status"] == "skip") == (row["name"] in RXE_ONLY), json.dumps(row, indent=1))
        for part in row["parts"]:
            expect(part["status"] not in ("deviation", "skip") or part["why"], str(part))


with case("OnlyListedDeviationsInOneProcess"):
    result = run("check", "--loopback", "--quick", "--json", seconds=150)
    expect(result.code == 0, str(result))
    judge(result.doc)
    print(f"# {result.doc['wall_s']:.1f} s; deviates: " + ", ".join(sorted(parts(result.doc, "deviation"))), flush=True)
    rxe = result.doc

with case("TheSameInTwoProcesses"):
    with server("--once", "--json") as (serve, port):
        client = run("check", ADDRESS, "--port", port, "--quick", "--json", seconds=150)
        served = serve.wait(30)
    expect(client.code == served.code == 0, f"{client}; {served}")
    judge(client.doc)
    expect(client.doc["checks"] == served.doc["checks"], "the two sides differ")
    expect(parts(client.doc, "deviation").keys() == parts(rxe, "deviation").keys(),
           str(parts(client.doc, "deviation").keys() ^ parts(rxe, "deviation").keys()))

with case("TheImitationDeviatesInTheSameParts"):
    result = run("check", "--loopback", "--device", "soft:profile=rxe-6.1", "--quick", "--json", seconds=120)
    expect(result.code == 0, str(result))
    there, here = parts(rxe, "deviation"), parts(result.doc, "deviation")
    expect(there.keys() == here.keys(), f"rxe only: {sorted(there.keys() - here.keys())}; "
           f"imitation only: {sorted(here.keys() - there.keys())}")
    for name in there:
        expect(there[name]["observed"] == here[name]["observed"], f"{there[name]}; {here[name]}")

finish()
