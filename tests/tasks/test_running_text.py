from types import SimpleNamespace

import datasets

from fivelenses.tasks import running_text
from fivelenses.tasks.running_text import wikipedia_text


def test_wikipedia_is_read_by_articles_without_headings_and_split_marks(monkeypatch):
    lines = ["", " = A = \n", " It is 10 @,@ 000 m . A well @-@ known one . \n", " = = Part = = \n", " More . \n"]
    table = datasets.Dataset.from_dict({"text": [*lines, " = Homarus gammarus = \n", " Last . \n", " = Empty = \n"]})
    monkeypatch.setattr(running_text, "load", lambda *_: SimpleNamespace(splits={"validation": table}))
    assert wikipedia_text("hub") == [["It is 10,000 m .", "A well-known one .", "More ."], ["Last ."]]


def test_the_second_domain_keeps_its_stories():
    stories = wikipedia_text("toyworld")
    assert len(stories) > 100
    assert max(map(len, stories)) < 50
