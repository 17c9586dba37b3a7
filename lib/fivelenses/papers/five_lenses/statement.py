"""The plain statement of chapter 6 in words and numbers that come from the table: what its prose is glued from.

No sentence is typed as a result. Which two measures part, at which layer, in what they differ, and whether the other
measures bear that out as the reason, all follow from the run.
"""

import math

import pandas as pd

from fivelenses.papers.five_lenses import agreement
from fivelenses.papers.five_lenses.figures import models_in_words
from fivelenses.papers.five_lenses.instruments import ADDED, BY_KEY, LENSES, name
from fivelenses.papers.five_lenses.rank_statistics import Estimate, chance_bound, mean_over_models, number

CHANCE = 0.05
# What a measure is like, by an attribute of `Measure` in which two may differ.
DIFFERENCES = {
    "reads_activations": {True: "is taken from a layer's activations", False: "is taken from a layer's parameters"},
    "knows_labels": {True: "knows the task's labels", False: "counts every change, whatever the labels"},
}


def findings(changes: pd.DataFrame) -> dict[str, str]:
    """What the prose of the chapter says of a run, by the names under which it is glued."""
    return _agreement(changes) | _places(changes) | _nulls(changes) | _parting(changes)


def _agreement(changes: pd.DataFrame) -> dict[str, str]:
    pairs, measures = agreement.between_lenses(changes), agreement.between_measures(changes)
    defined = pairs.dropna(subset=["correlation"])
    layers, repeated = int(changes["layer"].max()), _repeated(changes)
    found = {
        "models": models_in_words(changes),
        "layers": str(layers),
        "chance_bound": number(chance_bound(layers)),
        "overall": str(agreement.overall(changes)),
        "between_seeds": number(repeated.mean()),
        "least_repeated": f"{number(repeated.min())} ({name(repeated.idxmin())})" if len(repeated) else "undefined",
        "same_lens": number(measures[measures["same_lens"]]["correlation"].mean()),
        "beyond_chance": f"{int((pairs['p_holm'] <= CHANCE).sum())} of {len(pairs)}",
    }
    for which, place in (("closest", "idxmax"), ("farthest", "idxmin")):
        if defined.empty:
            found |= {f"{which}_lenses": "none", f"{which}_value": "undefined"}
            continue
        pair = defined.loc[getattr(defined["correlation"], place)()]
        found[f"{which}_lenses"] = f"{LENSES[pair['first']]} / {LENSES[pair['second']]}"
        found[f"{which}_value"] = str(_estimate(pair))
    return found


def _estimate(pair: pd.Series) -> Estimate:
    """The correlation of a row of `between_measures` or `between_lenses`."""
    return Estimate(*(pair[key] for key in ("correlation", "low", "high", "models")))


def _repeated(changes: pd.DataFrame) -> pd.Series:
    """By measure, its rank correlation with itself between seeds; empty for a single seed."""
    return agreement.between_seeds(changes).groupby("measure", sort=False)["correlation"].mean().dropna()


def _places(changes: pd.DataFrame) -> dict[str, str]:
    table = agreement.centres(changes)
    centre, tops = table.groupby("measure", sort=False)["centre"].mean().dropna(), table["top"].dropna()
    counts, layers = tops.value_counts(), changes["layer"].max()
    return {
        "lowest_centre": f"{number(centre.min())} ({name(centre.idxmin())})",
        "highest_centre": f"{number(centre.max())} ({name(centre.idxmax())})",
        "middle": f"{(1 + layers) / 2:g}",
        "usual_top": f"{counts.idxmax():.0f}",
        "usual_top_share": f"{counts.max()} of {len(tops)}",
        "usual_top_chance": f"{len(tops) / layers:.0f}",
    }


def _nulls(changes: pd.DataFrame) -> dict[str, str]:
    last = changes[changes["layer"] == changes["layer"].max()].set_index("measure")
    similarity = last.loc[["rsa"]]
    labels = changes[changes["measure"] == "labels"].groupby(agreement.MODEL)[["value", "null"]].mean()
    return {
        "beyond_independent": f"{int((similarity['value'] > similarity['null']).sum())} of {len(similarity)}",
        "beyond_permuted": f"{int((labels['value'] > labels['null']).sum())} of {len(labels)}",
    }


def _parting(changes: pd.DataFrame) -> dict[str, str]:
    found, measures = agreement.parting(changes), agreement.between_measures(changes)
    others = measures[~measures["same_lens"] & (measures["correlation"] > found.correlation.value)]
    return {
        "parting_higher": name(found.higher),
        "parting_lower": name(found.lower),
        "parting_value": str(found.correlation),
        "parting_layer": str(found.layer),
        "parting_ranks": f"{found.difference:.1f}",
        "parting_reason": reason(changes, found),
        "parting_alike": str(int((others["low"] <= found.correlation.value).sum())),
        "inherited_there": _share_inherited(changes, found.layer),
        "inherited_last": _share_inherited(changes, changes["layer"].max()),
    }


def _share_inherited(changes: pd.DataFrame, layer: int) -> str:
    """How much of the features' change at a layer's output is there at its input."""
    rows = changes[(changes["measure"] == ADDED[0]) & (changes["layer"] == layer)]
    return f"{(rows['entering'] / rows['value']).mean():.0%}"


def reason(changes: pd.DataFrame, found: agreement.Parting) -> str:
    """In what the two measures differ that agree least, and whether the run bears it out, in sentences."""
    both = (BY_KEY[found.higher], BY_KEY[found.lower])
    sentences = []
    for distinction, words in DIFFERENCES.items():
        kinds = [getattr(measure, distinction) for measure in both]
        if kinds[0] != kinds[1]:
            said = [f"“{measure.name}” {words[kind]}" for measure, kind in zip(both, kinds, strict=True)]
            opening = "Another" if sentences else "One"
            sentences += [f"{opening} reason may be that {' and '.join(said)}.", _borne_out(changes, distinction)]
    if not sentences:
        said = [f"more of “{measure.name}” is {measure.more}" for measure in both]
        sentences = [f"They are of one kind, and differ in what they make of it: {'; '.join(said)}."]
    return " ".join([*sentences, *_other_way(changes, found), _noise(changes, found)])


def _other_way(changes: pd.DataFrame, found: agreement.Parting) -> list[str]:
    """For a measure that is below 0 where the two part, in most models: what its size alone would say."""
    sentences = []
    for measure, other in ((found.higher, found.lower), (found.lower, found.higher)):
        ours = changes["measure"] == measure
        below = changes[ours & (changes["layer"] == found.layer)]["value"] < 0
        if below.mean() <= 0.5:
            continue
        sized = changes.assign(value=changes["value"].where(~ours, changes["value"].abs()))
        pairs = agreement.between_measures(sized)
        pair = pairs[pairs["first"].isin((measure, other)) & pairs["second"].isin((measure, other))].iloc[0]
        by_size = _estimate(pair)
        verdict = "which leaves open whether they see change in the same layers"
        if by_size.low > 0:
            verdict = "they see change in the same layers, and part over its direction"
        elif by_size.value <= 0:
            verdict = "size and direction are both at odds"
        sentences.append(
            f"In {below.sum()} of {len(below)} models “{name(measure)}” is below 0 there: fine-tuning went the other "
            f"way, which the order of layers counts as least change. By its size alone it agrees with “{name(other)}” "
            f"by {by_size}: {verdict}."
        )
    return sentences


def _noise(changes: pd.DataFrame, found: agreement.Parting) -> str:
    repeated = _repeated(changes)
    if not {found.higher, found.lower} <= set(repeated.index):
        return "With one seed, nothing tells a parting from noise."
    first, second = repeated[found.higher], repeated[found.lower]
    # Spearman's attenuation: measures of one thing with these reliabilities would correlate so on average. Seeds differ
    # in more than noise, so that it is a low estimate.
    bound = math.sqrt(max(first, 0.0) * max(second, 0.0))
    told = "does not set them apart" if bound > found.correlation.high else "could set them apart"
    return (
        f"In two seeds of a task, “{name(found.higher)}” agrees with itself by {number(first)} and "
        f"“{name(found.lower)}” by {number(second)}; two measures of one thing that repeat so far would agree by about "
        f"{number(bound)}, so that noise alone {told}."
    )


def _borne_out(changes: pd.DataFrame, distinction: str) -> str:
    table = agreement.apart(changes)
    table = table[table["distinction"] == distinction]
    alike, different = (mean_over_models(table[kind]) for kind in ("alike", "different"))
    gap = mean_over_models(table["alike"] - table["different"])
    verdict = "which leaves it open"
    if gap.low > 0:
        verdict = "which bears it out"
    elif gap.high < 0:
        verdict = "which speaks against it"
    return (
        f"Two measures that are alike in this agree by {number(alike.value)} on average and two that are not by "
        f"{number(different.value)} (difference {gap}), {verdict}."
    )
