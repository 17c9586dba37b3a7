"""The effects behind the claims of Merchant et al. (2020) on probes and codelengths (section 4), from the records.

Where the paper sets MNLI and SQuAD against the parser, a group is a task *beside* the parser: it holds if the paper's
sentence holds for both. Layers are taken relative to the depth; layer 0, the embeddings, is not among them.
"""

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from fivelenses.exhibits.claims import LeftOut
from fivelenses.exhibits.effects import Interval
from fivelenses.exhibits.intervals import of_measure
from fivelenses.exhibits.verdicts import EXACT, HOLDS, UNBOUNDED, Effect, Part, judge_group
from fivelenses.papers.merchant2020.probed import BASE, LEXICAL, PARSER, RANDOMISED
from fivelenses.papers.merchant2020.reading import check_present, sentences_of, title, wide
from fivelenses.papers.merchant2020.similarity import SIDES
from fivelenses.tasks.edge_tasks import find_edge_task

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
        why = f"the lexical baseline of {find_edge_task(task).title} is {room.estimate:.3f} below the encoder"
        yield (
            task,
            scores,
            sentences,
            "" if clear else f"{why}, not clearly more than {ROOM.threshold:g}".replace("-", "−"),
        )


def no_forgetting(table: pd.DataFrame) -> Iterator[Effect | LeftOut]:
    """Change of a task's score in a tuned model, and what half of the smaller baseline's fall exceeds its fall by."""
    for task, scores, sentences, no_room in _probed(table):
        for model in [name for name in (*SIDES, PARSER) if name in scores.columns]:
            group = f"{find_edge_task(task).title} after {title(model)}"
            if no_room:
                yield LeftOut(group, no_room, (model,))
                continue
            change = scores[model] - scores[BASE]
            fall_of_baselines = scores[BASE] - scores[[LEXICAL, RANDOMISED]].max(axis=1)
            for part, numbers in ((CHANGE, change), (FAR_LESS, fall_of_baselines / 2 + change)):
                found = of_measure(scores.assign(x=numbers), lambda rows: rows["x"].mean(), examples=sentences)
                yield Effect(group, part.name, _of_one_model(found), stands_on=(model,))


def parsing_helps_syntax(table: pd.DataFrame) -> Iterator[Effect | LeftOut]:
    """Change of a task's score in the parser's encoder: up for syntax, down for meaning.

    A change within the paper's own spread between probing runs decides nothing if there is one run of each probe.
    """
    check_present(table["model"], [PARSER], "model of")
    check_present(table["task"], SYNTAX, "edge-probing task")
    for task, scores, sentences, no_room in _probed(table):
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


def structure_kept(table: pd.DataFrame) -> Iterator[Effect]:
    """Mean change of the correlation below the last sixth of the layers; for the parser, from 5/12 of the depth on."""
    check_present(table["model"], [PARSER], "model of")
    last = table["layer"].max()
    for kind, of_kind in table.groupby("kind", sort=False):
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
                change = of_measure(numbers, lambda one: one["x"].mean(), model="run", examples=sentences_of(table))
                yield Effect(group, part.name, change, stands_on=on)


def same_codelength(table: pd.DataFrame) -> Iterator[Effect | LeftOut]:
    """Change of a codelength, over that of the pre-trained encoder; beside it that of the parser's dependencies."""
    check_present(table["model"], [PARSER], "model of")
    check_present(table["task"], ["dependencies"], "codelength of")
    records = dict(list(table.groupby("task", sort=False)))
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
            yield Effect(group, NO_LONGER.name, change(task, model, -1), stands_on=on)
            yield Effect(group, NO_SHORTER.name, change(task, model, 1), stands_on=on)
            yield Effect(group, CHEAPER.name, cheaper, stands_on=on)
