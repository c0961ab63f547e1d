"""A study from the command line, killed in the middle and resumed."""

import os
import signal
import sqlite3
import subprocess
import sys
import time


def finished(out):
    """How many batches the results hold."""
    if not (out / "results.sqlite").exists():
        return 0
    with sqlite3.connect(out / "results.sqlite", timeout=30) as connection:
        try:
            return connection.execute("select count(*) from batches").fetchone()[0]
        except sqlite3.OperationalError:  # Not yet made.
            return 0


def kill_and_resume(arguments, out):
    """Run `promissing experiment ...`, kill it after its first batch, and go on with it."""
    command = [sys.executable, "-m", "promissing", "experiment", *map(str, arguments)]
    process = subprocess.Popen(
        [*command, "--out", out], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 120
    while finished(out) == 0 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = finished(out)
    assert before > 0
    subprocess.run([*command, "--out", out, "--resume"], check=True, capture_output=True)
    return before
