import numpy as np
import pytest
import torch

from fivelenses.lenses.spans import SpanTargets, Target


def sentences(seed, lengths, layers=2, d=3):
    random = np.random.default_rng(seed)
    return [random.standard_normal((layers, n, d)).astype(np.float32) for n in lengths]


LENGTHS = [4, 1, 6, 3]
TARGETS = [
    Target(2, (1, 4), (5, 6), {"a"}),
    Target(0, (0, 1), (1, 4), {"b", "never seen"}),
    Target(2, (0, 6), (0, 1), set()),
    Target(3, (2, 3), (2, 3), {"a", "b"}),
]


def test_the_words_of_each_span_are_found_again_in_the_batch():
    models = [sentences(0, LENGTHS), sentences(1, LENGTHS)]
    split = SpanTargets((models, TARGETS), ["a", "b"])
    assert split.shape == (2, 2, 3, 2) and len(split) == 4 and split.unknown == 1
    for size in (1, 2, 10):
        seen = 0
        for batch in split.batches(size, [0, 1]):
            for row, truth in enumerate(batch.truth):
                target = TARGETS[split.order[seen + row]]
                assert truth.tolist() == [float(label in target.labels) for label in ("a", "b")]
                for slot, (start, end) in enumerate((target.span1, target.span2)):
                    places = batch.places[row, slot][batch.inside[row, slot]]
                    for model in (0, 1):
                        expected = models[model][target.sentence][:, start:end]
                        np.testing.assert_array_equal(batch.words[model][:, places], expected)
            seen += len(batch.truth)
        assert seen == 4


def test_a_batch_holds_no_word_outside_its_spans_and_each_once():
    split = SpanTargets(([sentences(0, LENGTHS)], TARGETS), ["a"])
    (batch,) = split.batches(10, [0])
    assert batch.words[0].shape == (2, 4 + 6 + 1, 3)
    only = SpanTargets(([sentences(0, LENGTHS)], TARGETS[:1] * 3), ["a"])
    assert next(only.batches(10, [0])).words[0].shape == (2, 4, 3)


def test_only_the_words_of_the_models_asked_for_are_given_and_the_top_layer_where_wanted():
    models = [sentences(0, LENGTHS), sentences(1, LENGTHS)]
    split = SpanTargets((models, TARGETS), ["a"], top=True)
    (batch,) = split.batches(10, [1])
    assert split.shape[1] == 1 and list(batch.words) == [1]
    np.testing.assert_array_equal(batch.words[1][0, 0], models[1][0][-1, 0])


def test_an_order_is_drawn_from_the_generator_and_keeps_every_target():
    split = SpanTargets(([sentences(0, LENGTHS)], TARGETS), ["a", "b"])
    drawn = [
        torch.cat([b.truth for b in split.batches(1, [0], torch.Generator().manual_seed(seed))]) for seed in range(8)
    ]
    assert any(not torch.equal(drawn[0], one) for one in drawn)
    assert all(torch.equal(one.sum(0), drawn[0].sum(0)) for one in drawn)


def test_single_spans_and_half_precision_are_taken():
    vectors = [torch.from_numpy(sentence).half() for sentence in sentences(0, LENGTHS)]
    split = SpanTargets(([vectors], [Target(0, (0, 2), None, ["a"])]), ["a"])
    (batch,) = split.batches(10, [0])
    assert split.shape == (1, 2, 3, 1) and batch.places.shape == (1, 1, 2) and batch.words[0].dtype == torch.float32


def refused(models=None, targets=None):
    return (models or [sentences(0, LENGTHS)]), (TARGETS if targets is None else targets)


@pytest.mark.parametrize(
    ("split", "words"),
    [
        (([], TARGETS), "0 models and 4 targets"),
        (refused(targets=[]), "1 models and 0 targets"),
        (([[]], TARGETS), "has no sentence"),
        (
            refused([sentences(0, LENGTHS), sentences(0, LENGTHS[:3])]),
            "Model 1 has 3 given sentences and model 0 has 4",
        ),
        (refused([sentences(0, LENGTHS), sentences(0, [4, 1, 6, 2])]), "Sentence 3 of model 1 in the given split has"),
        (refused([sentences(0, LENGTHS), sentences(0, LENGTHS, d=5)]), "Sentence 0 of model 1 in the given split has"),
        (refused([[s[0] for s in sentences(0, LENGTHS)]]), "Sentence 0 of model 0 in the given split has shape"),
        (refused([[s * np.nan for s in sentences(0, LENGTHS)]]), "Sentence 0 of model 0 in the given split holds NaN"),
        (refused([[s.astype(int) for s in sentences(0, LENGTHS)]]), "no floating-point numbers"),
        (refused(targets=[Target(4, (0, 1), None, {"a"})]), "in sentence 4, and there are 4"),
        (refused(targets=[Target(-1, (0, 1), None, {"a"})]), "in sentence -1"),
        (refused(targets=[Target(0, (3, 5), None, {"a"})]), r"span \(3, 5\), which is no part of its 4 words"),
        (refused(targets=[Target(0, (2, 2), None, {"a"})]), r"span \(2, 2\), which is no part"),
        (refused(targets=[Target(0, (-1, 1), None, {"a"})]), r"span \(-1, 1\), which is no part"),
        (refused(targets=[Target(0, (0, 1), (3, 2), {"a"})]), r"Target 0 of the given split has the span \(3, 2\)"),
        (refused(targets=[*TARGETS, Target(0, (0, 1), None, {"a"})]), "Some targets"),
        (refused(targets=[Target(0, (0, 1), None, "label")]), "has 'label' for labels"),
    ],
)
def test_what_is_no_split_is_refused_with_a_sentence(split, words):
    with pytest.raises(ValueError, match=words):
        SpanTargets(split, ["a", "b"])
