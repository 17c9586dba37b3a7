"""The claims of Merchant et al. (2020) on probes and codelengths (section 4).

Where the paper sets MNLI and SQuAD against the parser, a group is a task *beside* the parser: it holds if the paper's
sentence holds for both. Layers are taken relative to the depth; layer 0, the embeddings, is not among them.
"""

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from fivelenses.exhibits.claims import CannotTest, Claims, LeftOut
from fivelenses.exhibits.effects import Interval
from fivelenses.exhibits.exhibit import printed, title
from fivelenses.exhibits.intervals import of_measure
from fivelenses.exhibits.verdicts import EXACT, HOLDS, UNBOUNDED, Effect, Part, judge_group
from fivelenses.papers.merchant2020.probed import BASE, LEXICAL, PARSER, RANDOMISED
from fivelenses.papers.merchant2020.reading import check_present, sentences_of, wide
from fivelenses.papers.merchant2020.similarity import SIDES
from fivelenses.tasks.edge_tasks import find_edge_task

CLAIMS = Claims("merchant2020")
PROBING_NOISE = 0.005  # Table 1's caption: half a point between probing runs
SYNTAX = ("constituents", "dependencies")
NOT_SYNTAX = ("coreference", "spr", "relations")
# Table 1, page 4: micro-F1 of the base encoder, and differences to it in points.
PAPER_TABLE_1 = {
    "pos": (97.5, -9.0, -13.6, -0.2, -1.5, -0.2),
    "constituents": (84.4, -12.9, -24.1, -2.2, 0.1, 4.4),
    "dependencies": (95.5, -15.6, -18.2, -0.5, -2.5, 0.2),
    "entities": (96.2, -6.6, -10.0, -0.3, -0.9, -0.6),
    "srl": (92.9, -13.6, -15.0, -0.4, -2.9, -0.5),
    "coreference": (95.7, -5.8, -6.2, -0.5, -0.8, -1.2),
    "spr": (84.6, -6.6, -12.2, -0.7, -0.4, -1.2),
    "relations": (79.5, -20.7, -40.5, -0.8, -0.4, -2.5),
}
PAPER_COLUMNS = (BASE, LEXICAL, RANDOMISED, *SIDES, PARSER)
ROOM = Part("room above the lexical baseline", 0.04, "four points: less leaves nothing to lose")

CHANGE = Part(
    "change of F1", -0.03, "the paper counts falls of up to 3 points as small (section 4.1)", "micro-F1 in [0, 1]"
)
FAR_LESS = Part("half of the baselines' fall, minus the fall", 0.0, unit="micro-F1 in [0, 1]")
EXPECTED = Part("change of F1 in the paper's direction", unit="micro-F1 in [0, 1]")
TWO_POINTS = "two points, the most that the paper calls usual for its probes (section 4.1)"
NO_FALL = Part("change of the correlation", -0.02, TWO_POINTS, "Spearman's correlation")
NO_RISE = Part("minus the change of the correlation", -0.02, TWO_POINTS, "Spearman's correlation")
PARSER_RISE = Part("the parser's rise from 5/12 of the depth on", unit="Spearman's correlation")
EARLY_RISE = Part("the parser's rise from 5/12 to half of the depth", unit="Spearman's correlation")
A_TENTH = "a tenth: the paper speaks of minimal differences and draws them"
NO_LONGER = Part("saving of bits", -0.1, A_TENTH, "share of the codelength")
NO_SHORTER = Part("cost in bits", -0.1, A_TENTH, "share of the codelength")
CHEAPER = Part(
    "the parser's saving on dependencies", 0.1, "more than what counts as no difference", "share of the codelength"
)


def _printed(tasks_probed: tuple[str, ...], *models: str) -> str:
    """The least and the greatest change that the paper's Table 1 prints for these probes and models, in points."""
    columns = [PAPER_COLUMNS.index(model) for model in models]
    changes = [PAPER_TABLE_1[task][column] for task in tasks_probed for column in columns]
    return f"{min(changes):+.1f} to {max(changes):+.1f}"


def _of_one_model(interval: Interval) -> Interval:
    """Seeds of probes say nothing about other fine-tunings: one model of each task is probed."""
    return replace(interval, of_this_model=True) if interval.measured else interval


def _probed(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame, int | None, str]]:
    """Each edge-probing task of the paper: its name, the scores as `wide` gives them, the number of test sentences, and
    why it leaves no room, if so.
    """
    mixed = table[table["layers"] == "mix"] if "layers" in table.columns else table
    for task in PAPER_TABLE_1:
        scores = wide(mixed[mixed["task"] == task], ["seed"], "micro_f1")
        if scores.empty:
            continue
        sentences = sentences_of(mixed[mixed["task"] == task])
        room = of_measure(scores, lambda rows: (rows[BASE] - rows[LEXICAL]).mean())
        clear = judge_group([ROOM], [Effect(task, ROOM.name, room)]).outcome == HOLDS
        why = (
            f"on {find_edge_task(task).title} the encoder is {printed(room.estimate, '.3f')} above its lexical baseline"
        )
        yield task, scores, sentences, "" if clear else f"{why}, not clearly more than {ROOM.threshold:g}"


@CLAIMS.add(
    "no-forgetting",
    "Fine-tuning costs edge probes little, and far less than taking context or pre-training away does.",
    "change of micro-F1 in a fine-tuned encoder; half of the smaller fall of the two baselines minus the fall",
    CHANGE,
    FAR_LESS,
    place="section 4.1, Table 1",
    exhibits=("merchant2020-table-1",),
    unit="case",
    printed=f"{_printed(tuple(PAPER_TABLE_1), *SIDES, PARSER)} points; lexical "
    f"{_printed(tuple(PAPER_TABLE_1), LEXICAL)}, randomised {_printed(tuple(PAPER_TABLE_1), RANDOMISED)}",
)
def no_forgetting(edge_probing: pd.DataFrame) -> Iterator[Effect | LeftOut]:
    for task, scores, sentences, no_room in _probed(edge_probing):
        for model in [name for name in (*SIDES, PARSER) if name in scores.columns]:
            group = f"{find_edge_task(task).title} after {title(model)}"
            if no_room:
                yield LeftOut(group, no_room, (model,))
                continue
            change = scores[model] - scores[BASE]
            fall_of_baselines = scores[BASE] - scores[[LEXICAL, RANDOMISED]].max(axis=1)
            for part, numbers in ((CHANGE, change), (FAR_LESS, fall_of_baselines / 2 + change)):
                mean = of_measure(scores.assign(x=numbers), lambda rows: rows["x"].mean(), examples=sentences)
                yield Effect(group, part.name, _of_one_model(mean), stands_on=(model,))


@CLAIMS.add(
    "dep-helps-syntax",
    "The parser's encoder gains on constituents and dependencies and loses on coreference, proto-roles and relations.",
    "change of micro-F1 in the parser's encoder: up for the two syntactic tasks, down for the others",
    EXPECTED,
    place="section 4.1, Table 1",
    exhibits=("merchant2020-table-1",),
    unit="probe",
    printed=f"{_printed(SYNTAX, PARSER)} points; the others {_printed(NOT_SYNTAX, PARSER)}",
)
def parsing_helps_syntax(edge_probing: pd.DataFrame) -> Iterator[Effect | LeftOut]:
    """A change within the paper's own spread between probing runs decides nothing if there is one run of each probe."""
    check_present(edge_probing["model"], [PARSER], "model of")
    check_present(edge_probing["task"], SYNTAX, "edge-probing task")
    for task, scores, sentences, no_room in _probed(edge_probing):
        if task not in (*SYNTAX, *NOT_SYNTAX):
            continue
        group, sign = find_edge_task(task).title, 1 if task in SYNTAX else -1
        if no_room:
            yield LeftOut(group, no_room, (PARSER,))
            continue
        numbers = scores.assign(x=sign * (scores[PARSER] - scores[BASE]))
        change = of_measure(numbers, lambda rows: rows["x"].mean(), examples=sentences)
        told = scores["seed"].nunique() > 1 or abs(change.estimate) > PROBING_NOISE
        yield Effect(group, EXPECTED.name, _of_one_model(change), EXACT if told else UNBOUNDED, (PARSER,))


@CLAIMS.add(
    "structure-kept",
    "Structural probes hardly change for MNLI and SQuAD, except at the top, and improve for the parser from about "
    "layer 5 of 12.",
    "mean change of Spearman's correlation below the last sixth of the layers; for the parser, from 5/12 of the "
    "depth on",
    NO_FALL,
    NO_RISE,
    PARSER_RISE,
    EARLY_RISE,
    place="section 4.1, Figure 1",
    exhibits=("merchant2020-figure-1a", "merchant2020-figure-1b"),
    unit="curve",
    printed="the parser improves from layer 5 of 12",
)
def structure_kept(structure: pd.DataFrame) -> Iterator[Effect]:
    check_present(structure["model"], [PARSER], "model of")
    last, sentences = structure["layer"].max(), sentences_of(structure)
    if last < 2:
        raise CannotTest("an encoder of one layer has none below its last")
    for kind, of_kind in structure.groupby("kind", sort=False):
        curves = wide(of_kind, ["layer"], "spearman").assign(run=0)
        inner = curves[(curves["layer"] > 0) & (curves["layer"] <= last * 5 / 6)]
        upper = curves[curves["layer"] >= last * 5 / 12]
        early = upper[upper["layer"] <= max(last / 2, upper["layer"].min())]
        for model in [name for name in SIDES if name in curves.columns]:
            group, on = f"{title(model)} beside the parser, {kind}", (model, PARSER)
            for part, rows, name, sign in (
                (NO_FALL, inner, model, 1),
                (NO_RISE, inner, model, -1),
                (PARSER_RISE, upper, PARSER, 1),
                (EARLY_RISE, early, PARSER, 1),
            ):
                numbers = rows.assign(x=sign * (rows[name] - rows[BASE]))
                change = of_measure(numbers, lambda one: one["x"].mean(), model="run", examples=sentences)
                yield Effect(group, part.name, change, stands_on=on)


@CLAIMS.add(
    "mdl-same",
    "Codelengths hardly change, except that the parser makes dependencies, and only them, cheaper.",
    "saving and cost of bits, relative to the pre-trained encoder; the parser's saving on dependencies",
    NO_LONGER,
    NO_SHORTER,
    CHEAPER,
    place="section 4.1, appendix B",
    exhibits=("merchant2020-codelengths",),
    unit="code",
)
def same_codelength(codelengths: pd.DataFrame) -> Iterator[Effect | LeftOut]:
    check_present(codelengths["model"], [PARSER], "model of")
    check_present(codelengths["task"], ["dependencies"], "codelength of")
    records = dict(list(codelengths.groupby("task", sort=False)))
    bits = {task: wide(of_task, ["seed"], "bits") for task, of_task in records.items()}

    def change(task: str, model: str, sign: int) -> Interval:
        numbers = bits[task].assign(x=sign * (bits[task][model] / bits[task][BASE] - 1))
        return _of_one_model(of_measure(numbers, lambda one: one["x"].mean(), examples=sentences_of(records[task])))

    cheaper = change("dependencies", PARSER, -1)
    for task, of_task in bits.items():
        for model in [name for name in (*SIDES, PARSER) if name in of_task.columns]:
            if (task, model) == ("dependencies", PARSER):
                continue
            group, on = f"{find_edge_task(task).title} after {title(model)}", (model, PARSER)
            if change(task, RANDOMISED, 1).estimate <= -NO_LONGER.threshold:
                yield LeftOut(group, f"random weights make {find_edge_task(task).title} no dearer than by a tenth", on)
                continue
            longer = {NO_LONGER: change(task, model, -1), NO_SHORTER: change(task, model, 1), CHEAPER: cheaper}
            for part, one in longer.items():
                yield Effect(group, part.name, one, stands_on=on)
