"""Edge-probing tasks: the readers of corpora on texts that are read by hand, and where each task comes from."""

import pytest

from fivelenses.catalogue import EDGE_TASKS
from fivelenses.tasks import edge_tasks
from fivelenses.tasks.edge_tasks import edge_table
from fivelenses.tasks.treebanks import parse_conllu


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
        word(6, "her", "PRON", "PRP$", 7, "nmod:poss", "Entity=(3-person-new-cf3-2-sgl(1-person-giv-cf1-1-ana)"),
        word(7, "aunt", "NOUN", "NN", 4, "nmod", "Entity=3)2)"),
        word(8, "in", "ADP", "IN", 9, "case"),
        word(9, "May", "PROPN", "NNP", 2, "obl", "Entity=(9[1/2]-time-new-nnnnn-cf4-1-sgl)"),
        "",
        "",
    )
)


@pytest.mark.parametrize("name", EDGE_TASKS)
def test_every_task_has_a_toy_table_whose_spans_lie_in_their_texts(name):
    table = edge_table(name, "toyworld")
    assert list(table) == ["train", "validation", "test"]
    for row in table["validation"].itertuples():
        spans = [span for span in (row.span1, row.span2) if span is not None]
        assert all(0 <= start < end <= len(row.tokens) for start, end in spans)
        assert isinstance(row.labels, list) and (row.labels or name == "spr")


def test_mentions_are_nested_and_split_ones_are_left_out():
    spans = {(tuple(row["span1"]), row["labels"][0]) for row in edge_tasks.entities(GUM)}
    assert spans == {((0, 1), "person"), ((2, 7), "animal"), ((5, 7), "person"), ((5, 6), "person")}


def test_pairs_of_mentions_are_near_ones():
    rows = edge_tasks.coreference(GUM)
    labels = {(tuple(row["span1"]), tuple(row["span2"])): row["labels"][0] for row in rows}
    assert labels[(0, 1), (5, 6)] == "coreferent" and set(labels.values()) == {"coreferent", "not"}
    # Pairs of which neither mention has a coreferent one are left out.
    assert ((2, 7), (5, 7)) not in labels


def test_dependencies_put_the_dependent_first_and_leave_out_roots():
    rows = edge_tasks.dependencies(parse_conllu(GUM))
    assert [row["labels"] for row in rows if row["span1"] == [3, 4] and row["span2"] == [1, 2]] == [["obj"]]
    assert len(rows) == 7
    assert [row["labels"] for row in edge_tasks.parts_of_speech(parse_conllu(GUM))][:2] == [["PROPN"], ["VERB"]]


def test_unary_phrases_share_a_span_and_functions_are_cut():
    tree = "(ROOT (S (NP-SBJ (NP (PRP It))) (VP (VBZ sings) (PP=2 (IN in) (NP (NNP May))))))"
    rows = edge_tasks.constituents(tree, [["It", "sings", "in", "May"]])
    labels = {tuple(row["span1"]): row["labels"] for row in rows}
    assert labels == {(0, 4): ["S"], (0, 1): ["NP"], (1, 4): ["VP"], (2, 4): ["PP"], (3, 4): ["NP"]}
    # A tree with another number of leaves is left out.
    assert edge_tasks.constituents(tree, [["It", "sings"]]) == []


SKELETON = "\n".join(
    (
        "google/ewt/answers/00/doc_1.xml 0 0 [WORD] NNP (TOP(S(NP*) - - (ARG0*)",
        "google/ewt/answers/00/doc_1.xml 0 1 [WORD] VBZ (VP* feed feed.01 (V*)",
        "google/ewt/answers/00/doc_1.xml 0 2 [WORD] DT (NP* - - (ARG1*",
        "google/ewt/answers/00/doc_1.xml 0 3 [WORD] NN *)))) - - *)",
    )
)


def roles(*tags: str) -> list[tuple]:
    """Predicate, argument and role in PropBank's sentence, beside a treebank's of these tags."""
    words = [word(place, "x", xpos=tag) for place, tag in enumerate(tags, start=1)]
    rows = edge_tasks.semantic_roles(SKELETON, "\n".join(("# sent_id = answers-doc_1-0001", *words, "", "")))
    return [(row["span1"], row["span2"], row["labels"]) for row in rows]


def test_arguments_stand_beside_their_predicate():
    assert roles("NNP", "VBZ", "DT", "NN") == [([1, 2], [0, 1], ["ARG0"]), ([1, 2], [2, 4], ["ARG1"])]


@pytest.mark.parametrize("tags", [["NNP", "VBZ", "DT"], ["IN", "IN", "DT", "NN"]])
def test_a_sentence_that_is_another_is_left_out(tags):
    assert roles(*tags) == []
