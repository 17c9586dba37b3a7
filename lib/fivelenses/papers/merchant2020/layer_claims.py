"""The claims of Merchant et al. (2020) on where layers change (sections 5 and 6).

Halves of a sentence and layers are as in `probe_claims`. An ablation is judged at half of the layers.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

import pandas as pd

from fivelenses.first_exhibits import effects
from fivelenses.first_exhibits.claims import CannotTest, Claims, LeftOut
from fivelenses.first_exhibits.effects import Interval
from fivelenses.first_exhibits.exhibit import title
from fivelenses.first_exhibits.gate import key
from fivelenses.first_exhibits.intervals import of_measure
from fivelenses.first_exhibits.verdicts import Effect, Part
from fivelenses.papers.merchant2020 import SIDES, ablations
from fivelenses.papers.merchant2020.reading import check_present, models_of, sentences_of, wide
from fivelenses.records import PARSER, RUNNING_TEXT

CLAIMS = Claims("merchant2020")
TRAINED_ANEW = "each ablated model is trained by itself, and a model moved at random is not trained"
LOSS = "loss of RSA similarity"
TASKS = (*SIDES, PARSER)
PAIRS = tuple(f"{title(first)} before {title(second)}" for first, second in combinations(TASKS, 2))
TOP, LEAST = "in the top layers", "least for MNLI, then SQuAD, most for the parser"
ON_TOP = Part(
    "rise of the loss towards the top third, minus twice that towards the middle third",
    unit=LOSS,
    groups=tuple(map(title, SIDES)),
    half=TOP,
)
GROWTH = Part("loss in the top third minus the bottom third", unit=LOSS, groups=tuple(map(title, TASKS)), half=TOP)
ORDER = Part("the other's loss minus this one's, without the last layer", unit=LOSS, groups=PAIRS, half=LEAST)
OF_GAIN = "share of the gain over the null rate"
BESIDES = tuple(f"{title(PARSER)} beside {title(task)}" for task in SIDES)
KEPT = Part(
    "minus the loss",
    -0.1,
    "a tenth of what fine-tuning gains over the null rate",
    OF_GAIN,
    tuple(map(title, SIDES)),
    "little for MNLI and SQuAD",
)
PARSER_LOSES_MORE = Part(
    "the parser's loss minus this task's, or minus nothing where this task gains",
    unit=OF_GAIN,
    groups=BESIDES,
    half="more for the parser",
)
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
    """One slope minus twice the other, per third of the depth: thirds of 8 layers are not equally far apart."""
    (low, middle, top), places = _thirds(rows, name)
    return ((top - middle) / (places[2] - places[1]) - 2 * (middle - low) / (places[1] - places[0])) / 3


def _growth(rows: pd.DataFrame, name: str) -> float:
    (low, _, top), _ = _thirds(rows, name)
    return top - low


def _order(rows: pd.DataFrame, first: str, second: str) -> float:
    layers = rows["layer"].to_numpy()
    return (rows[first].to_numpy() - rows[second].to_numpy())[layers < layers.max()].mean()


@CLAIMS.add(
    "top-layers-change",
    "Similarity to the pre-trained encoder falls in the top layers: least for MNLI, then SQuAD, most for the parser.",
    "loss of similarity between thirds of the layers: the rise from the middle to the top minus twice that from the "
    "bottom to the middle (MNLI and SQuAD), and top minus bottom; difference of two tasks",
    ON_TOP,
    GROWTH,
    ORDER,
    place="section 5.1, Figure 2",
    exhibits=("merchant2020-figure-2",),
    unit="case",
    printed="0.84 ± 0.02 in MNLI's last layer but one; the parser departs at layers 4 and 5 of 12",
)
def top_layers_change(similarities: pd.DataFrame) -> Iterator[Effect]:
    """A straight line rises to the top third as it does to the middle one, so it does not gather on top. The paper sees
    the parser's change begin in the middle, and the last layer depends on the form of the output.
    """
    table = similarities
    check_present(table["model"], [PARSER], "model of")
    if table["layer"].max() < 3:
        raise CannotTest("an encoder of fewer than three layers has no bottom, middle and top third")
    leading, texts, models = table["pretrained"].iloc[0], sentences_of(table), models_of(table)
    curves = wide(table[table["layer"] > 0], ["pretrained", "layer"], "similarity")
    names = [name for name in TASKS if name in curves.columns]

    def effect(group: str, part: Part, on: Sequence[str], measure: Callable[..., float]) -> Effect:
        rows = curves.dropna(subset=list(on))
        mean = of_measure(rows, lambda one: measure(one, *on), model=models, examples=texts)
        runs = rows["pretrained"].unique()
        return Effect(group, part.name, mean, stands_on=tuple(key(task, run, leading) for run in runs for task in on))

    for name in names:
        if name != PARSER:
            yield effect(title(name), ON_TOP, [name], _gathers_on_top)
        yield effect(title(name), GROWTH, [name], _growth)
    for first, second in combinations(names, 2):
        if curves[[first, second]].notna().all(axis=1).any():
            yield effect(f"{title(first)} before {title(second)}", ORDER, [first, second], _order)


@CLAIMS.add(
    "few-layers-suffice",
    "Freezing most of the bottom layers costs MNLI and SQuAD little, and the parser more.",
    "share of the gain over the null rate that is lost with half of the layers frozen, and the parser's minus that",
    KEPT,
    PARSER_LOSES_MORE,
    place="section 5.2, Figure 3",
    exhibits=("merchant2020-figure-3",),
    unit="case",
    printed="MNLI drops with the last two of 12 layers frozen, SQuAD with three or fewer free",
    untwinned=TRAINED_ANEW,
)
def few_layers_suffice(
    models: pd.DataFrame, similarities: pd.DataFrame, by_example: pd.DataFrame | None = None
) -> Iterator[Effect | LeftOut]:
    return _at_half(models, similarities, by_example, "frozen")


@CLAIMS.add(
    "shallow-truncation",
    "Half of the layers come near the full score on MNLI and SQuAD; the parser needs more of them.",
    "share of the gain over the null rate that is lost with half of the layers, and the parser's minus that",
    KEPT,
    PARSER_LOSES_MORE,
    place="section 5.2, Figure 4",
    exhibits=("merchant2020-figure-4",),
    unit="case",
    printed="near the full score by layer 6 of 12; three layers suffice for MNLI, five for SQuAD",
    untwinned=TRAINED_ANEW,
)
def shallow_truncation(
    models: pd.DataFrame, similarities: pd.DataFrame, by_example: pd.DataFrame | None = None
) -> Iterator[Effect | LeftOut]:
    return _at_half(models, similarities, by_example, "kept")


def _at_half(models, similarities, predictions, position: str) -> Iterator[Effect | LeftOut]:
    """What each task loses with half of the run's own encoder frozen or kept, and the parser beside it."""
    table = ablations.varied(models, similarities, models["encoder"].iloc[0], position)
    table = table[table["task"].isin(TASKS)]
    lost = ablations.losses(table, predictions, position)
    lost = lost[(lost[position] - lost["layers"] / 2).abs() < 1]
    names = [task for task in TASKS if (lost["task"] == task).any()]
    if names[-1:] != [PARSER] or len(names) == 1:
        raise CannotTest(
            f"no encoders of the parser and of another task were tuned with half of their layers {position}"
        )
    idle = [task for task in names if lost.loc[lost["task"] == task, "lost"].isna().any()]

    def loss(task: str, sign: int = 1) -> Interval:
        rows = lost[lost["task"] == task]
        return of_measure(rows, lambda one: sign * one["lost"].mean(), examples=sentences_of(rows) or None)

    for task, beside in zip(SIDES, BESIDES, strict=True):
        for group, on in ((title(task), (task,)), (beside, (task, PARSER))):
            if task not in names:
                continue
            if without := [title(one) for one in on if one in idle]:
                yield LeftOut(group, f"no gain over the null rate in {' and '.join(without)}", on)
            elif group == beside:
                own, parser = loss(task), loss(PARSER)
                # Where this task gains, the parser's own loss: what loses less than nothing does not lose more.
                more = effects.independent_difference(parser, own) if own.estimate > 0 else parser
                yield Effect(group, PARSER_LOSES_MORE.name, more, stands_on=on)
            else:
                yield Effect(group, KEPT.name, loss(task, -1), stands_on=on)


@CLAIMS.add(
    "in-domain-changes-more",
    "Representations change more on the task's own kind of input than on running text or on another task's.",
    "similarity in the upper half of the layers on other input minus that on the task's own",
    THAN_TEXT,
    THAN_OTHER,
    place="section 6, Figure 5",
    exhibits=("merchant2020-figure-5-mnli", "merchant2020-figure-5-squad"),
    variants={"top third of the layers": {"share": 1 / 3}, "all layers": {"share": 1}},
)
def in_domain_changes_more(
    similarities: pd.DataFrame, similarities_by_input: pd.DataFrame, *, share: float = 1 / 2
) -> Iterator[Effect]:
    text, by_input = similarities, similarities_by_input
    if by_input.empty:
        raise CannotTest("no encoder was tuned on a task whose input is a pair of texts")
    if "fold" not in by_input.columns:
        raise CannotTest("this run's similarities count [CLS] and [SEP], of which a task's input has a larger share")
    both = pd.concat([text[text["pretrained"].isin(by_input["pretrained"])], by_input])
    upper = both[(both["layer"] > both["layer"].max() * (1 - share)) & both["model"].isin(by_input["model"])]
    for model, of_model in upper.groupby("model", sort=False):
        for part, other in ((THAN_TEXT, RUNNING_TEXT), (THAN_OTHER, *(name for name in SIDES if name != model))):
            check_present(of_model["input"], [other, model], f"similarity of the encoder of {title(model)} on")
            rows = of_model[of_model["input"].isin([other, model])]
            more = of_measure(
                rows, lambda one, own=model: _less_on(one, own), models_of(rows), examples=sentences_of(rows)
            )
            yield Effect(title(model), part.name, more, stands_on=(model,))


def _less_on(rows: pd.DataFrame, own: str) -> float:
    """How much less similar a model is on its own input; the folds of both inputs are left out together."""
    similarity, of_own = rows["similarity"].to_numpy(), (rows["input"] == own).to_numpy()
    return similarity[~of_own].mean() - similarity[of_own].mean()
