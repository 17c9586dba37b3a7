"""What a report leaves to put beside a model on the hub: a model card, and its scores in the hub's form.

The hub reads scores from the head of a card (`model-index`) and, newer, from YAML files under ``.eval_results``. Both
name a data set of the hub, so they have the tasks whose whole development set comes from there; the card's own table
has all tasks.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from huggingface_hub import EvalResult, EvalResultEntry, ModelCardData, eval_result_entries_to_yaml

from fivelenses import project, records
from fivelenses.catalogue import Task, find
from fivelenses.exhibits import claims
from fivelenses.exhibits.verdicts import sentence
from fivelenses.runs.settings import find_chapter
from fivelenses.runs.side_by_side import render

CARD, RESULTS = "model-card.md", "eval-results.yaml"
# Kinds of tasks and scores, as the hub calls them.
KINDS = {"sequence": "text-classification", "token": "token-classification", "span": "question-answering"}
METRICS = {"accuracy": "accuracy", "matthews": "matthews_correlation", "exact-match-f1": "f1"}


def models_of(runs: Mapping[int, Path]) -> pd.DataFrame:
    """The models of several chapters' runs, with `chapter` and the `source` of their data.

    Args:
        runs: the folder of each chapter's run; every chapter has a record of its models.
    """
    tables = []
    for number, folder in runs.items():
        facts = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        place = project.records_folder() / find_chapter(number).slug
        read = [records.read(place / file).table for file in facts["records"]["models"]]
        tables += [table.assign(chapter=number, source=facts["parameters"]["source"]) for table in read]
    return pd.concat(tables, ignore_index=True)


def scores(encoder: str, models: pd.DataFrame) -> pd.DataFrame:
    """What the models reached that were trained as usual: all layers, true labels, from the encoder's weights.

    Args:
        encoder: as the runs name it.
        models: as `models_of` gives them.

    Returns:
        One row per task, of the chapter that trained on most examples: `task`, `chapter`, `source`, `examples`,
        `evaluation_examples`, `seeds` (how many), `score` (their mean), `low` and `high` (over seeds), `null_rate`.
    """
    shuffled = models["shuffled_labels"].fillna(False).astype(bool)
    usual = (models["encoder"] == encoder) & ~shuffled & ~models["diverged"].astype(bool)
    usual &= (models["frozen"] == -1) & (models["truncated"] == -1) & (models["reinitialised"] == 0)
    by = ["task", "chapter", "source", "examples", "epochs", "evaluation_examples"]
    seeds = dict(seeds=("seed", "nunique"), score=("score", "mean"), low=("score", "min"), high=("score", "max"))
    rows = models[usual].groupby(by, sort=False, as_index=False).agg(**seeds, null_rate=("null_rate", "first"))
    most = rows.sort_values(["examples", "epochs"], ascending=False, kind="stable").drop_duplicates("task")
    return most.drop(columns="epochs").sort_index().reset_index(drop=True)


def on_hub(reached: pd.DataFrame) -> pd.DataFrame:
    """The rows of `scores` that the hub can show: the whole development set of one of its data sets."""
    found = [find(task) for task in reached["task"]]
    ours = [
        row.source == "hub"
        and task.repository != ""
        and not task.treebank
        and task.head in KINDS
        and row.evaluation_examples == task.sizes["validation"]
        for row, task in zip(reached.itertuples(), found, strict=True)
    ]
    return reached[np.array(ours, dtype=bool)]


def write(encoder: str, shape: str, profile: str, runs: Mapping[int, Path], folder: Path) -> list[Path]:
    """Write the card, and the scores in the hub's form where there are any.

    Args:
        encoder, shape, profile: of the report.
        runs: the folder of each chapter's run.
        folder: where to.

    Returns:
        The files.
    """
    reached = scores(encoder, models_of(runs))
    shown = on_hub(reached)
    rows = [row._asdict() | _in_words(row, find(row.task)) for row in _rows(reached)]
    outcomes = [(number, one.claim, sentence(one.verdict)) for number, run in runs.items() for one in claims.load(run)]
    text = render("model_card.md", encoder=encoder, shape=shape, profile=profile, scores=rows, outcomes=outcomes)
    written = [folder / CARD]
    written[0].write_text(f"---\n{_head(encoder, shown)}\n---\n\n{text}\n", encoding="utf-8")
    if len(shown):
        entries = eval_result_entries_to_yaml([_entry(row, find(row.task)) for row in _rows(shown)])
        written.append(folder / RESULTS)
        written[1].write_text(yaml.safe_dump(entries, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return written


def _rows(table: pd.DataFrame) -> list:
    return list(table.itertuples(index=False))


def _head(encoder: str, shown: pd.DataFrame) -> str:
    facts: dict = {"tags": ["five-lenses", "fine-tuning"]}
    if len(shown):
        results = [_result(row, find(row.task)) for row in _rows(shown)]
        data_sets = list(dict.fromkeys(one.dataset_type for one in results))
        facts |= {"model_name": encoder, "eval_results": results, "datasets": data_sets}
    return ModelCardData(**facts).to_yaml()


def _in_words(row, task: Task) -> dict[str, str]:
    data = "your own" if task.own else "toy world" if row.source == "toyworld" else task.repository
    return {"title": task.title, "metric": task.score_name, "data": data}


def _notes(row) -> str:
    """How a score came about; the score alone would look like the encoder's own."""
    seeds = f"mean of {row.seeds} seeds, {row.low:.3f} to {row.high:.3f}" if row.seeds > 1 else "one seed"
    return f"fine-tuned on {row.examples:,} examples ({seeds}; null rate {row.null_rate:.3f})"


def _entry(row, task: Task) -> EvalResultEntry:
    data = dict(dataset_id=task.repository, task_id=task.config, dataset_revision=task.revision)
    return EvalResultEntry(**data, value=round(row.score, 4), notes=_notes(row))


def _result(row, task: Task) -> EvalResult:
    return EvalResult(
        task_type=KINDS[task.head],
        dataset_type=task.repository,
        dataset_name=task.title,
        dataset_config=task.config,
        dataset_split=task.splits["validation"],
        dataset_revision=task.revision,
        metric_type=METRICS[task.metric],
        metric_name=f"{task.score_name}, {_notes(row)}",
        metric_value=round(row.score, 4),
    )
