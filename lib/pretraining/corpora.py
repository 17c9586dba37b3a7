"""Text to pre-train on, as documents: lists of sentences."""

import lzma
import re
from collections.abc import Sequence
from pathlib import Path

import toyworld

# A sentence ends at a full stop, question or exclamation mark before white space; abbreviations are cut wrongly, which
# costs next-sentence prediction a little and nothing else.
SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


def toy_text(split: str) -> list[list[str]]:
    """The toy world's stories, `train` or `validation`.

    Example:
        >>> len(toy_text("validation")) > 100
        True
    """
    table = toyworld.table("plain")[split]
    return [list(sentences) for _, sentences in table.groupby("document", sort=False)["text"]]


def text_files(files: Sequence[Path]) -> list[list[str]]:
    """Documents of text files (``.xz`` too): one paragraph per line, documents split by empty lines.

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
        of_file = [document for document in re.split(r"\n\s*\n", text) if document.strip()]
        if not of_file:
            raise ValueError(f"{file} holds no text.")
        documents += [[part for part in SENTENCE_END.split(document) if part.strip()] for document in of_file]
    return documents
