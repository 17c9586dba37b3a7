"""Text to pre-train on, as documents: lists of sentences."""

import lzma
import re
from collections.abc import Sequence
from pathlib import Path

from fivelenses import tasks
from toyworld import tables

# A sentence ends at a full stop, question or exclamation mark before white space; abbreviations are cut wrongly, which
# costs next-sentence prediction a little and nothing else.
SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
# WikiText writes an article's title as `= Title =`, a section's with more signs, and `well @-@ known`, `10 @,@ 000`.
ARTICLE = re.compile(r"= [^=].*[^=] =$|= [^=] =$")
SPLIT_MARK = re.compile(r" @([-,.])@ ")


def toy_text(split: str) -> list[list[str]]:
    """The toy world's stories, `train` or `validation`.

    Example:
        >>> len(toy_text("validation")) > 100
        True
    """
    table = tables.table("plain")[split]
    return [list(sentences) for _, sentences in table.groupby("document", sort=False)["text"]]


def wikipedia_text(source: str) -> list[list[str]]:
    """Running text that no encoder here was pre-trained on: articles of WikiText-2's validation split, or, for the toy
    world, the stories of its second domain.

    An article is a document. Headings are left out, and the marks that WikiText puts around a hyphen, comma or point
    inside a word or number are undone.

    Args:
        source: `toyworld` or `hub`.

    Raises:
        SourceError: the text cannot be had.

    Example:
        >>> wikipedia_text("toyworld")[0][0]
        'Magnus was loading his oar in a huge barrel quickly.'
    """
    table = tasks.load("wikitext", source, ("validation",)).splits["validation"].to_pandas()
    if "document" in table:
        return [list(sentences) for _, sentences in table.groupby("document", sort=False)["text"]]
    documents: list[list[str]] = []
    for line in table["text"].str.strip():
        if ARTICLE.match(line):
            documents.append([])
        elif line and not line.startswith("="):
            documents[-1] += SENTENCE_END.split(SPLIT_MARK.sub(r"\1", line))
    return [document for document in documents if document]


def text_files(files: Sequence[Path]) -> list[list[str]]:
    """Documents of text files (``.xz`` too): a paragraph a line, documents split by empty lines.

    Raises:
        ValueError: a file that is missing, is no text, or holds nothing.
    """
    documents: list[list[str]] = []
    for file in files:
        if not file.is_file():
            raise ValueError(f"There is no text file {file}: check its path.")
        content = lzma.decompress(file.read_bytes()) if file.suffix == ".xz" else file.read_bytes()
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{file} is not UTF-8 text (byte {error.start}): convert it first.") from error
        found = [document for document in re.split(r"\n\s*\n", text) if document.strip()]
        if not found:
            raise ValueError(f"{file} holds no text.")
        documents += [[part for part in SENTENCE_END.split(document) if part.strip()] for document in found]
    return documents
