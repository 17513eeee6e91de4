"""What must hold within checks, assertions and comparisons, for validate.py."""

import math

# Commands whose answer is a list of checks: without one that says something they cannot have passed.
CHECKING = {"imm", "zero-len-recv", "rnr-test", "cq-scale", "cq-overrun", "check"}
SEVERITY = {"pass": 0, "inconclusive": 1, "fail": 2}
OPERATORS = {"<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b,
             ">=": lambda a, b: a >= b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b}


def is_worse(row):
    return row["gated"] and row["verdict"] == "worse"


def preflight_problems(document):
    rows = document.get("preflight", [])
    for row in rows:
        where = f"preflight {row['name']!r} of {row['about']}"
        wrong = row["status"] in ("warn", "fail")
        if wrong != bool(row["symptom"] and row["fix"]):
            yield f"{where} is {row['status']}, with symptom {row['symptom']!r} and fix {row['fix']!r}"
        if not row["value"] or not row["good"]:
            yield f"{where} does not say what was read, or what is good"
        if row["status"] == "fail" and document["verdict"] == "pass":
            yield f"verdict is pass, but {where} failed"
    if document["command"] == "doctor" and document["verdict"] == "pass" and not rows:
        yield "verdict is pass, but there are no rows"


def check_problems(document):
    rows = document["checks"]
    names = [row["name"] for row in rows]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"check {name!r} occurs {names.count(name)} times"
    for row in rows:
        if row["status"] in ("deviation", "skip") and not row["why"]:
            yield f"check {row['name']!r} is a {row['status']} without a reason"
        if row["status"] != "skip" and not (row["expected"] and row["observed"]):
            yield f"check {row['name']!r} does not say what was expected and observed"
    failed = [row for kind in ("checks", "gates") for row in document[kind] if row["status"] == "fail"]
    failed += [row for row in document.get("comparison", {"rows": []})["rows"] if is_worse(row)]
    failed += [row for row in document.get("preflight", []) if row["status"] == "fail"]
    undecided = [row for row in document["gates"] if row["status"] == "inconclusive"]
    if document["verdict"] == "fail" and not failed and not undecided:
        yield "verdict is fail, but no check and no gate failed, and nothing is worse"
    command = document["plan"].get("command", document["command"])
    if document["verdict"] == "pass" and command in CHECKING \
            and not [row for row in rows if row["status"] in ("pass", "deviation")]:
        yield "verdict is pass, but no check says so"


def operator_of(expression):
    rest = expression[expression.find("}") + 1:]
    at = min(i for i in map(rest.find, "<>=!") if i >= 0)
    return OPERATORS[rest[at:at + 2] if rest[at + 1:at + 2] == "=" else rest[at]]


def outcome_problems(expression, row):
    holds = operator_of(expression)
    status, bound, limit = row["status"], row["bound"], row["limit"]
    if status == "pass" and (bound is None or limit is None or not holds(bound, limit)):
        yield f"passed with bound {bound} and limit {limit}"
    if status == "fail" and None not in (bound, limit) and holds(bound, limit):
        yield f"failed with bound {bound} and limit {limit}"
    if status == "fail" and bound is None and not row["why"]:
        yield "failed without a bound and without a reason"
    if status == "inconclusive" and row["samples_needed"] is None and not row["why"]:
        yield "neither says how many samples would decide it, nor why none would"
    if status == "inconclusive" and row["samples_needed"] is not None \
            and row["samples_needed"] <= row["samples"]:
        yield f"needs {row['samples_needed']} samples and has {row['samples']}"
    if None not in (row["samples"], row["effective_samples"]) \
            and row["effective_samples"] > row["samples"]:
        yield "more effective samples than samples"


def gate_problems(gate):
    yield from outcome_problems(gate["expression"], gate)
    for row in gate["results"]:
        yield from outcome_problems(gate["expression"], row)
    if gate["results"]:
        worst = max(SEVERITY[row["status"]] for row in gate["results"])
        if worst != SEVERITY[gate["status"]]:
            yield f"is {gate['status']}, which is not the worst of its results"


def comparison_problems(document):
    for row in document["comparison"]["rows"]:
        low, high = row["ratio_low"], row["ratio_high"]
        if None not in (row["ratio"], low, high) and not low <= row["ratio"] <= high:
            yield f"{row['metric']}: ratio {row['ratio']} is outside {low} to {high}"
        if row["verdict"] == "undecided" and row["runs_needed"] is None and not row["why"]:
            yield f"{row['metric']} neither says how many runs would decide it, nor why none would"
        if row["verdict"] == "same" and None not in (low, high) \
                and not math.isclose(max(row["margin"], abs(row["ratio"] - 1)), row["margin"]):
            yield f"{row['metric']} is the same, but its ratio {row['ratio']} is beyond the margin"
    if document["verdict"] == "pass" and any(map(is_worse, document["comparison"]["rows"])):
        yield "verdict is pass, but something is worse"
