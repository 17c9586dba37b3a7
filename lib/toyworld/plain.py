"""Plain text of the world, for pre-training: one sentence per row, with the number of its story."""

import pandas

from toyworld.annotation import join, words_of
from toyworld.rows import generator_for
from toyworld.stories import HOME, Domain, simulate
from toyworld.texts import Narrator

TRAINING_WORDS = 450_000
HELD_OUT_WORDS = 20_000


def text_of_domain(name: str, split: str, words: int, domain: Domain, seen: frozenset[str]) -> pandas.DataFrame:
    """Tell stories until there are `words` words; a sentence that is in `seen` is left out."""
    texts: list[str] = []
    documents: list[int] = []
    total = story = 0
    while total < words:
        generator = generator_for(name, split, story)
        for node in Narrator(generator, simulate(generator, generator.randrange(6, 11), domain)).narrate():
            text = join(words_of(node))
            if text in seen:
                continue
            texts.append(text)
            documents.append(story)
            total += text.count(" ") + 1
        story += 1
    return pandas.DataFrame({"text": texts, "document": documents})


def plain() -> dict[str, pandas.DataFrame]:
    """Stories of the world: a training part and a held-out part that shares no sentence with it."""
    training = text_of_domain("plain", "train", TRAINING_WORDS, HOME, frozenset())
    held_out = text_of_domain("plain", "validation", HELD_OUT_WORDS, HOME, frozenset(training["text"]))
    return {"train": training, "validation": held_out}
