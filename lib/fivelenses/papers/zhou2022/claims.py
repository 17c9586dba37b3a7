"""The seven claims of Zhou and Srikumar (2022) as effects, from the records of `measure` and `probing`.

DirectProbe's numbers are no smooth function of the examples, so the training set counts as given and an interval covers
seeds alone; that of a probe's accuracy covers seeds and held-out sentences. All thresholds but one are ours. That a
label also comes nearer on the way is shown and not judged: the greatest fall of many labels between many states is
above zero whatever they do.
"""

from collections.abc import Iterator, Mapping

import pandas as pd

from fivelenses.first_exhibits import effects, gate, intervals
from fivelenses.first_exhibits.claims import CannotTest, Claims
from fivelenses.first_exhibits.effects import Interval
from fivelenses.first_exhibits.exhibit import title
from fivelenses.first_exhibits.verdicts import RATIO, Effect, Part
from fivelenses.papers.zhou2022.tables import PAPER_CHANGE_AFTER_POS, short
from fivelenses.records import AFTER, BEFORE

CLAIMS = Claims("zhou2022")
EXCEPTIONS = 0.2  # share of an encoder's tasks that may gain nothing
FEW_LABELS = 0.1  # share of a task's labels that may stay where they are
OWN, RELATED, OPPOSING, UNTUNED = "ps-fxn", "ps-role", "pos", "nothing"

Tables = Mapping[str, pd.DataFrame]

GAIN = Part("gain of accuracy", unit="share of the held-out points")
DIVERGENCE = Part("fall of similarity", unit="Pearson correlation")
FEWER = Part("clusters fewer", unit="clusters per label")
GROWTH = Part("growth of the least distance", unit="units of the hidden states")
CROSSED = {
    "PS-fxn over PS-role": (OWN, RELATED),
    "PS-role over untuned": (RELATED, UNTUNED),
    "untuned over POS": (UNTUNED, OPPOSING),
}
DISTANCES = {Part(f"distances, {name}", unit="units of the hidden states"): pair for name, pair in CROSSED.items()}
ACCURACIES = {Part(f"accuracy, {name}", unit="share of the held-out points"): pair for name, pair in CROSSED.items()}
ORDER = Part("least similarity", 0.5, "the paper's own: more than 0.5", "Pearson correlation")
LESS = Part(
    "high layers over low ones",
    5,
    "“much smaller”: a straight line from zero gives at most 5, whatever the depth",
    RATIO,
)
DIRECTIONS = Part("low layers in fewer directions", unit="share of the movement that lies in two directions")


def _cases(table: pd.DataFrame) -> Iterator[tuple[str, tuple[str, ...], pd.DataFrame]]:
    """The rows of each encoder and task, with the case's name and what it stands on."""
    for (encoder, task), rows in table.groupby(["encoder", "task"], sort=False):
        yield f"{short(encoder)} on {title(task)}", (gate.key(task, encoder, ""),), rows


def _gain(fits: pd.DataFrame, sentences: pd.DataFrame | None) -> Interval:
    """What one encoder's probe gains on one task."""
    if sentences is None:
        accuracy = fits.groupby("stage")["accuracy"].mean()
        return effects.without_interval(accuracy[AFTER] - accuracy[BEFORE])
    after = sentences[sentences["stage"] == AFTER]
    before = sentences[(sentences["stage"] == BEFORE) & sentences["seed"].isin(after["seed"])]
    return intervals.of_scores(after, before)


@CLAIMS.add(
    "mostly-improves",
    "Fine-tuning nearly always improves what a probe reads; there are exceptions.",
    "least gain of the probe's accuracy over an encoder's tasks, but for a fifth of them",
    GAIN,
    place="§4.1, Table 7",
    exhibits=("zhou2022-table-7",),
    unit="encoder",
    printed="24 of 25 cases improve",
)
def improves(probe_accuracy: Tables) -> Iterator[Effect]:
    """With k tasks excepted, one of the k + 1 that gain least may pass by chance: the level is raised accordingly."""
    fits, sentences = probe_accuracy["fits"], probe_accuracy.get("sentences")
    for encoder, of_encoder in fits.groupby("encoder", sort=False):
        gains = {}
        for task, of_task in of_encoder.groupby("task", sort=False):
            if (of_task["stage"] == AFTER).any():
                same = None if sentences is None else (sentences["encoder"] == encoder) & (sentences["task"] == task)
                gains[task] = _gain(of_task, None if same is None else sentences[same])
        excepted = int(EXCEPTIONS * len(gains) + 1e-9)
        if gains:
            gain = sorted(gains.values(), key=lambda one: one.estimate)[excepted]
            gain = effects.at_level(gain, 1 - (1 - gain.level) / (excepted + 1)) if gain.measured else gain
            stands_on = tuple(gate.key(task, encoder, "") for task in gains)
            yield Effect(short(encoder), GAIN.name, gain, stands_on=stands_on)


@CLAIMS.add(
    "diverges",
    "The geometry of training and test set become less alike.",
    "fall of the similarity of training and test set, where planes separate the labels of the points measured",
    DIVERGENCE,
    place="§4.1, Table 2",
    exhibits=("zhou2022-table-2",),
    unit="case",
    printed="to 0.44 at the lowest (BERT-small on PS-fxn)",
    nothing="in no case do planes separate the labels that training and test set share, before and after",
)
def diverges(geometry: pd.DataFrame) -> Iterator[Effect]:
    for case, stands_on, rows in _cases(geometry):
        similarity = rows.pivot_table(index="seed", columns="stage", values="similarity")
        similarity = similarity.reindex(columns=[BEFORE, AFTER]).dropna()
        if len(similarity):
            falls = effects.over_models(similarity[BEFORE] - similarity[AFTER])
            yield Effect(case, DIVERGENCE.name, falls, stands_on=stands_on)


@CLAIMS.add(
    "simplifies",
    "Where labels are not linearly separable, they fall into fewer clusters afterwards.",
    "fall of the number of clusters per label, where planes do not separate the points counted before fine-tuning",
    FEWER,
    place="§4.2, Tables 3 and 4",
    exhibits=("zhou2022-table-3", "zhou2022-table-4", "zhou2022-table-7"),
    unit="case",
    nothing="planes separate the labels of all points counted before fine-tuning, or none were counted",
)
def simplifies(geometry: pd.DataFrame) -> Iterator[Effect]:
    for case, stands_on, rows in _cases(geometry):
        clusters = rows.pivot_table(index="seed", columns="stage", values="clusters")
        clusters, labels = clusters.reindex(columns=[BEFORE, AFTER]).dropna(), rows["labels"].iloc[0]
        if len(clusters) and (clusters[BEFORE] > labels).all():
            fewer = effects.over_models((clusters[BEFORE] - clusters[AFTER]) / labels, unit=1 / labels)
            yield Effect(case, FEWER.name, fewer, stands_on=stands_on)


def _followed(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """The last layer's rows of each task that was followed beyond the first state."""
    last = table[table["layer"] == table["layer"].max()]
    for task, rows in last.groupby("task", sort=False):
        if rows["step"].nunique() > 1:
            yield task, rows


@CLAIMS.add(
    "pushes-apart",
    "Each label moves away from its nearest neighbour.",
    "growth of the least distance that nine in ten labels reach",
    GROWTH,
    place="§4.3, Figures 2 and 6",
    exhibits=("zhou2022-figure-6",),
    nothing="in no task do planes separate the labels at the first and the last state",
)
def pushes_apart(along_training: Tables) -> Iterator[Effect]:
    """Only where planes separate the labels of the points that are followed at the first and the last state."""
    for task, rows in _followed(along_training["distances"]):
        ends = rows[rows["step"].isin([rows["step"].min(), rows["step"].max()])]
        if not ends["separable"].all():
            continue
        growth = []
        for _, of_seed in ends.groupby("seed"):
            curves = of_seed.pivot(index="step", columns="label", values="min_distance").sort_index()
            growth.append((curves.iloc[-1] - curves.iloc[0]).quantile(FEW_LABELS))
        yield Effect(title(task), GROWTH.name, effects.over_models(growth), stands_on=(task,))


@CLAIMS.add(
    "cross-task",
    "A related task pushes the labels apart less than the task itself, an opposing one together; accuracy agrees.",
    "differences of the labels' mean least distance, and of a probe's accuracy, between models tuned on each task",
    *DISTANCES,
    *ACCURACIES,
    place="§4.4, Table 5",
    exhibits=("zhou2022-table-5",),
    unit="target",
    printed=f"{PAPER_CHANGE_AFTER_POS} on average after POS",
)
def cross_task(target_distances: pd.DataFrame, target_accuracy: Tables) -> Iterator[Effect]:
    distances, accuracies = target_distances, target_accuracy
    lacking = [task for task in (OWN, RELATED, OPPOSING) if task not in set(distances["tuned_on"])]
    if lacking:
        raise CannotTest(f"no model was tuned on {', '.join(map(title, lacking))}")
    if not distances["separable"].all():
        raise CannotTest(f"planes do not separate the labels of {title(OWN)} in each of the models")
    mean = distances.groupby(["seed", "tuned_on"])["after"].mean().unstack()
    fits, sentences = accuracies["fits"], accuracies.get("sentences")
    stands_on = (OWN, RELATED, OPPOSING)
    for part, (better, worse) in DISTANCES.items():
        apart = effects.over_models(mean[better] - mean[worse])
        yield Effect(title(OWN), part.name, apart, stands_on=stands_on)
    for part, (better, worse) in ACCURACIES.items():
        if sentences is None:
            accuracy = fits.groupby("tuned_on")["accuracy"].mean()
            ahead = effects.without_interval(accuracy[better] - accuracy[worse])
        else:
            ahead = intervals.of_scores(*(sentences[sentences["tuned_on"] == task] for task in (better, worse)))
        yield Effect(title(OWN), part.name, ahead, stands_on=stands_on)


@CLAIMS.add(
    "keeps-order",
    "Even the last layer keeps the relative positions of the labels.",
    "least similarity of the last layer to itself before, where planes separate the labels of the points measured",
    ORDER,
    place="§4.5, Figure 4",
    exhibits=("zhou2022-figure-4",),
    printed="more than 0.5",
    nothing="in no task do planes separate the labels in the last layer at every state",
)
def keeps_order(along_training: Tables) -> Iterator[Effect]:
    for task, rows in _followed(along_training["similarities"]):
        least = rows.groupby("seed")["similarity"].agg(lambda values: values.min(skipna=False)).dropna()
        if len(least):
            yield Effect(title(task), ORDER.name, effects.over_models(least), stands_on=(task,))


@CLAIMS.add(
    "low-moves-little",
    "In low layers the labels move much less than in high ones, and in fewer directions.",
    "mean movement of the labels in the upper third of the layers over that in the lower; share of it that lies in two "
    "directions, lower third minus upper",
    LESS,
    DIRECTIONS,
    place="§4.5, Figures 3 and 5",
    exhibits=("zhou2022-figure-5", "zhou2022-figure-7", "zhou2022-figure-8", "zhou2022-figure-9", "zhou2022-figure-10"),
    variants={"halves of the layers": {"share": 1 / 2}},
)
def low_moves_little(along_training: Tables, *, share: float = 1 / 3) -> Iterator[Effect]:
    """Lengths are absolute, as in the paper; those relative to the distances between labels stand in its figures."""
    moved = along_training["movements"]
    depth = moved["layer"].max()
    low, high = moved["layer"] <= depth * share, moved["layer"] > depth * (1 - share)
    if not low.any():
        raise CannotTest(f"an encoder of {depth} layers has none in its lower third")
    means = [moved[third].groupby(["task", "seed"], sort=False)[["length", "in_two"]].mean() for third in (low, high)]
    more, fewer = means[1]["length"] / means[0]["length"], means[0]["in_two"] - means[1]["in_two"]
    for task in moved["task"].unique():
        for part, values in ((LESS, more), (DIRECTIONS, fewer)):
            measured = effects.over_models(values[task], log=part is LESS)
            yield Effect(title(task), part.name, measured, stands_on=(task,))
