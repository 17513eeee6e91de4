#!/usr/bin/python3
"""Judges the captures of one lab suite on the host, with tshark: every packet is RoCEv2 and well formed,
and every sender has sent every RC opcode.

usage: judge_captures.py SUITE FOLDER    prints "ok …" or "FAIL …: why"; exit status 1 if it fails"""

import collections
import pathlib
import subprocess
import sys
import tempfile

FILE_HEADER = 24  # of a pcap file; all are of one kind, so their packets can be put behind one another
# Opcodes of RC without the two SENDs with invalidate, which nobody here sends.
EVERY_OPCODE = set(range(0, 0x15))
# Guesses of tshark at what the payload is.
GUESSES = ("eth_over_ib", "fc_infiniband", "sdp_infiniband", "iser_infiniband", "lnet_ib",
           "rpcrdma_infiniband", "smb_direct_infiniband", "smcr_infiniband")


def rows(path):
    guesses = [word for guess in GUESSES for word in ("--disable-heuristic", guess)]
    fields = [word for field in ("ip.src", "ipv6.src", "infiniband.bth.opcode", "_ws.malformed")
              for word in ("-e", field)]
    shark = subprocess.run(["tshark", *guesses, "-r", path, "-T", "fields", *fields],
                           capture_output=True, text=True, timeout=300, check=True)
    return [(line.split("\t") + ["", "", "", ""])[:4] for line in shark.stdout.splitlines()]


def judge(files):
    """Returns what is wrong, or None, and how many packets were seen."""
    with tempfile.NamedTemporaryFile(suffix=".pcap") as merged:
        merged.write(files[0].read_bytes()[:FILE_HEADER])
        for file in files:
            merged.write(file.read_bytes()[FILE_HEADER:])
        merged.flush()
        packets = rows(merged.name)
    senders = collections.defaultdict(set)
    for number, (ipv4, ipv6, opcode, malformed) in enumerate(packets, 1):
        if malformed or not opcode:
            return f"packet {number} is {malformed or 'not RoCEv2'}", len(packets)
        senders[ipv4 or ipv6].add(int(opcode, 0))
    for sender, opcodes in senders.items():
        if missing := EVERY_OPCODE - opcodes:
            return f"{sender} never sent opcodes {sorted(missing)}", len(packets)
    if len(senders) < 2:
        return f"packets of {len(senders)} senders", len(packets)
    return None, len(packets)


def main():
    suite, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    files = sorted(folder.glob("*.pcap"))
    wrong, packets = judge(files) if files else ("there are none", 0)
    if wrong:
        print(f"FAIL {suite} captures: {wrong}")
        sys.exit(1)
    print(f"ok {suite}: {packets} packets of {len(files)} captures are well formed")


main()
