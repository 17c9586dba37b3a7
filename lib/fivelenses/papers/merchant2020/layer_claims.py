"""The claims of Merchant et al. (2020) on where layers change (sections 5 and 6).

Groups and layers are as in `probe_claims`.
"""

from collections.abc import Iterator

import pandas as pd

from fivelenses.exhibits import effects
from fivelenses.exhibits.claims import CannotTest, Claims, LeftOut
from fivelenses.exhibits.effects import Interval
from fivelenses.exhibits.exhibit import title
from fivelenses.exhibits.gate import key
from fivelenses.exhibits.intervals import of_measure
from fivelenses.exhibits.verdicts import AT_LEAST, EXACT, Effect, Part
from fivelenses.papers.merchant2020 import ablations
from fivelenses.papers.merchant2020.probed import PARSER
from fivelenses.papers.merchant2020.reading import check_present, sentences_of, wide
from fivelenses.papers.merchant2020.similarity import RUNNING_TEXT, SIDES

CLAIMS = Claims("merchant2020")
TRAINED_ANEW = "each ablated model is trained by itself, and a model moved at random is not trained"
LOSS = "loss of RSA similarity"
ON_TOP = Part("rise of the loss towards the top third, minus that towards the middle third", unit=LOSS)
GROWTH = Part("loss in the top third minus the bottom third", unit=LOSS)
OTHERS_GROWTH = Part("the other's loss in the top third minus the bottom third", unit=LOSS)
ORDER = Part("the other's loss minus this one's, without the last layer", unit=LOSS)
OF_GAIN = "share of the gain over the null rate"
KEPT = Part("minus the loss", -0.1, "a tenth of what fine-tuning gains over the null rate", OF_GAIN)
PARSER_LOSES = Part("the parser's loss", unit=OF_GAIN)
PARSER_LOSES_MORE = Part("the parser's loss minus this task's", unit=OF_GAIN)
THAN_TEXT = Part("similarity on running text minus that on the task's own input", unit="RSA in [-1, 1]")
THAN_OTHER = Part("similarity on the other task's input minus that on the task's own", unit="RSA in [-1, 1]")


def _thirds(rows: pd.DataFrame, name: str) -> tuple[list[float], list[float]]:
    """Mean loss of similarity, and mean layer over the depth, in the bottom, middle and top third of the layers."""
    # Arrays: this is asked for each pre-training and fold, where grouping a table would take most of the time.
    layers, loss = rows["layer"].to_numpy(), 1 - rows[name].to_numpy()
    depth = layers.max()
    third = (layers > depth / 3).astype(int) + (layers > depth * 2 / 3)
    inside = [third == number for number in range(3)]
    return [loss[of].mean() for of in inside], [layers[of].mean() / depth for of in inside]


def _gathers_on_top(rows: pd.DataFrame, name: str) -> float:
    """The difference of two slopes, per third of the depth: thirds of 8 layers are not equally far apart."""
    (low, middle, top), places = _thirds(rows, name)
    return ((top - middle) / (places[2] - places[1]) - (middle - low) / (places[1] - places[0])) / 3


def _growth(rows: pd.DataFrame, name: str) -> float:
    (low, _, top), _ = _thirds(rows, name)
    return top - low


def _order(rows: pd.DataFrame, first: str, second: str) -> float:
    layers = rows["layer"].to_numpy()
    return (rows[first].to_numpy() - rows[second].to_numpy())[layers < layers.max()].mean()


@CLAIMS.add(
    "top-layers-change",
    "Similarity to the pre-trained encoder falls in the top layers: least for MNLI, then SQuAD, most for the parser.",
    "loss of similarity between thirds of the layers: the rise from the middle to the top minus that from the "
    "bottom to the middle, and top minus bottom; difference of two tasks",
    ON_TOP,
    GROWTH,
    OTHERS_GROWTH,
    ORDER,
    place="section 5.1, Figure 2",
    exhibits=("merchant2020-figure-2",),
    unit="pair",
    printed="0.84 ± 0.02 in MNLI's last layer but one; the parser departs at layers 4 and 5 of 12",
)
def top_layers_change(similarities: pd.DataFrame) -> Iterator[Effect]:
    """Pre-trainings are the models. A straight line gathers nowhere: its second difference between thirds is 0."""
    table = similarities
    check_present(table["model"], [PARSER], "model of")
    if table["layer"].max() < 3:
        raise CannotTest("an encoder of fewer than three layers has no bottom, middle and top third")
    leading = table["pretrained"].iloc[0]
    names = [name for name in (*SIDES, PARSER) if (table["model"] == name).any()]
    curves = wide(table[table["layer"] > 0], ["pretrained", "layer"], "similarity")
    texts = sentences_of(table)
    for place, first in enumerate(names):
        for second in names[place + 1 :]:
            both = curves.dropna(subset=[first, second])
            if both.empty:
                continue
            group, runs = f"{title(first)} before {title(second)}", both["pretrained"].unique()
            on = tuple(key(task, run, leading) for run in runs for task in (first, second))
            for part, measure in (
                (ON_TOP, lambda rows, name=first: _gathers_on_top(rows, name)),
                (GROWTH, lambda rows, name=first: _growth(rows, name)),
                (OTHERS_GROWTH, lambda rows, name=second: _growth(rows, name)),
                (ORDER, lambda rows, one=first, other=second: _order(rows, one, other)),
            ):
                mean = of_measure(both, measure, model="pretrained", examples=texts)
                yield Effect(group, part.name, mean, stands_on=on)


@CLAIMS.add(
    "few-layers-suffice",
    "Freezing most of the bottom layers costs MNLI and SQuAD little, and the parser more.",
    "share of the gain over the null rate that is lost, at the worst number of frozen layers up to half of them, or up "
    "to the next number that was tried; "
    "the parser's mean loss over these",
    KEPT,
    PARSER_LOSES,
    PARSER_LOSES_MORE,
    place="section 5.2, Figure 3",
    exhibits=("merchant2020-figure-3",),
    printed="MNLI drops with the last two of 12 layers frozen, SQuAD with three or fewer free",
    untwinned=TRAINED_ANEW,
)
def few_layers_suffice(
    models: pd.DataFrame, similarities: pd.DataFrame, by_example: pd.DataFrame | None = None
) -> Iterator[Effect | LeftOut]:
    lost = _lost(models, similarities, by_example, "frozen")
    half = lost["layers"].iloc[0] / 2
    for task, of_task, of_parser in _beside_the_parser(lost):
        places = [sorted(of_one["frozen"].unique()) for of_one in (of_task, of_parser)]
        shared = sorted(set(places[0]) & set(places[1]) - {0})
        if not shared or shared[-1] < half:
            raise CannotTest("no encoder of the parser and another task was tuned with half of its layers frozen")
        # Half, or the first number above it that was measured; the paper freezes two thirds and more.
        most = min(place for place in shared if place >= half)
        # 0 froze the embeddings alone.
        worst = of_task[of_task["frozen"].between(1, most)].groupby("frozen")["lost"].mean().idxmax()
        compared = [
            of_one[of_one["frozen"].isin(shared) & (of_one["frozen"] <= most)] for of_one in (of_task, of_parser)
        ]
        yield from _ablated(task, of_task[of_task["frozen"] == worst], *compared, EXACT)


@CLAIMS.add(
    "shallow-truncation",
    "Half of the layers come near the full score on MNLI and SQuAD; the parser needs more of them.",
    "share of the gain over the null rate that is lost with half of the layers, or, as a bound, with the most below "
    "half that were tried",
    KEPT,
    PARSER_LOSES,
    PARSER_LOSES_MORE,
    place="section 5.2, Figure 4",
    exhibits=("merchant2020-figure-4",),
    printed="near the full score by layer 6 of 12; three layers suffice for MNLI, five for SQuAD",
    untwinned=TRAINED_ANEW,
)
def shallow_truncation(
    models: pd.DataFrame, similarities: pd.DataFrame, by_example: pd.DataFrame | None = None
) -> Iterator[Effect | LeftOut]:
    """With as many layers as were tuned below half where half was not: then half loses at most as much."""
    lost = _lost(models, similarities, by_example, "kept")
    depth = lost["layers"].iloc[0]
    for task, of_task, of_parser in _beside_the_parser(lost):
        shared = set(of_task["kept"]) & set(of_parser["kept"])
        below = [kept for kept in shared if kept <= depth / 2]
        if not below:
            raise CannotTest("no encoder of the parser and another task was tuned with half of its layers or fewer")
        compared = [of_one[of_one["kept"] == max(below)] for of_one in (of_task, of_parser)]
        yield from _ablated(task, *compared[:1], *compared, EXACT if max(below) == depth // 2 else AT_LEAST)


def _lost(models, similarities, predictions, position: str) -> pd.DataFrame:
    """`ablations.losses` of the run's own encoder."""
    table = ablations.varied(models, similarities, models["encoder"].iloc[0], position)
    table = table[table["task"].isin([*SIDES, PARSER])]
    if table.empty or PARSER not in set(table["task"]) or table["task"].nunique() == 1:
        raise CannotTest("no encoders of the parser and of another task were tuned with their layers varied")
    return ablations.losses(table, predictions, position)


def _beside_the_parser(lost: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame, pd.DataFrame]]:
    of_parser = lost[lost["task"] == PARSER]
    for task in [name for name in SIDES if (lost["task"] == name).any()]:
        yield task, lost[lost["task"] == task], of_parser


def _ablated(task, worst, compared, of_parser, bound: str) -> Iterator[Effect | LeftOut]:
    """The parts of both ablations, from the rows at the worst place and at those where the parser is compared."""
    group, on = f"{title(task)} beside the parser", (task, PARSER)
    if idle := [name for name, rows in ((task, compared), (PARSER, of_parser)) if (rows["gain"] <= 0).any()]:
        yield LeftOut(group, f"no gain over the null rate in {' and '.join(map(title, idle))}", on)
        return

    def lost(rows: pd.DataFrame, sign: int = 1) -> Interval:
        return of_measure(rows, lambda one: sign * one["lost"].mean(), examples=sentences_of(rows) or None)

    yield Effect(group, KEPT.name, lost(worst, -1), bound, on)
    others, own = lost(of_parser), lost(compared)
    yield Effect(group, PARSER_LOSES.name, others, stands_on=on)
    yield Effect(group, PARSER_LOSES_MORE.name, effects.independent_difference(others, own), stands_on=on)


@CLAIMS.add(
    "in-domain-changes-more",
    "Representations change more on the task's own kind of input than on running text or on another task's.",
    "similarity in the upper half of the layers on other input minus that on the task's own",
    THAN_TEXT,
    THAN_OTHER,
    place="section 6, Figure 5",
    exhibits=("merchant2020-figure-5-mnli", "merchant2020-figure-5-squad"),
)
def in_domain_changes_more(similarities: pd.DataFrame, similarities_by_input: pd.DataFrame) -> Iterator[Effect]:
    text, by_input = similarities, similarities_by_input
    if by_input.empty:
        raise CannotTest("no encoder was tuned on a task whose input is a pair of texts")
    if "fold" not in by_input.columns:
        raise CannotTest("this run's similarities count [CLS] and [SEP], of which a task's input has a larger share")
    both = pd.concat([text[text["pretrained"].isin(by_input["pretrained"])], by_input])
    upper = both[(both["layer"] > both["layer"].max() / 2) & both["model"].isin(by_input["model"])]
    for model, of_model in upper.groupby("model", sort=False):
        on_input = {
            name: of_measure(
                rows, lambda one: one["similarity"].mean(), model="pretrained", examples=sentences_of(rows)
            )
            for name, rows in of_model.groupby("input", sort=False)
        }
        for part, other in ((THAN_TEXT, RUNNING_TEXT), (THAN_OTHER, *(name for name in SIDES if name != model))):
            check_present(on_input, [other, model], f"similarity of the encoder of {title(model)} on")
            # Other texts, the same models: with one model per task nothing is paired.
            more = effects.independent_difference(on_input[other], on_input[model])
            yield Effect(title(model), part.name, more, stands_on=(model,))
