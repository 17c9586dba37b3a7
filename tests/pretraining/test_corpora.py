import lzma
from types import SimpleNamespace

import datasets
import pytest

from pretraining import corpora
from pretraining.corpora import text_files, toy_text, wikipedia_text


def test_empty_lines_part_documents_and_stops_part_sentences(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("One. Two!\nThree?\n\nFour.\n", encoding="utf-8")
    assert text_files([file]) == [["One.", "Two!", "Three?"], ["Four."]]


def test_compressed_text_is_the_same(tmp_path):
    file = tmp_path / "a.txt.xz"
    file.write_bytes(lzma.compress(b"One. Two."))
    assert text_files([file]) == [["One.", "Two."]]


@pytest.mark.parametrize(
    ("content", "message"), [(None, "no text file"), (b"\xff\xfe", "not UTF-8"), (b"\n \n", "no text")]
)
def test_files_that_are_no_text_are_refused(tmp_path, content, message):
    file = tmp_path / "a.txt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        text_files([file])


def test_toy_documents_are_stories_without_overlap():
    assert not {tuple(story) for story in toy_text("train")} & {tuple(story) for story in toy_text("validation")}


def test_wikipedia_is_read_by_articles_without_headings_and_split_marks(monkeypatch):
    lines = ["", " = A = \n", " It is 10 @,@ 000 m . A well @-@ known one . \n", " = = Part = = \n", " More . \n"]
    table = datasets.Dataset.from_dict({"text": [*lines, " = Homarus gammarus = \n", " Last . \n", " = Empty = \n"]})
    monkeypatch.setattr(corpora.tasks, "load", lambda *_: SimpleNamespace(splits={"validation": table}))
    assert wikipedia_text("hub") == [["It is 10,000 m .", "A well-known one .", "More ."], ["Last ."]]


def test_the_second_domain_keeps_its_stories():
    stories = wikipedia_text("toyworld")
    assert len(stories) > 100
    assert max(map(len, stories)) < 50
