"""What the numbers say, in sentences: a headline and a few lines for every section."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from promissing.report.formats import clip, count, listed, number, p_value, percent

__all__ = ["put_into_words"]

Found = dict[str, Any]


def put_into_words(report: Found) -> None:
    """Give every section its `headline` and `text`, and the report its `summary` and `figures`."""
    tell = {
        "missing": _missing,
        "prediction": _prediction,
        "calibration": _calibration,
        "fading": _fading,
        "coverage": _coverage,
        "drivers": _drivers,
        "browsing": _browsing,
        "comparison": _comparison,
    }
    for name, one in tell.items():
        if report.get(name):
            headline, text = one(report[name], report)
            report[name] |= {"headline": headline, "text": text}
    report["figures"] = _figures(report)
    report["summary"] = _summary(report)


def _quoted(name: str) -> str:
    return f"\u201c{clip(name, 40)}\u201d"


def _missing(found: Found, report: Found) -> tuple[str, list[str]]:
    if not found["missing"]:
        return "Nothing is missing in this table", [
            f"All {count(found['cells'])} cells are known. The model can still be asked about rows "
            "with gaps: it was trained to do without any of the columns."
        ]
    gappy = [c for c in found["by_column"] if c["missing"]]
    worst = sorted(gappy, key=lambda c: -c["share"])[:3]
    names = listed([f"{_quoted(c['name'])} ({percent(c['share'])})" for c in worst])
    text = [
        f"Of {count(found['cells'])} cells, {count(found['missing'])} are empty. "
        f"{count(found['complete_rows'], 'row')} of {count(found['rows'])} "
        f"({percent(found['complete_rows'] / max(found['rows'], 1))}) "
        f"{'is' if found['complete_rows'] == 1 else 'are'} complete: whoever deletes rows with "
        "gaps keeps only these. "
        f"{count(len(gappy))} of {count(found['columns'], 'column')} "
        f"{'has' if len(gappy) == 1 else 'have'} gaps; most are in {names}."
    ]
    if found["blocks"]:
        text.append(
            f"There {'is' if len(found['blocks']) == 1 else 'are'} "
            f"{count(len(found['blocks']), 'block')} of columns that tend to be missing together, "
            "as when a whole examination was not done."
        )
    return f"{percent(found['share'], 1)} of the table is missing", text


def _prediction(found: Found, report: Found) -> tuple[str, list[str]]:
    by_name = {one["name"]: one for one in found["measures"]}
    how = (
        f"Every row was predicted by networks that had not seen it, in {found['folds']} folds."
        if found["folds"]
        else "The model was judged as it is. If it was trained on some of these rows, what "
        "follows flatters it."
    )
    if report["kind"] == "regression":
        r2, error = by_name["R2"], by_name["mean absolute error"]
        trend = _trend(found, "error", "Its errors are", "larger in", "smaller in")
        headline = (
            f"It explains {percent(r2['value'])} of the differences in {report['target_short']}"
            if (r2["value"] or 0) > 0
            else f"It predicts {report['target_short']} no better than the mean does"
        )
        return headline, [
            f"{how} A prediction is off by {number(error['value'])} on average; always saying the "
            f"mean would be off by {number(error['baseline'])}.",
            *trend,
        ]
    right, auc = by_name["accuracy"], by_name["AUC"]
    ten = round(100 * right["value"])
    text = [
        f"{how} It decided {percent(right['value'], 1)} of them rightly, where always saying the "
        f"most frequent class would be right in {percent(right['baseline'], 1)}. "
        + (
            f"Its AUC{_of(report)} is {number(auc['value'])} (0.5 is a coin, 1 is perfect). "
            if auc["value"] is not None
            else ""
        )
        + f"On average it was {percent(found['certainty'])} sure of what it decided."
    ]
    text += _trend(found, "certainty", "It is", "more certain of", "less certain of")
    return f"It is right about {ten} of 100 rows it has not seen", text


def _of(report: Found) -> str:
    """The positive class, where there is one."""
    return "" if report["positive"] is None else f" for {_quoted(report['positive'])}"


def _trend(found: Found, name: str, subject: str, rises: str, falls: str) -> list[str]:
    """A sentence on how a quantity changes with the share of a row that is missing.

    The direction is that of the test over all rows. The chart shows means in bins, joined where a
    bin has ten rows or more: the sentence says if they do not all go the same way.
    """
    trend = found["trend"]
    if trend["direction"] is None:
        return []
    p = p_value(trend["p_value"])
    p = (p if "<" in p else f"= {p}").replace(" ", "\u00a0")
    test = f"(rank correlation {number(trend['correlation'], 2)}, p\u00a0{p})"
    if trend["direction"] == "none":
        what = "its errors depend" if name == "error" else "its certainty depends"
        return [f"There is no evidence that {what} on how much of a row is missing {test}."]
    up = trend["direction"] == "rises"
    slightly = "slightly " if abs(trend["correlation"]) < 0.1 else ""
    sentence = f"{subject} {slightly}{rises if up else falls} rows with more missing values {test}"
    bins = [one for one in found["by_missing"] if one["n"] >= 10]
    steps = [b[name] - a[name] for a, b in pairwise(bins)]
    if any((step > 0) != up and step for step in steps):
        return [f"{sentence}. This is the overall trend: the chart does not follow it throughout."]
    if len(bins) < 2:
        return [f"{sentence}."]
    show = number if name == "error" else percent
    first, last = bins[0], bins[-1]
    return [
        f"{sentence}: the mean is {show(first[name])} where {percent(first['missing'])} of the row "
        f"is missing, and {show(last[name])} where {percent(last['missing'])} is."
    ]


def _calibration(found: Found, report: Found) -> tuple[str, list[str]]:
    if report["kind"] == "regression":
        rank = found["correlation"]
        if rank is None or rank < 0.1:
            headline = "How far its networks disagree says little about its errors"
        else:
            headline = "Where its networks disagree, its errors are larger"
        return headline, [
            "The prediction is the mean of several networks, and the ensemble spread is the "
            "standard deviation between them. The spread is a diagnostic and not the uncertainty "
            "of a prediction: it does not contain the noise in the target, and it falls as values "
            "go missing, because every network then predicts the mean. Its rank correlation with "
            f"the size of the error is {number(rank, 2)}; {percent(found['within'])} of the errors "
            "are smaller than twice the spread."
        ]
    error, upper = found["error"], found["upper"]
    by_name = {one["name"]: one for one in report["prediction"]["measures"]}
    right, sure = by_name["accuracy"]["value"], report["prediction"]["certainty"]
    if _worse_than_prior(report):
        headline = "Its probabilities are worse than always predicting the prior"
    elif error > upper:
        headline = (
            "It is overconfident"
            if found["overconfident"]
            else "It is underconfident"
            if found["underconfident"]
            else "Its probabilities are somewhat off"
        )
    elif found["median"] > 0.05:
        headline = "There is no evidence against its probabilities, but the rows are few"
    else:
        headline = "Its probabilities agree with what came true"
    text = [
        "Of rows predicted with a probability of 70 %, 70 in 100 should come true. On average, the "
        f"probabilities are {number(100 * error, 2)} percentage points away from the observed "
        f"frequencies (calibration error {number(error, 2)}). If the probabilities were exactly "
        f"right, {count(report['prediction']['n'], 'row')} would give "
        f"{number(100 * found['median'], 2)} points in the median and at most "
        f"{number(100 * upper, 2)} in 95 % of simulations: "
        + ("the error is larger than that." if error > upper else "the error is not larger.")
        + f" The mean certainty is {percent(sure, 1)}, and {percent(right, 1)} of the decisions "
        "are right."
    ]
    if _worse_than_prior(report):
        loss = by_name["log loss"]
        text.append(
            f"The log loss, {number(loss['value'])}, is worse than that of always predicting the "
            f"prior, {number(loss['baseline'])}."
        )
    return headline, text


def _worse_than_prior(report: Found) -> bool:
    """Whether the log loss is worse than that of always predicting the class shares."""
    measures = report["prediction"]["measures"]
    loss = next(one for one in measures if one["name"] == "log loss")
    return bool(loss["value"] > loss["baseline"])


def _fading(found: Found, report: Found) -> tuple[str, list[str]]:
    start, end = found["distance"][0], found["distance"][-1]
    left = end / start if start else 0.0
    unit = report["unit"]
    headline = (
        "As it is told less, it claims less"
        if left < 0.35
        else "As it is told less, it keeps some of its confidence"
        if left < 0.8
        else "It stays as confident when it is told less"
    )
    many = "modalities" if unit == "modality" else "columns"
    size = "" if report["kind"] == "regression" else "percentage points "
    scale = 1 if report["kind"] == "regression" else 100
    return headline, [
        f"The {many} of {count(found['rows'], 'row')} were taken away one by one, in "
        f"{found['orders']} random orders. The prior is what can be said of somebody of whom "
        f"nothing is known. With all there is, predictions are {number(scale * start, 2)} {size}"
        f"away from it on average; with nothing, {number(scale * end, 2)}."
    ]


def _coverage(found: Found, report: Found) -> tuple[str, list[str]]:
    whole = found["points"][0]
    if report["kind"] == "regression":
        how = (
            "Rows are ranked by the share of their values that is known. The ensemble spread is "
            "not used, because it falls as values go missing."
        )
        if len(found["points"]) < 2:
            return "The rows cannot be ranked: about the same share of each is known", [how]
        half = min(found["points"], key=lambda one: abs(one["coverage"] - 0.5))
        better = half["value"] < 0.95 * whole["value"]
        return (
            "Leaving out the rows with most missing values makes the rest better"
            if better
            else "Leaving out the rows with most missing values does not help much",
            [
                f"{how} {percent(half['coverage'])} of the rows have a known share of at least "
                f"{percent(half['limit'])}. Their mean error is {number(half['value'])}, and that "
                f"of all rows is {number(whole['value'])}."
            ],
        )
    part = next(one for one in found["points"] if one["coverage"] == 0.8)
    gain = part["value"] - whole["value"]
    headline = (
        f"If it may abstain on 20 % of the rows, it is right on {percent(part['value'])} of the "
        "rest"
        if gain > 0.005
        else "Abstaining does not make it better"
    )
    return headline, [
        "A model may say that it does not know. Here the rows it is least sure of abstain first: "
        f"deciding all, it is right in {percent(whole['value'], 1)}; deciding 80 %, those it is "
        f"at least {percent(part['limit'])} sure of, in {percent(part['value'], 1)} of them."
    ]


def _drivers(found: Found, report: Found) -> tuple[str, list[str]]:
    first = found["levels"][0]
    names = [_quoted(one["name"]) for one in first["items"] if one["importance"]]
    if not names:
        return "Nothing moves its predictions", ["It says the same of every row."]
    headline = (
        f"{names[0]} matters most" if len(names) == 1 else f"{names[0]} and {names[1]} matter most"
    )
    text = [
        "How much a prediction changes when something becomes unknown tells how much it rests on "
        "it. No value is made up for this: it is only taken away. "
        + (
            "Shapley values share out the way from knowing nothing to the prediction; shown is "
            "their mean size over rows."
            if first["method"] == "shapley"
            else "Shown is the mean size of the change over rows."
        )
    ]
    return headline, text


def _browsing(found: Found, report: Found) -> tuple[str, list[str]]:
    all_ = found["shown"] == found["judged"]
    text = [
        "Each bar tells what the prediction would be if this one thing were unknown. "
        "Each row is explained by a network that was not trained on it."
        if report["explained"] == "the folds"
        else "Each bar tells what the given model would say if this one thing were unknown. "
        "Of rows it was trained on it may be too sure."
    ]
    if not all_:
        text.append(
            f"Shown are {count(found['shown'])} of {count(found['judged'], 'row')}: some of "
            "every kind of outcome, so that rare kinds are more frequent here than in the table."
        )
    return "Why it said what it said, row by row", text


def _comparison(found: Found, report: Found) -> tuple[str, list[str]]:
    return "Other ways to cope with the gaps", [found["recommendation"]]


def _figures(report: Found) -> list[Found]:
    """The few numbers at the top of the page."""
    found, missing = report["prediction"], report["missing"]
    by_name = {one["name"]: one for one in found["measures"]}
    figures = [
        {
            "value": percent(missing["share"], 1),
            "label": "of all cells are missing",
            "note": f"{count(missing['rows'], 'row')}, {count(missing['columns'], 'column')}",
        }
    ]
    if report["kind"] == "regression":
        r2, error = by_name["R2"], by_name["mean absolute error"]
        figures += [
            {"value": number(r2["value"], 2), "label": "R²", "note": "0 by saying the mean"},
            {
                "value": number(error["value"]),
                "label": "mean absolute error",
                "note": f"{number(error['baseline'])} by saying the mean",
            },
            {
                "value": number(by_name["rank correlation"]["value"], 2),
                "label": "rank correlation of predicted and true values",
                "note": "1 is the same order",
            },
        ]
        return figures
    right, auc = by_name["accuracy"], by_name["AUC"]
    return [
        *figures,
        {
            "value": percent(right["value"]),
            "label": "of unseen rows decided rightly" if found["folds"] else "decided rightly",
            "note": f"{percent(right['baseline'])} by the most frequent class",
        },
        {"value": f"{auc['value']:.2f}" if auc["value"] is not None else "\u2013",
         "label": f"AUC{_of(report)}",
         "note": "0.5 is a coin, 1 is perfect"},
        {
            "value": number(report["calibration"]["error"], 2),
            "label": "calibration error",
            "note": "if exactly right: "
            f"{number(report['calibration']['median'], 2)} in the median, 95 % up to "
            f"{number(report['calibration']['upper'], 2)}",
        },
    ]  # fmt: skip


def _summary(report: Found) -> str:
    """One paragraph that can be read alone."""
    missing, found = report["missing"], report["prediction"]
    by_name = {one["name"]: one for one in found["measures"]}
    parts = [
        f"This report is about predicting {report['target_short']} from "
        f"{count(len(report['columns']), 'column')} of {report['source']}, a table of "
        f"{count(missing['rows'], 'row')} in which {percent(missing['share'], 1)} of the cells are "
        "missing. Nothing was filled in: the network leaves out what it does not know."
    ]
    if report["kind"] == "regression":
        r2 = by_name["R2"]["value"]
        parts.append(f"It explains {percent(max(r2 or 0, 0))} of the variance in unseen rows.")
    else:
        right = by_name["accuracy"]
        parts.append(
            f"It decides {percent(right['value'])} of unseen rows rightly, against "
            f"{percent(right['baseline'])} for always saying the most frequent class."
        )
        if report["positive"] is not None:
            parts.append(f"The positive class is {_quoted(report['positive'])}.")
        found = report["calibration"]
        parts.append(
            "There is no evidence that its probabilities are off."
            if found["error"] <= found["upper"]
            else f"Its probabilities are off by {number(100 * found['error'], 2)} percentage "
            "points on average, more than chance explains."
        )
        if _worse_than_prior(report):
            parts.append("Its log loss is worse than that of always predicting the prior.")
    start, end = report["fading"]["distance"][0], report["fading"]["distance"][-1]
    if start and end / start < 0.35:
        parts.append("The less it is told of a row, the less it claims.")
    names = [_quoted(one["name"]) for one in report["drivers"]["levels"][0]["items"][:3]]
    parts.append(f"What it relies on most: {listed(names)}.")
    return " ".join(parts)
