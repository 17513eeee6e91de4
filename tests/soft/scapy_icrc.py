#!/usr/bin/python3
"""scapy_icrc.py FILE…: recomputes the ICRC of every packet of a capture with scapy's RoCE layer (IPv4
only in scapy 2.5) and compares. Exit status 1 if one differs."""

import sys

from scapy.all import PcapReader, load_contrib

load_contrib("roce")
from scapy.contrib.roce import BTH  # noqa: E402

total = wrong = 0
for path in sys.argv[1:]:
    for packet in PcapReader(path):
        total += 1
        fresh = packet.copy()
        fresh[BTH].icrc = None
        if bytes(fresh)[-4:] != bytes(packet)[-4:]:
            wrong += 1
            print(f"{path}: packet {total}: {bytes(packet)[-4:].hex()}, scapy has "
                  f"{bytes(fresh)[-4:].hex()}")
print(f"{total} packets, {wrong} with another ICRC")
sys.exit(1 if wrong or not total else 0)
