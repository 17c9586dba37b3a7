"""Changes of weights that change no output: exact up to rounding on every architecture, and really changes."""

import pytest
import torch
from tests.conftest import equal_weights
from transformers import AutoModel, BertConfig, DistilBertConfig, MPNetConfig, RobertaConfig

from fivelenses.models.controls import SYMMETRIES, symmetries_of

SMALL = dict(vocab_size=30, max_position_embeddings=20, hidden_size=12, num_hidden_layers=2)
CONFIGURATIONS = {
    "bert": BertConfig(**SMALL, num_attention_heads=3),
    "one head": BertConfig(**SMALL, num_attention_heads=1),
    "roberta": RobertaConfig(**SMALL, num_attention_heads=3),
    "mpnet": MPNetConfig(**SMALL, num_attention_heads=3),
    "distilbert": DistilBertConfig(vocab_size=30, dim=12, n_layers=2, n_heads=3, hidden_dim=20),
}
ARCHITECTURES = {name: AutoModel.from_config(config) for name, config in CONFIGURATIONS.items()}


def outputs(model, tokens):
    with torch.no_grad():
        return torch.stack(model(tokens, output_hidden_states=True).hidden_states)


@pytest.mark.parametrize(
    ("architecture", "kind"), [(name, kind) for name, model in ARCHITECTURES.items() for kind in symmetries_of(model)]
)
def test_other_architectures_compute_the_same_also_with_biases(architecture, kind):
    model = ARCHITECTURES[architecture].eval().double()
    torch.manual_seed(0)
    for parameter in model.parameters():
        # Biases begin at 0, where a mistake in them would not show.
        parameter.data.normal_(std=0.3)
    tokens = torch.arange(3, 15).reshape(2, 6)
    changed = SYMMETRIES[kind](model, 1)
    assert torch.allclose(outputs(changed, tokens), outputs(model, tokens), atol=1e-10)
    assert changed.training == model.training
    assert equal_weights(changed, model) == ((architecture, kind) == ("one head", "heads permuted"))


def test_heads_with_a_bias_each_keep_their_places():
    assert set(SYMMETRIES) - set(symmetries_of(ARCHITECTURES["mpnet"])) == {"heads permuted"}
    with pytest.raises(ValueError, match="'mpnet' share one bias per head: heads keep their places"):
        SYMMETRIES["heads permuted"](ARCHITECTURES["mpnet"], 0)
