"""The tasks of edge probing: one label or several for one or two spans of words, by name and source.

OntoNotes, which most of the published tasks are made of, is licensed. Where FIVELENSES_ONTONOTES names a folder that
holds it in the format of the edge-probing suite (``<task>/train.json``, ``development.json``, ``test.json``), it is
read; otherwise open data with the same annotation replace it, and `EdgeTask.stand_in` says which.
"""

import io
import os
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import conllu
import pandas as pd

import toyworld
from fivelenses.tasks import edge_readers
from fivelenses.tasks.sources import RawFile, SourceError, raw_bytes, raw_splits, raw_text
from fivelenses.tasks.treebanks import TREEBANKS, words_of

ONTONOTES = "FIVELENSES_ONTONOTES"
SPLITS = ("train", "validation", "test")
_SUITE_SPLITS = {"train": "train", "validation": "development", "test": "test"}

_SUITE = "mohsenfayyaz/edge-probing-datasets"
FILES: dict[str, dict[str, RawFile]] = {
    "gum": raw_splits(
        "UniversalDependencies/UD_English-GUM",
        "r2.16",
        "en_gum-ud-{}.conllu",
        train=("train", "ed0a0b32d4a6f7e6154a321d19bc9b7325124a0434cad2fd8143018059d6321c", "", True),
        validation=("dev", "581997015a2d878ad49619032d265a9753e1b6b03d75ca18b04a00bb9ee8991d"),
        test=("test", "fe95c0e744f81cdf2a307ce522604ecc05cd359c7c6d1abaa3a46c85d024f34c"),
    ),
    "ewt-2.2": raw_splits(
        "UniversalDependencies/UD_English-EWT",
        "r2.2",
        "en_ewt-ud-{}.conllu",
        train=("train", "74001b5c55bc997fc63394c46ed36207f0107d83e0e57c89699733b5dc999eae"),
        validation=("dev", "9e0340da5b4ede956b52c4ad2b6ce2a3192c1c7e14d5addbd2f0679a41864432"),
        test=("test", "849d1814228f7b124daf22c1a1bd7428fcf6d2f3337698f714fe2ea7f0b7e600"),
    ),
    "relations": raw_splits(
        _SUITE,
        "",
        "data/semeval_data/{}.json",
        train=("train.0.85", "c8fee124fe8b1b2b143eb6e6ce0f4421e52a5285c74dc4bc6770c1c185737246"),
        validation=("dev", "8ac3ce8845790c593c88dac1a9c822d678fb78b969cc0a4a4ee08dcb983e448b"),
        test=("test", "427831f6fc8b5fc4592ca7e71ed9a76ee5bd8677bbb52fc194ad5d1e9f79f605"),
    ),
    "spr": raw_splits(
        _SUITE,
        "",
        "data/spr2_data/edges.{}.json",
        train=("train", "d572327b2c507ce6daafe411fbcdc5edba0a056ceaf01aa0c4e4946dee270b00"),
        validation=("dev", "a7a53ed6d7a525fdb5d256f297cf38334260930d5d6f49d090bee08e53516821"),
        test=("test", "6e1f00ed84a616379b10dfedb8fb7741674a5fe88c00380fa845d4002be71c33"),
    ),
    "coreference-dpr": raw_splits(
        _SUITE,
        "",
        "data/dpr_data/{}.json",
        train=("train", "13f6b98729e4fcba0217d1ba48c660e541a2eda642ce9e62f644b073e567ba59"),
        validation=("dev", "6b0524298c2385e537d8cd788c299eaaedd863c68225f115da8391cd9813e540"),
        test=("test", "fcb836006ff661cf278101b6d79a97da2655ca8e1d818a34fd8e5b750a0e0c1c"),
    ),
}
GUM_TREES = RawFile(
    "amir-zeldes/gum",
    "V11.1.0",
    "const.tar",
    "e07fd8b0c777a1652858b600ac3ed32243c167cb219f81099597e5cb29cd54a1",
    assembled=True,
)
PROPBANK = RawFile(
    "propbank/propbank-release",
    "",
    "data/google/ewt.gold_skel",
    "de6c69af96e5e9501b070aa78fc31fb57019d5555af44178971d2622ec5c2617",
    assembled=True,
)


@dataclass(frozen=True)
class EdgeTask:
    """One edge-probing task.

    Attributes:
        name, title: the name used in the code, and the one that the papers print.
        spans: 1 or 2.
        stand_in: the open data that are read where OntoNotes is not available.
        in_ontonotes: whether the published task is made of OntoNotes.
    """

    name: str
    title: str
    spans: int
    stand_in: str
    in_ontonotes: bool = True


EDGE_TASKS = {
    task.name: task
    for task in (
        EdgeTask("pos", "POS", 1, "UD English EWT 2.16"),
        EdgeTask("constituents", "Constituents", 1, "GUM 11.1"),
        EdgeTask("dependencies", "Dependencies", 2, "UD English EWT 2.16", in_ontonotes=False),
        EdgeTask("entities", "Entities", 1, "GUM 11.1"),
        EdgeTask("srl", "SRL", 2, "PropBank on UD English EWT 2.2"),
        EdgeTask("coreference", "Coreference", 2, "GUM 11.1, inside sentences"),
        EdgeTask("coreference-dpr", "Coreference (DPR)", 2, "Definite Pronoun Resolution", in_ontonotes=False),
        EdgeTask("spr", "SPR", 2, "Semantic Proto-Roles 2", in_ontonotes=False),
        EdgeTask("relations", "Relations", 2, "SemEval-2010 task 8", in_ontonotes=False),
    )
}


def find_edge_task(name: str) -> EdgeTask:
    """The task of that name.

    Example:
        >>> find_edge_task("srl").spans
        2
    """
    if name not in EDGE_TASKS:
        raise ValueError(f"There is no edge-probing task {name!r}: choose among {', '.join(EDGE_TASKS)}.")
    return EDGE_TASKS[name]


def data_behind(name: str, source: str) -> str:
    """What a task is read from, as a table prints it."""
    task = find_edge_task(name)
    if source == "toyworld":
        return "toy world"
    return "OntoNotes" if task.in_ontonotes and os.environ.get(ONTONOTES) else task.stand_in


@cache
def edge_table(name: str, source: str) -> dict[str, pd.DataFrame]:
    """The splits of an edge-probing task: `tokens`, `span1`, `span2` (None for one span), `labels` (a list).

    Refused: another task or source, or a file that cannot be had.

    Example:
        >>> edge_table("relations", "toyworld")["train"].loc[0, "labels"]
        ['entity-origin(e1,e2)']
    """
    task = find_edge_task(name)
    if source == "toyworld":
        return _of_the_toy_world(name)
    if source != "hub":
        raise ValueError(f"There is no source {source!r}: choose among toyworld, hub.")
    folder = os.environ.get(ONTONOTES)
    if folder and task.in_ontonotes:
        rows = {split: _of_ontonotes(Path(folder).expanduser(), name, split) for split in SPLITS}
    elif name in ("relations", "spr", "coreference-dpr"):
        rows = {split: edge_readers.edge_probing_json(raw_text(FILES[name][split])) for split in SPLITS}
    elif name == "constituents":
        rows = {split: _constituents(split) for split in SPLITS}
    elif name == "srl":
        skeleton = raw_text(PROPBANK)
        rows = {split: edge_readers.semantic_roles(skeleton, _tagged(FILES["ewt-2.2"][split])) for split in SPLITS}
    else:
        read, files = _READERS[name]
        rows = {split: read(raw_text(files[split])) for split in SPLITS}
    return {split: pd.DataFrame(of_split) for split, of_split in rows.items()}


_READERS: dict[str, tuple[Callable[[str], list[dict]], dict[str, RawFile]]] = {
    "pos": (edge_readers.parts_of_speech, TREEBANKS["ewt"]),
    "dependencies": (edge_readers.dependencies, TREEBANKS["ewt"]),
    "entities": (edge_readers.entities, FILES["gum"]),
    "coreference": (edge_readers.coreference, FILES["gum"]),
}


def _of_the_toy_world(name: str) -> dict[str, pd.DataFrame]:
    frames = {}
    for split, frame in toyworld.table(f"edge_{name.removesuffix('-dpr')}").items():
        labels = [label if isinstance(label, list) else [label] for label in frame["label"]]
        frames[split] = frame.drop(columns="label").assign(labels=labels)
    return frames


def _of_ontonotes(folder: Path, name: str, split: str) -> list[dict]:
    file = folder / name / f"{_SUITE_SPLITS[split]}.json"
    if not file.is_file():
        raise SourceError(
            f"{ONTONOTES} names {folder}, which has no {file.relative_to(folder)}: put the edge-probing suite's file "
            "there, or unset the variable to read open data."
        )
    return edge_readers.edge_probing_json(file.read_text(encoding="utf-8"))


@cache
def _trees() -> dict[str, str]:
    """The bracketed trees of each GUM document, by its name."""
    with tarfile.open(fileobj=io.BytesIO(raw_bytes(GUM_TREES))) as archive:
        members = [member for member in archive.getmembers() if member.isfile()]
        return {Path(one.name).stem: archive.extractfile(one).read().decode("utf-8") for one in members}


def _constituents(split: str) -> list[dict]:
    documents: dict[str, list[list[str]]] = {}
    for sentence in conllu.parse(raw_text(FILES["gum"][split])):
        name = sentence.metadata["sent_id"].rpartition("-")[0]
        documents.setdefault(name, []).append([word["form"] for word in words_of(sentence)])
    return [row for name, words in documents.items() for row in edge_readers.constituents(_trees()[name], words)]


def _tagged(file: RawFile) -> dict[str, tuple[list[str], list[str]]]:
    """The words and Penn tags of each sentence of a treebank, by the sentence's id."""
    tagged = {}
    for sentence in conllu.parse(raw_text(file)):
        words = words_of(sentence)
        tagged[sentence.metadata["sent_id"]] = [word["form"] for word in words], [word["xpos"] for word in words]
    return tagged
