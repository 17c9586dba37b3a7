import copy

import numpy as np
import pytest
import torch
from transformers import AutoModel, MPNetConfig

from fivelenses import tasks
from fivelenses.activations import represent, stream, stream_rolled_back
from fivelenses.models import encoders
from fivelenses.models.layers import layer_list, roll_back
from fivelenses.tasks.examples import encode


@pytest.fixture(scope="module")
def arcs(toy_tokenizer):
    """Nine sentences, encoded with pairs of their words."""
    return encode(tasks.load("dep", "toyworld", ("validation",)), "validation", toy_tokenizer, 64).select(range(9))


def by_row(model, examples, **wanted):
    """Hidden states of each example, in the order of the rows."""
    states = {}
    for batch in stream(model, examples, **wanted):
        layer = max(batch.hidden)
        for place, row in enumerate(batch.rows):
            states[row] = batch.hidden[layer][place][batch.mask[place]]
    return [states[row] for row in sorted(states)]


def test_results_do_not_depend_on_the_batch(toy_model, toy_examples):
    one, other = (by_row(toy_model, toy_examples, hidden=[6], batch_size=size) for size in (1, 17))
    for alone, padded in zip(one, other, strict=True):
        torch.testing.assert_close(alone, padded, atol=2e-5, rtol=0)


def test_hidden_states_are_those_of_the_model(toy_model, toy_examples):
    batch = next(stream(toy_model, toy_examples, hidden=range(7), batch_size=4))
    row = toy_examples[int(batch.rows[0])]
    inputs = {name: torch.tensor([row[name]]) for name in ("input_ids", "token_type_ids")}
    with torch.no_grad():
        direct = toy_model(**inputs, output_hidden_states=True).hidden_states
    for layer in range(7):
        own = batch.hidden[layer][0][batch.mask[0]]
        torch.testing.assert_close(own, direct[layer][0], atol=2e-5, rtol=0)


@pytest.mark.parametrize("architecture", ["bert", "mpnet"])
def test_a_layer_rolled_back_gives_what_a_copy_with_its_parameters_gives(
    architecture, toy_model, toy_encoder, toy_examples
):
    if architecture == "bert":
        original, other = toy_model, encoders.load_weights(encoders.locate(f"random:{toy_encoder.name}"))
    else:
        shape = dict(hidden_size=16, num_hidden_layers=3, num_attention_heads=2, intermediate_size=32, vocab_size=9000)
        original, other = (AutoModel.from_config(MPNetConfig(**shape)) for _ in range(2))
        # A relative position counts where its weights do.
        other.encoder.relative_attention_bias.weight.data.mul_(50)
        toy_examples = toy_examples.remove_columns("token_type_ids")
    depth = len(layer_list(other))
    copies = [copy.deepcopy(other) for _ in range(1 + depth)]
    for layer in range(1, 1 + depth):
        roll_back(copies[layer], original, [layer])
    expected = zip(*(stream(one, toy_examples, hidden=[depth], batch_size=16) for one in copies), strict=True)
    found = stream_rolled_back(other, original, range(1, 1 + depth), toy_examples, batch_size=16)
    for batches, references in zip(found, expected, strict=True):
        for one, reference in zip(batches, references, strict=True):
            np.testing.assert_array_equal(one.rows, reference.rows)
            torch.testing.assert_close(one.tokens(depth), reference.tokens(depth), atol=1e-5, rtol=0)


def test_layers_that_do_not_exist_are_refused(toy_model, toy_examples):
    for wanted, message in (({"hidden": [7]}, "no layer 7"), ({"attention": [0]}, "attentions 1 to 6")):
        with pytest.raises(ValueError, match=message):
            next(stream(toy_model, toy_examples, **wanted))


def test_a_unit_is_its_words_laid_end_to_end(toy_model, arcs):
    batch = next(iter(stream(toy_model, arcs.select(range(2)), hidden=[2])))
    first, third = (batch.hidden[2][0][batch.words[0] == word].mean(0) for word in (0, 2))
    torch.testing.assert_close(batch.unit_means(2, [[[2]], [[1]]])[0], third)
    torch.testing.assert_close(batch.unit_means(2, [[[2, 0]], [[1, 1]]])[0], torch.cat([third, first]))


def test_representations_come_in_the_order_of_the_examples(toy_model, toy_examples, arcs):
    first = represent(toy_model, toy_examples, [6], batch_size=7)[6]
    alone = np.concatenate([represent(toy_model, toy_examples.select([row]), [6])[6] for row in range(5)])
    np.testing.assert_allclose(first[:5], alone, atol=2e-5)
    of_arcs = represent(toy_model, arcs, [0, 6], batch_size=4)
    assert of_arcs[0].shape == (sum(map(len, arcs["labels"])), 128)
    alone = np.concatenate([represent(toy_model, arcs.select([row]), [6])[6] for row in range(9)])
    np.testing.assert_allclose(of_arcs[6], alone, atol=2e-5)
