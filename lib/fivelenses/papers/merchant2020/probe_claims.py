"""The claims of Merchant et al. (2020) on probes and codelengths (section 4).

Where the paper sets MNLI and SQuAD against the parser, or syntax against the rest, the sentence has two halves: it is
reproduced only if groups hold in both. Layers are taken relative to the depth; layer 0, the embeddings, is not among
them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

import pandas as pd

from fivelenses.first_exhibits.claims import CannotTest, Claims, LeftOut
from fivelenses.first_exhibits.effects import Interval
from fivelenses.first_exhibits.exhibit import printed, title
from fivelenses.first_exhibits.intervals import of_measure
from fivelenses.first_exhibits.verdicts import EXACT, HOLDS, RATIO, UNBOUNDED, Effect, Part, judge_group
from fivelenses.papers.merchant2020 import SIDES
from fivelenses.papers.merchant2020.reading import check_present, models_of, sentences_of, wide
from fivelenses.records import BASE, LEXICAL, PARSER, RANDOMISED
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


def _titles(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(find_edge_task(name).title for name in names)


CHANGE = Part(
    "change of F1", -0.03, "the paper counts falls of up to 3 points as small (section 4.1)", "micro-F1 in [0, 1]"
)
FAR_LESS = Part("half of the baselines' fall, minus the fall", 0.0, unit="micro-F1 in [0, 1]")
F1 = "micro-F1 in [0, 1]"
GAINS = Part("change of F1", unit=F1, groups=_titles(SYNTAX), half="gains on syntax")
LOSES = Part("minus the change of F1", unit=F1, groups=_titles(NOT_SYNTAX), half="loses elsewhere")
A_TENTH = "a tenth: the paper speaks of minimal differences and draws them"
OF_CONTEXT = "share of what context adds to the correlation"
AFTER = {f"{title(model)}, {kind}": model for kind in ("distance", "depth") for model in (*SIDES, PARSER)}
KEPT_GROUPS = tuple(group for group, model in AFTER.items() if model != PARSER)
PARSER_GROUPS = tuple(group for group, model in AFTER.items() if model == PARSER)
STRUCTURE_KEPT, STRUCTURE_RISES = "hardly changes after MNLI and SQuAD", "improves after parsing"
NO_FALL = Part("change of the correlation", -0.1, A_TENTH, OF_CONTEXT, KEPT_GROUPS, STRUCTURE_KEPT)
NO_RISE = Part("minus the change of the correlation", -0.1, A_TENTH, OF_CONTEXT, KEPT_GROUPS, STRUCTURE_KEPT)
SPEARMAN = "Spearman's correlation"
PARSER_RISE = Part("rise from 5/12 of the depth on", unit=SPEARMAN, groups=PARSER_GROUPS, half=STRUCTURE_RISES)
EARLY_RISE = Part("rise from 5/12 to half of the depth", unit=SPEARMAN, groups=PARSER_GROUPS, half=STRUCTURE_RISES)
CHEAPER_GROUP = f"{find_edge_task('dependencies').title} after {title(PARSER)}"
OTHER_CODES = tuple(
    group
    for task in PAPER_TABLE_1
    for model in (*SIDES, PARSER)
    if (group := f"{find_edge_task(task).title} after {title(model)}") != CHEAPER_GROUP
)
SAME, CHEAP = "codelengths hardly change", "parsing makes dependencies cheaper"
NO_LONGER = Part("bits before over bits after", 1 / 1.1, A_TENTH, RATIO, OTHER_CODES, SAME)
NO_SHORTER = Part("bits after over bits before", 1 / 1.1, A_TENTH, RATIO, OTHER_CODES, SAME)
CHEAPER = Part(
    "bits before over bits after, dependencies after parsing",
    1.1,
    "more than what counts as no difference",
    RATIO,
    (CHEAPER_GROUP,),
    CHEAP,
)


def _printed(tasks_probed: tuple[str, ...], *models: str) -> str:
    """The least and the greatest change that the paper's Table 1 prints for these probes and models, in points."""
    columns = [PAPER_COLUMNS.index(model) for model in models]
    changes = [PAPER_TABLE_1[task][column] for task in tasks_probed for column in columns]
    return f"{min(changes):+.1f} to {max(changes):+.1f}"


def _over_models(rows: pd.DataFrame, examples: int | None, log: bool = False) -> Interval:
    """The interval of the column `x`, a row per fine-tuned model, probe and fold. Seeds of probes say nothing about
    other fine-tunings.
    """
    models, rows = models_of(rows), rows.dropna(subset=["x"])
    mean = of_measure(rows, lambda one: one["x"].mean(), [*models, "seed"], examples=examples, log=log)
    alone = not models or len(rows[models].drop_duplicates()) == 1
    return replace(mean, of_this_model=True) if mean.measured and alone else mean


def _is_above(part: Part, interval: Interval) -> bool:
    return judge_group([part], [Effect("", part.name, interval)]).outcome == HOLDS


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
        room = _over_models(scores.assign(x=scores[BASE] - scores[LEXICAL]), None)
        why = (
            f"on {find_edge_task(task).title} the encoder is {printed(room.estimate, '.3f')} above its lexical baseline"
        )
        yield (
            task,
            scores,
            sentences,
            "" if _is_above(ROOM, room) else f"{why}, not clearly more than {ROOM.threshold:g}",
        )


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
                mean = _over_models(scores.assign(x=numbers), sentences)
                yield Effect(group, part.name, mean, stands_on=(model,))


@CLAIMS.add(
    "dep-helps-syntax",
    "The parser's encoder gains on constituents and dependencies and loses on coreference, proto-roles and relations.",
    "change of micro-F1 in the parser's encoder: up for the two syntactic tasks, down for the others",
    GAINS,
    LOSES,
    place="section 4.1, Table 1",
    exhibits=("merchant2020-table-1",),
    unit="probe",
    printed=f"{_printed(SYNTAX, PARSER)} points; the others {_printed(NOT_SYNTAX, PARSER)}",
)
def parsing_helps_syntax(edge_probing: pd.DataFrame) -> Iterator[Effect | LeftOut]:
    """A change within the paper's own spread between probing runs decides nothing if there is one run of each probe."""
    check_present(edge_probing["model"], [PARSER], "model of")
    for task, scores, sentences, no_room in _probed(edge_probing):
        if task not in (*SYNTAX, *NOT_SYNTAX):
            continue
        group, (part, sign) = find_edge_task(task).title, (GAINS, 1) if task in SYNTAX else (LOSES, -1)
        if no_room:
            yield LeftOut(group, no_room, (PARSER,))
            continue
        numbers = scores.assign(x=sign * (scores[PARSER] - scores[BASE]))
        change = _over_models(numbers, sentences)
        told = change.models > 1 or abs(change.estimate) > PROBING_NOISE
        yield Effect(group, part.name, change, EXACT if told else UNBOUNDED, (PARSER,))


@CLAIMS.add(
    "structure-kept",
    "Structural probes hardly change for MNLI and SQuAD, except at the top, and improve for the parser from about "
    "layer 5 of 12.",
    "mean change of Spearman's correlation below the last sixth of the layers, as a share of what context adds (the "
    "best layer of the pre-trained encoder minus its embeddings); for the parser, from 5/12 of the depth on",
    NO_FALL,
    NO_RISE,
    PARSER_RISE,
    EARLY_RISE,
    place="section 4.1, Figure 1",
    exhibits=("merchant2020-figure-1a", "merchant2020-figure-1b"),
    unit="curve",
    printed="the parser improves from layer 5 of 12",
)
def structure_kept(structure: pd.DataFrame) -> Iterator[Effect | LeftOut]:
    """Where context adds little, there is nothing to keep."""
    check_present(structure["model"], [PARSER], "model of")
    last, sentences = structure["layer"].max(), sentences_of(structure)
    if last < 2:
        raise CannotTest("an encoder of one layer has none below its last")
    models = models_of(structure) or ["seed"]
    for kind, of_kind in structure.groupby("kind", sort=False):
        curves = wide(of_kind.assign(seed=0), ["seed", "layer"], "spearman")
        context = of_measure(curves, _context, models, examples=sentences)
        for model in [name for name in (*SIDES, PARSER) if name in curves.columns]:
            group, on = f"{title(model)}, {kind}", (model,)
            changed = curves.assign(x=curves[model] - curves[BASE]).dropna(subset=["x"])
            if model != PARSER and _is_above(ROOM, context):
                for part, sign in ((NO_FALL, 1), (NO_RISE, -1)):
                    change = of_measure(changed, partial(_inner, last, sign), models, examples=sentences)
                    yield Effect(group, part.name, change, stands_on=on)
            elif model != PARSER:
                reason = f"context adds {printed(context.estimate, '.3f')} to the correlation of {kind}s"
                yield LeftOut(group, f"{reason}, not clearly more than {ROOM.threshold:g}", on)
            else:
                upper = changed[changed["layer"] >= last * 5 / 12]
                early = upper[upper["layer"] <= max(last / 2, upper["layer"].min())]
                for part, rows in ((PARSER_RISE, upper), (EARLY_RISE, early)):
                    change = of_measure(rows, lambda one: one["x"].mean(), models, examples=sentences)
                    yield Effect(group, part.name, change, stands_on=on)


def _context(curves: pd.DataFrame) -> float:
    """What context adds: the best layer of the pre-trained encoder minus its embeddings."""
    of_words = curves["layer"] == 0
    return curves.loc[~of_words, BASE].max() - curves.loc[of_words, BASE].mean()


def _inner(last: int, sign: int, curves: pd.DataFrame) -> float:
    """The mean change `x` below the last sixth of the layers, as a share of what context adds."""
    below = curves["layer"].between(1, last * 5 / 6)
    return sign * curves.loc[below, "x"].mean() / _context(curves)


@CLAIMS.add(
    "mdl-same",
    "Codelengths hardly change, except that the parser makes dependencies, and only them, cheaper.",
    "bits before fine-tuning over bits after, and the other way round; the former for dependencies after parsing",
    NO_LONGER,
    NO_SHORTER,
    CHEAPER,
    place="section 4.1, appendix B",
    exhibits=("merchant2020-codelengths",),
    unit="code",
)
def same_codelength(codelengths: pd.DataFrame) -> Iterator[Effect | LeftOut]:
    check_present(codelengths["model"], [PARSER], "model of")
    of_paper = codelengths[codelengths["task"].isin(PAPER_TABLE_1)]
    for task, of_task in of_paper.groupby("task", sort=False):
        bits, sentences = wide(of_task, ["seed"], "bits"), sentences_of(of_task)

        def ratio(over: str, under: str, bits=bits, sentences=sentences) -> Interval:
            return _over_models(bits.assign(x=bits[over] / bits[under]), sentences, log=True)

        for model in [name for name in (*SIDES, PARSER) if name in bits.columns]:
            group, on = f"{find_edge_task(task).title} after {title(model)}", (model,)
            if group == CHEAPER_GROUP:
                yield Effect(group, CHEAPER.name, ratio(BASE, model), stands_on=on)
            elif ratio(RANDOMISED, BASE).estimate <= CHEAPER.threshold:
                yield LeftOut(group, f"random weights make {find_edge_task(task).title} no dearer than by a tenth", on)
            else:
                yield Effect(group, NO_LONGER.name, ratio(BASE, model), stands_on=on)
                yield Effect(group, NO_SHORTER.name, ratio(model, BASE), stands_on=on)
