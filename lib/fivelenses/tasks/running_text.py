"""Running text from outside an encoder's own corpus, as documents: lists of sentences."""

import re

from fivelenses.tasks.examples import load

# A sentence ends at a full stop, question mark or exclamation mark before white space. Abbreviations are cut wrongly,
# which costs next-sentence prediction a little and nothing else.
SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
# WikiText writes an article's title as `= Title =`, a section's with more signs, and `well @-@ known`, `10 @,@ 000`.
ARTICLE = re.compile(r"= [^=].*[^=] =$|= [^=] =$")
SPLIT_MARK = re.compile(r" @([-,.])@ ")


def wikipedia_text(source: str) -> list[list[str]]:
    """Articles of WikiText-2's validation split or, for the toy world, the stories of its second domain.

    One article is one document. Headings are left out, and the marks that WikiText puts around a hyphen, comma or full
    stop inside a word or number are removed.

    Args:
        source: `toyworld` or `hub`.

    Example:
        >>> wikipedia_text("toyworld")[0][0]
        'Magnus was loading his oar in a huge barrel quickly.'
    """
    table = load("wikitext", source, ("validation",)).splits["validation"].to_pandas()
    if "document" in table:
        return [list(sentences) for _, sentences in table.groupby("document", sort=False)["text"]]
    documents: list[list[str]] = []
    for line in table["text"].str.strip():
        if ARTICLE.match(line):
            documents.append([])
        elif line and not line.startswith("="):
            documents[-1] += SENTENCE_END.split(SPLIT_MARK.sub(r"\1", line))
    return [document for document in documents if document]
