"""Plain networks: one member, no bins, no gates, so that a test trains in a moment."""

from promissing import NanMLPClassifier, NanMLPRegressor
from promissing.estimators.mlp import PLAIN


def classifier(hidden_layer_sizes=(100,), **changed):
    given = {**PLAIN, "hidden_layer_sizes": hidden_layer_sizes, **changed}
    return NanMLPClassifier(**given)


def regressor(hidden_layer_sizes=(100,), **changed):
    given = {**PLAIN, "hidden_layer_sizes": hidden_layer_sizes, **changed}
    return NanMLPRegressor(**given)
