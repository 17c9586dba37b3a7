import pytest

from fivelenses.tasks.sources import SourceError
from fivelenses.tasks.treebanks import parse_conllu, parse_conllulex, treebank


def line(*columns: str) -> str:
    return "\t".join(columns)


CONLLU = "\n".join(
    (
        "# text = Ducks don't fly",
        line("1", "Ducks", "duck", "NOUN", "NNS", "_", "4", "nsubj", "_", "_"),
        line("2-3", "don't", "_", "_", "_", "_", "_", "_", "_", "_"),
        line("2", "do", "do", "AUX", "VBP", "_", "4", "aux", "_", "_"),
        line("3", "n't", "not", "PART", "RB", "_", "4", "advmod", "_", "_"),
        line("4", "fly", "fly", "VERB", "VB", "_", "0", "root", "_", "_"),
        line("4.1", "high", "high", "ADV", "RB", "_", "_", "_", "_", "_"),
        "",
        "",
    )
)


def test_multiword_tokens_and_empty_nodes_are_no_words():
    row = parse_conllu(CONLLU).loc[0]
    assert row["tokens"] == ["Ducks", "do", "n't", "fly"]
    assert row["heads"] == [4, 4, 4, 0]


def test_empty_nodes_are_kept_on_request():
    assert parse_conllu(CONLLU, empty_nodes=True).loc[0, "tokens"][-1] == "high"


def conllulex_row(number: str, form: str, smwe: str, lexcat: str, role: str, function: str) -> str:
    first = (number, form, form, "ADP", "IN", "_", "0", "root", "_", "_")
    return line(*first, smwe, lexcat, form, role, function, "_", "_", "_", "_")


def test_only_single_prepositions_with_a_supersense_are_kept():
    text = "\n".join(
        (
            conllulex_row("1", "in", "_", "P", "p.Locus", "p.Locus"),
            conllulex_row("2", "of", "1:1", "P", "p.Whole", "p.Whole"),
            conllulex_row("3", "by", "_", "P", "??", "??"),
            conllulex_row("4", "my", "_", "PRON.POSS", "p.Experiencer", "p.Possessor"),
            conllulex_row("5", "dog", "_", "N", "n.ANIMAL", "_"),
            "",
            "",
        )
    )
    table = parse_conllulex(text)
    assert table["index"].tolist() == [0, 3]
    assert table["role"].tolist() == ["Locus", "Experiencer"]
    assert table["function"].tolist() == ["Locus", "Possessor"]


def test_an_unknown_treebank_names_those_there_are():
    with pytest.raises(SourceError, match="ewt, pud"):
        treebank("ptb")
