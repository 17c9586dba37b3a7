"""Questions as windows over their passages, and the answers that windows give."""

import datasets
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivelenses import tasks
from fivelenses.tasks.encoding import best_span, encode_windows
from fivelenses.tasks.examples import encode


def table(context: str, text: str | None, start: int, question: str = "Who sleeps?") -> datasets.Dataset:
    answers = {"text": [] if text is None else [text], "answer_start": [] if text is None else [start]}
    return datasets.Dataset.from_dict({"question": [question], "context": [context], "answers": [answers]})


@pytest.fixture(scope="module")
def squad():
    data = tasks.load("squad", "toyworld", ("validation",))
    return tasks.TaskData(data.task, "toyworld", {"validation": data.splits["validation"].select(range(60))}, ())


def test_windows_cover_every_token_of_a_passage(squad, toy_tokenizer):
    windows = encode(squad, "validation", toy_tokenizer, 32)
    assert max(len(tokens) for tokens in windows["input_ids"]) <= 32
    seen: dict[int, list[tuple[int, int]]] = {row: [] for row in range(60)}
    for row, offsets in zip(windows["row"], windows["offsets"], strict=True):
        seen[row] += [tuple(pair) for pair in offsets if pair[0] >= 0]
    whole = toy_tokenizer(
        list(squad.splits["validation"]["context"]), add_special_tokens=False, return_offsets_mapping=True
    )
    for row, pairs in enumerate(whole["offset_mapping"]):
        assert set(seen[row]) == set(pairs)


@pytest.mark.parametrize("max_length", [32, 128])
def test_an_answer_is_found_again_from_each_window_that_holds_it(squad, toy_tokenizer, max_length):
    windows = encode(squad, "validation", toy_tokenizer, max_length)
    rows, found = squad.splits["validation"], set()
    for row, offsets, first, last in zip(
        windows["row"], windows["offsets"], windows["start_positions"], windows["end_positions"], strict=True
    ):
        if first:
            text = rows[row]["context"][offsets[first][0] : offsets[last][1]]
            assert text == rows[row]["answers"]["text"][0]
            found.add(row)
        else:
            assert last == 0
    assert found == set(range(60))


def test_a_question_that_is_too_long_is_cut(toy_tokenizer):
    windows = encode_windows(table("Ann sleeps.", "Ann", 0, question="cat " * 200), toy_tokenizer, 30)
    assert windows.num_rows == 1
    assert windows[0]["token_type_ids"].index(1) == 10 + 2


@pytest.mark.parametrize(
    ("text", "start", "message"),
    [("Ben", 0, "is not at character 0"), ("Ann", -1, "is not at character -1"), (None, 0, "The answer '' of row 0")],
)
def test_an_answer_that_is_not_in_its_passage_is_refused(toy_tokenizer, text, start, message):
    with pytest.raises(ValueError, match=message):
        encode_windows(table("Ann sleeps.", text, start), toy_tokenizer, 64)


@given(st.data(), st.integers(2, 12), st.integers(1, 5))
def test_the_best_span_is_the_best_of_all_that_are_allowed(data, tokens, max_tokens):
    values = st.lists(st.integers(-9, 9), min_size=tokens, max_size=tokens)
    start, end = np.array(data.draw(values), dtype=float), np.array(data.draw(values), dtype=float)
    first_token = data.draw(st.integers(0, tokens - 1))
    score, first, last = best_span(start, end, np.arange(tokens) >= first_token, max_tokens)
    allowed = [(i, j) for i in range(first_token, tokens) for j in range(i, min(tokens, i + max_tokens))]
    assert (first, last) in allowed
    assert score == start[first] + end[last] == max(start[i] + end[j] for i, j in allowed)
