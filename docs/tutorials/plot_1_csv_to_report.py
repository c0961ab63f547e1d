"""
From a messy CSV to a report
============================

You have a CSV file with missing values and a column to predict. This tutorial uses the command line
only: describe the table, compare strategies, fit a model, predict new rows and write a report.

The file is a part of a health survey, NHANES 2017-2018, written as files often are: with
semicolons, decimal commas, and several codes for missing values.
"""

import shlex
import subprocess
import tempfile
from pathlib import Path

from promissing.datasets import load_nhanes

folder = Path(tempfile.mkdtemp())
survey = load_nhanes()
table = survey.X[
    ["age", "sex", "bmi", "waist_cm", "systolic_bp", "total_cholesterol", "lead"]
]
table = table.assign(diabetes=survey.y.map({0: "no", 1: "yes"}))
for name, rows in (("people.csv", slice(0, 1500)), ("new.csv", slice(1500, 1800))):
    part = table[rows].round(2)
    part["lead"] = part["lead"].fillna(-999)  # A code for "not measured".
    part.to_csv(folder / name, sep=";", decimal=",", na_rep="n/a", index_label="id")
print((folder / "people.csv").read_text()[:230])

# %%
# ``run`` executes a command as you would type it.


def run(command):
    """Run a command and print its output."""
    print("$", command)
    words = shlex.split(command)
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=folder)
    print(done.stdout + done.stderr)


run("promissing describe people.csv --target diabetes")

# %%
# The table was read without any options: the separator, the decimal comma and ``n/a`` were
# detected. The description also names values such as -999 that may mean missing. Declare them:
run(
    "promissing fit people.csv --target diabetes --id id --missing-values=-999 "
    "--calibrate 0.2 --out model.safetensors"
)

# %%
# A fifth of the rows was set aside to calibrate prediction sets and abstention. The model predicts
# new rows. ``set`` holds the true class with a probability of 90 %. ``prediction`` is empty where
# the model abstains, so that 90 % of the other predictions are right.
run(
    "promissing predict model.safetensors new.csv --coverage 0.9 --abstain-accuracy 0.9 --out p.csv"
)
print("\n".join((folder / "p.csv").read_text().splitlines()[:5]))

# %%
# Which strategy for missing values is best for this table? ``compare`` cross-validates several.
run(
    "promissing compare people.csv --target diabetes --id id --missing-values=-999 "
    "--strategies mean,mean+indicator,fpromissing,hgb --folds 3"
)

# %%
# Finally, a report: one HTML page with performance, calibration, explanations and single rows. It
# needs no network and can be sent by mail.
run(
    "promissing report new.csv --target diabetes --id id --model model.safetensors --held-out "
    "--no-compare --out report.html"
)
print((folder / "report.html").stat().st_size // 1000, "kB")
