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


def write(table: pd.DataFrame, name: str) -> str:
    """A file of the table; its name."""
    kind = name.rpartition(".")[2]
    if kind == "parquet":
        table.to_parquet(name)
    elif kind == "jsonl":
        table.to_json(name, orient="records", lines=True)
    elif kind == "tsv":
        rows = ["\t".join(map(str, row)) for row in [table.columns, *table.to_numpy()]]
        Path(name).write_text("\n".join(rows))
    else:
        table.to_csv(name, index=False)
    return name


def pairs_of(name: str) -> dict[str, str]:
    """Text to label, over both splits of a task."""
    data = tasks.load(name, "toyworld")
    return {row["text"]: data.labels[row["label"]] for rows in data.splits.values() for row in rows}


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
def test_a_file_of_each_kind_becomes_a_task(kind):
    table = reviews(stars=range(100))
    table.loc[3, "text"], table.loc[4, "text"] = 'She said: "so, it sings".', "NA"
    task = own.register(write(table, f"Film reviews.{kind}"))
    assert (task.title, task.name[:13], task.head, task.metric) == (
        "Film reviews",
        "film-reviews-",
        "sequence",
        "accuracy",
    )
    assert (task.inputs, task.labels, task.sizes) == (("text",), ("bad", "good"), {"train": 80, "validation": 20})
    assert pairs_of(task.name) == dict(zip(table["text"], table["label"], strict=True))
    assert tasks.load(task.name, "hub").provenance("train") == "whole, 80 examples"


def test_other_columns_are_not_read_and_named():
    table = reviews(label_text=["GOOD" if row % 3 == 0 else "BAD" for row in range(100)])
    task = own.register(write(table, "reviews.csv"))
    assert task.inputs == ("text",) and "not read: label_text." in own.described(task.name)


def test_columns_of_other_names_are_named_behind_the_file():
    table = reviews().rename(columns={"text": "review", "label": "stars"}).assign(title="a hen", text2="left out")
    plain = own.register(write(table, "reviews.csv") + ":text=title,text2=review,label=stars")
    assert plain.inputs == ("text", "text2") and "columns title, review, stars of" in own.described(plain.name)
    row = tasks.load(plain.name, "hub").splits["train"][0]
    assert row["text"] == "a hen" and row["text2"].endswith("times")


def test_two_texts_are_read_where_there_is_a_column_text2():
    assert own.register(write(reviews(text2="a dog"), "pairs.jsonl")).inputs == ("text", "text2")


def test_tab_separated_files_have_no_quoting(tmp_path):
    rows = [f'"the hen{row} sings\t{row % 2}' for row in range(60)]
    (tmp_path / "sst2.tsv").write_text("\n".join(["text\tlabel", *rows]))
    assert '"the hen7 sings' in pairs_of(own.register("sst2.tsv").name)


def test_the_examples_of_each_class_are_told_for_both_parts():
    told = own.described(own.register(write(reviews(), "reviews.csv")).name)
    assert "training + development examples bad 53 + 13, good 27 + 7 (" in told and "null rate 0.650" in told


def test_two_spellings_of_a_label_are_seen():
    table = reviews()
    table.loc[:20, "label"] = table.loc[:20, "label"].str.title()
    told = own.described(own.register(write(table, "reviews.csv")).name)
    assert all(f"{label} " in told for label in ("bad", "Bad", "good", "Good"))


def test_of_many_classes_the_rarest_are_seen():
    labels = [f"class {row % 30}" for row in range(600)]
    labels[:5] = ["rare"] * 5
    told = own.described(own.register(write(reviews(600, label=labels), "reviews.csv")).name)
    assert told.count("class ") == 11 and "…" in told and "rare 4 + 1 (" in told


def test_development_examples_may_lie_beside():
    write(reviews().iloc[70:], "dev.csv")
    task = own.register(write(reviews().iloc[:70], "train.csv"))
    assert task.sizes == {"train": 70, "validation": 30} and "(development: from dev.csv)" in own.described(task.name)


def test_equal_rows_are_one_task_and_other_rows_another():
    first = own.register(write(reviews(), "reviews.csv"))
    assert own.register(write(reviews(stars=3), "reviews.parquet")) == first
    assert "of reviews.parquet" in own.described(first.name) and "not read: stars" in own.described(first.name)
    second = own.register(write(reviews().replace({"text": {"a dog barks 1 times": "a dog barks"}}), "reviews.csv"))
    assert second.name != first.name and (first.place, second.place) == (0, 1)
    assert len({tasks.load(task.name, "hub").digest("train") for task in (first, second)}) == 2


def test_a_task_is_read_anew_where_the_store_has_lost_it(tmp_path):
    first = own.register(write(reviews(), "reviews.csv"))
    (catalogue.own_folder() / first.name).rename(tmp_path / "elsewhere")
    assert not catalogue.is_task(first.name)
    assert own.register("reviews.csv") == first and catalogue.is_task(first.name)
    (catalogue.own_folder() / first.name / "train.parquet").write_bytes(b"cut")
    with pytest.raises(SourceError, match="missing or damaged: remove its folder and name the task's table again"):
        tasks.load(first.name, "hub")


def test_equal_texts_stay_on_one_side():
    data = tasks.load(own.register(write(pd.concat([reviews(60)] * 3), "thrice.csv")).name, "hub")
    sides = [set(rows["text"]) for rows in data.splits.values()]
    assert not sides[0] & sides[1] and [len(side) for side in sides] == [48, 12]
    assert data.splits["train"].num_rows == 3 * 48


@pytest.mark.parametrize("labels", [(2, 10), (2.0, 10.0), ("2", "10")])
def test_whole_numbers_are_labels_in_their_order(labels):
    table = reviews(60, label=[labels[row % 2] for row in range(60)])
    assert own.register(write(table, "reviews.parquet")).labels == ("2", "10")


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
    assert "split test)" in own.described(task.name)
    with pytest.raises(SourceError, match="hub:owner/films could not be read .* hub:owner/films/…"):
        own.register("hub:owner/films")


def text(content: str | bytes, name: str = "t.csv"):
    """Writes a file of that content."""
    content = content.encode() if isinstance(content, str) else content
    return lambda folder: (folder / name).write_bytes(content)


def table(frame, name="t.csv"):
    return lambda folder: write(frame, name)


def lone(label: str) -> pd.DataFrame:
    """Reviews of which one has another label."""
    changed = reviews()
    changed.loc[50, "label"] = label
    return changed


REFUSED = [
    (lambda folder: None, "t.csv", "There is no file"),
    (text(""), "t.csv", "has no examples"),
    (text("text,text,label\na,b,c\n"), "t.csv", "two columns named 'text'"),
    (text("text,label\nso,a\nso, it sings,good\n"), "t.csv", "has 3 fields in line 3 and 2 in its first: put a text"),
    (
        text("text\tlabel\nso\ta\nso\n", "t.tsv"),
        "t.tsv",
        "has 1 fields in line 3 and 2 in its first: texts hold no tab",
    ),
    (text("text,label\nso,a\ncafé,good\n".encode("latin-1")), "t.csv", r"is not text in UTF-8 \(line 3\)"),
    (text('text,label\nso,a\n"never closed,good\nso,a\n'), "t.csv", "a broken row that begins in line 3"),
    (text('{"text": "a", "label": 1}\n[1]\n', "t.jsonl"), "t.jsonl", "no JSON object in line 2"),
    (text("PAR1cut", "t.parquet"), "t.parquet", "damaged or no Parquet"),
    (table(reviews().rename(columns={"label": "stars"})), "t.csv", "no column 'label': it has 'text', 'stars'; name"),
    (table(reviews()), "t.csv:label=text", "one column for two of text, label"),
    (table(reviews()), "t.csv:stars=label", "no meaning for 'stars': name columns as FILE:text=…"),
    (table(reviews(label="good")), "t.csv", "has the label 'good' alone"),
    (table(reviews(300, label=[f"class {row % 101}" for row in range(300)])), "t.csv", "has 101 different labels"),
    (table(reviews(label=[row / 7 for row in range(100)]), "t.parquet"), "t.parquet", "0.14.* as label in row 2"),
    (table(reviews(12)), "t.csv", "a task needs 10 of each"),
    (table(reviews().replace({"text": {f"{WORDS[2]} 2 times": " "}})), "t.csv", "has ' ' as text in line 4 .of 1 such"),
    (table(reviews().replace({"label": {"good": ""}})), "t.csv", "has '' as label in line 2 .of 34 such rows"),
    (table(lone("label")), "t.csv", "too few examples of the label 'label' .(1|0) in training, (0|1) in development"),
    (lambda folder: None, "hub:films", "is no data set of the hub: write hub:owner/name"),
    (lambda folder: None, "label=stars", "names a column without its table: quote both"),
]


@pytest.mark.parametrize(("make", "named", "sentence"), REFUSED)
def test_what_cannot_be_learned_from_is_refused_in_one_sentence(tmp_path, make, named, sentence):
    make(tmp_path)
    with pytest.raises(SourceError, match=sentence) as refusal:
        own.name_of(named)
    assert "\n" not in str(refusal.value) and not catalogue.own_folder().is_dir()
