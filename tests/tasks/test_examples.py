"""Tables of tasks and their encoding; running text."""

from types import SimpleNamespace

import datasets
import pytest

from fivelenses import tasks
from fivelenses.tasks import examples
from fivelenses.tasks.examples import wikipedia_text


def test_a_changed_label_changes_the_digest(toy_data):
    rows = toy_data.splits["validation"]
    labels = [1 - rows["label"][0], *rows["label"][1:]]
    changed = rows.remove_columns("label").add_column("label", labels)
    other = tasks.TaskData(toy_data.task, "toyworld", {"validation": changed}, toy_data.labels)
    assert other.digest("validation") != toy_data.digest("validation")


def test_an_unknown_task_names_those_there_are():
    with pytest.raises(ValueError, match="no task 'rtf'.*rte"):
        tasks.load("rtf", "toyworld")


def test_wikipedia_is_read_by_articles_without_headings_and_split_marks(monkeypatch):
    lines = ["", " = A = \n", " It is 10 @,@ 000 m . A well @-@ known one . \n", " = = Part = = \n", " More . \n"]
    table = datasets.Dataset.from_dict({"text": [*lines, " = Homarus gammarus = \n", " Last . \n", " = Empty = \n"]})
    monkeypatch.setattr(examples, "load", lambda *_: SimpleNamespace(splits={"validation": table}))
    assert wikipedia_text("hub") == [["It is 10,000 m .", "A well-known one .", "More ."], ["Last ."]]
