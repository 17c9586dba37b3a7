"""The plain statement of chapter 6 in words and numbers that come from the table: what its prose is glued from.

No sentence is typed as a result. Which two measures part, at which layer, in what they differ, and whether the other
measures bear that out as the reason, all follow from the run.
"""

import math

import pandas as pd

from fivelenses.papers.five_lenses import agreement
from fivelenses.papers.five_lenses.figures import models_in_words
from fivelenses.papers.five_lenses.instruments import ADDED, BY_KEY, DIFFERENCES, LENSES, name
from fivelenses.papers.five_lenses.rank_statistics import between, number, with_interval


def findings(changes: pd.DataFrame) -> dict[str, str]:
    """What the prose of the chapter says of a run, by the names under which it is glued."""
    return _agreement(changes) | _places(changes) | _nulls(changes) | _parting(changes)


def _agreement(changes: pd.DataFrame) -> dict[str, str]:
    pairs = agreement.between_lenses(changes)
    defined = pairs.dropna(subset=["correlation"])
    layers, repeated = int(changes["layer"].max()), agreement.repeated(changes)
    words = {
        "models": models_in_words(changes),
        "layers": str(layers),
        "overall": with_interval(agreement.overall(changes)),
        "between_seeds": number(repeated.mean()),
        "least_repeated": f"{number(repeated.min())} ({name(repeated.idxmin())})" if len(repeated) else "undefined",
    }
    for which, place in (("closest", "idxmax"), ("farthest", "idxmin")):
        if defined.empty:
            words |= {f"{which}_lenses": "none", f"{which}_value": "undefined"}
            continue
        pair = defined.loc[getattr(defined["correlation"], place)()]
        words[f"{which}_lenses"] = f"{LENSES[pair['first']]} / {LENSES[pair['second']]}"
        words[f"{which}_value"] = between(pair.correlation, pair.low, pair.high)
    return words


def _places(changes: pd.DataFrame) -> dict[str, str]:
    tops = agreement.centres(changes)["top"].dropna()
    counts, layers = tops.value_counts(), changes["layer"].max()
    return {
        "usual_top": f"{counts.idxmax():.0f}",
        "usual_top_share": f"{counts.max()} of {len(tops)}",
        "usual_top_chance": f"{len(tops) / layers:.0f}",
    }


def _nulls(changes: pd.DataFrame) -> dict[str, str]:
    changes = agreement.whole(changes)
    similarity = changes[(changes["layer"] == changes["layer"].max()) & (changes["measure"] == "rsa")]
    labels = changes[changes["measure"] == "labels"].groupby(agreement.MODEL)[["value", "null"]].mean()
    return {
        f"beyond_{null}": f"{int((rows['value'] > rows['null']).sum())} of {len(rows)}"
        for null, rows in (("independent", similarity), ("permuted", labels))
    }


def _parting(changes: pd.DataFrame) -> dict[str, str]:
    parting, measures = agreement.parting(changes), agreement.between_measures(changes)
    least = parting.correlation
    others = measures[~measures["same_lens"] & (measures["correlation"] > least)]
    as_low = int((others["low"] <= least).sum())
    return {
        "parting_higher": name(parting.higher),
        "parting_lower": name(parting.lower),
        "parting_value": between(least, parting.low, parting.high),
        "parting_layer": str(parting.layer),
        "parting_reason": reason(changes, parting),
        "parting_alike": "an unknown number of" if measures["low"].isna().all() else str(as_low),
        "inherited_last": _share_inherited(changes, changes["layer"].max()),
    }


def _share_inherited(changes: pd.DataFrame, layer: int) -> str:
    """How much of the features' change at a layer's output is there at its input."""
    changes = agreement.whole(changes)
    rows = changes[(changes["measure"] == ADDED[0]) & (changes["layer"] == layer)]
    return f"{(rows['entering'] / rows['value']).mean():.0%}"


def reason(changes: pd.DataFrame, parting: agreement.Parting) -> str:
    """In what the two measures differ that agree least, and whether the run bears it out, in sentences."""
    both = (BY_KEY[parting.higher], BY_KEY[parting.lower])
    sentences = []
    for distinction, words in DIFFERENCES.items():
        kinds = [getattr(measure, distinction) for measure in both]
        if kinds[0] != kinds[1]:
            parts = [f"“{measure.name}” {words[kind]}" for measure, kind in zip(both, kinds, strict=True)]
            opening = "Another" if sentences else "One"
            sentences += [f"{opening} reason may be that {' and '.join(parts)}.", _borne_out(changes, distinction)]
    if not sentences:
        parts = [f"“{measure.name}” is {measure.more}" for measure in both]
        sentences = [f"They read the same part of a layer and differ only in what they measure: {'; '.join(parts)}."]
    return " ".join([*sentences, *_other_way(changes, parting), _noise(changes, parting)])


def _other_way(changes: pd.DataFrame, parting: agreement.Parting) -> list[str]:
    """For a measure that is below 0 where the two part, in most models: what its size alone would say."""
    sentences, whole = [], agreement.whole(changes)
    for measure, other in ((parting.higher, parting.lower), (parting.lower, parting.higher)):
        of_measure = changes["measure"] == measure
        below = whole[(whole["measure"] == measure) & (whole["layer"] == parting.layer)]["value"] < 0
        if below.mean() <= 0.5:
            continue
        sized = changes.assign(value=changes["value"].where(~of_measure, changes["value"].abs()))
        pairs = agreement.between_measures(sized)
        pair = pairs[pairs["first"].isin((measure, other)) & pairs["second"].isin((measure, other))].iloc[0]
        verdict = "which leaves open whether they see change in the same layers"
        if pair["low"] > 0:
            verdict = "they see change in the same layers, but disagree on its direction"
        elif pair["correlation"] <= 0:
            verdict = "size and direction are both at odds"
        sentences.append(
            f"In {below.sum()} of {len(below)} models “{name(measure)}” is below 0 there: fine-tuning went the other "
            f"way, which counts as the least change. By its size alone it agrees with “{name(other)}” "
            f"by {between(pair.correlation, pair.low, pair.high)}: {verdict}."
        )
    return sentences


def _noise(changes: pd.DataFrame, parting: agreement.Parting) -> str:
    repeated = agreement.repeated(changes)
    if not {parting.higher, parting.lower} <= set(repeated.index):
        return "With one seed, a disagreement cannot be told from noise."
    first, second = repeated[parting.higher], repeated[parting.lower]
    # Spearman's attenuation: measures of one thing with these reliabilities would correlate so on average. Seeds differ
    # in more than noise, so that it is a low estimate.
    bound = math.sqrt(max(first, 0.0) * max(second, 0.0))
    verdict = "does not set them apart" if bound > parting.high else "could set them apart"
    return (
        f"In two seeds of a task, “{name(parting.higher)}” agrees with itself by {number(first)} and "
        f"“{name(parting.lower)}” by {number(second)}; two measures of one thing that repeat as well would agree by "
        f"about {number(bound)}, so noise alone {verdict}."
    )


def _borne_out(changes: pd.DataFrame, distinction: str) -> str:
    table = agreement.apart(changes)
    table = table[table["distinction"] == distinction]
    gap = agreement.interval(table, "difference")
    verdict = "which leaves it open"
    if gap is not None and gap.measured and gap.low > 0:
        verdict = "which bears it out"
    elif gap is not None and gap.measured and gap.high < 0:
        verdict = "which speaks against it"
    return (
        f"Two measures that are alike in this agree by {number(table['alike'].mean())} on average and two that are not "
        f"by {number(table['different'].mean())} (difference {with_interval(gap)}), {verdict}."
    )
