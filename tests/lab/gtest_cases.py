"""Runs a gtest program and reports each of its tests as a case of the suite."""

import os
import re
import subprocess

from harness import case, expect

_END = re.compile(r"^\[ +(OK|FAILED|SKIPPED) +\] [\w./]+.* \((\d+) ms\)$", re.MULTILINE)


def run_gtest(program, *, only, prefix="", env=None, seconds=120):
    """One case per test of `program` that matches the filter `only`; its name is put behind `prefix`.

    A test that was begun and never ended (a crash, the time limit) is a failed one, and so is a
    filter that matches nothing."""
    try:
        ran = subprocess.run([program, f"--gtest_filter={only}"], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds,
                             env={**os.environ, **(env or {})}, check=False)
        output, how = ran.stdout, f"exit status {ran.returncode}"
    except subprocess.TimeoutExpired as late:
        output, how = late.stdout or b"", f"not done after {seconds} s"
    blocks = re.split(r"^\[ RUN      \] ", output.decode(errors="replace"), flags=re.MULTILINE)[1:]
    if not blocks:
        with case(f"{prefix}{only}"):
            expect(False, f"no test ran: {how}, {output[-500:]!r}")
    for block in blocks:
        name, _, rest = block.partition("\n")
        end = _END.search(rest)
        with case(prefix + name.strip(), seconds=int(end[2]) / 1000 if end else None):
            expect(end is not None, f"began and did not end: {how}, {rest[-1000:]}")
            expect(end[1] == "OK", f"{end[1]}: {rest[:end.start()]}")
        for line in rest.splitlines():
            if line.startswith("#"):
                print(line, flush=True)
    if blocks and how not in ("exit status 0", "exit status 1"):
        with case(f"{prefix}{only} ends by itself"):
            expect(False, how)
