"""The words of a report: numbers as text, headings, and sentences about the results."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

__all__ = ["MINUS", "add_words", "clip", "count", "join_names", "number", "p_value", "percent"]

Found = dict[str, Any]

NOTHING, MINUS = "\u2013", "\u2212"
_SMALLEST = 1e-9  # Smaller numbers are rounding errors.
_NBSP = "\u00a0"  # No line break between a number and its unit.

MEASURES = {
    "AUC": "probability that a row of the class gets a higher predicted probability than a row of "
    "another class; 0.5 is random, 1 is perfect",
    "accuracy": "share of the rows whose predicted class is correct",
    "balanced accuracy": "mean over the classes of the share of rows predicted correctly; a rare "
    "class counts as much as a frequent one",
    "Brier score": "mean squared distance between probabilities and true classes; 0 is perfect",
    "log loss": "mean negative log probability of the true class; 0 is perfect, and confident "
    "errors cost most",
    "R2": "explained share of the variance; 0 for always predicting the mean, 1 is perfect",
    "mean absolute error": "mean distance between predicted and true values, in units of the "
    "target",
    "root mean squared error": "the same, but large errors count more",
    "rank correlation": "Spearman correlation of predicted and true values; 1 is the same order",
}


# ---- numbers as text


def percent(share: float | None, digits: int = 0) -> str:
    """Format a share as a percentage, such as "12 %". Small positive shares are not shown as 0."""
    if share is None or not math.isfinite(share):
        return NOTHING
    least = 0.5 * 10.0 ** -(digits + 2)
    if 0 < share < least:
        return f"<{_NBSP}{100 * 2 * least:g}{_NBSP}%"
    if 1 - least < share < 1:
        return f">{_NBSP}{100 * (1 - 2 * least):g}{_NBSP}%"
    return f"{100 * share:.{digits}f}{_NBSP}%"


def number(value: float | None, digits: int = 3) -> str:
    """Format a number with some significant digits; small numbers with one, and no exponents."""
    if value is None or not math.isfinite(value):
        return NOTHING
    if abs(value) < _SMALLEST:
        return "0"
    if abs(value) < 1e-3:
        digits = 1
    after = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{after}f}".replace("-", MINUS)


def p_value(value: float | None) -> str:
    """Format a p-value, such as "0.03" or "< 0.001"."""
    if value is None or not math.isfinite(value):
        return NOTHING
    return "< 0.001" if value < 0.001 else f"{value:.2g}"


def count(value: int, one: str = "") -> str:
    """Format a number of things, such as "1,200 rows"."""
    if not one:
        return f"{value:,}"
    return f"{value:,} {one if value == 1 else one + 's'}"


def clip(text: Any, most: int = 80) -> str:
    """Shorten a text to a number of characters, with an ellipsis."""
    whole = str(text)
    return whole if len(whole) <= most else whole[: most - 1] + "…"


def join_names(names: list[str], most: int = 4) -> str:
    """Join names in a sentence, such as "a, b and c" or "a, b and 7 more"."""
    if len(names) > most:
        return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _quoted(name: str) -> str:
    return f"\u201c{clip(name, 40)}\u201d"


# ---- sections


def add_words(report: Found) -> None:
    """Add title, headline and text to every section, and a summary and key figures to the report.

    Parameters
    ----------
    report : dict
        The results that `gather` computed. It is changed in place.
    """
    is_regression = report["kind"] == "regression"
    sections: dict[str, tuple[str, Callable[[Found, Found], tuple[str, list[str]]]]] = {
        "missing": ("Missing values", _missing),
        "distributions": ("Distributions and associations", _distributions),
        "prediction": ("Prediction performance", _regression if is_regression else _classes),
        "calibration": ("Predicted standard deviation", _predicted_std)
        if is_regression
        else ("Calibration", _calibration),
        "sets": ("Prediction intervals" if is_regression else "Prediction sets", _sets),
        "information_loss": ("Predictions with less information", _information_loss),
        "coverage": ("Abstention", _abstention_of_numbers if is_regression else _abstention),
        "importance": ("Feature importance", _importance),
        "next_measurement": ("What to measure next", _next),
        "rows": ("Individual rows", _rows),
        "comparison": ("Comparison of strategies", _comparison),
        "provenance": ("Training summary", _training),
    }
    for measure in report["prediction"]["measures"]:
        measure["what"] = MEASURES[measure["name"]]
    for name, (title, describe) in sections.items():
        if report.get(name):
            headline, text = describe(report[name], report)
            report[name] |= {"title": title, "headline": headline, "text": text}
    report["figures"] = _figures(report)
    report["summary"] = _summary(report)


def _missing(found: Found, report: Found) -> tuple[str, list[str]]:
    if not found["missing"]:
        return "No values are missing in this table", [
            f"All {count(found['cells'])} values are known. The model can also predict rows with "
            "missing values."
        ]
    complete, rows = found["complete_rows"], found["rows"]
    gappy = [c for c in found["by_column"] if c["missing"]]
    worst = sorted(gappy, key=lambda c: -c["share"])[:3]
    names = join_names([f"{_quoted(c['name'])} ({percent(c['share'])})" for c in worst])
    text = [
        f"{count(found['missing'])} of {count(found['cells'])} values are missing. "
        f"{count(complete)} of {count(rows, 'row')} ({percent(complete / max(rows, 1))}) "
        f"{'is' if complete == 1 else 'are'} complete; deleting rows with missing values would "
        f"leave only these. {count(len(gappy))} of {count(found['columns'], 'column')} "
        f"{'has' if len(gappy) == 1 else 'have'} missing values. The highest shares are in {names}."
    ]
    blocks = len(found["blocks"])
    if blocks:
        text.append(
            f"{count(blocks, 'block')} of columns {'tends' if blocks == 1 else 'tend'} to be "
            "missing together, for example because an examination was not done."
        )
    return f"{percent(found['share'], 1)} of all values are missing", text


def _distributions(found: Found, report: Found) -> tuple[str, list[str]]:
    best = next(iter(found["items"]), None)
    headline = "No column has an association with the target"
    if best and (best["association"] or 0) > 0:
        headline = f"{_quoted(best['name'])} has the strongest association with the target"
    text = (
        "Each column is compared with the target by itself, where it is known: numbers by twice "
        "the distance of their AUC from 0.5"
    )
    if report["kind"] == "regression":
        text = (
            "Each column is compared with the target by itself, where it is known: numbers by the "
            "absolute rank correlation, categories by the correlation ratio"
        )
    else:
        text += ", categories by Cram\u00e9r's V"
    return headline, [
        f"{text}. If the target differs between rows in which a column is known and in which it is "
        "missing, missing values are informative."
    ]


def _how_scored(found: Found) -> str:
    if found["folds"]:
        return (
            "Each row was predicted by networks that were trained without it "
            f"({found['folds']}-fold cross-validation)."
        )
    return "The given model was scored. The scores hold if it was not trained on these rows."


def _regression(found: Found, report: Found) -> tuple[str, list[str]]:
    r2, error = _measure(report, "R2")["value"], _measure(report, "mean absolute error")
    headline = f"The model predicts {report['target_short']} no better than the mean"
    if (r2 or 0) > 0:
        headline = f"The model explains {percent(r2)} of the variance of {report['target_short']}"
    return headline, [
        f"{_how_scored(found)} The mean absolute error is {number(error['value'])}. Always "
        f"predicting the mean gives {number(error['baseline'])}.",
        *_trend(found, "error", number),
    ]


def _classes(found: Found, report: Found) -> tuple[str, list[str]]:
    accuracy, auc = _measure(report, "accuracy"), _measure(report, "AUC")["value"]
    text = (
        f"{_how_scored(found)} The accuracy is {percent(accuracy['value'], 1)}. Always predicting "
        f"the most frequent class gives {percent(accuracy['baseline'], 1)}. "
    )
    if auc is not None:
        text += f"The AUC{_for_positive(report)} is {number(auc)} (0.5 is random, 1 is perfect). "
    text += (
        "The certainty of a row is the highest class probability. Its mean is "
        f"{percent(found['certainty'])}."
    )
    headline = f"The predicted class is correct in {percent(accuracy['value'])} of the rows"
    return headline, [text, *_trend(found, "certainty", percent)]


def _measure(report: Found, name: str) -> Found:
    measures: list[Found] = report["prediction"]["measures"]
    return next(one for one in measures if one["name"] == name)


def _for_positive(report: Found) -> str:
    return "" if report["positive"] is None else f" for {_quoted(report['positive'])}"


def _trend(found: Found, name: str, show: Callable[[float], str]) -> list[str]:
    """Describe how a quantity changes with the share of missing values of a row.

    The direction is that of the test over all rows. The chart shows means in bins and joins bins
    of ten rows or more. If these means do not all change in the same direction, the text says so.
    """
    trend = found["trend"]
    if trend["direction"] is None:
        return []
    p = p_value(trend["p_value"])
    p = (p if "<" in p else f"= {p}").replace(" ", _NBSP)
    test = f"(rank correlation {number(trend['correlation'], 2)}, p{_NBSP}{p})"
    if trend["direction"] == "none":
        return [f"There is no evidence that the {name} depends on the share missing {test}."]
    rises = trend["direction"] == "rises"
    slightly = "slightly " if abs(trend["correlation"]) < 0.1 else ""
    sentence = (
        f"The {name} is {slightly}{'higher' if rises else 'lower'} in rows with more missing "
        f"values {test}."
    )
    bins = [one for one in found["by_missing"] if one["n"] >= 10]
    steps = [b[name] - a[name] for a, b in pairwise(bins)]
    if any((step > 0) != rises and step for step in steps):
        return [f"{sentence} This is the overall trend; not all means in the chart follow it."]
    if len(bins) < 2:
        return [sentence]
    first, last = bins[0], bins[-1]
    return [
        f"{sentence} The mean is {show(first[name])} in rows with {percent(first['missing'])} "
        f"missing values, and {show(last[name])} in rows with {percent(last['missing'])}."
    ]


def _predicted_std(found: Found, report: Found) -> tuple[str, list[str]]:
    rank = found["correlation"]
    headline = "Rows with a larger predicted standard deviation have larger errors"
    if rank is None or rank < 0.1:
        headline = "The predicted standard deviation is hardly related to the error"
    return headline, [
        "The model predicts a standard deviation with every number. It includes the noise in the "
        "target and grows as values go missing. Its rank correlation with the absolute error is "
        f"{number(rank, 2)}. {percent(found['within'])} of the errors are smaller than twice the "
        "predicted standard deviation; with normal errors this would be 95 %."
    ]


def _sets(found: Found, report: Found) -> tuple[str, list[str]]:
    numeric = report["kind"] == "regression"
    what = "interval" if numeric else "set"
    groups = [one for one in found["by_missing"] if one["n"] >= 20]
    text = (
        f"A prediction {what} holds the true {'value' if numeric else 'class'} with a confidence "
        f"of {percent(found['level'])}. It was calibrated with other rows than those it is "
        f"measured on: in {count(found['rows'], 'row')} the share is {percent(found['coverage'])}. "
    )
    if len(groups) > 1:
        least = min(groups, key=lambda one: one["coverage"])
        text += (
            "The chart counts every row again after a random share of its values was removed. In "
            f"groups of 20 or more rows it is lowest at "
            f"{percent(least['coverage'])} ({least['missing']} missing, {count(least['n'], 'row')}"
            "). "
        )
    if numeric:
        text += (
            f"The mean width is {number(found['size'])}. One interval for all rows, without a "
            f"model, would need {number(found['constant'])}."
        )
    else:
        text += (
            f"A set holds {number(found['size'], 2)} of {count(round(found['constant']))} classes "
            f"on average, and {percent(found['certain'])} of the sets hold one class. A set with "
            "several classes says that the known values do not decide."
        )
    # The Wilson interval of a group that is clearly below the level does not reach it.
    low = [one for one in groups if one["high"] < found["level"]]
    headline = f"The {what}s reach their confidence, also in rows with missing values"
    if low:
        headline = (
            f"The {what}s cover too few rows with {join_names([g['missing'] for g in low])} missing"
        )
    elif len(groups) < 2:
        headline = f"The {what}s reach their confidence"
    return headline, [text]


def _next(found: Found, report: Found) -> tuple[str, list[str]]:
    names = [_quoted(one["name"]) for one in found["order"] if one["gain"] > 0][:3]
    if not names:
        return "No value changes the predictions", ["There is nothing worth measuring."]
    worst = found["outages"][0]
    points = "percentage points of accuracy"
    if report["kind"] == "regression":
        points = "percent of the variance"
    text = (
        f"The order says which {found['unit']} to obtain first if nothing is known about a row, "
        "and which one after it. The expected loss is that of the model before a value is known, "
        "compared with its prediction when all values are known."
    )
    fall, error = 100 * worst["fall"], 100 * worst["error"]
    cost = (
        f"If a {found['unit']} is no longer available, predictions become worse. The largest cost "
        f"was measured without {_quoted(worst['name'])}: {number(fall, 2)} {points} "
        f"(standard error {number(error, 2)})."
    )
    if fall < 2 * error:
        cost = (
            f"No {found['unit']} alone costs clearly more than its standard error when it is lost."
        )
    return f"Measure {join_names(names)} first", [text, cost]


def _calibration(found: Found, report: Found) -> tuple[str, list[str]]:
    error, median, upper = found["error"], found["median"], found["upper"]
    if _is_worse_than_prior(report):
        headline = "The probabilities are worse than always predicting the prior"
    elif error > upper and found["overconfident"]:
        headline = "The model is overconfident"
    elif error > upper and found["underconfident"]:
        headline = "The model is underconfident"
    elif error > upper:
        headline = "The probabilities are not well calibrated"
    elif median > 0.05:
        headline = "There is no evidence of miscalibration, but there are few rows"
    else:
        headline = "The probabilities agree with the observed frequencies"
    text = [
        "In 100 rows with a predicted probability of 70 %, the class should occur about 70 times. "
        f"On average, the probabilities differ by {number(100 * error, 2)} percentage points from "
        f"the observed frequencies (calibration error {number(error, 2)}). If the probabilities "
        f"were exactly right, {count(report['prediction']['n'], 'row')} would give a median of "
        f"{number(100 * median, 2)} points and at most {number(100 * upper, 2)} in 95 % of "
        f"simulations. The observed error is {'larger' if error > upper else 'not larger'} than "
        f"that. The mean certainty is {percent(report['prediction']['certainty'], 1)}, and the "
        f"accuracy is {percent(_measure(report, 'accuracy')['value'], 1)}."
    ]
    if _is_worse_than_prior(report):
        loss = _measure(report, "log loss")
        text.append(
            f"The log loss is {number(loss['value'])}. Always predicting the prior gives "
            f"{number(loss['baseline'])}, which is better."
        )
    return headline, text


def _is_worse_than_prior(report: Found) -> bool:
    """Return whether the log loss is worse than that of always predicting the class shares."""
    loss = _measure(report, "log loss")
    return bool(loss["value"] > loss["baseline"])


def _remaining_distance(report: Found) -> float:
    """Return the share of the distance from the prior that remains without known values."""
    start, end = (report["information_loss"]["distance"][k] for k in (0, -1))
    return end / start if start else 0.0


def _information_loss(found: Found, report: Found) -> tuple[str, list[str]]:
    left = _remaining_distance(report)
    where = "close to" if left < 0.35 else "part of the way to" if left < 0.8 else "hardly towards"
    scale, unit = (1, "") if report["kind"] == "regression" else (100, " percentage points")
    start, end = (number(round(scale * found["distance"][k], 9), 2) for k in (0, -1))
    return f"With less information, predictions move {where} the prior", [
        f"The {'modalities' if report['unit'] == 'modality' else 'columns'} of "
        f"{count(found['rows'], 'row')} were removed one by one, in {found['orders']} random "
        "orders. The prior is the prediction for a row without any known value. The mean distance "
        f"from the prior is {start}{unit} with all known values, and {end}{unit} without any."
    ]


def _abstention_of_numbers(found: Found, report: Found) -> tuple[str, list[str]]:
    by_std = found["by"] == "std"
    how = "Rows are ranked by the predicted standard deviation."
    if not by_std:
        how = (
            "Rows are ranked by their share of known values, because this model predicts no "
            "standard deviation."
        )
    if len(found["points"]) < 2:
        return "The rows cannot be ranked, because about the same share of each is known", [how]
    whole = found["points"][0]
    half = min(found["points"], key=lambda one: abs(one["coverage"] - 0.5))
    effect = "lowers" if half["value"] < 0.95 * whole["value"] else "hardly lowers"
    left = "the most uncertain rows" if by_std else "the rows with most missing values"
    limit = (
        f"a standard deviation of at most {number(half['limit'])}"
        if by_std
        else f"a known share of at least {percent(half['limit'])}"
    )
    return f"Leaving out {left} {effect} the error", [
        f"{how} {percent(half['coverage'])} of the rows have {limit}. Their mean absolute error is "
        f"{number(half['value'])}. The mean absolute error of all rows is {number(whole['value'])}."
    ]


def _abstention(found: Found, report: Found) -> tuple[str, list[str]]:
    whole = found["points"][0]
    part = next(one for one in found["points"] if one["coverage"] == 0.8)
    headline = "Abstention does not improve the accuracy"
    if part["value"] - whole["value"] > 0.005:
        headline = f"Abstention on 20 % of the rows raises the accuracy to {percent(part['value'])}"
    return headline, [
        "The model can abstain on rows with low certainty instead of predicting a class. The "
        f"accuracy on all rows is {percent(whole['value'], 1)}. On the 80 % of the rows with the "
        f"highest certainty (at least {percent(part['limit'])}), it is "
        f"{percent(part['value'], 1)}.",
        _threshold(found),
    ]


def _threshold(found: Found) -> str:
    """Describe the threshold whose accuracy is guaranteed."""
    goal = (
        f"an accuracy of {percent(found['target'])} with {percent(found['confidence'])} confidence"
    )
    if found["threshold"] is None:
        return f"No threshold of the certainty reaches {goal} on these rows."
    return (
        f"For {goal}, predict only where the certainty is above {percent(found['threshold'], 1)}. "
        f"This decides {percent(found['decided'])} of the rows."
    )


def _importance(found: Found, report: Found) -> tuple[str, list[str]]:
    first = found["levels"][0]
    names = [_quoted(one["name"]) for one in first["items"] if one["importance"]][:2]
    if not names:
        return f"No {first['unit']} changes the predictions", [
            "The predictions are the same for every row."
        ]
    is_or_are = "is" if len(names) == 1 else "are"
    shown = (
        "The charts show the mean absolute Shapley value over rows. Shapley values divide the "
        "difference between the prediction and the prior among the known values."
        if first["method"] == "shapley"
        else "The charts show the mean absolute change over rows."
    )
    return f"{join_names(names)} {is_or_are} most important", [
        "Importance measures how much a prediction changes when known values become unknown. "
        f"Values are only removed, never replaced. {shown}"
    ]


def _rows(found: Found, report: Found) -> tuple[str, list[str]]:
    by_folds = report["explained"] == "the folds"
    text = [
        "Each bar shows how the prediction would change if one value or modality were unknown. "
        + (
            "Each row is explained by a network that was not trained on it."
            if by_folds
            else "The given model is explained."
        )
    ]
    if found["shown"] != found["judged"]:
        text.append(
            f"{count(found['shown'])} of {count(found['judged'], 'row')} are shown. They were "
            "drawn from every kind of outcome, so rare kinds are more frequent here than in the "
            "table."
        )
    return "Each prediction is explained by its known values", text


def _comparison(found: Found, report: Found) -> tuple[str, list[str]]:
    return "Strategies for missing values were compared on the same folds", [
        found["recommendation"],
        "The scores are means over the folds, of models trained for this comparison. They differ "
        "from the scores above, which are for all rows together.",
    ]


def _training(found: Found, report: Found) -> tuple[str, list[str]]:
    text = []
    if found["rows"] < found["of"]:
        text.append(
            f"{count(found['rows'])} of {count(found['of'], 'row')}, drawn at random, were used "
            "for training and evaluation. Missing values were counted in all rows."
        )
    text.append(
        f"Information loss was computed for {count(report['information_loss']['rows'], 'row')}, "
        f"and importance for {count(report['importance']['levels'][0]['rows'], 'row')}. "
        "These rows were drawn at random."
    )
    if report["rows"]:
        text.append(
            f"{count(report['rows']['shown'], 'individual row')} can be viewed. They were drawn at "
            "random from every kind of outcome."
        )
    if report["comparison"] and report["comparison"]["rows"] < found["of"]:
        text.append(f"Strategies were compared on {count(report['comparison']['rows'], 'row')}.")
    folds = f"{found['folds']}-fold cross-validation" if found["folds"] else "one given model"
    return f"{found['model']}, {folds}, random seed {found['seed']}", text


# ---- summary


def _figures(report: Found) -> list[Found]:
    """Return the key figures at the top of the page."""
    missing = report["missing"]
    rows = [
        (
            percent(missing["share"], 1),
            "of all values are missing",
            f"{count(missing['rows'], 'row')}, {count(missing['columns'], 'column')}",
        )
    ]
    if report["kind"] == "regression":
        error = _measure(report, "mean absolute error")
        rows += [
            (number(_measure(report, "R2")["value"], 2), "R²", "0 for predicting the mean"),
            (
                number(error["value"]),
                "mean absolute error",
                f"{number(error['baseline'])} for predicting the mean",
            ),
            (
                number(_measure(report, "rank correlation")["value"], 2),
                "rank correlation of predicted and true values",
                "1 is the same order",
            ),
        ]
    else:
        accuracy, auc = _measure(report, "accuracy"), _measure(report, "AUC")["value"]
        found = report["calibration"]
        rows += [
            (
                percent(accuracy["value"]),
                "accuracy in unseen rows" if report["prediction"]["folds"] else "accuracy",
                f"{percent(accuracy['baseline'])} for the most frequent class",
            ),
            (
                NOTHING if auc is None else f"{auc:.2f}",
                f"AUC{_for_positive(report)}",
                "0.5 is random, 1 is perfect",
            ),
            (
                number(found["error"], 2),
                "calibration error",
                f"if exactly right: median {number(found['median'], 2)}, 95 % up to "
                f"{number(found['upper'], 2)}",
            ),
        ]
    return [{"value": value, "label": label, "note": note} for value, label, note in rows]


def _summary(report: Found) -> str:
    """Return one paragraph that can be read alone."""
    missing = report["missing"]
    parts = [
        f"This report evaluates the prediction of {report['target_short']} from "
        f"{count(len(report['columns']), 'column')} of {report['source']}. The table has "
        f"{count(missing['rows'], 'row')}, and {percent(missing['share'], 1)} of its values are "
        "missing. The network uses the known values only; nothing was imputed."
    ]
    if report["kind"] == "regression":
        r2 = _measure(report, "R2")["value"]
        parts.append(f"It explains {percent(max(r2 or 0, 0))} of the variance in unseen rows.")
    else:
        accuracy, found = _measure(report, "accuracy"), report["calibration"]
        parts.append(
            f"The accuracy in unseen rows is {percent(accuracy['value'])}. Always predicting the "
            f"most frequent class gives {percent(accuracy['baseline'])}."
        )
        if report["positive"] is not None:
            parts.append(f"The positive class is {_quoted(report['positive'])}.")
        parts.append(
            "There is no evidence of miscalibration."
            if found["error"] <= found["upper"]
            else f"The probabilities differ by {number(100 * found['error'], 2)} percentage points "
            "from the observed frequencies on average, more than chance explains."
        )
        if _is_worse_than_prior(report):
            parts.append("The log loss is worse than that of always predicting the prior.")
    if report["information_loss"]["distance"][0] and _remaining_distance(report) < 0.35:
        parts.append("Predictions move close to the prior as information is lost.")
    level = report["importance"]["levels"][0]
    many = "modalities" if level["unit"] == "modality" else "columns"
    names = [_quoted(one["name"]) for one in level["items"][:3]]
    parts.append(f"The most important {many} are {join_names(names)}.")
    return " ".join(parts)
