"""A study from the command line that is killed during the run and resumed."""

import os
import signal
import subprocess
import sys
import time


def finished(out):
    """The number of finished batches."""
    return len(list(out.glob("batches/*.npz")))


def kill_and_resume(arguments, out):
    """Run `python -m studies ...`, kill it after its first batch, and resume it."""
    command = [sys.executable, "-m", "studies", *map(str, arguments)]
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
