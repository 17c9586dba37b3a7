"""Treebanks and corpora, and the tasks on words and of edge probing that are made of them, on texts read by hand."""

import pytest

from fivelenses.catalogue import EDGE_TASKS
from fivelenses.tasks import treebanks
from fivelenses.tasks.treebanks import edge_table, parse_conllu, parse_conllulex, word_tables


def line(*columns: str) -> str:
    return "\t".join(columns)


def word(number, form, upos="NOUN", xpos="NN", head=0, relation="root", misc="_"):
    return line(str(number), form, form, upos, xpos, "_", str(head), relation, "_", misc)


def sentence(*lines: str) -> str:
    """One sentence of a file, and the empty line after it."""
    return "\n".join((*lines, "", ""))


CONLLU = sentence(
    word(1, "Ducks", "NOUN", "NNS", 4, "nsubj:outer"),
    line("2-3", "don't", "_", "_", "_", "_", "_", "_", "_", "_"),
    word(2, "do", "AUX", "VBP", 4, "aux"),
    word(3, "n't", "PART", "RB", 4, "advmod"),
    word(4, "fly", "VERB", "VB", 0, "root"),
    line("4.1", "high", "high", "ADV", "RB", "_", "_", "_", "_", "_"),
)


@pytest.mark.parametrize(
    ("task", "units", "names"),
    [
        ("pos", [[0], [1], [2], [3]], ["NOUN", "AUX", "PART", "VERB"]),
        ("dep", [[3, 0], [3, 1], [3, 2]], ["nsubj:outer", "aux", "advmod"]),  # the head first, without the root
        ("parsing", [4, 4, 4, 0], ["nsubj", "aux", "advmod", "root"]),  # universal relations
    ],
)
def test_words_without_multiword_tokens_and_empty_nodes_become_each_task(task, units, names, monkeypatch):
    monkeypatch.setattr(treebanks, "read_treebank", lambda name, source: {"train": parse_conllu(CONLLU)})
    row = word_tables(task, "hub")["train"].iloc[0]
    assert row["tokens"] == ["Ducks", "do", "n't", "fly"]
    assert row["heads" if task == "parsing" else "units"] == units and row["names"] == names


def preposition(number: str, form: str, smwe: str, lexcat: str, role: str, function: str) -> str:
    first = (number, form, form, "ADP", "IN", "_", "0", "root", "_", "_")
    return line(*first, smwe, lexcat, form, role, function, "_", "_", "_", "_")


def test_only_single_prepositions_with_a_supersense_are_kept():
    text = sentence(
        preposition("1", "in", "_", "P", "p.Locus", "p.Locus"),
        preposition("2", "of", "1:1", "P", "p.Whole", "p.Whole"),
        preposition("3", "by", "_", "P", "??", "??"),
        preposition("4", "my", "_", "PRON.POSS", "p.Experiencer", "p.Possessor"),
        preposition("5", "dog", "_", "N", "n.ANIMAL", "_"),
    )
    rows = parse_conllulex(text)[["index", "role", "function"]].to_numpy().tolist()
    assert rows == [[0, "Locus", "Locus"], [3, "Experiencer", "Possessor"]]


@pytest.mark.parametrize("name", EDGE_TASKS)
def test_every_task_has_a_toy_table_whose_spans_lie_in_their_texts(name):
    table = edge_table(name, "toyworld")
    assert list(table) == ["train", "validation", "test"]
    for row in table["validation"].itertuples():
        spans = [span for span in (row.span1, row.span2) if span is not None]
        assert all(0 <= start < end <= len(row.tokens) for start, end in spans)
        assert isinstance(row.labels, list) and (row.labels or name == "spr")


GUM = sentence(
    "# sent_id = GUM_a_b-1",
    word(1, "Julia", misc="Entity=(1-person-new-nnnnn-cf1-1-sgl)"),
    word(2, "sees"),
    word(3, "the", misc="Entity=(2-animal-new-nnnnn-cf2-2-coref"),
    word(4, "hen"),
    word(5, "of"),
    word(6, "her", misc="Entity=(3-person-new-cf3-2-sgl(1-person-giv-cf1-1-ana)"),
    word(7, "aunt", misc="Entity=3)2)"),
    word(8, "in"),
    word(9, "May", misc="Entity=(9[1/2]-time-new-nnnnn-cf4-1-sgl)"),
)


def test_mentions_are_nested_and_split_ones_are_left_out():
    spans = {(tuple(row["span1"]), row["labels"][0]) for row in treebanks.entities(GUM)}
    assert spans == {((0, 1), "person"), ((2, 7), "animal"), ((5, 7), "person"), ((5, 6), "person")}


def test_pairs_of_mentions_are_near_ones():
    rows = treebanks.coreference(GUM)
    labels = {(tuple(row["span1"]), tuple(row["span2"])): row["labels"][0] for row in rows}
    assert labels[(0, 1), (5, 6)] == "coreferent" and set(labels.values()) == {"coreferent", "not"}
    # Pairs of which neither mention has a coreferent one are left out.
    assert ((2, 7), (5, 7)) not in labels


def test_dependencies_put_the_dependent_first_and_leave_out_roots(monkeypatch):
    table = {split: parse_conllu(CONLLU) for split in treebanks.SPLITS}
    monkeypatch.setattr(treebanks, "read_treebank", lambda name, source: table)
    rows = edge_table.__wrapped__("dependencies", "hub")["test"]
    assert rows["span1"].tolist() == [[0, 1], [1, 2], [2, 3]] and rows["span2"].tolist() == [[3, 4]] * 3
    assert rows["labels"].tolist() == [["nsubj:outer"], ["aux"], ["advmod"]]


def test_unary_phrases_share_a_span_and_functions_are_cut():
    tree = "(ROOT (S (NP-SBJ (NP (PRP It))) (VP (VBZ sings) (PP=2 (IN in) (NP (NNP May))))))"
    rows = treebanks.constituents(tree, [["It", "sings", "in", "May"]])
    labels = {tuple(row["span1"]): row["labels"] for row in rows}
    assert labels == {(0, 4): ["S"], (0, 1): ["NP"], (1, 4): ["VP"], (2, 4): ["PP"], (3, 4): ["NP"]}
    # A tree with another number of leaves is left out.
    assert treebanks.constituents(tree, [["It", "sings"]]) == []


SKELETON = "\n".join(
    (
        "google/ewt/answers/00/doc_1.xml 0 0 [WORD] NNP (TOP(S(NP*) - - (ARG0*)",
        "google/ewt/answers/00/doc_1.xml 0 1 [WORD] VBZ (VP* feed feed.01 (V*)",
        "google/ewt/answers/00/doc_1.xml 0 2 [WORD] DT (NP* - - (ARG1*",
        "google/ewt/answers/00/doc_1.xml 0 3 [WORD] NN *)))) - - *)",
    )
)
ROLES = [([1, 2], [0, 1], ["ARG0"]), ([1, 2], [2, 4], ["ARG1"])]


@pytest.mark.parametrize(
    ("tags", "roles"), [("NNP VBZ DT NN", ROLES), ("NNP VBZ DT", []), ("IN IN DT NN", [])], ids=["same", "cut", "other"]
)
def test_arguments_stand_beside_their_predicate_where_the_two_editions_have_one_sentence(tags, roles):
    words = [word(place, "x", xpos=tag) for place, tag in enumerate(tags.split(), start=1)]
    rows = treebanks.semantic_roles(SKELETON, sentence("# sent_id = answers-doc_1-0001", *words))
    assert [(row["span1"], row["span2"], row["labels"]) for row in rows] == roles
