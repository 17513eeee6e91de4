#!/usr/bin/python3
"""Tests of validate.py on the documents of testdata/records, and on damaged copies of them."""

import copy
import glob
import json
import os
import subprocess
import sys
import unittest

import validate

HERE = os.path.dirname(os.path.abspath(__file__))
RECORDS = os.path.join(HERE, "..", "..", "testdata", "records")

# What names the fault of each file in broken/.
BROKEN = {
    "empty": "not one JSON document",
    "truncated": "not one JSON document",
    "two-documents": "Extra data",
    "text-before": "not one JSON document",
    "nan": "NaN",
    "infinite": "not finite",
    "repeated-key": "'wall_s' occurs twice",
    "missing-key": "'gates' is a required property",
    "wrong-exit-code": "exit_code",
    "error-without-error": "error",
    "bucket-sum": "buckets hold 120 samples, samples is 121",
    "percentile-above-max": "p99 is",
    "hdr-differs": "hdr_v2 holds 120 samples in other buckets",
    "size-lost": "the plan asks for 128 bytes",
}


def read(name):
    with open(os.path.join(RECORDS, name + ".json"), "rb") as file:
        return file.read()


def latency(document, at=0):
    return document["results"][at]["metrics"]["latency"]


class ValidateTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.schema = validate.load_schema()

    def problems(self, document):
        return validate.problems(json.dumps(document).encode(), self.schema)

    def refused(self, name, change, words):
        """`change` applied to the good document `name` is refused for the reason `words`."""
        document = json.loads(read(name))
        self.assertEqual(self.problems(document), [])
        change(document)
        found = self.problems(document)
        self.assertTrue(any(words in problem for problem in found), f"{words!r} not in {found}")

    def with_rnr(self, change=lambda rnr, point: None):
        """The problems of a good document whose first result also holds numbers of rnr-test."""
        document = json.loads(read("send-lat"))
        result = document["results"][0]
        result["point"]["timer_code"] = 12
        rnr = result["metrics"]["rnr"] = {
            "nominal_ns": 640_000, "measured_ns": 960_000, "ratio": 1.5,
            "attempts": [{"rnr_retry": 2, "predicted_ns": 1_280_000, "time_to_error_ns": 1_300_000,
                          "naks": None}]}
        change(rnr, result["point"])
        return self.problems(document)

    def test_the_numbers_of_rnr_test_agree_with_each_other(self):
        self.assertEqual(self.with_rnr(), [])
        for change, words in (
                (lambda rnr, point: rnr.update(ratio=2.5), "ratio is 2.5"),
                (lambda rnr, point: rnr.update(ratio=None), "not known together"),
                (lambda rnr, point: rnr["attempts"][0].update(rnr_retry=3), "rnr_retry 3 predicts"),
                (lambda rnr, point: rnr["attempts"][0].pop("naks"), "'naks' is a required"),
                (lambda rnr, point: point.pop("timer_code"), "does not say which timer")):
            found = self.with_rnr(change)
            self.assertTrue(any(words in problem for problem in found), f"{words!r} not in {found}")

    def with_cost(self, **changed):
        """The problems of a good document whose first result also holds numbers of verb-cost."""
        document = json.loads(read("send-lat"))
        document["results"][0]["metrics"]["cost"] = {
            "calls": latency(document)["samples"], "per_call_work": 1, "ns_per_request": 12.5,
            "enters_kernel": True, "syscalls_per_call": 2, "overhead_ns": 13, **changed}
        return self.problems(document)

    def test_the_numbers_of_verb_cost_agree_with_each_other(self):
        for good in ({}, {"syscalls_per_call": None}, {"enters_kernel": None, "syscalls_per_call": None},
                     {"enters_kernel": False, "syscalls_per_call": 0}):
            self.assertEqual(self.with_cost(**good), [])
        for change, words in (
                ({"calls": 1}, "1 calls, but"), ({"enters_kernel": False}, "enters_kernel is False"),
                ({"enters_kernel": None}, "enters_kernel is None"), ({"per_call_work": 0}, "per_call_work")):
            found = self.with_cost(**change)
            self.assertTrue(any(words in problem for problem in found), f"{words!r} not in {found}")

    def with_group(self, name, group, point, change):
        """The problems of a good document whose first result also holds `group`, changed."""
        document = json.loads(read("send-lat"))
        result = document["results"][0]
        result["point"].update(point)
        result["metrics"][name] = copy.deepcopy(group)
        change(result["metrics"][name], result)
        return self.problems(document)

    def group_tests(self, name, group, point, prepare, cases):
        self.assertEqual(self.with_group(name, group, point, prepare), [])
        for change, words in cases:
            def both(numbers, result, change=change):
                prepare(numbers, result)
                change(numbers, result)
            found = self.with_group(name, group, point, both)
            self.assertTrue(any(words in problem for problem in found), f"{words!r} not in {found}")

    def test_the_numbers_of_cq_scale_agree_with_each_other(self):
        scale = {"threads": 2, "cqe": 128, "cores": 2, "speedup": 1.5, "cpu_us_per_message": None,
                 "completions_per_poll": 3.5}

        def same_cost(numbers, result):
            numbers["cpu_us_per_message"] = result["metrics"]["cpu"]["us_per_message"]
        self.group_tests("scale", scale, {"cqs": 2, "threads": 2, "cq_depth": 100}, same_cost, (
            (lambda numbers, result: numbers.update(threads=4), "4 threads, but the point says 2"),
            (lambda numbers, result: result["point"].update(cqs=3), "3 CQs, but 2 threads"),
            (lambda numbers, result: numbers.update(cqe=99), "fewer than the 100 asked for"),
            (lambda numbers, result: numbers.update(cpu_us_per_message=0.001), "but cpu says"),
            (lambda numbers, result: numbers.pop("cores"), "'cores' is a required")))

    def test_the_numbers_of_cq_overrun_agree_with_each_other(self):
        overrun = {"cqe": 16, "outstanding": 32, "most_unpolled": 32, "delivered": 16, "flushed": 2,
                   "lost": 14, "event": "CQ_ERR on CQ 7", "qp_state": "ERR", "cq_usable": None}
        self.group_tests("overrun", overrun, {}, lambda numbers, result: None, (
            (lambda numbers, result: numbers.update(lost=0), "18 came and 0 were lost of 32"),
            (lambda numbers, result: numbers.update(most_unpolled=33), "more than outstanding"),
            (lambda numbers, result: numbers.pop("event"), "'event' is a required")))

    def test_good_documents_are_accepted(self):
        names = glob.glob(os.path.join(RECORDS, "*.json"))
        self.assertGreaterEqual(len(names), 8)
        for name in names:
            with open(name, "rb") as file:
                self.assertEqual(validate.problems(file.read(), self.schema), [], name)

    def test_broken_documents_are_refused_for_their_fault(self):
        names = glob.glob(os.path.join(RECORDS, "broken", "*.json"))
        self.assertEqual({os.path.basename(name)[:-5] for name in names}, set(BROKEN))
        for name, words in BROKEN.items():
            found = validate.problems(read("broken/" + name), self.schema)
            self.assertTrue(any(words in problem for problem in found), f"{name}: {found}")

    def test_additions_are_free(self):
        document = json.loads(read("send-lat"))
        document["later"] = {"anything": [1, None]}
        latency(document)["later"] = 1
        document["local"]["device"]["later"] = "x"
        self.assertEqual(self.problems(document), [])

    def test_every_required_member_is_missed(self):
        for name in ("send-lat", "write-bw", "check", "devices", "broken-run", "few-samples", "compare"):
            document = json.loads(read(name))
            for path in required_paths(self.schema, document):
                damaged = copy.deepcopy(document)
                parent = damaged
                for step in path[:-1]:
                    parent = parent[step]
                del parent[path[-1]]
                self.assertNotEqual(self.problems(damaged), [], f"{name}: {path}")

    def test_verdicts_exit_codes_and_errors_agree(self):
        self.refused("send-lat", lambda d: d.update(verdict="fail"), "exit_code")
        self.refused("check", lambda d: d.update(exit_code=0), "exit_code")
        self.refused("broken-run", lambda d: d.update(exit_code=6), "exits 5")
        self.refused("broken-run", lambda d: d["error"].update({"class": "interrupted"}), "exits 130")
        self.refused("broken-run", lambda d: d.update(error=None), "error")
        self.refused("few-samples", lambda d: d.update(exit_code=3), "exit_code")

        def fail_gate(document):
            document.update(verdict="pass", exit_code=0)
            document["gates"][0]["status"] = "fail"
        self.refused("few-samples", fail_gate, "failed")

    def test_assertions_agree_with_their_figures(self):
        def gate(document, number=0):
            return document["gates"][number]
        self.refused("few-samples", lambda d: gate(d, 1).update(bound=2), "passed with bound 2")
        self.refused("few-samples", lambda d: gate(d, 1).update(status="fail"), "failed with bound")
        self.refused("few-samples", lambda d: gate(d).update(samples_needed=None), "how many samples")
        self.refused("few-samples", lambda d: gate(d).update(samples_needed=150), "needs 150")
        self.refused("few-samples", lambda d: gate(d).update(effective_samples=151), "effective")
        self.refused("few-samples", lambda d: gate(d)["results"][0].update(
            status="pass", bound=9), "not the worst")
        self.refused("few-samples", lambda d: d.update(verdict="fail", exit_code=3) or
                     gate(d).update(status="pass", bound=9, results=[]), "no gate failed")

    def test_comparisons_agree_with_their_figures(self):
        def row(document, number):
            return document["comparison"]["rows"][number]
        self.refused("compare", lambda d: row(d, 1).update(gated=False), "nothing is worse")
        self.refused("compare", lambda d: d.update(verdict="pass", exit_code=0), "something is worse")
        self.refused("compare", lambda d: row(d, 0).update(ratio=1.5), "outside")
        self.refused("compare", lambda d: row(d, 2).update(runs_needed=None), "how many runs")

    def test_blocks_hold_the_samples_of_the_whole(self):
        def histogram(document):
            return document["results"][0]["metrics"]["latency"]["histogram"]
        self.refused("send-lat", lambda d: histogram(d)["blocks"].pop(), "blocks hold")
        self.refused("send-lat", lambda d: histogram(d)["blocks"].reverse(), "not in order")
        self.refused("send-lat", lambda d: latency(d)["effective_samples"].update({"50": 10**9}),
                     "effective samples")

    def test_a_pass_needs_complete_results_with_samples(self):
        self.refused("send-lat", lambda d: d["results"][0].update(complete=False), "incomplete")
        self.refused("send-lat", lambda d: d.update(results=[]), "no sample")
        self.refused("write-bw", lambda d: d["results"].pop(), "no such result")
        self.refused("sweep", lambda d: d["results"].pop(1), "no such result")

    def test_checks_say_what_their_verdict_rests_on(self):
        def row(document, status):
            return next(check for check in document["checks"] if check["status"] == status)
        self.refused("check", lambda d: d["checks"].append(d["checks"][0]), "occurs 2 times")
        self.refused("check", lambda d: row(d, "skip").update(why=None), "without a reason")
        self.refused("check", lambda d: row(d, "pass").update(observed=None), "expected and observed")
        self.refused("check", lambda d: row(d, "fail").update(status="pass"), "no check and no gate failed")

    def test_identities_are_unique(self):
        self.refused("sweep", lambda d: d["results"].append(d["results"][0]), "two results")

    def test_latency_agrees_with_itself(self):
        def buckets(document):
            return latency(document)["histogram"]["buckets"]

        def late_bucket(document):
            buckets(document)[0][1] = buckets(document)[1][0]
        self.refused("send-lat", lambda d: buckets(d).reverse(), "not in order")
        self.refused("send-lat", late_bucket, "not in order")
        self.refused("send-lat", lambda d: latency(d).update(min_ns=1), "minimum")
        self.refused("send-lat", lambda d: latency(d).update(max_ns=10**9), "maximum")
        self.refused("send-lat", lambda d: latency(d).update(mean_ns=1.0), "mean")
        self.refused("send-lat", lambda d: latency(d).update(stdev_ns=None), "null")
        self.refused("send-lat", lambda d: latency(d)["percentiles_ns"].update({"50": 1}), "p50 is 1")
        self.refused("send-lat", lambda d: latency(d)["percentiles_ns"].update({"p95": 1}), "p95")
        self.refused("send-lat", lambda d: latency(d)["percentiles_ns"].update({"95": None}), "keys")
        self.refused("send-lat", lambda d: latency(d)["interval95_ns"].update({"50": [1, 2]}),
                     "interval of p50")
        self.refused("send-lat", lambda d: latency(d)["interval95_ns"].update({"50": [9, 2]}),
                     "downwards")
        self.refused("few-samples", lambda d: latency(d)["percentiles_ns"].update(
            {"99.9": latency(d)["max_ns"]}), "p99.9 is stated from 150 samples")
        self.refused("few-samples", lambda d: latency(d)["interval95_ns"].update(
            {"99.9": [1, 2]}), "no value")

    def test_hdr_text_is_decoded(self):
        text = latency(json.loads(read("send-lat")))["histogram"]["hdr_v2"]

        def with_text(value):
            return lambda d: latency(d)["histogram"].update(hdr_v2=value)
        self.refused("send-lat", with_text(""), "hdr_v2 is empty")
        self.refused("send-lat", with_text(text[4:]), "hdr_v2")
        self.refused("send-lat", with_text(text[:-8]), "hdr_v2")
        self.refused("send-lat", with_text(text[:40] + "AAAA" + text[44:]), "hdr_v2")
        self.refused("send-lat", with_text("AAAA"), "hdr_v2")

    def test_bandwidth_is_what_its_parts_say(self):
        def bandwidth(document):
            return document["results"][0]["metrics"]["bandwidth"]
        # MiB where MB belongs: a factor of 1.05 must not pass.
        self.refused("write-bw", lambda d: bandwidth(d).update(
            gbit_per_s=bandwidth(d)["gbit_per_s"] / 1.048576), "gbit_per_s")
        self.refused("write-bw", lambda d: bandwidth(d).update(msg_per_s=1.0), "msg_per_s")

    def test_intervals_are_in_order(self):
        def rows(document):
            return document["results"][0]["intervals"]
        self.refused("send-lat", lambda d: rows(d).reverse(), "not in order")
        self.refused("send-lat", lambda d: rows(d)[0].update(p50_ns=10**9), "not ascending")

    def test_texts_that_are_no_text_are_refused(self):
        for raw, words in ((b"\xef\xbb\xbf{}", "not one JSON"), (b'{"a": "\xff"}', "UTF-8"),
                           (b'{"a": "\\ud800"}', "surrogate"), (b"[1,]", "not one JSON"),
                           (b"{}{}", "Extra data"), (b"'a'", "not one JSON")):
            found = validate.problems(raw, self.schema)
            self.assertTrue(any(words in problem for problem in found), f"{raw}: {found}")

    def test_the_program_reads_files_and_standard_input_and_exits_accordingly(self):
        program = [sys.executable, os.path.join(HERE, "validate.py")]
        good = os.path.join(RECORDS, "send-lat.json")
        bad = os.path.join(RECORDS, "broken", "nan.json")
        self.assertEqual(subprocess.run(program + [good], check=False).returncode, 0)
        run = subprocess.run(program + [good, bad], check=False, capture_output=True)
        self.assertEqual(run.returncode, 1)
        self.assertIn(b"NaN", run.stderr)
        run = subprocess.run(program, input=read("send-lat"), check=False, capture_output=True)
        self.assertEqual((run.returncode, run.stderr), (0, b""))
        run = subprocess.run(program, input=read("broken/empty"), check=False, capture_output=True)
        self.assertEqual(run.returncode, 1)


def required_paths(schema, document):
    """Paths of the members of `document` that the schema requires where they stand."""
    def resolve(node):
        while "$ref" in node:
            node = schema["$defs"][node["$ref"].rsplit("/", 1)[1]]
        for choice in node.get("anyOf", []):
            if choice.get("type") != "null":
                return resolve(choice)
        return node

    def walk(node, value, path):
        node = resolve(node)
        if isinstance(value, dict):
            for key in node.get("required", []):
                yield path + [key]
            for key, child in node.get("properties", {}).items():
                if key in value:
                    yield from walk(child, value[key], path + [key])
        elif isinstance(value, list) and value and isinstance(node.get("items"), dict):
            yield from walk(node["items"], value[0], path + [0])

    return list(walk(schema, document, []))


if __name__ == "__main__":
    unittest.main()
