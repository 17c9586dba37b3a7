"""What chapter 7 says in its prose, and what other pages quote of it: words and numbers from the records alone."""

import pandas as pd

from fivelenses.papers.known_truth import scores
from fivelenses.papers.known_truth.instruments import BY_KEY

FEATURES = ("svcca", "pwcca", "cka", "rsa", "cka_debiased", "procrustes", "neighbours")


def findings(changes: pd.DataFrame) -> dict[str, str]:
    """What the prose says of a run, by the names under which it is glued."""
    by_value, by_addition = (scores.cases(changes, reading) for reading in scores.READINGS)
    ignored = scores.nothing(changes)
    words = {}
    for key in BY_KEY:
        if key in by_value.index:
            words[f"{key}_names"] = _in_cases(by_value.loc[key])
            words[f"{key}_adds"] = _in_cases(by_addition.loc[key])
    features = [key for key in FEATURES if key in by_value.index]
    words["features_names"] = _range([by_value.loc[key, "right"] for key in features], by_value["of"].max())
    words["features_adds"] = _range([by_addition.loc[key, "right"] for key in features], by_value["of"].max())
    weights = ignored[ignored["measure"] == "weights"].groupby("kind")["share"].mean()
    words["weights_seen"] = f"{weights.min():.1f} to {weights.max():.1f}"
    return words


QUOTED = ("weights", "last", "rollback", "js", "features")


def quoted(changes: pd.DataFrame | None, prefix: str = "known") -> dict[str, str]:
    """What other pages say of chapter 7: in how many cases a lens names a trained layer, by value and by addition;
    dashes where no run is published.

    Args:
        changes: the record `changes_seen` of a run.
        prefix: of the names under which it is said.

    Example:
        >>> quoted(None)["known_weights"]
        '–'
    """
    names = [f"{prefix}_{key}" for key in (*QUOTED, "features_added")]
    if changes is None:
        return dict.fromkeys(names, "–")
    numbers = findings(changes)
    return dict(zip(names, [*(numbers[f"{key}_names"] for key in QUOTED), numbers["features_adds"]], strict=True))


def _in_cases(row: pd.Series) -> str:
    return f"in {row['right']} of {row['of']} cases"


def _range(counts: list[int], of: int) -> str:
    low, high = min(counts), max(counts)
    return f"in {low} of {of} cases" if low == high else f"in {low} to {high} of {of} cases"
