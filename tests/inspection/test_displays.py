"""Figures of explanations: their data, their text, and axes that are given."""

from types import SimpleNamespace

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from promissing import NanFusionClassifier
from promissing.inspection import (
    CounterfactualDisplay,
    ModalityDecisionDisplay,
    NeutralizerDisplay,
    TrajectoryDisplay,
    information_loss,
    what_if,
)

matplotlib.use("agg")
GROUPS = {
    "blood": ["a", "b"],
    "a modality of a very long name that nobody would dare to cut": ["c"],
}


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    X.loc[3, "c"] = np.nan
    return X, (X["a"] + 0.5 * X["c"].fillna(0) > 0).astype(int).to_numpy()


@pytest.fixture(scope="module")
def model(table):
    return DecisionTreeClassifier(max_depth=3, random_state=0).fit(*table)


def drawn(display):
    """All text of a figure, once it is drawn."""
    display.figure_.canvas.draw()
    return {text.get_text() for text in display.figure_.findobj(matplotlib.text.Text)}


def test_trajectories_have_a_panel_per_model_and_a_line_per_row(table, model):
    X, _ = table
    display = TrajectoryDisplay.from_estimator(
        {"trees": model, "again": model}, X[:4], GROUPS, orders=3, prior=0.5
    )
    assert [ax.get_title() for ax in display.axes_] == ["trees", "again"]
    lines = [line for line in display.axes_[0].lines if len(line.get_xdata()) == 3]
    assert len(lines) == 4
    np.testing.assert_allclose(lines[0].get_ydata()[0], model.predict_proba(X[:1])[0, 1])
    assert {"prior", "probability of 1"} <= drawn(display)


def test_trajectories_of_some_rows_on_given_axes(table, model):
    found = information_loss(model, table[0][:5], GROUPS, orders=2, prior=0.5, random_state=0)
    _, ax = plt.subplots()
    display = TrajectoryDisplay({"trees": found}).plot(ax=ax, rows=[1], bands=False)
    assert display.axes_ == [ax]
    assert display.figure_ is ax.figure
    assert len([line for line in ax.lines if len(line.get_xdata()) == 3]) == 1
    with pytest.raises(ValueError, match="`ax` must hold 1 axes, one for each panel. Received: 2"):
        TrajectoryDisplay({"trees": found}).plot(ax=plt.subplots(1, 2)[1])


def test_several_classes_must_be_followed_one_by_one(table):
    X, _ = table
    y = np.arange(200) % 3
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    found = information_loss(model, X[:2], orders=2, random_state=0)
    with pytest.raises(ValueError, match="choose it by `target`"):
        TrajectoryDisplay({"trees": found}).plot()
    display = TrajectoryDisplay.from_estimator(model, X[:2], orders=2, target=0)
    assert display.axes_[0].get_ylabel() == "probability of 0"


def test_a_healthy_patient_called_diseased_is_a_false_positive(table):
    X, y = table
    labels = np.where(y, "disease", "healthy")
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, labels)
    called = X[model.predict(X) == "disease"][:1]
    show = CounterfactualDisplay.from_estimator
    (panel,) = show(model, called, y=["healthy"], positive="disease").axes_
    title, outcome = panel.get_title().split("\n")
    assert "P(disease) = " in title
    assert outcome == "false positive for disease"
    (panel,) = show(model, called, y=["healthy"]).axes_
    assert panel.get_title().split("\n")[1] == "false negative for healthy"
    lost = TrajectoryDisplay.from_estimator(model, called, orders=2, positive="disease")
    assert lost.axes_[0].get_ylabel() == "probability of disease"


def test_bars_are_the_effects_longest_first_and_names_are_not_cut(table, model):
    X, y = table
    display = CounterfactualDisplay.from_estimator(model, X[:4], GROUPS, y=y[:4])
    assert len(display.axes_) == 4
    found = what_if(model, X[:4], groups=GROUPS)
    widths = [bar.get_width() for bar in display.axes_[0].patches]
    np.testing.assert_allclose(widths, sorted(found.effects[0], key=abs, reverse=True))
    said = drawn(display)
    assert any("that nobody would dare" in text.replace("\n", " ") for text in said)
    assert any(text.startswith("0: P(1) = ") for text in said)
    assert any("positive for 1" in text or "negative for 1" in text for text in said)
    assert "change of P(1) if missing" in said
    assert "missing" in said  # Row 3 lacks c.
    # Told apart in grey: every kind has a hatch of its own.
    hatches = {b.get_hatch() for ax in display.axes_ for b in ax.patches}
    assert len(hatches) > 1


def test_bars_of_a_regressor(table):
    X, _ = table
    model = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, X["a"])
    display = CounterfactualDisplay.from_estimator(model, X[:1], max_groups=2)
    assert len(display.axes_[0].patches) == 2


def test_names_are_text_and_never_a_formula(table, model):
    X, _ = table
    display = CounterfactualDisplay.from_estimator(model, X[:1], {"cost in $ and $": ["a"]})
    drawn(display)
    assert display.axes_[0].get_yticklabels()[0].get_text() == r"cost in \$ and \$"


def test_neutralizers_beyond_the_limit_are_marked():
    u = np.array([[0.5, 9.0], [np.inf, -1.0], [0.0, 0.0]])
    display = NeutralizerDisplay(u, ["x", "y"]).plot()
    (points,) = display.axes_[0].lines
    assert sorted(zip(*points.get_data(), strict=True)) == [(0, 1), (1, 0)]
    with pytest.raises(ValueError, match=r"must have shape \(neurons, columns\)"):
        NeutralizerDisplay(np.zeros(3))


def test_neutralizers_of_an_estimator():
    class Fitted:
        neutralizers_ = {"x": np.zeros((2, 3, 18)), "c": np.ones((2, 3, 2))}  # noqa: RUF012
        encoder_ = SimpleNamespace(kinds_=["number", "category"])

    display = NeutralizerDisplay.from_estimator(Fitted(), member=1)
    assert display.neutralizers.shape == (3, 3)
    assert display.names == ["x", "c [0]", "c [1]"]


@pytest.fixture(scope="module")
def fusion(table):
    X, y = table
    X = X.assign(ward=pd.Categorical(np.where(X["a"] > 0, "north", "south")))
    modalities = {"scan": ["c", "ward"], "blood": ["b", "a"]}
    model = NanFusionClassifier(modalities, {"scan": 3, "blood": 4}, max_iter=1, random_state=0)
    return model.fit(X, np.where(y, "disease", "healthy")), X


def test_neutralizers_of_a_fusion_model(fusion):
    model, _ = fusion
    display = NeutralizerDisplay.from_estimator(model)
    assert display.names == ["c", "ward [0]", "ward [1]", "a", "b"]
    mask = np.ma.getmaskarray(display.neutralizers)
    assert mask.shape == (7, 5)
    assert mask[:3, 3:].all()
    assert mask[3:, :3].all()
    assert not mask[:3, :3].any()
    assert not mask[3:, 3:].any()
    np.testing.assert_array_equal(display.neutralizers[3:, 3], model.neutralizers_["a"][0, :, 0])
    assert NeutralizerDisplay.from_estimator(model, modality="blood").names == ["a", "b"]
    with pytest.raises(ValueError, match=r"must be one of \['scan', 'blood'\]. Received: 'x'"):
        NeutralizerDisplay.from_estimator(model, modality="x")


def test_decisions_of_modalities_are_those_of_the_positive_class(fusion):
    model, X = fusion
    display = ModalityDecisionDisplay.from_estimator(model, X[:2], positive="disease")
    np.testing.assert_allclose(display.final, model.predict_proba(X[:2])[:, 0])
    expected = model.decision_by_modality(X[:2])["blood"][:, 0]
    np.testing.assert_allclose(display.decisions["blood"], expected)
    assert "P(disease) of the modality alone (hollow: missing)" in drawn(display)


def test_decisions_of_modalities():
    decisions = {"blood": [0.2, 0.9], "scan": [0.4, 0.6]}
    known = {"blood": [True, True], "scan": [False, True]}
    display = ModalityDecisionDisplay(
        decisions, [0.3, 0.8], known=known, index=["Ann", "Bo"]
    ).plot()
    assert [ax.get_title() for ax in display.axes_] == ["Ann", "Bo"]
    assert "all modalities: 0.30" in drawn(display)
    points = [line for line in display.axes_[0].lines if line.get_marker() == "o"]
    assert [p.get_markerfacecolor() for p in points][1] == "white"


def test_a_modality_of_a_model_that_has_none():
    fitted = SimpleNamespace(
        neutralizers_={"x": np.zeros((1, 2, 1))}, encoder_=SimpleNamespace(kinds_=["number"])
    )
    with pytest.raises(ValueError, match="must be None for a model without any. Received: 'scan'"):
        NeutralizerDisplay.from_estimator(fitted, modality="scan")


def test_results_draw_themselves(table, model):
    X, _ = table
    effects = what_if(model, X[:3])
    assert [ax.get_title()[0] for ax in effects.plot(rows=[2]).axes_] == ["2"]
    _, ax = plt.subplots()
    lost = information_loss(model, X[:3], orders=2, random_state=0)
    assert lost.plot(ax=ax).axes_ == [ax]
    assert repr(effects) == "Effects(3 rows, 3 groups)"
    assert repr(lost) == "Trajectories(2 orders, 3 rows, 3 groups)"
