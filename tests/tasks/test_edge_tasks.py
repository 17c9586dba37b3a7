import json

import pytest

from fivelenses.catalogue import EDGE_TASKS, find_edge_task
from fivelenses.tasks import edge_tasks
from fivelenses.tasks.edge_tasks import ONTONOTES, data_behind, edge_table
from fivelenses.tasks.sources import RawFile, SourceError, raw_bytes


def word(number, form, upos="NOUN", xpos="NN", head=0, relation="root", misc="_"):
    return "\t".join((str(number), form, form, upos, xpos, "_", str(head), relation, "_", misc))


GUM = "\n".join(
    (
        "# sent_id = GUM_a_b-1",
        word(1, "Julia", "PROPN", misc="Entity=(1-person-new-nnnnn-cf1-1-sgl)"),
        word(2, "sees", "VERB", "VBZ", 0, "root"),
        word(3, "the", "DET", "DT", 4, "det", "Entity=(2-animal-new-nnnnn-cf2-2-coref"),
        word(4, "hen", "NOUN", "NN", 2, "obj"),
        word(5, "of", "ADP", "IN", 7, "case"),
        word(
            6,
            "her",
            "PRON",
            "PRP$",
            7,
            "nmod:poss",
            "Entity=(3-person-new-nnnnn-cf3-2-sgl(1-person-giv-nnnnn-cf1-1-ana)",
        ),
        word(7, "aunt", "NOUN", "NN", 4, "nmod", "Entity=3)2)"),
        word(8, "in", "ADP", "IN", 9, "case"),
        word(9, "May", "PROPN", "NNP", 2, "obl", "Entity=(9[1/2]-time-new-nnnnn-cf4-1-sgl)"),
        "",
        "",
    )
)


@pytest.mark.parametrize("name", EDGE_TASKS)
def test_every_task_has_a_toy_twin_whose_spans_lie_in_their_texts(name):
    table = edge_table(name, "toyworld")
    assert list(table) == ["train", "validation", "test"]
    for frame in table.values():
        for row in frame.itertuples():
            spans = [row.span1] + ([row.span2] if find_edge_task(name).spans == 2 else [])
            assert all(0 <= start < end <= len(row.tokens) for start, end in spans)
            assert isinstance(row.labels, list) and (row.labels or name == "spr")


def test_mentions_are_nested_and_split_ones_are_left_out():
    rows = edge_tasks.entities(GUM)
    found = {(tuple(row["span1"]), row["labels"][0]) for row in rows}
    assert found == {((0, 1), "person"), ((2, 7), "animal"), ((5, 7), "person"), ((5, 6), "person")}


def test_pairs_of_mentions_are_near_ones():
    rows = edge_tasks.coreference(GUM)
    found = {(tuple(row["span1"]), tuple(row["span2"])): row["labels"][0] for row in rows}
    assert found[(0, 1), (5, 6)] == "coreferent"
    # Pairs of which neither mention has a coreferent one are left out.
    assert ((2, 7), (5, 7)) not in found
    assert set(found.values()) == {"coreferent", "not"}


def test_dependencies_put_the_dependent_first():
    rows = edge_tasks.dependencies(GUM)
    assert [row["labels"] for row in rows if row["span1"] == [3, 4] and row["span2"] == [1, 2]] == [["obj"]]
    # Two words of this text are roots.
    assert len(rows) == 7


def test_unary_phrases_share_a_span_and_functions_are_cut():
    tree = "(ROOT (S (NP-SBJ (NP (PRP It))) (VP (VBZ sings) (PP=2 (IN in) (NP (NNP May))))))"
    rows = edge_tasks.constituents(tree, [["It", "sings", "in", "May"]])
    found = {tuple(row["span1"]): row["labels"] for row in rows}
    assert found == {(0, 4): ["S"], (0, 1): ["NP"], (1, 4): ["VP"], (2, 4): ["PP"], (3, 4): ["NP"]}


def test_a_tree_with_another_number_of_leaves_is_left_out():
    assert edge_tasks.constituents("(ROOT (NP (NN hen)))", [["a", "hen"]]) == []
    with pytest.raises(ValueError, match="1 trees for 2 sentences"):
        edge_tasks.constituents("(ROOT (NP (NN hen)))", [["hen"], ["cow"]])


SKELETON = "\n".join(
    (
        "google/ewt/answers/00/doc_1.xml 0 0 [WORD] NNP (TOP(S(NP*) - - (ARG0*)",
        "google/ewt/answers/00/doc_1.xml 0 1 [WORD] VBZ (VP* feed feed.01 (V*)",
        "google/ewt/answers/00/doc_1.xml 0 2 [WORD] DT (NP* - - (ARG1*",
        "google/ewt/answers/00/doc_1.xml 0 3 [WORD] NN *)))) - - *)",
    )
)


def test_arguments_stand_beside_their_predicate():
    sentences = {"answers-doc_1-0001": (["Julia", "feeds", "a", "hen"], ["NNP", "VBZ", "DT", "NN"])}
    rows = edge_tasks.semantic_roles(SKELETON, sentences)
    found = [(row["span1"], row["span2"], row["labels"]) for row in rows]
    assert found == [([1, 2], [0, 1], ["ARG0"]), ([1, 2], [2, 4], ["ARG1"])]


@pytest.mark.parametrize("tags", [["NNP", "VBZ", "DT"], ["IN", "IN", "DT", "NN"]])
def test_a_sentence_that_is_another_is_left_out(tags):
    assert edge_tasks.semantic_roles(SKELETON, {"answers-doc_1-0001": (["x"] * len(tags), tags)}) == []


def test_a_span_outside_its_text_is_refused():
    line = json.dumps({"text": "a hen", "targets": [{"span1": [1, 3], "label": "NP"}]})
    with pytest.raises(ValueError, match="Line 2 labels words .1, 3. of a text of 2"):
        edge_tasks.edge_probing_json("\n" + line)


def test_ontonotes_is_read_where_a_folder_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv(ONTONOTES, str(tmp_path))
    edge_table.cache_clear()
    assert data_behind("entities", "hub") == "OntoNotes" and data_behind("relations", "hub").startswith("SemEval")
    with pytest.raises(SourceError, match="no entities/train.json"):
        edge_table("entities", "hub")
    (tmp_path / "entities").mkdir()
    line = json.dumps({"text": "a red hen", "targets": [{"span1": [0, 3], "label": "ANIMAL"}]})
    for split in ("train", "development", "test"):
        (tmp_path / "entities" / f"{split}.json").write_text(line)
    assert edge_table("entities", "hub")["validation"].loc[0, "labels"] == ["ANIMAL"]
    edge_table.cache_clear()


def test_a_file_that_a_mirror_puts_together_cannot_be_fetched():
    with pytest.raises(SourceError, match="put together from many files"):
        raw_bytes(RawFile("a/b", "", "c.txt", "0" * 64, assembled=True))


def test_an_unknown_task_or_source_is_named():
    with pytest.raises(ValueError, match="no edge-probing task 'sentiment'"):
        find_edge_task("sentiment")
    with pytest.raises(ValueError, match="no source 'web'"):
        edge_table("pos", "web")
