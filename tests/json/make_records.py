#!/usr/bin/python3
"""Writes the documents of testdata/records: good ones, and in broken/ one per way to be wrong.

    make_records.py FOLDER

The numbers are made up from a fixed seed. Encoder and percentiles are this script's own, so that the
documents do not merely repeat what the tool believes. The layout of the good ones is the tool's: run
reporters/json_test with VERBSCOPE_UPDATE_GOLDEN=1 from the top of the tree afterwards.
"""

import copy
import json
import os
import random
import sys

from latency_records import hdr_v2, latency, times


def side(role, host, software):
    device = {
        "name": "soft" if software else "mlx5_0", "kind": "software" if software else "hardware",
        "provider": "soft" if software else "mlx5", "firmware": None if software else "20.39.3004",
        "link_layer": "Ethernet", "port": 1, "state": "ACTIVE", "active_mtu_bytes": 4096,
        "gid": {"index": 1 if software else 3, "value": "0000:0000:0000:0000:0000:ffff:0a00:0001",
                "type": "RoCE v2", "netdev": "lo" if software else "ens1f0np0"},
        "numa_node": None if software else 0, "link": "memory" if software else None,
        "icrc": "none" if software else None, "inline_bytes": 928 if software else 828,
    }
    return {
        "role": role, "host": host, "os": "Debian GNU/Linux 12 (bookworm)",
        "kernel": "6.1.0-28-amd64", "cpu": "AMD EPYC 7B13", "governor": None if software else "performance", "pinned_cpus": [2], "device": device,
        "clock": {"source": "tsc", "invariant": True, "hz": 2449999872.0, "drift_ppm": 0.21,
                  "resolution_ns": 0.408, "overhead_ns": 9.8},
        "jitter_floor": None,
    }


def plan(command, sizes, **changed):
    result = {
        "command": command, "sizes_bytes": sizes, "iterations": None, "duration_ns": 2000000000,
        "warmup_iterations": None, "warmup_ns": 200000000, "qps": 1, "tx_depth": 1, "rx_depth": 512,
        "post_list": 1, "signal_every": 0, "inline": "auto", "mtu_bytes": 0, "deadline_ns": 0,
        "flow_label": 0, "hop_limit": 64, "extend_to_ns": 0, "interval_ns": 100000000, "pkey_index": 0, "rd_atomic": 0,
        "repeat": 1, "retry_count": 6, "rnr_retry": 6, "rnr_timer_code": 12, "service_level": 0,
        "timeout_code": 14, "traffic_class": 0, "imm": False, "bidirectional": False,
        "verify": False, "atomic_op": "fetch-add", "rate_per_s": 0.0, "arrival": "fixed",
        "quick": False, "timer_codes": [], "modes": [], "rates_per_s": [], "busy_shares_percent": [],
        "moderations": [], "p99_limit_ns": 0, "cqs": [], "cq_depths": [], "changes": [],
    }
    result.update(changed)
    return result


def document(command, **members):
    result = {
        "schema_version": 1, "tool": {"name": "verbscope", "version": "0.1.0", "build": "opt g++ 12"},
        "command": command, "argv": ["verbscope", command, "node-b"],
        "started_at": "2026-11-29T12:00:00Z", "wall_s": 2.314, "verdict": "pass", "exit_code": 0,
        "loopback": False, "path_mtu_bytes": 4096, "plan": {"changes": []},
        "local": side("requester", "node-a", False), "remote": side("responder", "node-b", False),
        "results": [], "checks": [], "gates": [], "notices": [], "error": None,
    }
    result.update(members)
    return result


def result(op, size, metrics, **members):
    metrics.setdefault("counters", {})
    value = {"point": {"op": op, "size_bytes": size, "qps": 1, "wait": "busy"}, "side": "requester",
             "run": 0, "complete": True, "metrics": metrics, "intervals": []}
    value.update(members)
    return value


def cpu(seconds, share, messages, **members):
    value = {"cpu_s": seconds, "utilization": share, "us_per_message": seconds * 1e6 / messages,
             "voluntary_switches": 0, "involuntary_switches": 14, "events": 0, "empty_wakeups": 0,
             "lost_wakeups": 0, "completions_per_event": None, "process_cpu_s": seconds * 1.02,
             "run_delay_s": 0.00031, "core": 2, "vector_core": None}
    value.update(members)
    return value


def send_lat(rng):
    samples = times(rng, 20000, 1020)
    rows = []
    for i in range(20):
        part = sorted(samples[i * 1000:(i + 1) * 1000])
        rows.append({"from_s": round(i * 0.1, 3), "to_s": round(i * 0.1 + 0.1, 3), "messages": 1000,
                     "p50_ns": part[499], "p99_ns": part[989], "max_ns": part[-1],
                     "gbit_per_s": None})
    metrics = {"latency": latency(samples), "warmup": latency(times(rng, 200, 1100)),
               "load": {"offered_per_s": None, "achieved_per_s": 486381.0, "late_sends": None},
               "cpu": cpu(1.998, 0.999, 20000),
               "counters": {"out_of_sequence": 0, "rnr_nak_retry_err": 0}}
    return document("send-lat", plan=plan("send-lat", [64]),
                    results=[result("send", 64, metrics, intervals=rows)])


def sweep(rng):
    changes = [{"field": "rx_depth", "asked": "512", "used": "256",
                "why": "the device takes at most 256 work requests per queue"}]
    results = []
    for size in (1, 64, 4096, 1048576):
        samples = times(rng, 1500, 700 + size // 8)
        results.append(result("write", size, {"latency": latency(samples, ended_by="payload_poll")}))
    return document("write-lat", loopback=True, argv=["verbscope", "write-lat", "--loopback"],
                    plan=plan("write-lat", [1, 64, 4096, 1048576], rx_depth=256, changes=changes),
                    local=side("requester", "node-a", True), remote=side("responder", "node-a", True),
                    results=results, notices=["no RDMA device here: the soft device was taken"])


def write_bw():
    sizes, results = [65536, 1048576], []
    for size, messages in zip(sizes, (186000, 11700)):
        metrics = {"bandwidth": {
            "bytes": size * messages, "messages": messages, "seconds": 2.0,
            "gbit_per_s": size * messages * 8 / 2.0 / 1e9, "msg_per_s": messages / 2.0},
            "cpu": cpu(1.4, 0.7, messages)}
        results.append(result("write", size, metrics))
    return document("write-bw", plan=plan("write-bw", sizes, tx_depth=128), results=results)


def modes(rng):
    floor = {"seconds": 0.5, "max_gap_ns": 38412, "gaps_over_1us_per_s": 254.0,
             "gaps_over_10us_per_s": 4.0, "gaps_over_100us_per_s": 0.0, "lost_share": 0.0011}
    results, rows = [], []
    for mode, ns, share in (("busy", 1900, 1.0), ("event", 8200, 0.043)):
        samples = times(rng, 800, ns)
        point = {"op": "send", "size_bytes": 64, "qps": 1, "wait": mode, "rate_per_s": 1000.0,
                 "tx_depth": 2048}
        events = 0 if mode == "busy" else 800
        load = {"offered_per_s": 1000.0, "achieved_per_s": 1000.0, "late_sends": 0}
        metrics = {"latency": latency(samples, "response_time"), "load": load,
                   "cpu": cpu(0.8 * share, share, 800, events=events,
                              completions_per_event=1.0 if events else None)}
        results.append(result("send", 64, metrics, point=point))
        values = metrics["latency"]["percentiles_ns"]
        rows.append({
            "load": "1,000/s", "mode": mode, "offered_per_s": 1000.0, "achieved_per_s": 1000.0,
            "samples": 800, "p50_ns": values["50"], "p99_ns": values["99"], "p99_9_ns": None,
            "max_ns": max(samples), "utilization": share, "us_per_message": 1000 * share,
            "completions_per_event": 1.0 if events else None, "lost_wakeups": 0,
            "p50_more_ns": None, "cpu_saved_percent": None})
    rows[1]["p50_more_ns"] = {"value": 6300.0, "low95": None, "high95": None}
    rows[1]["cpu_saved_percent"] = {"value": 95.7, "low95": 94.9, "high95": 96.5}
    check = {"name": "lost-wakeups", "status": "pass", "expected": "no lost wake-up",
             "observed": "0 lost of 800 events", "why": None, "source": "ibv_get_cq_event(3)"}
    value = document("event-vs-poll", results=results, checks=[check], plan=plan(
        "event-vs-poll", [64], tx_depth=2048, rx_depth=2048, duration_ns=800000000,
        modes=["busy", "event"], rates_per_s=[1000.0], moderations=["16:8us"],
        busy_shares_percent=[80.0], p99_limit_ns=20000))
    value["local"]["jitter_floor"] = floor
    value["remote"]["jitter_floor"] = dict(floor, max_gap_ns=912000, gaps_over_100us_per_s=2.0)
    value["modes"] = {
        "busy_sustains_per_s": 812345.5, "rows": rows,
        "unsuited": ["event 16:8us, 1,000/s: ibv_modify_cq is not offered for mlx5_0"],
        "sentences": ["up to 1,000/s event costs +6.3 us p50 and saves 96 % CPU; it still pays at the "
                      "highest rate measured"],
        "advice": ["least CPU: event (4.3 % of one CPU at 1,000/s)"]}
    return value


def few_samples(rng):
    wait = {"op": "send", "size_bytes": 64, "qps": 1, "wait": "event"}
    metrics = {"latency": latency(times(rng, 150, 6200, 0.1, 0.02)),
               "cpu": cpu(0.012, 0.31, 150, voluntary_switches=150, events=150, empty_wakeups=3,
                          lost_wakeups=1, completions_per_event=1.0)}
    outcome = {"status": "inconclusive", "observed": None, "bound": None, "limit": 10000,
               "samples": 150, "effective_samples": 120, "samples_needed": 3744, "why": None}
    gates = [{"expression": "p99.9<10us", "unit": "ns", **outcome,
              "results": [{"point": wait, "side": "requester", "run": 0, **outcome}]},
             {"expression": "lost_wakeups<=1", "unit": None, "status": "pass", "observed": 1,
              "bound": 1, "limit": 1, "samples": None, "effective_samples": None,
              "samples_needed": None, "why": None, "results": []}]
    return document("send-lat", verdict="inconclusive", exit_code=4, gates=gates,
                    plan=plan("send-lat", [64], iterations=150),
                    results=[result("send", 64, metrics, point=wait)])


def compare():
    point = {"op": "send", "size_bytes": 64, "qps": 1, "wait": "busy", "tx_depth": 1}

    def row(metric, unit, base, new, verdict, **members):
        value = {"point": point, "side": "requester", "metric": metric, "unit": unit, "gated": True,
                 "base_runs": 10, "new_runs": 10, "base": base, "new": new, "ratio": new / base,
                 "ratio_low": new / base * 0.99, "ratio_high": new / base * 1.01, "margin": 0.03,
                 "p_worse": 0.9, "verdict": verdict, "runs_needed": None, "why": None}
        value.update(members)
        return value
    comparison = {
        "base": "base.json", "new": "new.json",
        "environment": [{"field": "local.device.firmware", "base": "20.39.3004", "new": "20.40.1000"}],
        "parameters": [],
        "rows": [row("p50", "ns", 1500.0, 1502.0, "same"),
                 row("p99", "ns", 2100.0, 2310.0, "worse", p_worse=0.0002),
                 row("p99.9", "ns", 4000.0, 4300.0, "undecided", ratio_low=0.95, ratio_high=1.2,
                     p_worse=0.2, runs_needed=28),
                 row("mean", "ns", 1530.0, 1533.0, "same", gated=False)],
        "shifts": [{"point": point, "side": "requester", "percent": percent, "base_ns": base,
                    "new_ns": new}
                   for percent, base, new in (("10", 1450, 1452), ("50", 1500, 1502),
                                              ("99", 2100, 2310), ("99.9", 4000, 4300))],
        "causes": ["out_of_sequence of the responder: 0 -> 812 per run"],
        "unmatched": ["send 128 bytes, 1 QP, wait busy, 1 in flight is in the base only"]}
    value = document("compare", verdict="fail", exit_code=3, remote=None, path_mtu_bytes=None)
    value["local"].update(role="local", device=None, clock=None, pinned_cpus=[])
    value["comparison"] = comparison
    return value


def broken_run(rng):
    error = {"class": "run", "side": "local",
             "message": "a SEND of 64 bytes failed after 3000 round trips",
             "cause": "the peer stopped answering: its process ended, or the link went down",
             "next_step": "look at the end of the output of verbscope serve on node-b",
             "status": "RETRY_EXC_ERR", "errno": None}
    metrics = {"latency": latency(times(rng, 3000, 1500))}
    return document("send-lat", verdict="error", exit_code=5, error=error, wall_s=0.9,
                    plan=plan("send-lat", [64]),
                    results=[result("send", 64, metrics, complete=False)])


def no_device():
    error = {"class": "setup", "side": "local", "message": "there is no RDMA device on this host",
             "cause": None, "next_step": "add --device soft to measure the software device",
             "status": None, "errno": None}
    local = side("requester", "node-a", True)
    local.update(device=None, clock=None, pinned_cpus=[])
    return document("read-lat", verdict="error", exit_code=2, error=error, local=local, remote=None,
                    path_mtu_bytes=None, wall_s=0.01)


def check():
    def row(name, status, **members):
        value = {"name": name, "status": status, "expected": None, "observed": None, "why": None,
                 "source": None}
        value.update(members)
        return value
    rows = [
        row("flush", "pass", expected="WR_FLUSH_ERR in order", observed="WR_FLUSH_ERR in order"),
        row("short-recv", "deviation", expected="LOC_LEN_ERR", observed="LOC_PROT_ERR",
            why="rxe of kernel 6.1 copies before it compares lengths", source="IBTA vol. 1, 9.9.3"),
        row("bad-wr", "fail", expected="ENOMEM at the third request", observed="0",
            source="ibv_post_send(3)"),
        row("moderation", "skip", why="the device has no completion moderation"),
    ]
    return document("check", verdict="fail", exit_code=3, checks=rows, plan=plan("check", [64]))


def devices():
    limits = {"max_qp_wr": 1048576, "max_sge": 32, "max_cqe": 32767, "max_qp": 1048560,
              "max_cq": 1048576, "max_mr": 524287, "max_pd": 1048576, "max_srq": 917503,
              "max_mr_bytes": 9223372036854775807, "max_rd_atomic_initiator": 128,
              "max_rd_atomic_responder": 128, "comp_vectors": 2, "atomics": True}
    port = {"number": 1, "state": "ACTIVE", "link_layer": "Ethernet", "active_mtu_bytes": 1024,
            "max_mtu_bytes": 4096, "max_message_bytes": 8388608, "gbit_per_s": 2.5, "lid": 0,
            "sm_lid": 0, "gids": [
                {"index": 0, "value": "fe80:0000:0000:0000:0000:00ff:fe00:0001", "type": "RoCE v2",
                 "netdev": "v0"},
                {"index": 1, "value": "0000:0000:0000:0000:0000:ffff:0a00:0001", "type": "RoCE v2",
                 "netdev": "v0"}]}
    infiniband = dict(port, number=2, state="DOWN", link_layer="InfiniBand", gids=[], lid=7, sm_lid=1)
    good = {"name": "rxe0", "kind": "software", "provider": "rxe", "firmware": None,
            "numa_node": None, "vendor_id": 0, "vendor_part_id": 0, "limits": limits,
            "ports": [port, infiniband], "error": None}
    error = {"class": "setup", "side": "local", "message": "open(/dev/infiniband/uverbs1) failed: "
             "Permission denied", "cause": "the file belongs to root",
             "next_step": "run as root or change the file's group", "status": None, "errno": 13}
    bad = {"name": "mlx5_1", "kind": None, "provider": None, "firmware": None, "numa_node": None,
           "vendor_id": None, "vendor_part_id": None, "limits": None, "ports": [], "error": error}
    local = side("local", "node-a", True)
    local.update(device=None, clock=None, pinned_cpus=[])
    return document("devices", argv=["verbscope", "devices"], local=local, remote=None,
                    path_mtu_bytes=None, devices=[good, bad], wall_s=0.004)


def resources():
    """devices --resources: one of each kind, of a process and of the kernel."""
    def row(kind, number, **members):
        value = dict.fromkeys(("kind", "id", "owner", "pid", "name", "context", "pd", "port", "type", "state", "rqpn",
                               "rq_psn", "sq_psn", "cqe", "users", "poll_context", "length_bytes", "rkey", "lkey"))
        value.update(kind=kind, id=number, **members)
        return value
    user = {"owner": "user", "pid": 4711, "name": "verbscope"}
    kernel = {"owner": "kernel", "name": "ib_core"}
    objects = [
        row("context", 0, **user), row("pd", 1, **kernel, users=2), row("pd", 5, **user, users=3, context=0),
        row("cq", 1, **kernel, cqe=1023, users=2, poll_context="unbound-workqueue"),
        row("cq", 6, **user, cqe=1024, users=2, context=0),
        row("qp", 1, **kernel, port=1, type="GSI", state="RTS", pd=1, sq_psn=0),
        row("qp", 17, **user, port=1, type="RC", state="RTS", pd=5, rqpn=18, rq_psn=1201, sq_psn=7733),
        row("mr", 9, **user, pd=5, length_bytes=65536, rkey=6699, lkey=6699)]
    document_ = devices()
    document_.update(argv=["verbscope", "devices", "--resources"], resources=[
        {"device": "rxe0", "objects": objects, "unknown": ["srq"]}])
    return document_


def doctor():
    def row(name, status, about, value, **members):
        value = {"name": name, "status": status, "about": about, "value": value, "file": None,
                 "good": "as it should be", "symptom": None, "fix": None}
        value.update(members)
        return value
    rows = [
        row("devices", "ok", "host", "mlx5_0", file="/sys/class/infiniband"),
        row("device-file", "ok", "mlx5_0", "uverbs0", file="/dev/infiniband/uverbs0"),
        row("memlock", "fail", "host", "64 KiB", file="/proc/self/limits", good="unlimited",
            symptom="ENOMEM from ibv_reg_mr, ibv_create_cq or ibv_create_qp with memory to spare",
            fix="ulimit -l unlimited where the process starts"),
        row("port-state", "ok", "mlx5_0 port 1", "4: ACTIVE, 5: LinkUp", file="/sys/class/infiniband/mlx5_0/ports/1/state"),
        row("netdev-mtu", "warn", "mlx5_0 port 1", "1500, so RoCE packets carry 1024 bytes at most",
            file="/sys/class/net/ens1f0np0/mtu", good="4200 or more", symptom="less bandwidth",
            fix="ip link set ens1f0np0 mtu 9000, on both hosts and every switch port between"),
        row("pfc-dscp-pause", "skip", "mlx5_0 port 1", "not in files: dcb pfc show dev ens1f0np0"),
        row("governor", "ok", "host", "performance"),
    ]
    local = side("local", "node-a", True)
    local.update(device=None, clock=None, pinned_cpus=[])
    return document("doctor", argv=["verbscope", "doctor"], local=local, remote=None, path_mtu_bytes=None,
                    verdict="fail", exit_code=3, preflight=rows, wall_s=0.02)


def broken(rng):
    """Name and text of documents with one fault each; see validate_test.py for what names it."""
    good = document("send-lat", plan=plan("send-lat", [64]), results=[
        result("send", 64, {"latency": latency(times(rng, 120, 1000, 0.01, 0.01))})])
    text = json.dumps(good, indent=1)

    def changed(change):
        value = copy.deepcopy(good)
        change(value)
        return json.dumps(value, indent=1)

    def lat(value):
        return value["results"][0]["metrics"]["latency"]

    other = hdr_v2({500: 120})
    return {
        "empty": "",
        "truncated": text[:-2],
        "two-documents": text + "\n" + text,
        "text-before": "measuring ...\n" + text,
        "nan": text.replace('"wall_s": 2.314', '"wall_s": NaN'),
        "infinite": text.replace('"wall_s": 2.314', '"wall_s": 1e999'),
        "repeated-key": text.replace('"wall_s": 2.314', '"wall_s": 2.314, "wall_s": 1'),
        "missing-key": changed(lambda v: v.pop("gates")),
        "wrong-exit-code": changed(lambda v: v.update(exit_code=2)),
        "error-without-error": changed(lambda v: v.update(verdict="error", exit_code=5)),
        "bucket-sum": changed(lambda v: lat(v).update(samples=121)),
        "percentile-above-max": changed(
            lambda v: lat(v)["percentiles_ns"].update({"99": lat(v)["max_ns"] + 1})),
        "hdr-differs": changed(lambda v: lat(v)["histogram"].update(hdr_v2=other)),
        "size-lost": changed(lambda v: v["plan"].update(sizes_bytes=[64, 128])),
    }


def write(folder, name, text):
    with open(os.path.join(folder, name + ".json"), "w", encoding="utf-8") as file:
        file.write(text)


def main():
    rng = random.Random(1)
    folder = sys.argv[1]
    good = {"send-lat": send_lat(rng), "sweep": sweep(rng), "write-bw": write_bw(),
            "few-samples": few_samples(rng), "broken-run": broken_run(rng), "no-device": no_device(),
            "check": check(), "devices": devices(), "resources": resources(), "doctor": doctor(), "modes": modes(rng),
            "compare": compare()}
    for name, value in good.items():
        write(folder, name, json.dumps(value, indent=1) + "\n")
    for name, text in broken(rng).items():
        write(os.path.join(folder, "broken"), name, text)


if __name__ == "__main__":
    main()
