"""Small tables, with names and values that would break a careless page, and reports on them."""

from functools import cache

import numpy as np
import pandas as pd

from promissing.estimators.mlp import PLAIN
from promissing.io import define_task
from promissing.report import gather

SCRIPT = "<script>alert(1)</script>"
LONG = 'a column "whose" name\'s long & full of <b>signs</b>, ' + "going on and on " * 8 + "and on"
TINY = {
    **PLAIN,
    **{"hidden_layer_sizes": (8,), "n_members": 2, "augment": True},
    **{"max_iter": 30, "learning_rate_init": 0.02},
}
FUSION = {
    "units": 4,
    "max_iter": 20,
    "learning_rate_init": 0.02,
    "n_members": 2,
    "early_stopping": False,
}
MODALITIES = {"blood & <i>more</i>": [SCRIPT, "crp"], "person": [LONG, "ward"]}


def nasty(n=150):
    """150 rows of which much is missing; the target is nearly the first column's sign."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            SCRIPT: rng.normal(size=n),
            "crp": rng.normal(size=n),
            LONG: rng.integers(0, 50, n).astype(float),
            "ward": rng.choice(["</script><b>x", "north\u2028", "south"], n).astype(object),
        }
    )
    score = frame[SCRIPT] + 0.5 * rng.normal(size=n)
    missing = rng.random(frame.shape) < 0.2
    missing[:30, :2] = True
    frame = frame.mask(missing)
    frame.loc[60:64, "crp"] = -999.0
    frame.insert(0, "patient", [f"P<{i:03d}>" for i in range(n)])
    return frame, score


def binary_frame():
    frame, score = nasty()
    target = pd.Series(np.where(score > 0, "yes & <b>bold</b>", "no"), dtype=object)
    return frame.assign(**{"<i>relapse</i>": target})


@cache
def binary():
    frame = binary_frame()
    problem = define_task(frame, "<i>relapse</i>")
    return gather(
        problem,
        frame=frame,
        source="patients & <co>.csv",
        strategies=("mean", "hgb"),
        folds=2,
        rows=60,
        settings=TINY,
        command="promissing report 'x<y>.csv'",
    )


@cache
def regression():
    frame, score = nasty()
    problem = define_task(frame.assign(dose=10 * score), "dose", modalities=MODALITIES)
    return gather(problem, strategies=None, folds=2, rows=20, settings=FUSION)


@cache
def several():
    frame, score = nasty()
    target = pd.cut(score, [-9, -0.5, 0.5, 9], labels=["low", "middle", "high"]).astype(object)
    problem = define_task(frame.assign(level=target), "level")
    return gather(problem, strategies=None, folds=2, rows=20, max_rows=120, settings=TINY)
