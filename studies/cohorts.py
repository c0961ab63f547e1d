"""`python -m studies.cohorts`: how the result of the clinical study depends on its cohort.

The cohort of the study is one draw of `make_cohort`. This repeats one round of its 10-fold
cross-validation on cohorts of other seeds. It prints the AUC of some strategies on each cohort,
their means, and the difference between mPROMISSING and KNN by seed.
"""

from __future__ import annotations

import numpy as np

from promissing import datasets
from studies import clinical

NAMES = ("drop-features", "knn", "promissing", "mpromissing", "hgb")
SEEDS = range(5)


def main() -> None:
    print(f"{'cohort':10}" + "".join(f"{name:>15}" for name in NAMES), flush=True)
    found = []
    for seed in SEEDS:
        cohort = datasets.make_cohort(random_state=seed)
        table = cohort.X, cohort.y.to_numpy(), cohort.modalities
        aucs = []
        for name in NAMES:
            rows = clinical.validate("cohort", name, table, 0, 10, 200, 0)
            aucs.append(np.mean([row.value for row in rows if row.metric == "auc"]))
        found.append(aucs)
        print(f"{seed:<10}" + "".join(f"{auc:15.3f}" for auc in aucs), flush=True)
    means = np.mean(found, axis=0)
    print(f"{'mean':10}" + "".join(f"{auc:15.3f}" for auc in means))
    gaps = np.array(found)[:, NAMES.index("mpromissing")] - np.array(found)[:, NAMES.index("knn")]
    print("mPROMISSING - KNN:", ", ".join(f"{gap:+.3f}" for gap in gaps))


if __name__ == "__main__":
    main()
