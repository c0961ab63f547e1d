"""
Is a model calibrated when values are missing?
==============================================

Among the rows with a predicted probability of 0.3, about 30 % should be positive, with many known
values and with few. The test compares the calibration error with that of a calibrated model.
"""

import matplotlib.pyplot as plt
from sklearn.calibration import CalibrationDisplay
from sklearn.model_selection import train_test_split

from promissing import NanMLPClassifier
from promissing.datasets import load_nhanes
from promissing.metrics import calibration_test
from promissing.missingness import mcar_cells

survey = load_nhanes()
X_train, X_test, y_train, y_test = train_test_split(
    survey.X, survey.y, test_size=0.4, random_state=0
)
model = NanMLPClassifier(random_state=0).fit(X_train, y_train)

fig, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
for ax, share in zip(axes, (0, 0.5), strict=True):
    p = model.predict_proba(mcar_cells(X_test, ratio=share, random_state=0))[:, 1]
    found = calibration_test(y_test, p)
    print(
        f"{share:.0%} removed: error {found.error:.3f}, calibrated models {found.median:.3f}"
    )
    CalibrationDisplay.from_predictions(y_test, p, n_bins=8, strategy="quantile", ax=ax)
    ax.get_legend().remove()
    ax.set(title=f"{share:.0%} of the cells removed", xlim=(0, 1), ylim=(0, 1))
