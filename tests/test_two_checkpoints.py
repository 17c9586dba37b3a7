"""Two checkpoints compared: what is known to have changed is named, and what has not is not."""

import copy
import json
from pathlib import Path
from types import CodeType, SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from transformers import BertForSequenceClassification
from typer.testing import CliRunner

from fivelenses import compare, two_checkpoints
from fivelenses.activations import stream
from fivelenses.chapters import settings
from fivelenses.cli import app
from fivelenses.comparison import AttentionJS, Sampled, compare_with
from fivelenses.files import project_folder
from fivelenses.lenses.similarities import debiased_linear_cka
from fivelenses.models import encoders
from fivelenses.models.controls import permuted_neurons, rescaled_queries, rotated_values
from fivelenses.models.layers import roll_back
from fivelenses.tasks import folds
from fivelenses.tasks.sources import SourceError
from fivelenses.two_checkpoints import ANSWERS, LENSES, MEASURED, SAMPLED, read_texts
from tests import chapters
from tests.conftest import ENCODER


@pytest.fixture(scope="module")
def texts(toy_data):
    sentences = toy_data.splits["validation"][:20][toy_data.task.inputs[0]]
    # Few folds, of long texts, take a third of the time.
    return [" ".join(sentences[first : first + 4]) for first in range(0, 20, 4)]


@pytest.fixture(scope="module")
def saved(toy_encoder, toy_tokenizer, tmp_path_factory):
    """A function that stores a changed copy of the pre-trained toy BERT, with its tokeniser, as a folder."""

    def save(change):
        folder = tmp_path_factory.mktemp("encoder")
        change(encoders.load_weights(toy_encoder)).save_pretrained(folder)
        toy_tokenizer.save_pretrained(folder)
        return str(folder)

    return save


def silent(line):
    """A log that keeps nothing."""


def with_another_third_layer_and_a_head_of_three_labels(model):
    torch.manual_seed(0)
    shape = copy.deepcopy(model.config)
    shape.num_labels = 3
    changed = BertForSequenceClassification(shape)
    roll_back(changed, model, range(7))
    weight = changed.bert.encoder.layer[2].output.dense.weight.data
    weight += 0.3 * weight.std() * torch.randn(weight.shape)
    return changed


@pytest.fixture(scope="module")
def one_layer(saved, texts):
    return compare(ENCODER, saved(with_another_third_layer_and_a_head_of_three_labels), texts, log=silent)


def test_the_one_layer_that_changed_is_named(one_layer):
    assert not one_layer.identical
    assert one_layer.changed_layers == one_layer.where == (3,)
    assert any("layer 2, layer 4" in fact for fact in one_layer.facts)
    assert any("BertForSequenceClassification with 3 labels" in fact for fact in one_layer.facts)
    table = one_layer.measures.pivot(index="layer", columns="lens", values="value")
    assert (table.loc[[1, 2]] < 1e-12).all(axis=None)
    assert (table.loc[4:, ["js", "svcca", "rsa", "cka_debiased", "neighbours"]] > 0).all(axis=None)


def test_each_lens_has_its_null_its_interval_and_both_twins(one_layer):
    measures = one_layer.measures
    assert list(measures) == MEASURED
    layers = measures.groupby("lens", sort=False)["layer"].apply(list)
    assert layers.to_dict() == {one: [*range(1, 7)] for one in LENSES}
    assert (measures["low"] <= measures["value"]).all() and (measures["value"] <= measures["high"]).all()
    changed = measures[(measures["layer"] > 3) & measures["lens"].isin(["js", "rsa", "cka_debiased", "neighbours"])]
    assert (changed["null"] > changed["high"]).all() and (changed["value"] > changed["detection_limit"]).all()
    last = measures[(measures["layer"] == 6) & (measures["lens"] == "rsa")].iloc[0]
    assert last["functional_twin"] == pytest.approx(last["value"], rel=0.3)
    by_lens = {lens: rows.set_index("layer") for lens, rows in measures.groupby("lens")}
    assert "; noise more than 1,000 times as large" in two_checkpoints._learning(by_lens, 8.9e3)
    by_hand = pd.DataFrame({"value": [0.2, 0.2], "low": [0.1, 0.0], "twin": 0.05, "null": 0.8, "other": 0.4})
    lenses = dict.fromkeys(by_lens, by_hand)
    assert "Of 2 layers, 1 by features" in two_checkpoints._learning(lenses, None)
    assert "is 50% (neighbours) and 50%" in two_checkpoints._how_much(lenses)
    of_weights = measures[measures["lens"] == "weights"]
    np.testing.assert_allclose(of_weights["twin"], of_weights["value"], rtol=1e-4)


def test_a_detection_limit_is_the_least_change_whose_interval_lies_above_rounding():
    measures = pd.DataFrame({"value": [4.0, 4.0, 1.0], "low": [2.0, 0.0, 0.5], "rounded": [1.0, 1.0, 2.0]})
    np.testing.assert_array_equal(two_checkpoints._detection_limits(measures), [2, np.nan, 2])


def test_layers_that_the_texts_do_not_tell_apart_are_all_named(monkeypatch):
    values = pd.DataFrame({1: [0.1] * 4, 2: [0.5, 0.51, 0.49, 0.5], 3: [0.495, 0.49, 0.5, 0.495]}, range(-1, 3))
    rolled = values.rename_axis("fold").melt(var_name="layer", value_name="svcca", ignore_index=False).reset_index()
    monkeypatch.setattr(two_checkpoints.comparison, "layers_rolled_back", lambda *_, **__: rolled)
    given = SimpleNamespace(num_rows=10), {"null": 0.9, "rounded": 0.01}, "cpu"
    assert two_checkpoints._rolled_back(None, None, None, *given)[1] == (2, 3)


def test_the_page_is_one_file_and_the_numbers_can_be_read(one_layer, tmp_path):
    page = one_layer.save(tmp_path / "out").read_text(encoding="utf-8")
    assert one_layer.summary.split("(")[0] in page and page.count("<caption>") == len(LENSES)
    assert "http" not in page and 'src="data:' in page
    saved = json.loads((tmp_path / "out" / "comparison.json").read_text(encoding="utf-8"))
    assert (saved["identical"], saved["changed_layers"], saved["where"]) == (False, [3], [3])
    assert list(saved["measures"][0]) == MEASURED
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "out" / "comparison.parquet"), one_layer.measures)


def test_a_rewriting_that_changes_nothing_is_seen_by_the_weights_alone(saved, texts):
    after = saved(lambda model: rescaled_queries(rotated_values(permuted_neurons(model, 0), 0), 0))
    found = compare(ENCODER, after, texts, log=silent)
    seen = found.measures.groupby("lens").apply(lambda rows: (rows["value"] > rows["detection_limit"]).any())
    assert seen[seen].index.tolist() == ["weights"]
    assert found.changed_layers == (1, 2, 3, 4, 5, 6) and found.where == ()
    assert "both compute the same" in found.summary


def test_two_seeds_are_no_parent_and_child(texts):
    found = compare(ENCODER, "toy-bert/seed-1", texts, other="toy-bert/seed-2", log=silent)
    assert any("no parent and child" in fact for fact in found.facts)
    assert found.where == () and "Where" not in found.summary and "the other encoder that is" in found.summary
    shares = found.measures["value"] / found.measures["other"]
    assert shares[found.measures["lens"].isin(["neighbours", "cka_debiased"])].between(0.4, 2.5).all()


@pytest.mark.parametrize(
    ("after", "texts", "words"),
    [
        (ENCODER, ["A cat sleeps."], "Only one text: give"),
        ("toy-bert/seed-1", ["A cat sleeps.", "A dog barks."], "take more examples"),
        (ENCODER, "missing.txt", "There is no file"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_a_sentence(after, texts, words):
    with pytest.raises((ValueError, SourceError), match=words):
        compare(ENCODER, after, texts, log=silent)


def test_another_tokeniser_is_refused(saved, texts):
    after = saved(lambda model: model)
    file = Path(after) / "tokenizer.json"
    read = json.loads(file.read_text(encoding="utf-8"))
    (first, one), (second, two) = list(read["model"]["vocab"].items())[-2:]
    read["model"]["vocab"] |= {first: two, second: one}
    file.write_text(json.dumps(read), encoding="utf-8")
    with pytest.raises(ValueError, match="make other tokens"):
        compare(ENCODER, after, [*texts, f"{first} {second}"], log=silent)


def test_texts_come_from_lines_or_from_the_column_of_a_table(tmp_path):
    (tmp_path / "lines.txt").write_text("One.\n\nTwo.\nOne.\n", encoding="utf-8")
    (tmp_path / "table.csv").write_text("label,text\n0,One.\n1,Two.\n", encoding="utf-8")
    (tmp_path / "other.csv").write_text("label,review\n0,One.\n", encoding="utf-8")
    assert read_texts(tmp_path / "lines.txt") == read_texts(tmp_path / "table.csv") == ["One.", "Two."]
    with pytest.raises(SourceError, match="no column 'text' but label, review"):
        read_texts(tmp_path / "other.csv")


def test_a_fold_left_out_is_a_sample_without_its_words(toy_model, toy_examples):
    models = {"0": toy_model, "1": encoders.load_weights(encoders.locate("toy-bert/seed-1"))}
    # The last batch holds a single word of the sample.
    last = sum(map(len, toy_examples["input_ids"])) - 1
    fold_of, positions = folds(np.zeros(40), 4), np.append(np.arange(3, 300, 2), last)
    lenses = [Sampled(SAMPLED, positions, 0), AttentionJS(0)]
    table = compare_with(lenses, models, [("0", "1")], toy_examples, [2], 7, "cpu", fold_of)
    vectors, of_words = [], []
    streams = (stream(model, toy_examples, [2], (), 7, "cpu") for model in models.values())
    for batch, other in zip(*streams, strict=True):
        vectors.append(torch.stack([batch.tokens(2), other.tokens(2)]))
        of_words.append(np.repeat(fold_of[batch.rows], batch.mask.sum(1)))
    x, y = torch.cat(vectors, dim=1)[:, positions][:, np.concatenate(of_words)[positions] != 1]
    without = table[table["fold"] == 1].iloc[0]
    assert without["cka_debiased"] == pytest.approx(debiased_linear_cka(x, y), abs=1e-6)
    whole = table[table["fold"] == -1].iloc[0]
    assert whole["neighbours_null"] < whole["neighbours"] and whole["js_null"] > 0


def test_the_lenses_that_answer_a_question_did_so_in_chapter_7(tmp_path):
    columns = {"where": "where", "how much": "dose", "whether": "ignores", "learning": "learning"}
    least = pd.DataFrame()
    for encoder in ("toy-bert-seed-0", "all-MiniLM-L6-v2"):
        record = project_folder() / "book" / "records" / f"small-{encoder}" / "7-known-truth" / "changes_seen.parquet"
        changes = pd.read_parquet(record)
        _, names = chapters.executed(7, {"changes_seen": changes}, tmp_path, only="none")
        for code in chapters.cells(7, ""):
            if {one.co_name for one in code.co_consts if isinstance(one, CodeType)} & {"answers", "scores"}:
                exec(code, names)
        least[encoder] = names["scores"](changes).set_index(["question", "measure"])["score"]
    least = least.min(axis=1).unstack("question")
    for question, lenses in ANSWERS.items():
        answering = least.index[least[columns[question]] >= 0.9].intersection(LENSES)
        assert set(answering) == set(lenses), question


def test_the_command_writes_the_page_and_refuses_in_a_sentence(texts, tmp_path):
    (tmp_path / "texts.txt").write_text("\n".join(texts), encoding="utf-8")
    read = ["--texts", str(tmp_path / "texts.txt"), "--folder", str(tmp_path / "out")]
    ended = CliRunner().invoke(app, ["compare", ENCODER, ENCODER, *read])
    assert ended.exit_code == 0 and "equal, to the last bit" in ended.output
    assert (tmp_path / "out" / "comparison.html").is_file()
    ended = CliRunner().invoke(app, ["compare", ENCODER, "english-bert/seed-0", *read])
    assert ended.exit_code == 2 and "only encoders of one shape" in ended.output


def test_the_books_example_is_the_model_that_its_page_names():
    shown = json.loads((project_folder() / "book" / "comparison.json").read_text(encoding="utf-8"))
    assert shown["after"] == f"store/{settings(1, 'tiny').models(task='sst2', seed=0)[0].address}"
