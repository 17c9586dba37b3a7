"""The wording of pages, notebooks, messages and docstrings: no pattern that readers stumbled over, no misspelt word."""

import re
import subprocess
import sys

import jupytext
import pytest

from fivelenses import project

ROOT = project.root()
NOUNS = "task|seed|label|token|layer|model|encoder|head|row|run|point|line|column|word|sentence|cell|chapter|page|job"
# A pattern, and what to write instead.
EVERYWHERE = {
    r"\bby heart\b": "memorised",
    r"\bdrawn anew\b": "re-initialised",
    r"\b(?:put|puts|putting) back\b": "rolled back, or reset",
    r"\bkeeps no\b": "stores no",
    r"\ba bend between\b": "a nonlinearity between",
    r"\bfor want of\b": "for lack of",
    r"\b(?:is|are|was|were) not to be had\b|\bto be had\b": "is not available, is possible",
    r"\bhardly a fall\b": "too small a fall",
    r"\bjobs of Slurm\b": "Slurm jobs",
    r"\bwith results at hand\b": "after seeing the results",
    r"\bas they have it\b": "as they say",
    r"\bthe ground that\b": "the loss surface",
    r"± 0\.0+\b(?!\d)": "no spread for one seed",
    r"\b(?:points?|claims?|verdicts?|numbers?|curves?|dots?) stands?\b(?! for)": "remain, lie, are",
    rf"\b(?:an?|one|two|three|four|\d+) (?!for|is|that|of|in|to|on)[a-z]+ an? (?:{NOUNS})\b": "per",
    r"\bbut for one\b": "except for one",
    r"\bthe same between the\b": "repeat the noun: the divergence between the",
    rf"[}}] an? (?:{NOUNS})\b": "per",
}
# What pages say in one word: the library may speak of a majority label or of word pieces where it means these.
ON_PAGES = {
    r"\bmajority\b|\bconstant answer\b|\bone answer\b": "null rate",
    r"(?<!word )\bpieces\b": "tokens",
}
NOT_PROSE = re.compile(r"```.*?```|\$[^$]*\$|`[^`]*`", re.DOTALL)


def prose() -> dict[str, str]:
    pages = {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in (ROOT / "book").rglob("*.md")}
    pages["README.md"] = (ROOT / "README.md").read_text(encoding="utf-8")
    for file in sorted((ROOT / "notebooks").glob("*.py")):
        cells = [cell.source for cell in jupytext.read(file).cells if cell.cell_type == "markdown"]
        pages[str(file.relative_to(ROOT))] = "\n\n".join(cells)
    return {name: NOT_PROSE.sub("", text) for name, text in pages.items()}


def sources() -> dict[str, str]:
    files = [*(ROOT / "lib").rglob("*.py"), *(ROOT / "lib").rglob("*.yaml"), *(ROOT / "lib").rglob("*.html")]
    return {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in files}


def seen(texts: dict[str, str], patterns: dict[str, str]) -> list[str]:
    """Each place with a pattern, with what to write instead."""
    flat = {name: re.sub(r"\n[ #]*", " ", text) for name, text in texts.items()}
    return [
        f"{name}: “{found[0]}” → {instead}"
        for name, text in flat.items()
        for pattern, instead in patterns.items()
        for found in re.finditer(pattern, text)
    ]


def test_pages_and_notebooks_have_none_of_the_patterns_that_readers_stumbled_over():
    assert seen(prose(), EVERYWHERE | ON_PAGES) == []


def test_the_library_has_none_of_them_either():
    assert seen(sources(), EVERYWHERE) == []


@pytest.mark.parametrize("said", ["It shows a dot a seed.", "Layers are\n# drawn anew.", "5 ± 0.000", "for want of it"])
def test_the_patterns_are_found_across_line_ends_too(said):
    assert seen({"page": said}, EVERYWHERE)


def test_no_word_is_misspelt():
    places = [str(ROOT / name) for name in ("book", "notebooks", "lib", "README.md")]
    skipped = "*.parquet,*.png,*.ipynb,*.json,*.txt,*.csv,*.bib,*.svg,lexicon*,*.xz"
    command = [sys.executable, "-m", "codespell_lib", "--skip", skipped, *places]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
