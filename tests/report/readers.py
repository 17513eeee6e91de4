"""What other programs read in our files, by parsers that know nothing of verbscope, and whether it is what
stands in the JSON document. Every function takes the text of a file and the documents it was made of, and
raises Failure at the first difference."""

import csv
import io
import json
import math
import pathlib
import re
import subprocess
import xml.etree.ElementTree

import markdown
import prometheus_client.openmetrics.parser
import prometheus_client.parser
import xmlschema

from harness import Failure, ROOT, expect

SCHEMA = xmlschema.XMLSchema(str(pathlib.Path(__file__).with_name("junit.xsd")))


# Labels of a result's figures that are no members of its point.
OTHER_LABELS = {"report", "command", "host", "device", "side", "run", "set", "definition", "le", "quantile", "counter"}


def near(a, b, what):
    expect(math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-15), f"{what}: {a} is not {b}")


def results_of(docs):
    return [(doc, result) for doc in docs for result in doc["results"]]


def check_csv(text, docs):
    rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    head, rows = rows[0], rows[1:]
    wanted = results_of(docs)
    expect(len(set(head)) == len(head), "two columns of one name")
    expect(len(rows) == len(wanted), f"{len(rows)} rows for {len(wanted)} results")
    for row, (doc, result) in zip(rows, wanted):
        expect(len(row) == len(head), f"{len(row)} fields, {len(head)} columns")
        cell = dict(zip(head, row))
        metrics = result["metrics"]
        latency, bandwidth = metrics.get("latency") or {}, metrics.get("bandwidth") or {}
        pairs = [("size_bytes", result["point"]["size_bytes"]), ("side", result["side"]), ("run", result["run"]),
                 ("op", result["point"]["op"]), ("wait", result["point"].get("wait")),
                 ("verdict", doc["verdict"]), ("exit_code", doc["exit_code"]), ("command", doc["command"]),
                 ("complete", result.get("complete", True)), ("local_host", doc["local"]["host"])]
        pairs += [(key, latency.get(key)) for key in ("samples", "min_ns", "mean_ns", "stdev_ns", "max_ns")]
        pairs += [(f"p{p}_ns", v) for p, v in (latency.get("percentiles_ns") or {}).items()]
        pairs += [(f"p{p}_low95_ns", v[0]) for p, v in (latency.get("interval95_ns") or {}).items() if v]
        pairs += [(key, bandwidth.get(key)) for key in ("bytes", "messages", "seconds", "gbit_per_s", "msg_per_s")]
        pairs += [("cpu_us_per_message", (metrics.get("cpu") or {}).get("us_per_message")),
                  ("counters", ";".join(f"{k}={v}" for k, v in sorted((metrics.get("counters") or {}).items())))]
        for column, value in pairs:
            expect(column in cell, f"no column {column}")
            if value is None:
                expect(cell[column] == "", f"{column}: {cell[column]!r}, which is not known")
            elif isinstance(value, bool):
                expect(cell[column] == str(value).lower(), f"{column}: {cell[column]!r} is not {value}")
            elif isinstance(value, (int, float)):
                expect(float(cell[column]) == value, f"{column}: {cell[column]!r} is not {value}")
            else:
                expect(cell[column] == value, f"{column}: {cell[column]!r} is not {value!r}")


def check_junit(text, docs):
    SCHEMA.validate(text)
    root = xml.etree.ElementTree.fromstring(text.encode())
    expect(len(root) == len(docs), f"{len(root)} suites for {len(docs)} documents")
    for suite, doc in zip(root, docs):
        cases = suite.findall("testcase")
        for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            expect(int(suite.get(attribute)) == len(suite.findall(f"testcase/{tag}")), f"{attribute} is miscounted")
        expect(int(suite.get("tests")) == len(cases), "tests is miscounted")
        names = [case.get("name") for case in cases]
        expect(len(set(names)) == len(names), f"a name twice: {names}")
        gated = [row for row in (doc.get("comparison") or {}).get("rows", []) if row.get("gated")]
        expect(len(cases) == 1 + len(doc["gates"]) + len(doc["checks"]) + len(gated), str(names))
        red = int(suite.get("failures")) + int(suite.get("errors"))
        expect((red > 0) == (doc["exit_code"] != 0), f"exit code {doc['exit_code']}, but {red} red cases: {text}")
        expect((suite.find("testcase[@name='run']/error") is not None) == (doc["error"] is not None),
               "the error of the run")
        for check in doc["checks"]:
            # XML 1.0 has no way to write these two.
            name = "check " + check["name"].replace("\ufffe", "").replace("\uffff", "")
            case = next((case for case in cases if case.get("name") == name), None)
            expect(case is not None, f"no case for {name!r}")
            expect((case.find("failure") is not None) == (check["status"] == "fail"), check["name"])
    return root


def samples_of(families):
    """{(name, labels without order): value}; a series that occurs twice is a failure."""
    found = {}
    for family in families:
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            expect(key not in found, f"series twice: {key}")
            found[key] = sample.value
    return found


def check_openmetrics(text, docs):
    strict = samples_of(prometheus_client.openmetrics.parser.text_string_to_metric_families(text))
    classic = samples_of(prometheus_client.parser.text_string_to_metric_families(text))
    expect(strict == classic, "both formats do not say the same")
    by_name = {}
    for (name, labels), value in strict.items():
        by_name.setdefault(name, []).append((dict(labels), value))
    expect(sorted(v for _, v in by_name["verbscope_exit_code"]) == sorted(d["exit_code"] for d in docs), "exit codes")
    number = {id(doc): i + 1 for i, doc in enumerate(docs)}
    for doc, result in results_of(docs):
        latency, bandwidth = result["metrics"].get("latency"), result["metrics"].get("bandwidth")
        point = {k: v for k, v in result["point"].items() if v not in (None, "")}

        def same(label, value):
            if isinstance(value, bool):
                return label == str(value).lower()
            return label is not None and (float(label) == value if isinstance(value, (int, float)) else label == value)

        def mine(labels):
            """Of this result: every member of its point, and none that it does not have."""
            if labels["side"] != result["side"] or labels["run"] != str(result["run"]):
                return False
            if labels.get("report", "1") != str(number[id(doc)]):
                return False
            return set(labels) - OTHER_LABELS == set(point) and all(same(labels[k], v) for k, v in point.items())

        def one(name, **wanted):
            values = [v for labels, v in by_name.get(name, [])
                      if mine(labels) and all(labels.get(k) == w for k, w in wanted.items())]
            expect(len(values) == 1, f"{len(values)} of {name} {wanted} for {point}")
            return values[0]

        if latency and latency["samples"]:
            name = "verbscope_latency_seconds"
            expect(one(f"{name}_count") == latency["samples"], "count")
            near(one(f"{name}_sum"), latency["mean_ns"] * latency["samples"] / 1e9, "sum")
            for labels, value in by_name[f"{name}_bucket"]:
                if not mine(labels):
                    continue
                edge = float(labels["le"])
                count = sum(n for _, to, n in latency["histogram"]["buckets"] if to <= round(edge * 1e9)) \
                    if math.isfinite(edge) else latency["samples"]
                expect(value == count, f"le={labels['le']}: {value} is not {count}")
            for percent, value in latency["percentiles_ns"].items():
                if value is not None:
                    got = one("verbscope_latency_quantile_seconds", quantile=f"{float(percent) / 100:.10g}")
                    near(got, value / 1e9, f"p{percent}")
        if bandwidth and bandwidth["gbit_per_s"] is not None:
            near(one("verbscope_bandwidth_bytes_per_second"), bandwidth["gbit_per_s"] * 1e9 / 8, "bandwidth")


def check_hdr(path, docs, modules):
    """Each result by its place: the tags of a log stand in the order of the results."""
    measured = [r["metrics"]["latency"] for _, r in results_of(docs)
                if r["metrics"].get("latency") and r["metrics"]["latency"]["samples"]]
    tags = list(dict.fromkeys(re.findall(r"^Tag=([^,]*),", path.read_text(), re.M)))
    expect(len(tags) == len(measured), f"{len(tags)} tags for {len(measured)} results")
    ranks = {}
    for tag, latency in zip(tags, measured):
        expect(re.fullmatch(r"[\w.+-]+", tag, re.A), f"tag {tag!r}")
        ranks[tag] = [math.ceil(float(p) / 100 * latency["samples"] - 1e-9)
                      for p, v in latency["percentiles_ns"].items() if v is not None]
    reader = pathlib.Path(__file__).with_name("read_hdr.js")
    done = subprocess.run(["node", reader, modules, path, json.dumps(ranks)], capture_output=True, text=True)
    expect(done.returncode == 0, done.stderr)
    lines = json.loads(done.stdout)
    for tag, latency in zip(tags, measured):
        mine = [line for line in lines if line["tag"] == tag]
        expect(sum(line["total"] for line in mine) == latency["samples"], f"{tag}: samples")
        blocks = latency["histogram"].get("blocks") or []
        expect(len(mine) == max(1, len(blocks)), f"{tag}: {len(mine)} lines")
        if len(mine) > 1:
            continue
        values = [v for v in latency["percentiles_ns"].values() if v is not None]
        for got, value in zip(mine[0]["values"], values):
            # The text knows the largest sample to one bucket only.
            expect(got == value or (value == latency["max_ns"] and value <= got <= value * 1.001),
                   f"{tag}: {got} is not {value}")


def check_hgrm(text, docs):
    measured = [r["metrics"]["latency"] for _, r in results_of(docs)
                if r["metrics"].get("latency") and r["metrics"]["latency"]["samples"]]
    blocks = re.split(r"^ +Value +Percentile +TotalCount +1/\(1-Percentile\)\n", text, flags=re.M)[1:]
    expect(len(blocks) == len(measured), f"{len(blocks)} distributions for {len(measured)} results")
    for block, latency in zip(blocks, measured):
        rows = [line.split() for line in block.splitlines() if line.strip() and not line.startswith("#")]
        levels = [float(row[1]) for row in rows]
        expect(levels == sorted(levels) and levels[0] == 0 and levels[-1] == 1, "levels")
        values = [float(row[0]) for row in rows]
        expect(values == sorted(values), "values")
        expect([int(row[2]) for row in rows] == sorted(int(row[2]) for row in rows), "counts")
        expect(int(rows[-1][2]) == latency["samples"] and len(rows[-1]) == 3, "the last row")
        near(float(rows[-1][0]), latency["max_ns"] / 1e3, "maximum")
        for row in rows[:-1]:
            counted = sum(n for start, _, n in latency["histogram"]["buckets"] if start <= round(float(row[0]) * 1e3))
            expect(counted == int(row[2]) and counted >= float(row[1]) * latency["samples"] * (1 - 1e-9), str(row))
        expect(f"Total count    = {latency['samples']:12}]" in block, "footer")


def check_bmf(texts, docs):
    bmf, smaller, bigger = (json.loads(text) for text in texts)
    kept = [r for doc, r in results_of(docs) if doc["error"] is None and r.get("complete", True)]
    values = sorted(m["value"] for measures in bmf.values() for m in measures.values())
    wanted = []
    for result in kept:
        latency = result["metrics"].get("latency")
        bandwidth = result["metrics"].get("bandwidth") or {}
        if latency and latency["samples"]:
            wanted += [v for v in latency["percentiles_ns"].values() if v is not None] + [latency["mean_ns"]]
        wanted += [bandwidth.get("gbit_per_s"), bandwidth.get("msg_per_s"),
                   (result["metrics"].get("cpu") or {}).get("us_per_message")]
    expect(values == sorted(v for v in wanted if v is not None), "values of BMF")
    expect(sorted(e["value"] for e in smaller + bigger) == values, "values of github-action-benchmark")
    names = [entry["name"] for entry in smaller + bigger]
    expect(len(set(names)) == len(names), "a name twice")
    for measures in bmf.values():
        for metric in measures.values():
            expect(metric.get("lower_value", 0) <= metric["value"] <= metric.get("upper_value", math.inf), str(metric))
    expect(all(set(e) <= {"name", "unit", "value", "range", "extra"} and e["unit"] for e in smaller + bigger), "keys")




def check_markdown(text, docs):
    columns = None
    for line in text.splitlines():
        if not line.startswith("|"):
            columns = None
            continue
        columns = columns or line.count("|")
        expect(line.count("|") == columns, f"{line.count('|')} bars, not {columns}: {line}")
    html = markdown.markdown(text, extensions=["tables"])
    tags = set(re.findall(r"<\s*/?\s*([a-zA-Z]\w*)", html))
    expect(tags <= {"h2", "p", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "strong", "details", "summary"},
           f"tags {tags}")
    expect(html.count("<h2>") == len(docs), "a heading for each document")
    # Tables within the fold are not read: this parser takes it for one block of HTML.
    measured = any(r["metrics"].get(k) for doc in docs for r in doc["results"]
                   for k in ("latency", "bandwidth", "rnr", "overrun"))
    expect(not measured or "<td>" in html, "no table")
    for doc in docs:
        expect(f"{doc['verdict']}</h2>" in html, f"verdict {doc['verdict']}")
        shown = [r for r in doc["results"] if r["metrics"].get("latency") and r["metrics"]["latency"]["samples"]]
        for result in shown[:200]:
            expect(f"<td>{result['metrics']['latency']['samples']}</td>" in html, "a row for each latency")
