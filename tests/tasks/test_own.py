"""A reader's own table: which columns are read, how it is split, what is said of it, and what is refused."""

from pathlib import Path

import datasets
import pandas as pd
import pytest

from fivelenses import catalogue, tasks
from fivelenses.tasks import own
from fivelenses.tasks.sources import SourceError

WORDS = ("the hen sings", "a dog barks", "Anna gave it away", "nobody saw the hat")


def reviews(count: int = 100, **columns) -> pd.DataFrame:
    """Distinct sentences, every third of them good."""
    texts = [f"{WORDS[row % 4]} {row} times" for row in range(count)]
    labels = ["good" if row % 3 == 0 else "bad" for row in range(count)]
    return pd.DataFrame({"text": texts, "label": labels} | columns)


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("FIVELENSES_STORE", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)


def register(table: pd.DataFrame, name: str) -> catalogue.Task:
    """The task of a table in a file; the columns that are read may stand behind its name."""
    file = Path(name.partition(":")[0])
    if file.suffix == ".parquet":
        table.to_parquet(file)
    elif file.suffix == ".jsonl":
        table.to_json(file, orient="records", lines=True)
    elif file.suffix == ".tsv":
        file.write_text("\n".join("\t".join(map(str, row)) for row in [table.columns, *table.to_numpy()]))
    else:
        table.to_csv(file, index=False)
    return own.register(name)


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
def test_a_file_of_each_kind_becomes_a_task(kind):
    table = reviews(stars=range(100))
    table.loc[3, "text"], table.loc[4, "text"] = '"She said: so, it sings', "NA"
    task = register(table, f"Film reviews.{kind}")
    assert task.title == "Film reviews" and task.name.startswith("film-reviews-")
    assert (task.head, task.metric) == ("sequence", "accuracy")
    assert (task.inputs, task.labels, task.sizes) == (("text",), ("bad", "good"), {"train": 80, "validation": 20})
    data = tasks.load(task.name, "hub")
    labels = {row["text"]: data.labels[row["label"]] for rows in data.splits.values() for row in rows}
    assert labels == dict(zip(table["text"], table["label"], strict=True))
    assert data.provenance("train") == "whole, 80 examples"


def test_one_line_says_which_columns_are_read_and_how_many_examples_each_class_has():
    table = reviews(label_text=["GOOD" if row % 3 == 0 else "BAD" for row in range(100)])
    task = register(table, "reviews.csv")
    assert task.inputs == ("text",) and task.read == (
        "reviews, columns text, label of reviews.csv: training + development examples bad 53 + 13, good 27 + 7 "
        "(development: a fifth of the distinct texts, split by label); null rate 0.650; not read: label_text."
    )


def test_columns_of_other_names_are_named_behind_the_file():
    table = reviews().rename(columns={"text": "review", "label": "stars"}).assign(title="a hen", text2="left out")
    task = register(table, "reviews.csv:text=title,text2=review,label=stars")
    assert task.inputs == ("text", "text2") and "columns title, review, stars of" in task.read
    row = tasks.load(task.name, "hub").splits["train"][0]
    assert row["text"] == "a hen" and row["text2"].endswith("times")


def test_two_texts_are_read_where_there_is_a_column_text2():
    assert register(reviews(text2="a dog"), "pairs.jsonl").inputs == ("text", "text2")


def test_development_examples_may_lie_beside():
    reviews().iloc[70:].to_csv("dev.csv", index=False)
    task = register(reviews().iloc[:70], "train.csv")
    assert task.sizes == {"train": 70, "validation": 30} and "(development: from dev.csv)" in task.read


def test_equal_rows_are_one_task_and_other_rows_another():
    first = register(reviews(), "reviews.csv")
    assert register(reviews(stars=3), "reviews.parquet") == first and "not read: stars" in tasks.find(first.name).read
    second = register(reviews().replace({"text": {"a dog barks 1 times": "a dog barks"}}), "reviews.csv")
    assert second.name != first.name and first.own and second.own
    assert len({tasks.load(task.name, "hub").digest("train") for task in (first, second)}) == 2


def test_a_damaged_table_of_the_store_is_read_anew_and_other_facts_of_it_are_ignored():
    task = register(reviews(), "reviews.csv")
    facts = catalogue.own_folder() / task.name / "task.json"
    facts.write_text(facts.read_text().replace("{", '{"place": "of an earlier version",', 1))
    (catalogue.own_folder() / task.name / "train.parquet").write_bytes(b"cut")
    with pytest.raises(SourceError, match="missing or damaged: name the task's table again"):
        tasks.load(task.name, "hub")
    assert own.register("reviews.csv") == task and tasks.load(task.name, "hub").splits["train"].num_rows == 80


def test_equal_texts_stay_on_one_side():
    data = tasks.load(register(pd.concat([reviews(60)] * 3), "thrice.csv").name, "hub")
    sides = [set(rows["text"]) for rows in data.splits.values()]
    assert not sides[0] & sides[1] and [len(side) for side in sides] == [48, 12]


@pytest.mark.parametrize("labels", [(2, 10), (2.0, 10.0), ("2", "10")])
def test_whole_numbers_are_labels_in_their_order(labels):
    table = reviews(60, label=[labels[row % 2] for row in range(60)])
    assert register(table, "reviews.parquet").labels == ("2", "10")


def test_a_data_set_of_a_mirror_is_a_task(tmp_path, monkeypatch):
    monkeypatch.setenv("FIVELENSES_MIRROR", str(tmp_path))
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"])})
    folder = tmp_path / "datasets" / "owner" / "films" / "plain"
    folder.mkdir(parents=True)
    for split, count in {"train": 40, "test": 20}.items():
        rows = {"text": list(reviews(count)["text"]), "label": [row % 2 for row in range(count)]}
        datasets.Dataset.from_dict(rows, features).to_parquet(folder / f"{split}.parquet")
    task = own.register("hub:owner/films/plain")
    assert (task.labels, task.sizes, task.title) == (("no", "yes"), {"train": 40, "validation": 20}, "plain")
    assert "split test)" in task.read
    with pytest.raises(SourceError, match="owner/films could not be read .*: correct its name and configuration"):
        own.register("hub:owner/films")


def lone(label: str) -> pd.DataFrame:
    """Reviews of which one has another label."""
    return reviews().assign(label=[label if row == 50 else ("good", "bad")[row % 2] for row in range(100)])


REFUSED = [
    ("t.csv", "text,text,label\na,b,c\n", "not one field for each of text, text, label"),
    ("t.csv", "text,label\nso,a\nso, it sings,good\n", "line 3 .*not one field for each of text, label"),
    ("t.csv", "text,label\nso,a\ncafé,good\n".encode("latin-1"), "or no .csv in UTF-8"),
    ("t.csv", 'text,label\nso,a\n"never closed,good\nso,a\n', "damaged near line 3"),
    ("t.jsonl", '{"text": "a", "label": 1}\n[1]\n', "damaged near line 2 "),
    ("t.parquet", "PAR1cut", "t.parquet is damaged or no .parquet"),
    ("t.csv", reviews().rename(columns={"label": "stars"}), "no column 'label': it has 'text', 'stars'; name"),
    ("t.csv:stars=label", reviews(), "no use for 'stars': name columns as FILE:text=…"),
    ("t.csv", reviews(label="good"), "has the label 'good' alone"),
    ("t.csv", reviews(300, label=[f"class {row % 101}" for row in range(300)]), "has 101 different labels"),
    ("t.parquet", reviews(label=[row / 7 for row in range(100)]), "0.14.* as label in row 2"),
    ("t.csv", reviews(12), "a task needs 10 of each"),
    ("t.csv", reviews().replace({"text": {f"{WORDS[2]} 2 times": " "}}), "has ' ' as text in line 4 .of 1 such"),
    ("t.csv", lone("label"), "too few examples of the label 'label' .(1|0) in training, (0|1) in development"),
    ("nowhere.csv", "", "There is no file"),
    ("hub:films", "", "is no data set of the hub: write hub:owner/name"),
    ("label=stars", "", "names a column without its table: quote both"),
]


@pytest.mark.parametrize(("named", "content", "sentence"), REFUSED)
def test_what_cannot_be_learned_from_is_refused_in_one_sentence(named, content, sentence):
    file = Path(named.partition(":")[0])
    if not isinstance(content, pd.DataFrame):
        Path(f"t{file.suffix}").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(SourceError, match=sentence) as refusal:
        own.name_of(named) if not isinstance(content, pd.DataFrame) else register(content, named)
    assert "\n" not in str(refusal.value) and not catalogue.own_folder().is_dir()
