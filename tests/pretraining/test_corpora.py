import lzma

import pytest

from pretraining import text_files, toy_text


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
