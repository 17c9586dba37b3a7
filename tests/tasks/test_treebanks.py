"""Treebanks, and the tasks on words that are made of them."""

import pytest

from fivelenses import tasks
from fivelenses.tasks import treebanks
from fivelenses.tasks.treebanks import parse_conllu, parse_conllulex, word_tables


def line(*columns: str) -> str:
    return "\t".join(columns)


CONLLU = "\n".join(
    (
        "# text = Ducks don't fly",
        line("1", "Ducks", "duck", "NOUN", "NNS", "_", "4", "nsubj:outer", "_", "_"),
        line("2-3", "don't", "_", "_", "_", "_", "_", "_", "_", "_"),
        line("2", "do", "do", "AUX", "VBP", "_", "4", "aux", "_", "_"),
        line("3", "n't", "not", "PART", "RB", "_", "4", "advmod", "_", "_"),
        line("4", "fly", "fly", "VERB", "VB", "_", "0", "root", "_", "_"),
        line("4.1", "high", "high", "ADV", "RB", "_", "_", "_", "_", "_"),
        "",
        "",
    )
)


@pytest.mark.parametrize(
    ("task", "units", "names"),
    [
        ("pos", [[0], [1], [2], [3]], ["NOUN", "AUX", "PART", "VERB"]),
        ("dep", [[3, 0], [3, 1], [3, 2]], ["nsubj:outer", "aux", "advmod"]),  # the head first, without the root
        ("parsing", [4, 4, 4, 0], ["nsubj", "aux", "advmod", "root"]),  # universal relations
    ],
)
def test_words_without_multiword_tokens_and_empty_nodes_become_each_task(task, units, names, monkeypatch):
    frame = parse_conllu(CONLLU)
    monkeypatch.setattr(treebanks, "read_treebank", lambda name, source: {"train": frame})
    row = word_tables(task, "hub")["train"].iloc[0]
    assert row["tokens"] == ["Ducks", "do", "n't", "fly"]
    assert row["heads" if task == "parsing" else "units"] == units and row["names"] == names


def preposition(number: str, form: str, smwe: str, lexcat: str, role: str, function: str) -> str:
    first = (number, form, form, "ADP", "IN", "_", "0", "root", "_", "_")
    return line(*first, smwe, lexcat, form, role, function, "_", "_", "_", "_")


def test_only_single_prepositions_with_a_supersense_are_kept():
    text = "\n".join(
        (
            preposition("1", "in", "_", "P", "p.Locus", "p.Locus"),
            preposition("2", "of", "1:1", "P", "p.Whole", "p.Whole"),
            preposition("3", "by", "_", "P", "??", "??"),
            preposition("4", "my", "_", "PRON.POSS", "p.Experiencer", "p.Possessor"),
            preposition("5", "dog", "_", "N", "n.ANIMAL", "_"),
            "",
            "",
        )
    )
    table = parse_conllulex(text)
    assert table["index"].tolist() == [0, 3]
    assert table["role"].tolist() == ["Locus", "Experiencer"]
    assert table["function"].tolist() == ["Locus", "Possessor"]


@pytest.mark.parametrize("name", ["pos", "dep", "ps-role", "ps-fxn"])
def test_every_unit_of_the_toy_world_has_one_label_and_lies_in_its_sentence(name):
    data = tasks.load(name, "toyworld")
    for table in data.splits.values():
        for tokens, units, names in zip(table["tokens"], table["units"], table["names"], strict=True):
            assert len(units) == len(names) and set(names) <= set(data.labels)
            assert all(0 <= word < len(tokens) for unit in units for word in unit)
