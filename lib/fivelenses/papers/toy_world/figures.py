"""The exhibits of the toy world's page, from the records of `measure` and `tables.models`."""

from collections.abc import Mapping

import pandas as pd

from fivelenses import tasks
from fivelenses.exhibits.exhibit import Exhibit, title
from fivelenses.exhibits.plots import dots, looks_of_tasks

PRETRAINED, SCRATCH = "pre-trained", "scratch"


def examples_of_tasks(table: pd.DataFrame) -> Exhibit:
    """Two development examples of each task, of different labels."""
    caption = "Two development examples of each sentence task, with different labels; ‖ separates two inputs."
    columns = {"task": ("task", title), "input": "input", "label": "label"}
    return Exhibit("toy-world-examples", "Tasks by example", table, caption, columns=columns)


def sentence_with_tree(table: pd.DataFrame) -> Exhibit:
    """One sentence of the toy treebank with its annotation."""
    caption = (
        "A sentence of the toy treebank: parts of speech and dependencies come from its derivation, not from a parser."
    )
    return Exhibit("toy-world-sentence", "Annotation", table, caption)


def pretraining(table: pd.DataFrame) -> Exhibit:
    """What each pre-trained encoder reached on held-out stories."""
    columns = {
        "encoder": "encoder",
        "masked_loss": ("masked tokens (nats)", "{:.2f}"),
        "masked_accuracy": ("masked tokens right", "{:.2f}"),
        "next_sentence_accuracy": ("next sentence right", "{:.2f}"),
        "pieces_seen": ("tokens read", in_millions),
        "seconds": ("minutes, one core", lambda seconds: f"{seconds / 60:.1f}"),
    }
    caption = (
        "The toy BERTs on held-out stories: cross-entropy and accuracy at masked tokens, accuracy of next-sentence "
        f"prediction (chance 0.5), over {table['masked_pieces'].iloc[0]:,} masked tokens."
    )
    return Exhibit("toy-world-pretraining", "Pre-training", table, caption, columns=columns)


def in_millions(number: float) -> str:
    """A number of tokens, as a table prints it.

    Example:
        >>> in_millions(2_340_000)
        '2.3 M'
    """
    return f"{number / 1e6:.1f} M"


def by_start(models: pd.DataFrame) -> pd.DataFrame:
    """Models with the column `start`: whether their encoder was pre-trained.

    Example:
        >>> by_start(pd.DataFrame({"encoder": ["toy-bert/seed-0", "random:toy-bert/seed-0"]}))["start"].tolist()
        ['pre-trained', 'scratch']
    """
    random = models["encoder"].str.startswith("random:")
    return models.assign(start=random.map({True: SCRATCH, False: PRETRAINED}))


def pretrained_as_one(models: pd.DataFrame, baselines: pd.DataFrame) -> pd.DataFrame:
    """The models with pre-training as those of one encoder, for the gate: their seeds are pre-trainings, too.

    Their null rate is the score of one answer always, of `measure.without_reading`.
    """
    table = by_start(models)
    null_rates = table["task"].map(baselines.set_index("task")["majority"])
    return table.assign(encoder=PRETRAINED, null_rate=null_rates)[table["start"] == PRETRAINED]


def scores(models: pd.DataFrame, baselines: pd.DataFrame) -> pd.DataFrame:
    """The scores of all models with those that need no reading (`measure.without_reading`): one row per task, kind of
    start and seed, with `task`, `start`, `seed`, `score`, `majority`, `length`, `bag_of_words`, `metric`.
    """
    table = by_start(models)[["task", "start", "seed", "score"]]
    table = baselines[["task"]].merge(table, "left").merge(baselines, "left", "task")
    return table[["task", "start", "seed", "score", "majority", "length", "bag_of_words", "metric"]]


def worth_table(table: pd.DataFrame) -> Exhibit:
    """The `scores` as a table."""
    rows = []
    for name, group in table.groupby("task", sort=False):
        row = {"task": title(name), "score": tasks.find(name).score_name}
        for column in ("majority", "length", "bag_of_words"):
            name = "null rate" if column == "majority" else column.replace("_", " ")
            row[name] = f"{group[column].iloc[0]:.3f}"
        rows.append(row | mean_and_range(group))
    caption = (
        f"Development scores over {table['seed'].nunique()} seeds (mean, and range in brackets). Each seed has its "
        "own pre-training; scratch is the same network from random weights, trained for the same steps. Bag of words "
        "and length are logistic regressions."
    )
    return Exhibit("toy-world-worth", "What pre-training is worth", table, caption, shown=pd.DataFrame(rows))


def mean_and_range(rows: pd.DataFrame) -> dict[str, str]:
    """The scores of one task from scratch and with pre-training, as a table prints them.

    Example:
        >>> mean_and_range(pd.DataFrame({"start": [SCRATCH, PRETRAINED, PRETRAINED], "score": [0.5, 0.6, 0.8]}))
        {'scratch': '0.500 (0.500–0.500)', 'pre-trained': '0.700 (0.600–0.800)'}
    """
    of_starts = {start: rows[rows["start"] == start]["score"] for start in (SCRATCH, PRETRAINED)}
    return {start: f"{of.mean():.3f} ({of.min():.3f}–{of.max():.3f})" for start, of in of_starts.items()}


def worth_figure(table: pd.DataFrame) -> Exhibit:
    """The scores as a picture: one point per seed, baselines as marks."""
    looks = looks_of_tasks(table["task"])
    label = "development score (accuracy; CoLA: Matthews correlation)"
    marks = {"majority": "null rate", "bag_of_words": "bag of words"}
    figure = dots(table, "score", "task", looks.names, label, "start", looks, open=[SCRATCH], marks=marks)
    caption = "Each dot is one seed: filled with pre-training, open from scratch at equal steps."
    alt = against_scratch(table, "task", looks.names)
    return Exhibit("toy-world-worth-figure", "Worth it", table, caption, alt, figure)


def against_scratch(table: pd.DataFrame, line: str, titles: Mapping) -> str:
    """The mean score of each task, or measure (`line`), with pre-training and from scratch, for an alternative text.

    Example:
        >>> table = pd.DataFrame({"task": "rte", "start": [PRETRAINED, SCRATCH], "score": [0.71, 0.52]})
        >>> against_scratch(table, "task", {"rte": "RTE"})
        'Development scores with pre-training against from scratch: RTE 0.71 against 0.52.'
    """
    means = table.groupby([line, "start"])["score"].mean()
    pairs = [f"{title} {means[key, PRETRAINED]:.2f} against {means[key, SCRATCH]:.2f}" for key, title in titles.items()]
    return f"Development scores with pre-training against from scratch: {'; '.join(pairs)}."
