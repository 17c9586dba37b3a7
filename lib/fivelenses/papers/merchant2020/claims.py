"""The eight claims of Merchant et al. (2020) as predicates on its exhibits' tables.

Thresholds are ours, fixed before any run on real data and stated in each claim. Layers are taken relative to the depth.
"""

import pandas as pd

from fivelenses import tasks
from fivelenses.exhibits.claims import CannotTest, Claim, as_cases
from fivelenses.papers.merchant2020.measure import BASE, LEXICAL, RANDOMISED
from fivelenses.tasks.edge_tasks import find_edge_task

PAPER = "merchant2020"
PARSER = "parsing"
LITTLE = 0.02  # "0.5 to 2 points", of F1, accuracy or correlation
FAR = 0.5  # "far less": at most half
LEARNED = 2 * LITTLE  # above the null rate: a model that learned less has little to lose, whatever is done to it
SAME_CODE = 0.1  # share of the codelength
EARLY = 5 / 12  # the layer from which the parser's curves leave the others
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
PAPER_COLUMNS = (BASE, LEXICAL, RANDOMISED, "mnli", "squad", "parsing")


def title(name: str) -> str:
    """A tuned model's name in words."""
    return tasks.find(name).title if name in tasks.TASKS else name


def _f1(table: pd.DataFrame) -> pd.DataFrame:
    """Edge-probing task by model, mean over probing seeds."""
    return table.pivot_table(index="task", columns="model", values="micro_f1", sort=False)


def _lacks(present, wanted, what: str) -> None:
    missing = [name for name in wanted if name not in present]
    if missing:
        raise CannotTest(f"this run has no {what} {', '.join(missing)}")


def no_forgetting(table: pd.DataFrame) -> pd.DataFrame:
    """The largest fall of a task's score in a tuned model, beside those of the two baselines."""
    scores, rows = _f1(table), []
    tuned = [name for name in scores.columns if name not in (BASE, LEXICAL, RANDOMISED)]
    for task, of_task in scores.iterrows():
        fall = float(of_task[BASE] - of_task[tuned].min())
        least = float(of_task[BASE] - of_task[[LEXICAL, RANDOMISED]].max())
        rows.append((find_edge_task(task).title, "all", fall, fall <= LITTLE and fall <= FAR * max(least, 0.0)))
    return as_cases(rows)


def parsing_helps_syntax(table: pd.DataFrame) -> pd.DataFrame:
    """Change of a task's score in the parser's encoder: up for syntax, down for meaning."""
    scores = _f1(table)
    _lacks(scores.columns, [PARSER], "model of")
    wanted = [task for task in (*SYNTAX, *NOT_SYNTAX) if task in scores.index]
    _lacks(scores.index, SYNTAX, "edge-probing task")
    changes = {task: float(scores.loc[task, PARSER] - scores.loc[task, BASE]) for task in wanted}
    return as_cases(
        (find_edge_task(task).title, "all", change, (change > 0) == (task in SYNTAX))
        for task, change in changes.items()
    )


def structure_kept(distance: pd.DataFrame, depth: pd.DataFrame) -> pd.DataFrame:
    """Largest change of correlation below the last sixth of the layers; for the parser, the mean change above 5/12."""
    rows = []
    for kind, table in (("distance", distance), ("depth", depth)):
        curves = table.pivot(index="layer", columns="model", values="spearman")
        last = curves.index.max()
        for name in curves.columns.drop(BASE):
            change = curves[name] - curves[BASE]
            if name == PARSER:
                value = float(change[curves.index >= EARLY * last].mean())
                rows.append((f"{title(name)}, {kind}", "all", value, value > 0))
            else:
                value = float(change[curves.index <= last * 5 / 6].abs().max())
                rows.append((f"{title(name)}, {kind}", "all", value, value <= LITTLE))
    return as_cases(rows)


def same_codelength(table: pd.DataFrame) -> pd.DataFrame:
    """Largest change of a codelength, over that of the pre-trained encoder; for the parser, that of dependencies."""
    bits, rows = table.pivot(index="task", columns="model", values="bits"), []
    for name in bits.columns.drop([BASE, RANDOMISED], errors="ignore"):
        change = bits[name] / bits[BASE] - 1
        if name == PARSER and "dependencies" in change.index:
            value = float(change["dependencies"])
            rows.append((title(name), "all", value, value < 0))
        elif name != PARSER:
            value = float(change.abs().max())
            rows.append((title(name), "all", value, value <= SAME_CODE))
    return as_cases(rows)


def _curves(table: pd.DataFrame) -> dict[tuple[str, str], pd.Series]:
    """(model, pre-training) to similarity by layer, without the embeddings."""
    return {
        (str(model), str(start)): rows[rows["layer"] > 0].set_index("layer")["similarity"].sort_index()
        for (model, start), rows in table.groupby(["model", "pretrained"], sort=False)
    }


def top_layers_change(table: pd.DataFrame) -> pd.DataFrame:
    """Loss of similarity in the top third over that in the bottom third; and the order of the three models' losses."""
    curves, rows = _curves(table), []
    lost: dict[str, dict[str, float]] = {}
    for (model, start), curve in curves.items():
        last = curve.index.max()
        low, top = 1 - curve[curve.index <= last / 3].mean(), 1 - curve[curve.index > last * 2 / 3].mean()
        rows.append((title(model), start, float(top / max(low, 1e-6)), bool(top >= low / FAR)))
        lost.setdefault(start, {})[model] = float(1 - curve.mean())
    for start, of_start in lost.items():
        if {"mnli", "squad", PARSER} <= of_start.keys():
            spread = of_start[PARSER] - of_start["mnli"]
            rows.append(("order of losses", start, spread, of_start["mnli"] < of_start["squad"] < of_start[PARSER]))
    return as_cases(rows)


def _learned(table: pd.DataFrame, whole: pd.Series) -> dict[tuple[str, int], pd.DataFrame]:
    """(task, seed) to the rows of its models, where the one that is left `whole` learned the task.

    Args:
        table: models, one row each.
        whole: by row, whether the model keeps and tunes all of its layers.
    """
    learned = table[whole & (table["score"] - table["null_rate"] > LEARNED)]
    if learned.empty:
        raise CannotTest(f"no task was learned by more than {LEARNED:g} above its null rate")
    kept = set(zip(learned["task"], learned["seed"], strict=True))
    groups = table.groupby(["task", "seed"], sort=False)
    return {(str(task), seed): rows for (task, seed), rows in groups if (task, seed) in kept}


def few_layers_suffice(table: pd.DataFrame) -> pd.DataFrame:
    """Share of the layers that can be frozen at a loss of at most two points."""
    rows, shares = [], {}
    for (task, seed), of_model in _learned(table, table["frozen"] == -1).items():
        curve = of_model.set_index("frozen")["score"].sort_index()
        harmless = [place for place in curve.index if curve[-1] - curve[place] <= LITTLE]
        shares[task, seed] = max(max(harmless), 0) / of_model["layers"].iloc[0]
    for (task, seed), share in shares.items():
        others = [other for (name, start), other in shares.items() if start == seed and name != PARSER]
        holds = share <= min(others, default=1.0) if task == PARSER else share >= FAR
        rows.append((title(task), str(seed), share, bool(holds)))
    return as_cases(rows)


def shallow_truncation(table: pd.DataFrame) -> pd.DataFrame:
    """Score lost with half of the layers removed."""
    rows, lost = [], {}
    for (task, seed), of_model in _learned(table, table["kept"] == table["layers"]).items():
        curve, depth = of_model.set_index("kept")["score"].sort_index(), of_model["layers"].iloc[0]
        half = [kept for kept in curve.index if kept <= depth / 2]
        if not half:
            raise CannotTest("no encoder with half of its layers or fewer was tuned")
        lost[task, seed] = float(curve[depth] - curve[max(half)])
    for (task, seed), loss in lost.items():
        others = [other for (name, start), other in lost.items() if start == seed and name != PARSER]
        # A parser that loses nothing does not need more layers, however much others gain.
        holds = loss > LITTLE and loss >= max(others, default=0.0) if task == PARSER else loss <= LITTLE
        rows.append((title(task), str(seed), loss, bool(holds)))
    return as_cases(rows)


def in_domain_changes_more(*tables: pd.DataFrame) -> pd.DataFrame:
    """Similarity of the upper half of the layers on running text minus that on the model's own kind of input."""
    rows = []
    for (model, start), of_model in pd.concat(tables).groupby(["model", "pretrained"], sort=False):
        upper = of_model[of_model["layer"] > of_model["layer"].max() / 2].groupby("input")["similarity"].mean()
        if {model, "wikipedia"} <= set(upper.index):
            more = float(upper["wikipedia"] - upper[model])
            rows.append((title(model), str(start), more, more > 0))
    if not rows:
        raise CannotTest("no model was measured on its own kind of input and on running text")
    return as_cases(rows)


def _printed(tasks_probed: tuple[str, ...], *models: str) -> str:
    """The least and the greatest change that the paper's Table 1 prints for these probes and models, in points."""
    columns = [PAPER_COLUMNS.index(model) for model in models]
    changes = [PAPER_TABLE_1[task][column] for task in tasks_probed for column in columns]
    return f"{min(changes):+.1f} to {max(changes):+.1f}"


CLAIMS = (
    Claim(
        "no-forgetting",
        PAPER,
        "Fine-tuning costs edge probes little, and far less than taking context or pre-training away does.",
        "section 4.1, Table 1",
        ("merchant2020-table-1",),
        "largest fall of micro-F1 in a tuned model",
        f"at most {LITTLE:g}, and at most half of the smaller fall of the two baselines",
        no_forgetting,
        f"{_printed(tuple(PAPER_TABLE_1), 'mnli', 'squad')} points (MNLI, SQuAD); lexical "
        f"{_printed(tuple(PAPER_TABLE_1), LEXICAL)}, randomised {_printed(tuple(PAPER_TABLE_1), RANDOMISED)}",
    ),
    Claim(
        "dep-helps-syntax",
        PAPER,
        "The parser's encoder gains on constituents and dependencies and loses on coreference, proto-roles and "
        "relations.",
        "section 4.1, Table 1",
        ("merchant2020-table-1",),
        "change of micro-F1 in the parser's encoder",
        "positive for the two syntactic tasks, not for the others",
        parsing_helps_syntax,
        f"{_printed(SYNTAX, PARSER)} points; the others {_printed(NOT_SYNTAX, PARSER)}",
    ),
    Claim(
        "structure-kept",
        PAPER,
        "Structural probes hardly change for MNLI and SQuAD, but for the top, and rise for the parser from about layer "
        "5 of 12.",
        "section 4.2, Figure 1",
        ("merchant2020-figure-1a", "merchant2020-figure-1b"),
        "largest change of Spearman's correlation below the last sixth of the layers; for the parser, the mean change "
        "from 5/12 of the depth on",
        f"at most {LITTLE:g}; positive for the parser",
        structure_kept,
        "the parser rises from layer 5 of 12",
    ),
    Claim(
        "mdl-same",
        PAPER,
        "Codelengths hardly change, but that the parser makes dependencies cheaper.",
        "appendix B",
        ("merchant2020-codelengths",),
        "largest change of a codelength, relative; for the parser that of dependencies",
        f"at most {SAME_CODE:.0%}; negative for the parser",
        same_codelength,
    ),
    Claim(
        "top-layers-change",
        PAPER,
        "Similarity to the pre-trained encoder falls in the top layers alone: least for MNLI, then SQuAD, most and "
        "earliest for the parser.",
        "section 5, Figure 2",
        ("merchant2020-figure-2",),
        "loss of similarity in the top third of the layers over that in the bottom third; parser's loss minus MNLI's",
        "at least 2; losses in the order MNLI, SQuAD, parser",
        top_layers_change,
        "0.84 ± 0.02 in MNLI's last layer but one; the parser leaves from layer 5 of 12",
    ),
    Claim(
        "few-layers-suffice",
        PAPER,
        "Freezing most of the bottom layers costs little, more for the parser.",
        "section 6, Figure 3",
        ("merchant2020-figure-3",),
        "share of the layers that can be frozen at a loss of at most two points",
        f"at least {FAR:g}; for the parser no more than for the others; where the task is learned",
        few_layers_suffice,
        "MNLI drops with the last two of 12 layers frozen, SQuAD with three or fewer free",
    ),
    Claim(
        "shallow-truncation",
        PAPER,
        "Truncated models come near the full score on MNLI and SQuAD; the parser needs more layers.",
        "section 6, Figure 4",
        ("merchant2020-figure-4",),
        "score lost with half of the layers",
        f"at most {LITTLE:g}; for the parser more, and at least as much as for the others; where the task is learned",
        shallow_truncation,
        "near the full score by layer 6 of 12",
    ),
    Claim(
        "in-domain-changes-more",
        PAPER,
        "Representations change more on input like the task's own than on running text.",
        "section 5, Figure 5",
        ("merchant2020-figure-5-mnli", "merchant2020-figure-5-squad"),
        "similarity in the upper half of the layers on running text minus that on the task's own input",
        "positive",
        in_domain_changes_more,
    ),
)
