"""Words, trees and questions as tokens with their targets, and the answers that windows give."""

import datasets
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel, Digits, Metaspace, Sequence, Split
from tokenizers.trainers import BpeTrainer
from transformers import PreTrainedTokenizerFast

from fivelenses import tasks
from fivelenses.tasks.encoding import best_span, encode_trees, encode_units, encode_windows, encode_words
from fivelenses.tasks.examples import encode


@pytest.mark.parametrize(("name", "column"), [("pos", "units"), ("dep", "units"), ("parsing", "heads")])
def test_targets_are_those_of_the_table(name, column, toy_tokenizer):
    data = tasks.load(name, "toyworld", ("validation",))
    table = data.splits["validation"]
    encoded = encode(data, "validation", toy_tokenizer, 64)
    assert list(encoded[column]) == list(table[column])
    assert [[data.labels[label] for label in row] for row in encoded["labels"]] == list(table["names"])


def test_units_that_are_cut_off_are_left_out_and_so_are_sentences_without_any(toy_tokenizer):
    rows = {
        "tokens": [["The", "cat", "sees", "the", "dog", "."], ["The", "cat"]],
        "units": [[[0], [4]], [[1]]],
        "names": [["DET", "NOUN"], ["NOUN"]],
    }
    cut = encode_units(datasets.Dataset.from_dict(rows), ("DET", "NOUN"), toy_tokenizer, 3)
    assert cut.num_rows == 1 and cut[0]["units"] == [[0]] and cut[0]["labels"] == [0]


def test_words_of_trees_that_are_cut_off_and_those_that_hang_on_them_are_no_targets(toy_tokenizer):
    rows = {
        "tokens": [["The", "cat", "sees"], ["The", "cat"]],
        "heads": [[2, 3, 0], [2, 0]],
        "names": [["det", "nsubj", "root"], ["det", "root"]],
    }
    cut = encode_trees(datasets.Dataset.from_dict(rows), ("det", "nsubj", "root"), toy_tokenizer, 4)
    assert list(cut["heads"]) == [[2, -100, -100], [2, 0]]
    assert list(cut["labels"]) == [[0, -100, -100], [0, 2]]
    # One word is left, and its head is not: no target, no example.
    short = encode_trees(datasets.Dataset.from_dict(rows), ("det", "nsubj", "root"), toy_tokenizer, 3)
    assert short.num_rows == 0


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


@pytest.fixture(scope="module")
def squad():
    return tasks.load("squad", "toyworld", ("validation",)).splits["validation"].select(range(60))


def test_windows_cover_every_token_of_a_passage(squad, toy_tokenizer):
    windows = encode_windows(squad, toy_tokenizer, 32)
    assert max(len(tokens) for tokens in windows["input_ids"]) <= 32
    covered: dict[int, set] = {row: set() for row in range(60)}
    for row, offsets in zip(windows["row"], windows["offsets"], strict=True):
        covered[row] |= {tuple(pair) for pair in offsets if pair[0] >= 0}
    whole = toy_tokenizer(list(squad["context"]), add_special_tokens=False, return_offsets_mapping=True)
    assert list(covered.values()) == [set(pairs) for pairs in whole["offset_mapping"]]


@pytest.mark.parametrize("max_length", [32, 128])
def test_an_answer_is_found_again_from_each_window_that_holds_it(squad, toy_tokenizer, max_length):
    answered = set()
    for window in encode_windows(squad, toy_tokenizer, max_length):
        first, last, row = window["start_positions"], window["end_positions"], squad[window["row"]]
        if first:
            text = row["context"][window["offsets"][first][0] : window["offsets"][last][1]]
            assert text == row["answers"]["text"][0]
            answered.add(window["row"])
        else:
            assert last == 0
    assert answered == set(range(60))


def test_a_question_that_is_too_long_is_cut(toy_tokenizer):
    answers = {"text": ["Ann"], "answer_start": [0]}
    row = {"question": ["cat " * 200], "context": ["Ann sleeps."], "answers": [answers]}
    windows = encode_windows(datasets.Dataset.from_dict(row), toy_tokenizer, 30)
    assert windows.num_rows == 1
    assert windows[0]["token_type_ids"].index(1) == 10 + 2


@given(st.data(), st.integers(2, 12), st.integers(1, 5))
def test_the_best_span_is_the_best_of_all_that_are_allowed(data, tokens, max_tokens):
    values = st.lists(st.integers(-9, 9), min_size=tokens, max_size=tokens)
    start, end = np.array(data.draw(values), dtype=float), np.array(data.draw(values), dtype=float)
    first_token = data.draw(st.integers(0, tokens - 1))
    score, first, last = best_span(start, end, np.arange(tokens) >= first_token, max_tokens)
    allowed = [(i, j) for i in range(first_token, tokens) for j in range(i, min(tokens, i + max_tokens))]
    assert (first, last) in allowed
    assert score == start[first] + end[last] == max(start[i] + end[j] for i, j in allowed)
