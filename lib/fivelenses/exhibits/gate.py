"""The gate: a task that the ordinary fine-tuned models did not learn takes no part in any claim.

What its layers, its interventions (re-initialised, frozen, truncated, rolled back) and its controls show is of a model
that learned nothing. A task counts as learned where the interval of score minus null rate, over seeds and development
examples, lies wholly above two points.
"""

from collections.abc import Mapping

import pandas as pd

from fivelenses import tasks
from fivelenses.exhibits import effects, intervals
from fivelenses.exhibits.verdicts import HOLDS, Effect, Part, judge_group

MARGIN = Part("score minus null rate", 0.02, "two points: less is no use of what was learned")
COLUMNS = ["encoder", "task", "score", "null_rate", "above", "low", "high", "measured", "learned"]
ORDINARY = {"frozen": -1, "truncated": -1, "reinitialised": 0, "shuffled_labels": False}


def ordinary(table: pd.DataFrame) -> pd.DataFrame:
    """Of `checkpoints.tables.models` those that were fine-tuned as usual: all layers, on the true labels, on the most
    examples, and for the fewest epochs where some were trained on for longer.
    """
    for column, value in ORDINARY.items():
        if column in table.columns:
            table = table[table[column] == value]
    for column, extreme in (("examples", "max"), ("epochs", "min")):
        if column in table.columns:
            table = table[table[column] == table.groupby(["encoder", "task"])[column].transform(extreme)]
    return table


def learned(models: pd.DataFrame, predictions: pd.DataFrame | None = None) -> pd.DataFrame:
    """Which tasks were learned, by encoder.

    Args:
        models: ordinary models, as `ordinary` leaves them.
        predictions: `checkpoints.predictions.by_example` of these models; without it the mean score decides.

    Returns:
        One row per encoder and task, with `score`, `null_rate` (means over seeds), `above`, `low`, `high` (score minus
        null rate, with its interval), `measured` (whether there is one), `learned`.

    Raises:
        ValueError: a model has no predictions, or two models have one encoder, task and seed.
    """
    rows = []
    for (encoder, task), group in models.groupby(["encoder", "task"], sort=False):
        score, null = group["score"].mean(), group["null_rate"].mean()
        if predictions is None:
            above = effects.without_interval(score - null)
        else:
            predicted = predictions[predictions["address"].isin(group["address"])]
            if unpredicted := group[~group["address"].isin(predicted["address"])]["seed"].tolist():
                raise ValueError(
                    f"Predictions of {task} with {encoder} lack the seeds {unpredicted}: measure them, too."
                )
            above = intervals.of_scores(predicted, over_null=True)
        outcome = judge_group([MARGIN], [Effect(task, MARGIN.name, above)]).outcome
        row = {"encoder": encoder, "task": task, "score": score, "null_rate": null, "above": above.estimate}
        rows.append(
            row | {"low": above.low, "high": above.high, "measured": above.measured, "learned": outcome == HOLDS}
        )
    return pd.DataFrame(rows, columns=COLUMNS)


def key(task: str, encoder: str, leading: str) -> str:
    """The name under which claims and the gate speak of a task: with its encoder where that is not the run's own.

    Example:
        >>> key("rte", "bert-base-uncased", "bert-large-uncased")
        'rte on bert-base-uncased'
    """
    return task if encoder == leading else f"{task} on {encoder}"


def unlearned(table: pd.DataFrame, leading: str) -> Mapping[str, str]:
    """Why each task that was not learned takes no part, from the table of `learned`.

    By `key`, and for the leading encoder also by its task "on" its name, under which a family of encoders speaks of it.

    Example:
        >>> rows = {"encoder": ["e"], "task": ["rte"], "score": [0.56], "null_rate": [0.527], "above": [0.033]}
        >>> rows |= {"low": [-0.01], "high": [0.08], "measured": [True], "learned": [False]}
        >>> sorted(reasons := unlearned(pd.DataFrame(rows), "e"))
        ['rte', 'rte on e']
        >>> reasons["rte"].partition(": its score of ")
        ('RTE was not clearly learned', ': its score of ',\
 '0.560 is 0.033 [−0.010, 0.080] above the null rate, and the interval reaches below 0.02')
    """
    reasons = {}
    for row in table[~table["learned"].astype(bool)].itertuples():
        name = tasks.find(row.task).title + ("" if row.encoder == leading else f" on {row.encoder}")
        reach = f" [{row.low:z.3f}, {row.high:z.3f}]" if row.measured else ""
        score = f"its score of {row.score:.3f} is {row.above:z.3f}{reach} above the null rate".replace("-", "−")
        unclear = row.measured and row.above > MARGIN.threshold
        was, bound = (
            ("was not clearly learned", "and the interval reaches below")
            if unclear
            else ("was not learned", "not above")
        )
        reason = f"{name} {was}: {score}, {bound} {MARGIN.threshold:g}"
        reasons |= {key(row.task, row.encoder, leading): reason, key(row.task, row.encoder, ""): reason}
    return reasons
