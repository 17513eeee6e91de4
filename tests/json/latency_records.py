"""Latencies of documents that are made up, with their histograms, for make_records.py."""

import base64
import math
import struct
import zlib

PERCENTILES = ["50", "90", "99", "99.9", "99.99"]


def index_of(ns):
    shift = max(0, ns.bit_length() - 11)
    return (shift << 10) + (ns >> shift)


def range_of(index):
    shift = max(0, (index >> 10) - 1)
    top = index - (shift << 10)
    return [top << shift, ((top + 1) << shift) - 1]


def varint(number):
    zigzag = (number << 1) ^ (number >> 63)
    data = bytearray()
    for i in range(9):
        if i == 8 or zigzag < 0x80:
            data.append(zigzag & 0xFF)
            return bytes(data)
        data.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    return bytes(data)


def hdr_v2(counts):
    payload, position = b"", 0
    for index in sorted(counts):
        if index > position:
            payload += varint(position - index)
        payload += varint(counts[index])
        position = index + 1
    content = struct.pack(">iiiiqqd", 0x1C849313, len(payload), 0, 3, 1, 10**11, 1.0) + payload
    packed = zlib.compress(content)
    return base64.b64encode(struct.pack(">ii", 0x1C849314, len(packed)) + packed).decode()


def binomial_rank(n, q, tail):
    """Smallest k with P(X <= k) >= tail for X ~ Binomial(n, q)."""
    log_term, total = n * math.log(1 - q), 0.0
    for k in range(n + 1):
        total += math.exp(log_term)
        if total >= tail:
            return k
        log_term += math.log((n - k) / (k + 1)) + math.log(q / (1 - q))
    return n


def counts_of(samples):
    counts = {}
    for ns in samples:
        counts[index_of(ns)] = counts.get(index_of(ns), 0) + 1
    return counts


def blocks_of(samples, blocks=5):
    """The samples, in the order of time, in equal parts of 100 ms."""
    length = -(-len(samples) // blocks)
    return [{"from_s": i / 10, "to_s": (i + 1) / 10,
             "hdr_v2": hdr_v2(counts_of(samples[i * length:(i + 1) * length]))} for i in range(blocks)]


def latency(samples, definition="half_round_trip", ended_by="recv_completion"):
    blocks = blocks_of(samples) if len(samples) >= 1000 else []
    samples = sorted(samples)
    n = len(samples)
    counts = counts_of(samples)
    values, intervals = {}, {}
    for key in PERCENTILES:
        q = float(key) / 100
        values[key] = intervals[key] = None
        if n * (1 - q) >= 1 - 1e-9:
            highest = range_of(index_of(samples[math.ceil(n * q - 1e-9) - 1]))[1]
            values[key] = min(max(highest, samples[0]), samples[-1])
        if n > 0 and q ** n <= 0.025 and (1 - q) ** n <= 0.025:
            low, high = binomial_rank(n, q, 0.025), binomial_rank(n, q, 0.975) + 1
            intervals[key] = [range_of(index_of(samples[max(low, 1) - 1]))[0],
                              range_of(index_of(samples[min(high, n) - 1]))[1]]
    mean = sum(samples) / n if n else None
    histogram = {"significant_digits": 3,
                 "buckets": [range_of(i) + [counts[i]] for i in sorted(counts)],
                 "hdr_v2": hdr_v2(counts)}
    if blocks:
        histogram["blocks"] = blocks
    return {
        "definition": definition, "ended_by": ended_by, "samples": n,
        "min_ns": samples[0] if n else None,
        "mean_ns": mean,
        "stdev_ns": math.sqrt(sum((x - mean) ** 2 for x in samples) / n) if n else None,
        "max_ns": samples[-1] if n else None,
        "percentiles_ns": values, "interval95_ns": intervals,
        "effective_samples": {key: n if blocks and values[key] is not None else None
                              for key in PERCENTILES},
        "histogram": histogram,
    }


def times(rng, n, typical_ns, spread=0.02, tail=0.003):
    result = []
    for _ in range(n):
        ns = typical_ns * (1 + spread * abs(rng.gauss(0, 1)))
        if rng.random() < tail:
            ns *= 1.3 + 8 * rng.random() ** 4
        result.append(int(ns))
    return result
