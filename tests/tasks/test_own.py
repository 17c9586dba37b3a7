"""A reader's own table: what the rules take for texts and labels, how it is split, and what is refused."""

import datasets
import pandas as pd
import pytest

from fivelenses import catalogue, tasks
from fivelenses.tasks import own, own_tables
from fivelenses.tasks.sources import SourceError

WORDS = ("the hen sings", "a dog barks", "Anna gave it away", "nobody saw the hat")


def reviews(count: int = 100, **columns) -> pd.DataFrame:
    """Distinct sentences, every third of them good."""
    texts = [f"{WORDS[row % 4]} {row} times" for row in range(count)]
    labels = ["good" if row % 3 == 0 else "bad" for row in range(count)]
    return pd.DataFrame({"review": texts, "label": labels} | columns)


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("FIVELENSES_STORE", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("suffix", "separator"), [(".csv", ","), (".tsv", "\t")])
def test_a_file_becomes_a_task(tmp_path, suffix, separator):
    table = reviews(id=range(100), stars=[row % 5 for row in range(100)])
    table.loc[3, "review"] = f'She said: "so{separator} it sings".'
    table.loc[4, "review"] = "NA"
    table.to_csv(tmp_path / f"Film reviews{suffix}", sep=separator, index=False)
    task = own.register(f"./Film reviews{suffix}")
    assert task.own and task.title == "Film reviews" and task.name.startswith("film-reviews-")
    assert (task.inputs, task.labels, task.head, task.metric) == (("review",), ("bad", "good"), "sequence", "accuracy")
    data = tasks.load(task.name, "toyworld")
    assert {split: rows.num_rows for split, rows in data.splits.items()} == dict(task.sizes)
    assert task.sizes == {"train": 80, "validation": 20}
    gold = dict(zip(table["review"], table["label"], strict=True))
    both = [row for rows in data.splits.values() for row in rows]
    assert {row["review"]: data.labels[row["label"]] for row in both} == gold and "NA" in gold
    assert "left out: id, stars" in own.described(task.name) and data.provenance("train") == "whole, 80 examples"


def test_equal_rows_are_one_task_and_other_rows_another(tmp_path):
    reviews().to_csv(tmp_path / "reviews.csv", index=False)
    reviews().to_parquet(tmp_path / "reviews.parquet")
    first = own.register("reviews.csv")
    assert own.register("reviews.parquet") == first
    changed = reviews()
    changed.loc[0, "review"] = "another hen sings"
    changed.to_csv(tmp_path / "reviews.csv", index=False)
    second = own.register("reviews.csv")
    assert second.name != first.name and (first.place, second.place) == (0, 1)
    digests = {tasks.load(task.name, "hub").digest("train") for task in (first, second)}
    assert len(digests) == 2
    assert catalogue.find(first.name) == first


def test_a_task_is_read_anew_where_the_store_has_lost_it(tmp_path, monkeypatch):
    reviews().to_csv(tmp_path / "reviews.csv", index=False)
    first = own.register("reviews.csv")
    (catalogue.own_folder() / first.name).rename(tmp_path / "elsewhere")
    assert not catalogue.is_task(first.name)
    assert own.register("reviews.csv") == first and catalogue.is_task(first.name)
    (catalogue.own_folder() / first.name / "train.parquet").write_bytes(b"cut")
    with pytest.raises(SourceError, match="missing or damaged: remove .* and name the task's table again"):
        tasks.load(first.name, "hub")


def test_equal_texts_stay_on_one_side(tmp_path):
    pd.concat([reviews(60)] * 3).to_csv(tmp_path / "thrice.csv", index=False)
    data = tasks.load(own.register("thrice.csv").name, "hub")
    sides = [set(rows["review"]) for rows in data.splits.values()]
    assert not sides[0] & sides[1] and [len(side) for side in sides] == [48, 12]
    assert data.splits["train"].num_rows == 3 * 48


def test_a_declaration_says_what_the_rules_do_not(tmp_path):
    table = reviews().rename(columns={"label": "verdict"}).assign(title=WORDS[0], body=WORDS[1])
    table.iloc[:70].to_csv(tmp_path / "train.csv", index=False)
    table.iloc[70:].to_csv(tmp_path / "dev.csv", index=False)
    declared = "file: train.csv\ntext: [title, review]\nlabel: verdict\ndevelopment: dev.csv\nmetric: matthews\n"
    (tmp_path / "sub").mkdir()
    (tmp_path / "task.yaml").write_text(declared + "title: Verdicts\n")
    task = own.register("task.yaml")
    assert (task.inputs, task.title, task.metric) == (("title", "review"), "Verdicts", "matthews")
    assert task.sizes == {"train": 70, "validation": 30} and "null rate 0.000" in own.described(task.name)
    (tmp_path / "share.yaml").write_text("file: train.csv\ntext: review\nlabel: verdict\ndevelopment: 0.5\nseed: 3\n")
    assert own.register("share.yaml").sizes == {"train": 35, "validation": 35}


def test_whole_numbers_are_labels_in_their_order(tmp_path):
    reviews(60, label=[(2, 10)[row % 2] for row in range(60)]).to_parquet(tmp_path / "a.parquet")
    assert own.register("a.parquet").labels == ("2", "10")


def test_large_whole_numbers_stay_apart_where_a_missing_label_makes_them_fractions(tmp_path):
    reviews(60, label=[(1234567.0, 1234568.0)[row % 2] for row in range(60)]).to_parquet(tmp_path / "a.parquet")
    assert own.register("a.parquet").labels == ("1234567", "1234568")


def test_a_data_set_of_a_mirror_is_a_task(tmp_path, monkeypatch):
    monkeypatch.setenv("FIVELENSES_MIRROR", str(tmp_path))
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"])})
    folder = tmp_path / "datasets" / "owner" / "films"
    for split, count in {"train": 40, "test": 20}.items():
        rows = {"text": list(reviews(count)["review"]), "label": [row % 2 for row in range(count)]}
        place = folder / f"{split}.parquet"
        place.parent.mkdir(parents=True, exist_ok=True)
        datasets.Dataset.from_dict(rows, features).to_parquet(place)
    task = own.register("hub:owner/films")
    assert (task.labels, dict(task.sizes)) == (("no", "yes"), {"train": 40, "validation": 20})
    assert "split test" in own.described(task.name)
    with pytest.raises(SourceError, match="The mirror has no owner/books"):
        own.register("hub:owner/books")


def _twice(folder):
    (folder / "t.csv").write_text("text,text,label\na,b,c\n")


def _ragged(folder):
    (folder / "t.csv").write_text("text,label\nso, it sings,good\n")


def _latin(folder):
    (folder / "t.csv").write_bytes("text,label\ncafé,good\n".encode("latin-1"))


def _quoted(folder):
    (folder / "t.csv").write_text('text,label\n"never closed,good\n')


def _yaml(text):
    def write(folder):
        reviews().to_csv(folder / "reviews.csv", index=False)
        (folder / "t.yaml").write_text(text)

    return write


def _table(frame, name="t.csv"):
    return lambda folder: frame.to_csv(folder / name, index=False)


MANY = reviews(300, label=[f"class {row % 101}" for row in range(300)])
REFUSED = [
    (lambda folder: None, "t.csv", "There is no file"),
    (lambda folder: (folder / "t.csv").write_text(""), "t.csv", "is empty"),
    (lambda folder: (folder / "t.csv").write_text("text,label\n"), "t.csv", "names its columns and has no rows"),
    (_twice, "t.csv", "two columns named 'text'"),
    (_ragged, "t.csv", "has 3 fields in line 2 and 2 in its first line"),
    (_latin, "t.csv", "is not text in UTF-8"),
    (_quoted, "t.csv", "cannot be read as a table"),
    (lambda folder: (folder / "t.parquet").write_bytes(b"PAR1cut"), "t.parquet", "damaged or no Parquet"),
    (_table(reviews().drop(columns="label")), "t.csv", "has no column named label, class, target or category among"),
    (_table(reviews(a="one", b="two")), "t.csv", "has columns of text 'review', 'a', 'b' besides 'label'"),
    (_table(reviews().drop(columns="review").assign(stars=3)), "t.csv", "has no column of text besides 'label'"),
    (_table(reviews(label="good")), "t.csv", "has the label 'good' alone"),
    (_table(MANY), "t.csv", "has 101 different labels"),
    (_table(reviews(label=[row / 7 for row in range(100)])), "t.csv", "not a measured value"),
    (_table(reviews(12)), "t.csv", "a task needs 10 of each"),
    (_table(reviews(review="the same")), "t.csv", "equal texts stay together; distinct: 1"),
    (
        _table(reviews().replace({"review": {f"{WORDS[2]} 2 times": " "}})),
        "t.csv",
        "no text .* of 1 of its 100 rows, f",
    ),
    (_table(reviews().replace({"label": {"good": ""}})), "t.csv", "no label in 34 of its 100 rows, first in row 1"),
    (_yaml("file: reviews.csv\ncolour: red\n"), "t.yaml", "says 'colour': it takes config"),
    (_yaml("[a]"), "t.yaml", "says nothing"),
    (_yaml("text: review"), "t.yaml", "by one of `file:` and `hub:`"),
    (_yaml("file: reviews.csv\ntext: body"), "t.yaml", "has no column 'body': it has 'review', 'label'"),
    (_yaml("file: reviews.csv\ntext: label"), "t.yaml", "one or two columns besides 'label'"),
    (_yaml("file: reviews.csv\ntext: [[review]]"), "t.yaml", r"text the value \[\['review'\]\]: name one column"),
    (_yaml("file: reviews.csv\ntext: []"), "t.yaml", r"text the value \[\]: name one column"),
    (_yaml("file: reviews.csv\nrevision: main"), "t.yaml", "gives revision, which belongs to a data set of the hub"),
    (_yaml("file: reviews.csv\nlabel: 3"), "t.yaml", "which is no text: quote it"),
    (_yaml("file: reviews.csv\ndevelopment: 1.5"), "t.yaml", "a share between 0 and 1"),
    (_yaml("file: reviews.csv\ndevelopment: dev.csv"), "t.yaml", "There is no file .*dev.csv"),
    (_yaml("file: reviews.csv\nseed: -1"), "t.yaml", "a whole number from 0"),
    (_yaml("file: reviews.csv\nmetric: f1"), "t.yaml", "choose accuracy or matthews"),
    (_yaml("file: [a"), "t.yaml", "is not YAML"),
]


@pytest.mark.parametrize(("write", "named", "sentence"), REFUSED)
def test_what_cannot_be_learned_from_is_refused_in_one_sentence(tmp_path, write, named, sentence):
    write(tmp_path)
    with pytest.raises(SourceError, match=sentence) as refusal:
        own.register(named)
    assert "\n" not in str(refusal.value) and not catalogue.own_folder().is_dir()


def test_the_label_is_the_first_of_the_known_names():
    columns = {"Category": ["x"], "TARGET": ["y"], "text": ["z"]}
    assert own_tables.label_column(columns, None, "a table") == "TARGET"
