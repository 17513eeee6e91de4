"""What must hold between the numbers of one command's own group of metrics, for validate.py."""

import math


def rnr_problems(rnr):
    measured, ratio = rnr["measured_ns"], rnr["ratio"]
    if (measured is None) != (ratio is None):
        yield "measured_ns and ratio are not known together"
    elif ratio is not None and not math.isclose(ratio, measured / rnr["nominal_ns"], rel_tol=1e-6,
                                                abs_tol=1e-9):
        yield f"ratio is {ratio}, but measured_ns / nominal_ns is {measured / rnr['nominal_ns']}"
    for row in rnr["attempts"]:
        if row["predicted_ns"] != row["rnr_retry"] * rnr["nominal_ns"]:
            yield f"rnr_retry {row['rnr_retry']} predicts {row['predicted_ns']}, not so many waits"


def scale_problems(result):
    point, scale = result["point"], result["metrics"]["scale"]
    if point.get("threads") != scale["threads"]:
        yield f"{scale['threads']} threads, but the point says {point.get('threads')}"
    if point.get("cqs", 0) > 1 and point["cqs"] != scale["threads"]:
        yield f"{point['cqs']} CQs, but {scale['threads']} threads"
    if scale["cqe"] < point.get("cq_depth", 1):
        yield f"{scale['cqe']} entries, fewer than the {point['cq_depth']} asked for"
    cost = result["metrics"].get("cpu", {}).get("us_per_message")
    if scale["cpu_us_per_message"] != cost:
        yield f"cpu_us_per_message is {scale['cpu_us_per_message']}, but cpu says {cost}"


def overrun_problems(overrun):
    came = overrun["delivered"] + overrun["flushed"]
    if came + overrun["lost"] != overrun["outstanding"]:
        yield f"{came} came and {overrun['lost']} were lost of {overrun['outstanding']}"
    if overrun["most_unpolled"] > overrun["outstanding"]:
        yield "most_unpolled is more than outstanding"


def cost_problems(cost, latency):
    if cost["calls"] != latency["samples"]:
        yield f"{cost['calls']} calls, but {latency['samples']} samples"
    counted = cost["syscalls_per_call"]
    if counted is not None and cost["enters_kernel"] is not (counted > 0):
        yield f"enters_kernel is {cost['enters_kernel']}, syscalls_per_call {counted}"
    most = cost.get("syscalls_at_most")
    if counted is not None and most is not None and most < counted:
        yield f"syscalls_at_most is {most}, below the median {counted}"
