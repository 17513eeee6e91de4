#!/usr/bin/python3
"""Every check of `check` is seen to fail: the soft device breaks one promise at a time, and exactly the checks that
are listed for it fail. Needs no RDMA device. Budget: 400 s.

Prints "ok NAME" or "FAIL NAME: why" for each case; exit status 1 if any failed."""

import json
import os
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lab"))
os.environ.setdefault("VERBSCOPE_BIN", str(ROOT / "bazel-bin/cmd/verbscope"))
os.environ.setdefault("LAB_OUT", tempfile.mkdtemp())

from harness import *  # noqa: E402

FOLDER = pathlib.Path(tempfile.mkdtemp())


def completion(**fault):
    return {"hooks": {"completions": [dict({"nth": 0}, **fault)]}}


# What is broken, and the checks that must fail for it.
BROKEN = {
    "no-rights": ({"defects": ["no-rights"]}, {"access"}),
    "no-fence": ({"defects": ["no-fence"]}, {"fence"}),
    "copy-at-post": ({"defects": ["copy-at-post"]}, {"ownership"}),
    "inline-by-reference": ({"defects": ["inline-by-reference"]}, {"inline"}),
    "over-inline": ({"defects": ["over-inline"]}, {"inline"}),
    "any-transition": ({"defects": ["any-transition"]}, {"qp-states"}),
    "wrong-bad-wr": ({"defects": ["wrong-bad-wr"]}, {"bad-wr"}),
    "signal-all": ({"defects": ["signal-all"]}, {"selective-signal"}),
    "solicited-wakes-not": ({"defects": ["solicited-wakes-not"]}, {"solicited"}),
    "stays-armed": ({"defects": ["stays-armed"]}, {"event-race"}),
    "no-flush": ({"defects": ["no-flush"]}, {"flush", "solicited"}),
    "no-async": ({"defects": ["no-async"]}, {"async", "srq", "overrun"}),
    "no-srq-limit": ({"defects": ["no-srq-limit"]}, {"srq"}),
    "lazy-atomic": ({"defects": ["lazy-atomic"]}, {"atomics"}),
    "empty-key": ({"defects": ["empty-key"]}, {"zero-length"}),
    "rnr-gives-up-never": ({"defects": ["rnr-gives-up-never"]}, {"rnr"}),
    "no-pd": ({"defects": ["no-pd"]}, {"pd"}),
    "no-bounds": ({"defects": ["no-bounds"]}, {"bounds"}),
    "busy-destroy": ({"defects": ["busy-destroy"]}, {"teardown"}),
    "overstated-limits": ({"defects": ["overstated-limits"]}, {"limits"}),
    "silent-overrun": ({"defects": ["silent-overrun"]}, {"overrun"}),
    # Every failure that the requester is to hear of.
    "early-completion": ({"defects": ["early-completion"]}, {
        "access", "bounds", "errors", "flush", "mtu", "pd", "post-vs-complete", "rnr", "selective-signal", "wc-fields",
        "zero-length"}),
    "no-imm-receive": ({"defects": ["no-imm-receive"]}, {"ordering", "rnr", "write-imm"}),
    "write-takes-receive": ({"defects": ["write-takes-receive"]}, {"data-placement", "wc-fields", "write-imm"}),
    "wrong-status": ({"defects": ["wrong-status"]}, {"errors", "zero-length"}),
    "foreign-event": ({"defects": ["foreign-event"]}, {"comp-channel"}),
    "byte-len": (completion(kind="receive", byte_len_add=1), {"recv", "wc-fields", "write-imm", "zero-length"}),
    "opcode": (completion(kind="send", opcode="RDMA_READ"), {"wc-fields", "write-imm"}),
    "qp-num": (completion(qp_num_xor=1), {"cq-threads", "shared-cq", "wc-fields", "zero-length"}),
    "imm-swap": (completion(imm_swap=True), {"imm", "write-imm"}),
    "lost-completion": ({"hooks": {"completions": [{"nth": 400, "kind": "receive", "drop": True}]}}, {"cq-threads"}),
    "held-completion": ({"hooks": {"completions": [{"nth": 90, "kind": "send", "hold_behind": True}]}}, {"ordering"}),
    "flipped-bit": ({"hooks": {"data": {"flip_bit": 0}}}, {
        "data-placement", "fence", "inline", "mtu", "ordering", "ownership", "scatter-gather", "write-imm"}),
    "skipped-packet": ({"hooks": {"data": {"skip_last": 0}}}, {
        "access", "data-placement", "errors", "fence", "inline", "mtu", "ordering", "ownership", "pd",
        "scatter-gather", "write-imm"}),
}

names = [row["name"] for row in run("check", "--list", "--json").doc["catalog"]]

with case("EveryCheckHasSomethingThatBreaksIt"):
    covered = set().union(*(checks for _, checks in BROKEN.values()))
    expect(covered == set(names), f"nothing breaks {sorted(set(names) - covered)}; no checks {sorted(covered - set(names))}")

for name, (config, wanted) in BROKEN.items():
    with case("Broken" + "".join(part.capitalize() for part in name.split("-"))):
        file = FOLDER / f"{name}.json"
        file.write_text(json.dumps(config))
        result = run("check", "--loopback", "--device", f"soft:config={file}", "--quick", "--json", "--deadline", "150s",
                     seconds=170)
        failed = {row["name"] for row in result.doc["checks"] if row["status"] == "fail"}
        print(f"# {name}: {sorted(failed)}, exit {result.code}, {result.doc['wall_s']:.1f} s", flush=True)
        expect(failed == wanted, f"{sorted(failed)} instead of {sorted(wanted)}: {result.doc['error']}")
        expect(result.code == 3, str(result))

sys.exit(finish())
