#!/usr/bin/python3
"""Says whether a text is one valid verbscope document (schema version 1).

    validate.py [--schema FILE] [FILE...]      no FILE, or -: standard input

Exit 0: every document is valid. Exit 1: one is not; each problem is a line on standard error.

It is a second opinion, so it shares no code with the tool: Python's JSON parser and jsonschema, and
a decoder of the HdrHistogram encoding of its own. Beyond the schema it checks what a schema cannot
express: that the numbers of a document agree with each other.
"""

import argparse
import base64
import json
import math
import os
import re
import struct
import sys
import zlib

import jsonschema

from command_groups import cost_problems, overrun_problems, rnr_problems, scale_problems
from judgements import check_problems, comparison_problems, gate_problems, preflight_problems

SCHEMA = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                      "..", "..", "docs", "schema", "verbscope-1.schema.json")

EXIT_CODES = {"usage": 1, "internal": 1, "setup": 2, "verification": 3, "inconclusive": 4, "run": 5,
              "deadline": 6, "interrupted": 130}

# Commands that measure: without a sample they cannot have passed.
MEASURING = {"send-lat", "write-lat", "read-lat", "atomic-lat", "send-bw", "write-bw", "read-bw",
             "event-vs-poll", "cq-scale", "verb-cost"}
ONE_RESULT_PER_SIZE = {"send-lat", "write-lat", "read-lat", "atomic-lat", "send-bw", "write-bw",
                       "read-bw"}

HDR_DIGITS = 3
HDR_HALF_BITS = 10


class Invalid(Exception):
    pass


def parse(raw):
    """The one JSON value in `raw` (bytes), or Invalid."""
    def constant(name):
        raise Invalid(f"{name} is not JSON")

    def number(text):
        value = float(text)
        if not math.isfinite(value):
            raise Invalid(f"number {text} is not finite")
        return value

    def members(pairs):
        result = {}
        for key, value in pairs:
            if key in result:
                raise Invalid(f"member {key!r} occurs twice in one object")
            result[key] = value
        return result

    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Invalid(f"not UTF-8: {error}") from error
    try:
        document = json.loads(text, parse_constant=constant, parse_float=number,
                              object_pairs_hook=members)
    except json.JSONDecodeError as error:
        raise Invalid(f"not one JSON document: {error}") from error
    try:
        json.dumps(document, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        raise Invalid(f"a text holds half of a surrogate pair: {error}") from error
    return document


def schema_problems(document, schema):
    validator = jsonschema.Draft202012Validator(schema)
    for error in sorted(validator.iter_errors(document), key=lambda e: list(map(str, e.path))):
        where = "/".join(map(str, error.absolute_path)) or "document"
        yield f"{where}: {error.message[:300]}"


def hdr_buckets(text):
    """The buckets [from, to, count] of a compressed HdrHistogram V2 text, or Invalid."""
    try:
        outer = base64.b64decode(text, validate=True)
        cookie, length = struct.unpack_from(">ii", outer)
        content = zlib.decompress(outer[8:8 + length])
        fields = struct.unpack_from(">iiiiqqd", content)
    except (ValueError, struct.error, zlib.error) as error:
        raise Invalid(f"hdr_v2 does not decode: {error}") from error
    if cookie != 0x1C849314 or len(outer) != 8 + length:
        raise Invalid(f"hdr_v2 has cookie {cookie:#x} or a wrong length")
    if fields[0] != 0x1C849313 or fields[1] != len(content) - 40 or fields[2] != 0:
        raise Invalid("hdr_v2 has a wrong inner cookie, length or offset")
    if fields[3] != HDR_DIGITS or fields[4] != 1:
        raise Invalid("hdr_v2 does not have three digits from 1 ns")
    buckets, index = [], 0
    for value in varints(content[40:]):
        if value < 0:
            index -= value
            continue
        if value > 0:
            buckets.append([*bucket_range(index), value])
        index += 1
    return buckets


def varints(data):
    """ZigZag LEB128 of at most 9 bytes, the ninth whole."""
    at = 0
    while at < len(data):
        value, shift = 0, 0
        for i in range(9):
            if at >= len(data):
                raise Invalid("hdr_v2 ends within a counter")
            byte = data[at]
            at += 1
            value |= (byte if i == 8 else byte & 0x7F) << shift
            shift += 7
            if i < 8 and byte < 0x80:
                break
        yield (value >> 1) ^ -(value & 1)


def bucket_range(index):
    shift = max(0, (index >> HDR_HALF_BITS) - 1)
    top = index - (shift << HDR_HALF_BITS)
    return top << shift, ((top + 1) << shift) - 1


def latency_problems(latency):
    histogram = latency["histogram"]
    buckets = histogram["buckets"]
    samples = latency["samples"]
    total = sum(bucket[2] for bucket in buckets)
    if total != samples:
        yield f"buckets hold {total} samples, samples is {samples}"
    previous = -1
    for low, high, _ in buckets:
        if low > high or low <= previous:
            yield f"bucket [{low}, {high}] is not in order"
        previous = high
    yield from hdr_problems(histogram["hdr_v2"], buckets)
    if "blocks" in histogram:
        yield from block_problems(histogram["blocks"], buckets)
    exact = [latency[key] for key in ("min_ns", "mean_ns", "stdev_ns", "max_ns")]
    if samples == 0:
        if any(value is not None for value in exact + list(latency["percentiles_ns"].values())):
            yield "no samples, but a number that states something about them"
        return
    if None in exact:
        yield f"{samples} samples, but minimum, mean, deviation or maximum is null"
        return
    minimum, mean, _, maximum = exact
    if not minimum <= mean <= maximum:
        yield f"mean {mean} is outside {minimum} to {maximum}"
    if not buckets[0][0] <= minimum <= buckets[0][1]:
        yield f"minimum {minimum} is not in the first bucket"
    if not buckets[-1][0] <= maximum <= buckets[-1][1]:
        yield f"maximum {maximum} is not in the last bucket"
    yield from percentile_problems(latency, buckets, samples)


def hdr_problems(text, buckets):
    if text == "":
        if buckets:
            yield "hdr_v2 is empty, but there are buckets"
        return
    try:
        decoded = hdr_buckets(text)
    except Invalid as error:
        yield str(error)
        return
    if decoded and buckets and decoded[-1][0] == buckets[-1][0]:
        # A sample beyond the encoding's range stretches the last bucket of the list only.
        decoded[-1][1] = max(decoded[-1][1], buckets[-1][1])
    if decoded != buckets:
        yield f"hdr_v2 holds {sum(b[2] for b in decoded)} samples in other buckets than buckets does"


def percentile_problems(latency, buckets, samples):
    previous = latency["min_ns"]
    values = latency["percentiles_ns"]
    intervals = latency["interval95_ns"]
    if set(values) != set(intervals):
        yield "percentiles_ns and interval95_ns have different keys"
    for key, effective in latency["effective_samples"].items():
        if effective is not None and (values.get(key) is None or effective > samples):
            yield f"p{key} has {effective} effective samples of {samples}"
    for key in sorted(values, key=float):
        value = values[key]
        interval = intervals.get(key)
        if interval is not None and interval[0] > interval[1]:
            yield f"interval of p{key} runs downwards"
        if value is None:
            if interval is not None:
                yield f"p{key} has an interval, but no value"
            continue
        if samples * (100 - float(key)) < 100 * (1 - 1e-9) and float(key) < 100:
            yield f"p{key} is stated from {samples} samples"
        if not previous <= value <= latency["max_ns"]:
            yield f"p{key} is {value}, outside {previous} to {latency['max_ns']}"
        previous = value
        rank = max(1, math.ceil(samples * float(key) / 100 - 1e-9))
        low, high = bucket_of_rank(buckets, rank)
        if not low <= value <= high:
            yield f"p{key} is {value}, but the sample of rank {rank} lies in {low} to {high}"
        if interval is not None and not interval[0] <= value <= interval[1]:
            yield f"interval of p{key} does not hold its value"


def block_problems(blocks, buckets):
    """The blocks of time, one after the other, hold the same samples as the whole."""
    previous, counts = 0, {}
    for block in blocks:
        if block["from_s"] > block["to_s"] or block["from_s"] < previous - 1e-6:
            yield f"block from {block['from_s']} is not in order"
        previous = block["to_s"]
        try:
            for low, _, count in hdr_buckets(block["hdr_v2"]):
                counts[low] = counts.get(low, 0) + count
        except Invalid as error:
            yield f"block from {block['from_s']}: {error}"
            return
    whole = {low: count for low, _, count in buckets}
    if counts != whole:
        yield f"blocks hold {sum(counts.values())} samples in other buckets than the whole"


def bucket_of_rank(buckets, rank):
    seen = 0
    for low, high, count in buckets:
        seen += count
        if seen >= rank:
            return low, high
    return buckets[-1][0], buckets[-1][1]


def bandwidth_problems(bandwidth):
    seconds = bandwidth["seconds"]
    if not seconds:
        return
    for key, expected in (("gbit_per_s", bandwidth["bytes"] * 8 / seconds / 1e9),
                          ("msg_per_s", bandwidth["messages"] / seconds)):
        value = bandwidth[key]
        if value is not None and not math.isclose(value, expected, rel_tol=1e-6, abs_tol=1e-9):
            yield f"{key} is {value}, but its parts say {expected}"


def interval_problems(rows):
    previous = 0
    for row in rows:
        if row["from_s"] > row["to_s"] or row["from_s"] < previous - 1e-6:
            yield f"interval from {row['from_s']} is not in order"
        previous = row["to_s"]
        stated = [row[key] for key in ("p50_ns", "p99_ns", "max_ns") if row[key] is not None]
        if stated != sorted(stated):
            yield f"interval from {row['from_s']}: p50, p99 and maximum are not ascending"


def result_problems(result):
    metrics = result["metrics"]
    for group in ("latency", "warmup"):
        if group in metrics:
            yield from (f"{group}: {problem}" for problem in latency_problems(metrics[group]))
    for key in ("bandwidth", "warmup_bandwidth"):
        if key in metrics:
            yield from (f"{key}: {p}" for p in bandwidth_problems(metrics[key]))
    if "rnr" in metrics:
        yield from (f"rnr: {problem}" for problem in rnr_problems(metrics["rnr"]))
        if "timer_code" not in result["point"]:
            yield "rnr: the point does not say which timer"
    if "cost" in metrics and "latency" in metrics:
        yield from (f"cost: {p}" for p in cost_problems(metrics["cost"], metrics["latency"]))
    if "scale" in metrics:
        yield from (f"scale: {problem}" for problem in scale_problems(result))
    if "overrun" in metrics:
        yield from (f"overrun: {problem}" for problem in overrun_problems(metrics["overrun"]))
    yield from interval_problems(result["intervals"])


def has_samples(result):
    metrics = result["metrics"]
    return (metrics.get("latency", {}).get("samples", 0) > 0
            or metrics.get("bandwidth", {}).get("messages", 0) > 0)


def verdict_problems(document):
    verdict, code, error = document["verdict"], document["exit_code"], document["error"]
    if (verdict == "error") != (error is not None):
        yield f"verdict is {verdict}, but error is {'set' if error else 'null'}"
    if error is not None and code != EXIT_CODES[error["class"]]:
        yield f"exit_code is {code}, but an error of class {error['class']} exits " \
              f"{EXIT_CODES[error['class']]}"
    expected = {"pass": 0, "fail": 3, "inconclusive": 4}.get(verdict, code)
    if code != expected:
        yield f"exit_code is {code}, but verdict {verdict} exits {expected}"
    if verdict != "pass":
        return
    for kind, name in (("checks", "name"), ("gates", "expression")):
        for row in document[kind]:
            if row["status"] == "fail":
                yield f"verdict is pass, but {row[name]!r} failed"
    if any(not result["complete"] for result in document["results"]):
        yield "verdict is pass, but a result is incomplete"
    if document["command"] in MEASURING and not any(map(has_samples, document["results"])):
        yield "verdict is pass, but there is no sample"
    compares = document["command"] == "event-vs-poll" and document["local"]["role"] == "requester"
    if compares and not document.get("modes", {}).get("rows"):
        yield "verdict is pass, but there are no rows of modes"
    yield from coverage_problems(document)


def coverage_problems(document):
    """Every planned size and run has its result: none was overwritten by the next."""
    plan = document["plan"]
    if document["command"] not in ONE_RESULT_PER_SIZE or "sizes_bytes" not in plan:
        return
    have = {(result["point"]["size_bytes"], result["run"]) for result in document["results"]}
    for run in range(plan["repeat"]):
        for size in plan["sizes_bytes"]:
            if (size, run) not in have:
                yield f"the plan asks for {size} bytes in run {run}, but there is no such result"


def identity_problems(document):
    seen = set()
    for result in document["results"]:
        identity = json.dumps(
            [result["point"], result["side"], result["run"], result.get("set")], sort_keys=True)
        if identity in seen:
            yield f"two results have the identity {identity}"
        seen.add(identity)


def cross_problems(document):
    yield from verdict_problems(document)
    yield from identity_problems(document)
    yield from check_problems(document)
    yield from preflight_problems(document)
    for gate in document["gates"]:
        yield from (f"gate {gate['expression']!r}: {problem}" for problem in gate_problems(gate))
    if "comparison" in document:
        yield from (f"comparison: {problem}" for problem in comparison_problems(document))
    for i, result in enumerate(document["results"]):
        yield from (f"results/{i}: {problem}" for problem in result_problems(result))


def problems(raw, schema):
    """All problems of the document in `raw` (bytes); none: it is valid."""
    try:
        document = parse(raw)
    except Invalid as error:
        return [str(error)]
    found = list(schema_problems(document, schema))
    # Numbers are compared only where the schema says that they are there.
    return found or list(cross_problems(document))


def load_schema(path=SCHEMA):
    with open(path, encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    return schema


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--schema", default=SCHEMA)
    parser.add_argument("files", nargs="*", default=["-"])
    arguments = parser.parse_args()
    schema = load_schema(arguments.schema)
    valid = True
    for name in arguments.files:
        if name == "-":
            raw = sys.stdin.buffer.read()
        else:
            with open(name, "rb") as file:
                raw = file.read()
        for problem in problems(raw, schema):
            # Texts of a document may hold anything: only printable characters reach the terminal.
            print(re.sub(r"[^ -~]", "?", f"{name}: {problem}"), file=sys.stderr)
            valid = False
    return 0 if valid else 1


if __name__ == "__main__":
    sys.exit(main())
