"""A study that trains nothing, to test the runner, and a program that runs it."""

import hashlib
import json
import multiprocessing
import os
import signal
import sys
import threading
import time
import uuid
from pathlib import Path

import numpy as np
from studies.runner import Batch, Outcome, Row, Skipped, run
from threadpoolctl import threadpool_info

SETTINGS = {"epochs": 400, "ratios": [0.1, 0.5]}


def draw(*, seed, trace=None, seconds=0.0):
    """Some numbers, after some work that does not change them."""
    if trace is not None:
        Path(trace, f"{seed}-{uuid.uuid4().hex}").touch()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        np.linalg.svd(np.ones((20, 20)))
    rng = np.random.default_rng(seed)
    rows = [
        Row("toy", "mcar", 0.5, strategy, np.int64(seed), fold, "auc", rng.random(), seconds)
        for strategy in ("zero", "mean")
        for fold in (0, 1)
    ]
    # Two threads round this product differently than one thread does.
    product = rng.normal(size=(500, 50)) @ rng.normal(size=(50, 50))
    digest = np.frombuffer(hashlib.sha256(product.tobytes()).digest(), np.uint8)
    curve = rng.normal(size=(30, 40))
    return Outcome(rows, {"digest": digest, "curve": curve, "steps": np.arange(seed)})


def hold(*, seed, trace=None, seconds=0.0):
    """Hold Python's lock for many minutes in a single call, unless `seconds` is zero."""
    if seconds:
        Path(trace, f"{seed}-{uuid.uuid4().hex}").touch()
        sum(range(10**11))
    return draw(seed=seed)


def threads(*, seed):
    return Outcome([], {"threads": np.array([lib["num_threads"] for lib in threadpool_info()])})


def scribble(*, seed, table):
    table += 1
    return Outcome([Row("toy", "", np.nan, "", seed, 0, "sum", table.sum())])


def fail(*, seed):
    raise KeyError("no such table\nand a second line")


def skip(*, seed, absent=True):
    if absent:
        raise Skipped("the table is not on this machine\nand a second line")
    return draw(seed=seed)


def crash(*, seed):
    os.kill(os.getpid(), signal.SIGKILL)


def batches(n, work=draw, **arguments):
    return [
        Batch(f"{work.__name__}/{i:03d}", work, {"seed": i, **arguments}, cost=1 + i % 3)
        for i in range(n)
    ]


def main():
    """Run the study as `OUT TRACE N SECONDS [hold] [interrupt]`, two batches at once."""
    out, trace, n, seconds, *options = sys.argv[1:]
    if "interrupt" in options:
        dawdle()
        threading.Thread(target=interrupt_early, daemon=True).start()
    summary = run(
        "toy",
        batches(int(n), hold if "hold" in options else draw),
        out,
        settings=SETTINGS,
        context={"trace": trace, "seconds": float(seconds)},
        resume=True,
        jobs=2,
    )
    print(json.dumps(summary._replace(out=str(summary.out))._asdict()))


def dawdle():
    """Make loky's thread as slow as on a busy machine: no task has reached a worker."""
    from joblib.externals.loky.process_executor import _ExecutorManagerThread as Manager

    add, wait = Manager.add_call_item_to_queue, Manager.wait_result_broken_or_wakeup
    Manager.add_call_item_to_queue = lambda self: self.executor_flags.shutdown and add(self)
    Manager.wait_result_broken_or_wakeup = lambda self: time.sleep(0.2) or wait(self)


def interrupt_early():
    """Press Ctrl-C as soon as a worker exists and before it starts to work."""
    while not multiprocessing.active_children():
        time.sleep(0.001)
    os.killpg(0, signal.SIGINT)
