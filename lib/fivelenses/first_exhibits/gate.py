"""The gate: a task that the ordinary fine-tuned models did not learn takes no part in any claim.

What its layers, its interventions (re-initialised, frozen, truncated, rolled back) and its controls show is of a model
that learned nothing. A task counts as learned where the interval of score minus null rate, over seeds and development
examples, lies wholly above a tenth of the gain that the paper reports for it (two points where it reports none), and,
in a run that has a bag of words, that of score minus the bag's on the same examples above zero. So is each smaller
training set: a model that learned nothing with all its layers does not say what a layer is worth.
"""

from collections.abc import Mapping

import pandas as pd

from fivelenses import tasks
from fivelenses.first_exhibits import effects, intervals
from fivelenses.first_exhibits.verdicts import HOLDS, Effect, Part, judge_group

MARGIN = Part("score minus null rate", 0.02, "two points: less is no use of what was learned")
SHARE = 0.1  # of the gain over the null rate that the paper reports
WORDS = Part("score minus a bag of words")
COLUMNS = ["encoder", "task", "examples", "largest", "score", "null_rate", "above", "low", "high", "margin", "measured"]
COLUMNS += ["over_words", "over_words_low", "over_words_high", "learned"]
ORDINARY = {"frozen": -1, "truncated": -1, "reinitialised": 0, "shuffled_labels": False}


def ordinary(table: pd.DataFrame) -> pd.DataFrame:
    """Of `checkpoints.tables.models` those that were fine-tuned as usual: all layers, on the true labels, and of each
    size of the training set those of the fewest epochs, where some were trained on for longer.
    """
    for column, value in ORDINARY.items():
        table = table[table[column] == value]
    return table[table["epochs"] == table.groupby(["encoder", "task", "examples"])["epochs"].transform("min")]


def learned(
    models: pd.DataFrame,
    predictions: pd.DataFrame | None = None,
    gains: Mapping[str, float] | None = None,
    words: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Which tasks were learned, by encoder and size of the training set.

    Args:
        models: ordinary models, as `ordinary` leaves them.
        predictions: `checkpoints.predictions.by_example` of these models; without it the mean score decides.
        gains: by how much the paper's models score above the null rate, by task.
        words: `checkpoints.bag_of_words.words_by_example`; tasks and sizes without one are compared with the null rate
            alone.

    Returns:
        One row per encoder, task and size, with `score`, `null_rate` (means over seeds), `above`, `low`, `high` (score
        minus null rate, with its interval), `margin` (above which it has to lie), `measured` (whether there is an
        interval), `over_words` with its ends (score minus the bag's, missing without one), `learned`.

    Raises:
        ValueError: a model has no predictions, or two models have one encoder, task and seed.
    """
    rows = []
    for (encoder, task, examples), group in models.groupby(["encoder", "task", "examples"], sort=False):
        score, null = group["score"].mean(), group["null_rate"].mean()
        row = {"encoder": encoder, "task": task, "examples": examples, "score": score, "null_rate": null}
        gain = (gains or {}).get(task)
        margin = MARGIN if gain is None else Part(MARGIN.name, SHARE * gain, "a tenth of what the paper's models gain")
        over = effects.without_interval(score - null)
        if predictions is not None:
            predicted = _predictions(group, predictions, task, encoder)
            over = intervals.of_scores(predicted, over_null=True)
        decided = [judge_group([margin], [Effect(task, margin.name, over)])]
        row |= {"above": over.estimate, "low": over.low, "high": over.high, "margin": margin.threshold}
        row |= {"measured": over.measured}
        # A run without texts has no bag of words at all.
        bag = pd.DataFrame() if words is None or words.empty else words.query("task == @task and examples == @examples")
        if predictions is not None and not bag.empty:
            over = intervals.of_scores(predicted, bag)
            row |= {"over_words": over.estimate, "over_words_low": over.low, "over_words_high": over.high}
            decided.append(judge_group([WORDS], [Effect(task, WORDS.name, over)]))
        rows.append(row | {"learned": all(one.outcome == HOLDS for one in decided)})
    table = pd.DataFrame(rows, columns=[name for name in COLUMNS if name != "largest"])
    table["largest"] = table["examples"] == table.groupby(["encoder", "task"])["examples"].transform("max")
    return table[COLUMNS]


def _predictions(models: pd.DataFrame, predictions: pd.DataFrame, task: str, encoder: str) -> pd.DataFrame:
    """Those of the models, all of them."""
    predicted = predictions[predictions["address"].isin(models["address"])]
    if unpredicted := models[~models["address"].isin(predicted["address"])]["seed"].tolist():
        raise ValueError(f"Predictions of {task} with {encoder} lack the seeds {unpredicted}: measure them, too.")
    return predicted


def key(task: str, encoder: str, leading: str, examples: int | None = None) -> str:
    """The name under which claims and the gate speak of a task: with its encoder where that is not the run's own, and
    with the size of the training set where a claim is about one.

    Example:
        >>> key("rte", "bert-base-uncased", "bert-large-uncased"), key("rte", "bert", "bert", 500)
        ('rte on bert-base-uncased', 'rte from 500 examples')
    """
    size = "" if examples is None else f" from {examples:,} examples"
    return f"{task}{size}" if encoder == leading else f"{task}{size} on {encoder}"


def unlearned(table: pd.DataFrame, leading: str) -> Mapping[str, str]:
    """Why each task that was not learned takes no part, from the table of `learned`.

    By `key`, and for the leading encoder also by its task "on" its name, under which a family of encoders speaks of it;
    for each size of the training set, and without a size for the largest.

    Example:
        >>> rows = {"encoder": ["e"], "task": ["rte"], "examples": [2490], "largest": [True], "score": [0.56]}
        >>> rows |= {"above": [0.033], "low": [-0.01], "high": [0.08], "margin": [0.02], "measured": [True]}
        >>> rows |= {"over_words_low": [float("nan")], "learned": [False]}
        >>> sorted(reasons := unlearned(pd.DataFrame(rows), "e"))
        ['rte', 'rte from 2,490 examples', 'rte from 2,490 examples on e', 'rte on e']
        >>> reasons["rte"].partition(": its score of ")
        ('RTE was not clearly learned', ': its score of ',\
 '0.560 is 0.033 [−0.010, 0.080] above the null rate, and the interval reaches below 0.02')
    """
    reasons = {}
    for row in table[~table["learned"].astype(bool)].itertuples():
        sizes = (None, row.examples) if row.largest else (row.examples,)
        keys = [key(row.task, row.encoder, other, size) for size in sizes for other in (leading, "")]
        reasons |= dict.fromkeys(keys, _reason(row, leading))
    return reasons


def _reason(row, leading: str) -> str:
    """Why the models of one row of `learned` take no part."""
    name = tasks.find(row.task).title + ("" if row.largest else f" from {row.examples:,} examples")
    name += "" if row.encoder == leading else f" on {row.encoder}"
    if row.low > row.margin:
        over = f"{row.over_words:z.3f} [{row.over_words_low:z.3f}, {row.over_words_high:z.3f}]".replace("-", "−")
        return f"{name} was not clearly learned: its score of {row.score:.3f} is {over} above that of a bag of words"
    reach = f" [{row.low:z.3f}, {row.high:z.3f}]" if row.measured else ""
    score = f"its score of {row.score:.3f} is {row.above:z.3f}{reach} above the null rate".replace("-", "−")
    unclear = row.measured and row.above > row.margin
    was, bound = (
        ("was not clearly learned", "and the interval reaches below") if unclear else ("was not learned", "not above")
    )
    return f"{name} {was}: {score}, {bound} {row.margin:.2g}"
