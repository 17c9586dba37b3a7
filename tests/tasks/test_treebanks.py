"""Treebanks, and the tasks on words that are made of them."""

import datasets
import pytest
from tokenizers import Regex, Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel, Digits, Metaspace, Sequence, Split
from tokenizers.trainers import BpeTrainer
from transformers import PreTrainedTokenizerFast

from fivelenses import tasks
from fivelenses.tasks import treebanks
from fivelenses.tasks.encoding import encode_words
from fivelenses.tasks.examples import TaskData, encode
from fivelenses.tasks.treebanks import parse_conllu, parse_conllulex, word_tables


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


def test_dependencies_leave_out_the_root_and_name_the_head_first(monkeypatch):
    text = "1\tShe\tshe\tPRON\t_\t_\t2\tnsubj\t_\t_\n2\truns\trun\tVERB\t_\t_\t0\troot\t_\t_\n\n"
    frame = treebanks.parse_conllu(text)
    monkeypatch.setattr("fivelenses.tasks.treebanks._read", lambda treebank: {"train": frame})
    row = word_tables("dep", "hub")["train"].iloc[0]
    assert (row["units"], row["names"]) == ([[1, 0]], ["nsubj"])
    row = word_tables("pos", "hub")["train"].iloc[0]
    assert (row["units"], row["names"]) == ([[0], [1]], ["PRON", "VERB"])


@pytest.mark.parametrize("name", ["pos", "dep", "ps-role", "ps-fxn"])
def test_every_unit_has_one_label_and_lies_in_its_sentence(name):
    data = tasks.load(name, "toyworld")
    for table in data.splits.values():
        for tokens, units, names in zip(table["tokens"], table["units"], table["names"], strict=True):
            assert len(units) == len(names) and set(names) <= set(data.labels)
            assert all(0 <= word < len(tokens) for unit in units for word in unit)


@pytest.mark.parametrize("name", ["pos", "dep"])
def test_encoded_units_are_those_of_the_table(name, toy_tokenizer):
    data = tasks.load(name, "toyworld", ("validation",))
    encoded = encode(data, "validation", toy_tokenizer, 64)
    assert encoded.num_rows == data.splits["validation"].num_rows
    assert list(encoded["units"]) == list(data.splits["validation"]["units"])
    assert [[data.labels[label] for label in row] for row in encoded["labels"]] == list(
        data.splits["validation"]["names"]
    )


def test_units_that_are_cut_off_are_left_out_and_so_are_sentences_without_any(toy_tokenizer):
    data = tasks.load("pos", "toyworld", ("validation",))
    table = datasets.Dataset.from_dict(
        {
            "tokens": [["The", "cat", "sees", "the", "dog", "."], ["The", "cat"]],
            "units": [[[0], [4]], [[1]]],
            "names": [["DET", "NOUN"], ["NOUN"]],
        }
    )
    cut = encode(TaskData(data.task, "toyworld", {"validation": table}, data.labels), "validation", toy_tokenizer, 3)
    assert cut.num_rows == 1 and cut[0]["units"] == [[0]] and [data.labels[cut[0]["labels"][0]]] == ["DET"]


SPLIT = Split(Regex(r" ?[a-z]+|'[a-z]+"), "isolated")


@pytest.mark.parametrize(
    "pre_tokenizer, space",
    [
        (ByteLevel(add_prefix_space=False), "Ġ"),
        (Sequence([Digits(), ByteLevel(add_prefix_space=False)]), "Ġ"),
        (Sequence([SPLIT, ByteLevel(add_prefix_space=False, use_regex=False)]), "Ġ"),
        (Metaspace(prepend_scheme="never"), "▁"),
        (Sequence([Digits(), Metaspace(prepend_scheme="never")]), "▁"),
    ],
    ids=["bytes", "digits and bytes", "a pattern and bytes", "spaces", "digits and spaces"],
)
def test_words_have_the_tokens_of_their_text_with_the_space_before_them(pre_tokenizer, space):
    words = ["the", "teacher", "don't", "see"]
    made = Tokenizer(BPE())
    made.pre_tokenizer = pre_tokenizer
    made.train_from_iterator(
        [" ".join(words * 2)] * 50, BpeTrainer(vocab_size=320, initial_alphabet=ByteLevel.alphabet())
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made)
    encoded = encode_words([words], tokenizer, 32)
    in_text = tokenizer.tokenize(" ".join(words))
    assert in_text[0] == "the" and in_text[1] == f"{space}teacher"
    assert tokenizer.convert_ids_to_tokens(encoded["input_ids"][0]) == [f"{space}the", *in_text[1:]]
    assert encoded["word_ids"][0][:2] == [0, 1] and encoded["word_ids"][0][-1] == 3
