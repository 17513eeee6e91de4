"""What every document of event-vs-poll must hold, on any device: all points of all runs in turns, figures
that belong together, and sentences that say what the rows say."""

import re

from harness import expect

LOADS = 5  # closed loop, 1,000/s, 10,000/s, 80 % of busy, streaming
TIMES = ("p50_ns", "p99_ns", "p99_9_ns", "max_ns")


def of(doc, side):
    return [result for result in doc["results"] if result["side"] == side]


def mode_of(point):
    text = point["wait"] + (f":{point['spin_ns'] // 1000}us" if "spin_ns" in point else "")
    return f"{text} {point['moderation']}" if "moderation" in point else text


def load_of(point):
    if "busy_share_percent" in point:
        return f"{point['busy_share_percent']:g} % of busy"
    if "rate_per_s" in point:
        return f"{point['rate_per_s']:,.0f}/s"
    return "closed loop" if point["tx_depth"] == 1 else "streaming"


def row(doc, mode, load):
    found = [r for r in doc["modes"]["rows"] if r["mode"] == mode and r["load"].startswith(load)]
    expect(len(found) == 1, f"{len(found)} rows of {mode}, {load}")
    return found[0]


def judge_points(doc, modes, loads=LOADS):
    """Every mode under every load, as often as there are runs, on both sides; the modes of a load take turns."""
    runs = doc["plan"]["repeat"]
    for side in ("requester", "responder"):
        results = of(doc, side)
        seen = {(r["run"], load_of(r["point"]), mode_of(r["point"])) for r in results}
        expect(len(seen) == len(results) == runs * loads * len(modes), f"{side}: {len(results)} results")
        for run in range(runs):
            order = [mode_of(r["point"]) for r in results if r["run"] == run][:len(modes)]
            expect(order == (modes if run % 2 == 0 else modes[::-1]), f"run {run} ran {order}")
    for result in doc["results"]:
        cpu = result["metrics"]["cpu"]
        expect(cpu["lost_wakeups"] == 0, f"lost wake-ups: {result['point']}")
        expect(cpu["utilization"] is not None and 0 < cpu["utilization"] <= 1, str(cpu))
        expect(cpu["process_cpu_s"] >= cpu["cpu_s"] * 0.95, str(cpu))
        expect(cpu["core"] is not None, str(cpu))
        if result["point"]["wait"].startswith("busy"):
            expect(cpu["events"] == 0 and cpu["completions_per_event"] is None, str(cpu))
    checks = {check["name"]: check["status"] for check in doc["checks"]}
    expect(checks == {"lost-wakeups": "pass"}, str(checks))


def judge_rows(doc, modes, loads=LOADS):
    rows = doc["modes"]["rows"]
    expect(len(rows) == len(modes) * loads, f"{len(rows)} rows")
    for r in rows:
        times = [r[key] for key in TIMES if r[key] is not None]
        expect(times == sorted(times), f"times are not ascending: {r}")
        streams = r["load"] == "streaming"
        expect((r["samples"] == 0) == streams and (r["p50_ns"] is None) == streams, str(r))
        # A percentile that its samples cannot tell is not guessed.
        expect((r["p99_9_ns"] is not None) == (r["samples"] >= 1000), str(r))
        reference = r["mode"] == "busy" or "busy" not in modes
        expect((r["cpu_saved_percent"] is None) == reference, str(r))
        if r["p50_more_ns"] is not None and doc["plan"]["repeat"] > 1:
            difference = r["p50_more_ns"]
            expect(difference["low95"] <= difference["value"] <= difference["high95"], str(difference))
        if not streams:
            of_row = [x for x in of(doc, "requester") if mode_of(x["point"]) == r["mode"]
                      and r["load"].startswith(load_of(x["point"]))]
            expect(sum(x["metrics"]["latency"]["samples"] for x in of_row) == r["samples"], "samples of the runs")


def judge_sentences(doc):
    """The figures of a sentence are those of the rows, and it ends where the rows say that the mode stops to pay."""
    for sentence in doc["modes"]["sentences"]:
        named = re.match(r"(?:up to|at|from) [\d,.]+/s ([a-z]+(?::(?:pause|[\d.]+[num]?s))?(?: \d+:\d+us)?)[: ]", sentence)
        expect(named is not None, f"no mode in {sentence!r}")
        rows = sorted((r for r in doc["modes"]["rows"] if r["mode"] == named[1] and r["offered_per_s"]),
                      key=lambda r: r["offered_per_s"])
        pays = [r["cpu_saved_percent"]["value"] >= 10 and (r["cpu_saved_percent"]["low95"] or 1) > 0
                and r["achieved_per_s"] >= 0.95 * r["offered_per_s"] for r in rows]
        count = pays.index(False) if False in pays else len(pays)
        if count == 0:
            first = f"{rows[0]['offered_per_s']:,.0f}/s"
            expect(sentence.startswith(f"{'at' if any(pays) else 'from'} {first}"), f"{sentence!r}: {pays}")
            if any(pays):
                later = rows[pays.index(True)]
                expect(f"yet at {later['offered_per_s']:,.0f}/s" in sentence, f"{sentence!r}: {later}")
            continue
        gains = rows[:count]
        expect(f"up to {gains[-1]['offered_per_s']:,.0f}/s" in sentence, f"{sentence!r}: {gains[-1]}")
        saved = [f"{r['cpu_saved_percent']['value']:.0f}" for r in (gains[0], gains[-1])]
        text = saved[0] if saved[0] == saved[1] else " to ".join(saved)
        expect(f"saves {text} % CPU" in sentence, f"{sentence!r}: saved {saved}")
        if count < len(rows):
            expect(f"at {rows[count]['offered_per_s']:,.0f}/s it " in sentence, f"{sentence!r}: {rows[count]}")
        else:
            expect("still pays" in sentence, sentence)
    compared = {r["mode"] for r in doc["modes"]["rows"] if r["cpu_saved_percent"] and r["offered_per_s"]}
    expect(len(doc["modes"]["sentences"]) == len(compared), f"{doc['modes']['sentences']} for {compared}")


def judge_floor(doc):
    for side in ("local", "remote"):
        floor = doc[side]["jitter_floor"]
        expect(floor is not None and floor["seconds"] > 0 and floor["max_gap_ns"] > 0, f"{side}: {floor}")
        expect(floor["gaps_over_1us_per_s"] >= floor["gaps_over_10us_per_s"] >= floor["gaps_over_100us_per_s"] >= 0,
               str(floor))


def judge(doc, modes=("busy", "event", "hybrid:20us"), loads=LOADS):
    modes = list(modes)
    judge_points(doc, modes, loads)
    judge_rows(doc, modes, loads)
    judge_sentences(doc)
    judge_floor(doc)


def judge_orders(doc):
    """What must hold of any device that can sleep: waiting for events takes longer and costs less."""
    closed = {mode: row(doc, mode, "closed loop")["p50_ns"] for mode in ("busy", "event", "hybrid:20us")}
    expect(closed["busy"] < closed["event"], f"p50 in the closed loop: {closed}")
    expect(closed["hybrid:20us"] < closed["event"], f"p50 in the closed loop: {closed}")
    slow = {mode: row(doc, mode, "1,000/s") for mode in ("busy", "event", "hybrid:20us")}
    # On a host with other work a poller waits for its turn too, and a wake-up costs what it disturbs:
    # then times, and CPU of a few percent, say nothing.
    if all(doc[side]["jitter_floor"]["lost_share"] < 0.02 for side in ("local", "remote")):
        expect(slow["event"]["p50_ns"] > slow["busy"]["p50_ns"], f"p50 at 1,000/s: {slow}")
        # It spins 20 us of every millisecond and sleeps the rest.
        expect(slow["hybrid:20us"]["utilization"] > 0.8 * slow["event"]["utilization"], f"CPU at 1,000/s: {slow}")
    expect(slow["event"]["utilization"] < 0.5 * slow["busy"]["utilization"], f"CPU at 1,000/s: {slow}")
    expect(slow["hybrid:20us"]["utilization"] < 0.8 * slow["busy"]["utilization"], f"CPU at 1,000/s: {slow}")
