#!/usr/bin/python3
"""The command line on this host, which need not have an RDMA device: exit codes, streams, documents,
and tools/run. What needs a device is in tests/lab. Budget: 2 minutes.

Prints "ok NAME" or "FAIL NAME: why" for each case; exit status 1 if any failed."""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lab"))
os.environ.setdefault("VERBSCOPE_BIN", str(ROOT / "bazel-bin/cmd/verbscope"))
os.environ.setdefault("LAB_OUT", tempfile.mkdtemp())

from harness import *  # noqa: E402

HAS_DEVICE = bool(list(pathlib.Path("/sys/class/infiniband").glob("*")))


def tools_run(*args):
    return subprocess.run([ROOT / "tools/run", *args], capture_output=True, text=True, timeout=600)


def failed(result, code, *words):
    expect(result.code == code, f"code {result.code}, not {code}: {result}")
    doc = result.doc
    expect(doc["exit_code"] == code and doc["verdict"] == "error", "the document's verdict")
    expect(doc["error"]["next_step"], "no next step")
    errors = [line for line in result.err.splitlines() if "error:" in line]
    expect(len(errors) == 1, f"not one error line: {result.err!r}")
    for word in words:
        expect(word in result.err, f"{word!r} is not in {result.err!r}")


with case("HelpAndVersionGoToStandardOutputWithCode0"):
    for args in (("--help",), ("send-lat", "--help"), ("serve", "--help"), ("--version",)):
        result = run(*args)
        expect(result.code == 0 and "verbscope" in result.out and not result.err, str(result))

if not HAS_DEVICE:
    with case("WithoutADeviceAPeerIsRefusedWithCode2AndTheSoftDeviceNamed"):
        failed(run("send-lat", "127.0.0.1", "--json"), 2, "no RDMA device on this host",
               "--device soft", "rdma link")
        failed(run("serve", "--once", "--json"), 2, "no RDMA device on this host", "--device soft")

    with case("WithoutADeviceDevicesShowsTheSoftOneAndSaysSo"):
        result = run("devices", "--json")
        expect(result.code == 0, str(result))
        expect([d["name"] for d in result.doc["devices"]] == ["soft"], "the list")
        expect(any("no RDMA device" in notice for notice in result.doc["notices"]), "the notice")

    with case("AFailureWithoutJsonLeavesStandardOutputEmpty"):
        result = run("send-lat", "127.0.0.1")
        expect(result.code == 2 and result.out == "" and "error:" in result.err, str(result))

with case("UsageErrorsAreCode1WithADocument"):
    for args, word in ((("send-lat",), "HOST"), (("send-lat", "--loopback", "-s"), "--size"),
                       (("send-lat", "--loopback", "-s", "1.5"), "1.5"),
                       (("send-lat", "--loopback", "-n", "0"), "iterations (-n)"),
                       (("send-lat", "--loopback", "-n", "5", "-D", "1s"), "--duration"),
                       (("send-lat", "--loopback", "--timeout", "0"), "--timeout"),
                       (("send-lat", "--loopback", "--wait", "hybrid"), "hybrid"),
                       (("send-lat", "--loopback", "--peer", "colour=red"), "colour"),
                       (("send-lat", "--loopback", "--cpu", "9-1"), "9-1"),
                       (("send-lat", "--loopback", "-q", "2"), "--qps"),
                       (("read-lat",), "HOST"), (("read-lat", "--loopback", "-t", "2"), "--tx-depth"),
                       (("read-lat", "--loopback", "--wait", "solicited"), "--wait event"),
                       (("read-lat", "--loopback", "-I", "64"), "--inline"),
                       (("imm",), "HOST"), (("imm", "--loopback", "-s", "1:4"), "--size"),
                       (("imm", "--loopback", "-D", "1s"), "-D"),
                       (("imm", "--loopback", "--wait", "event"), "--wait"),
                       (("imm", "--loopback", "-n", "0"), "iterations (-n)"),
                       (("write-lat", "--loopback", "-e"), "--imm"),
                       (("write-lat", "--loopback", "--peer", "wait=event"), "--imm"),
                       (("read-bw", "--loopback", "-b", "--peer", "wait=solicited"), "--wait event"),
                       (("imm", "--loopback", "--peer", "wait=event"), "--wait"),
                       (("send-bw", "--loopback", "--rate", "5"), "--rate"),
                       (("send-lat", "--loopback", "--rate", "nan"), "--rate"),
                       (("send-lat", "--loopback", "--rate", "0.01"), "no message is due"),
                       (("send-lat", "--loopback", "--rate", "1K", "-n", "5000000", "--deadline", "1s"), "--deadline"),
                       (("send-lat", "--loopback", "--arrival", "poisson"), "--rate"),
                       (("send-lat", "--loopback", "-b"), "--bidirectional"),
                       (("read-bw", "--loopback", "--imm"), "--imm"),
                       (("atomic-lat", "--loopback", "-s", "16"), "--size"),
                       (("atomic-lat", "--loopback", "--op", "xor"), "xor"),
                       (("write-bw", "--loopback", "-t", "4", "-l", "5"), "post_list"),
                       (("zero-len-recv",), "HOST"),
                       (("zero-len-recv", "--loopback", "-s", "0"), "--size 0"),
                       (("zero-len-recv", "--loopback", "--repeat", "2"), "--repeat"),
                       (("send-lat", "a", "b"), "b"), (("nonsense",), "nonsense"), ((), "command")):
        failed(run(*args, "--json") if "-s" not in args[-1:] else run(args[0], "--json", *args[1:]),
               1, word)

with case("RnrTestRefusesCodesThatAreNoneAndTimesThatDoNotFit"):
    for args, word in ((("--timer-codes", "32"), "'32'"), (("--timer-codes", "1,,2"), "0 to 31"),
                       (("--timer-codes", ""), "--timer-codes"),
                       (("--timer-codes", "all", "--deadline", "5s"), "fewer --timer-codes"),
                       (("--timer-codes", "0", "--deadline", "1s"), "shorter than the plan"),
                       (("-s", "0"), "1 byte or more"), (("-q", "2"), "-q"),
                       (("--wait", "event"), "--wait")):
        failed(run("rnr-test", "--loopback", "--device", "soft", *args, "--json"), 1, word)
    failed(run("rnr-test", "--json"), 1, "HOST")

with case("TheDocumentCanGoToAFileBesideTheText"):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "document.json")
        result = run("devices", "--json-file", path)
        with open(path, encoding="utf-8") as file:
            doc = document(file.read())
        expect(doc["exit_code"] == result.code, "exit code in the file")
        expect(os.listdir(folder) == ["document.json"], f"left behind: {os.listdir(folder)}")

with case("AFileThatCannotBeWrittenIsSaid"):
    result = run("devices", "--json-file", "/no/such/folder/x.json")
    expect(result.code != 0 and "/no/such/folder/x.json" in result.err, str(result))

with case("AFileThatCannotBeWrittenIsSaidBeforeTheRun"):
    with tempfile.TemporaryDirectory() as folder:
        for path in ("/no/such/folder/x.json", folder, "/proc/x.json"):
            begin = time.monotonic()
            result = run("send-lat", "--loopback", "--device", "soft", "-D", "20s", "--json",
                         "--json-file", path)
            failed(result, 1, path)
            expect(time.monotonic() - begin < 10, "the run was made first")

with case("AClosedStandardOutputIsNoSuccess"):
    for args in (("--json",), ()):
        closed = subprocess.run([BINARY, "devices", *args], check=False, stderr=subprocess.PIPE,
                                preexec_fn=lambda: os.close(1))
        expect(closed.returncode == 1, f"code {closed.returncode}")
        expect(b"standard output" in closed.stderr, str(closed.stderr))

with case("APipeThatNobodyReadsAndAnEmptyNameAreRefused"):
    with tempfile.TemporaryDirectory() as folder:
        pipe = os.path.join(folder, "pipe")
        os.mkfifo(pipe)
        result = run("devices", "--json-file", pipe, seconds=20)
        expect(result.code == 1 and pipe in result.err, str(result))
        result = run("send-lat", "--loopback", "--device", f"soft:pcap={pipe}", "-n", "10", "--json",
                     seconds=20)
        expect(result.code == 2 and pipe in result.err, str(result))
    failed(run("devices", "--json", "--json-file", ""), 1, "--json-file")

with case("EveryByteOfArgvSurvivesInTheDocument"):
    result = run("send-lat", "--loopback", "--device", 'we"ird\\\n\x7f', "--json")
    expect(result.code == 2, str(result))
    expect('we"ird\\\n\x7f' in result.doc["argv"], "argv")
    raw = subprocess.run([BINARY, "send-lat", "--loopback", b"--device", b"\xff\xfe", "--json"],
                         capture_output=True, check=False)
    document(raw.stdout.decode("utf-8"))  # not UTF-8 in, UTF-8 out

with case("ToolsRunPrintsNothingOfItsOwnAndKeepsTheExitCode"):
    tools_run("--version")  # the first one may build
    for args in (("--version",), ("send-lat",), ("devices", "--json")):
        direct, wrapped = run(*args), tools_run(*args)
        expect(wrapped.returncode == direct.code, f"{args}: code {wrapped.returncode}")
        strip = lambda text: [line for line in text.splitlines()  # noqa: E731
                              if not any(k in line for k in ("started_at", "wall_s", "argv"))]
        expect(strip(wrapped.stdout) == strip(direct.out), f"{args}: output differs")

with case("ToolsRunStartsWarmWithinHalfASecondOfTheBinary"):
    def seconds(command):
        start = time.monotonic()
        subprocess.run(command, capture_output=True, check=True)
        return time.monotonic() - start

    wrapped = statistics.median(seconds([ROOT / "tools/run", "--version"]) for _ in range(5))
    direct = statistics.median(seconds([BINARY, "--version"]) for _ in range(5))
    print(f"# tools/run {wrapped * 1000:.0f} ms, binary {direct * 1000:.0f} ms", flush=True)
    expect(wrapped - direct <= 0.5, f"{wrapped:.3f} s against {direct:.3f} s")

with case("SetupIsIdempotentAndQuiet"):
    result = subprocess.run([ROOT / "tools/setup", "build", "test"], capture_output=True, text=True,
                            check=False)
    expect(result.returncode == 0 and not result.stdout and not result.stderr, str(result))

with case("EveryDocumentIsValid"):
    files = sorted(map(str, DOCUMENTS.iterdir()))
    expect(len(files) > 15, f"only {len(files)} documents")
    judged = subprocess.run([ROOT / "tests/json/validate.py", *files], capture_output=True, text=True,
                            check=False)
    expect(judged.returncode == 0, judged.stdout + judged.stderr)

finish()
