"""Common ground of the suites that run inside the lab (or anywhere with an RDMA device).

A suite is a Python script: it starts real verbscope processes, looks at exit codes, streams and
documents, and prints one line per case, "ok NAME" or "FAIL NAME: why". Every document it
reads is kept in $LAB_OUT/documents and judged there by tests/json/validate.py. Only processes started here are ever
signalled, by their id.
"""

import contextlib
import functools
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
ADDRESS = "10.9.0.1"  # of the lab's rxe device
BINARY = os.environ.get("VERBSCOPE_BIN", "verbscope")

# Documents go here, for the project's validator to judge on the host: it shares no code with the
# program, and is slow on an emulated CPU.
DOCUMENTS = pathlib.Path(os.environ.get("LAB_OUT", tempfile.gettempdir())) / "documents"
DOCUMENTS.mkdir(exist_ok=True)

_failed = 0
_passed = 0


class Failure(Exception):
    """A condition of a case that did not hold."""


def expect(condition, why):
    if not condition:
        raise Failure(why)


@contextlib.contextmanager
def case(name, seconds=None):
    """Runs a block as one case; a failing case does not end the suite. `seconds`: what it took, if that is
    known from elsewhere."""
    global _failed, _passed
    start = time.monotonic()
    try:
        yield
    except Exception as problem:  # noqa: BLE001: whatever went wrong is the case's "why"
        _failed += 1
        text = " ".join(str(problem).split())
        print(f"FAIL {name}: {type(problem).__name__ if not text else text}"[:1500], flush=True)
    else:
        _passed += 1
        took = time.monotonic() - start if seconds is None else seconds
        print(f"ok {name} ({took:.1f} s)", flush=True)


def finish():
    print(f"{_passed} passed, {_failed} failed", flush=True)
    sys.exit(1 if _failed else 0)


def _no_constant(name):
    raise Failure(f"{name} is not JSON")


def document(text):
    """Parses exactly one document and keeps it for the validator."""
    number = len(list(DOCUMENTS.iterdir()))
    (DOCUMENTS / f"{pathlib.Path(sys.argv[0]).stem}-{number:03}.json").write_text(text, encoding="utf-8")
    try:
        return json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as problem:
        raise Failure(f"not one JSON document: {problem}; it begins {text[:200]!r}") from None


class Finished:
    """A process that has ended."""

    def __init__(self, code, out, err, seconds):
        self.code, self.out, self.err, self.seconds = code, out, err, seconds

    @functools.cached_property
    def doc(self):
        return document(self.out)

    def __str__(self):
        return f"exit {self.code} after {self.seconds:.1f} s, stderr {self.err[-600:]!r}"


class Process:
    """A running verbscope. Its streams go to files, so that nothing it prints can block it."""

    def __init__(self, *args, prefix=(), env=None, preexec=None):
        self._out = tempfile.TemporaryFile(mode="w+")
        self._err = tempfile.TemporaryFile(mode="w+")
        self._start = time.monotonic()
        environment = dict(os.environ, **(env or {}))
        self.process = subprocess.Popen(
            [*prefix, BINARY, *map(str, args)], stdin=subprocess.DEVNULL, stdout=self._out,
            stderr=self._err, env=environment, preexec_fn=preexec)

    @property
    def pid(self):
        return self.process.pid

    def _read(self, file):
        file.seek(0)
        return file.read()

    def err(self):
        return self._read(self._err)

    def out(self):
        return self._read(self._out)

    def signal(self, number):
        self.process.send_signal(number)

    def await_text(self, text, seconds=20, stream="err"):
        """Waits until the process has printed `text`."""
        end = time.monotonic() + seconds
        while text not in (self.err() if stream == "err" else self.out()):
            expect(self.process.poll() is None, f"ended before it said {text!r}: {self.err()}")
            expect(time.monotonic() < end, f"did not say {text!r} in {seconds} s: {self.err()}")
            time.sleep(0.02)
        return self

    def wait(self, seconds=60):
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise Failure(f"still running after {seconds} s: {self.err()[-600:]}") from None
        return Finished(code, self.out(), self.err(), time.monotonic() - self._start)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def run(*args, seconds=60, **options):
    with Process(*args, **options) as process:
        return process.wait(seconds)


_port = 18600


def next_port():
    """A control port of its own for each case, so that no case waits for another's socket."""
    global _port
    _port += 1
    return _port


@contextlib.contextmanager
def server(*args, port=None, **options):
    """A `serve` that listens. Yields (process, port)."""
    port = port or next_port()
    with Process("serve", "--port", port, *args, **options) as process:
        process.await_text("serving on")
        yield process, port


def latency(doc, side):
    """The latency groups of one side, in the order of the results."""
    return [r["metrics"]["latency"] for r in doc["results"] if r["side"] == side]


def agreed(doc, side):
    """The results of a side as both documents have them: its samples cut by time stay with their side."""
    results = [json.loads(json.dumps(result)) for result in doc["results"] if result["side"] == side]
    for result in results:
        for group in ("latency", "warmup"):
            result["metrics"].get(group, {"histogram": {}})["histogram"].pop("blocks", None)
    return results


def memlock(limit):
    """For preexec: a locked-memory limit in bytes."""
    return lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (limit, limit))


__all__ = ["ADDRESS", "BINARY", "DOCUMENTS", "Failure", "Finished", "Process", "ROOT", "agreed", "case", "document",
           "expect", "finish", "latency", "memlock", "next_port", "run", "server", "signal"]
