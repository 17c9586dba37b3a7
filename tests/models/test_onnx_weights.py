"""On a small graph of our own, written as an exporter writes it; and on the real one, where it is installed."""

import importlib.util

import numpy as np
import pytest
import torch
from transformers import AutoModel, BertConfig, BertModel

from fivelenses.models import encoders
from fivelenses.models.onnx_weights import convert, read_weights

onnx = pytest.importorskip("onnx", reason="comes with the extra minilm")
installed = importlib.util.find_spec(encoders.PACKAGED[encoders.MINILM_L3].module) is not None


@pytest.fixture
def small_bert():
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=1000, hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=96,
        max_position_embeddings=40,
    )  # fmt: skip
    return BertModel(config, add_pooling_layer=False).eval()


def exported(model: BertModel, file) -> None:
    """The weights as an exporter leaves them: projections transposed and nameless, the rest named with a prefix."""
    initializers, nodes = [], []
    for place, (name, weights) in enumerate(model.state_dict().items()):
        value = weights.numpy()
        if name.endswith(".weight") and value.ndim == 2 and "embeddings" not in name:
            bias = f"model.0.auto_model.{name.removesuffix('weight')}bias"
            initializers.append(onnx.numpy_helper.from_array(np.ascontiguousarray(value.T), f"onnx::MatMul_{place}"))
            nodes.append(onnx.helper.make_node("MatMul", ["x", f"onnx::MatMul_{place}"], [f"y{place}"]))
            nodes.append(onnx.helper.make_node("Add", [bias, f"y{place}"], [f"z{place}"]))
        else:
            initializers.append(onnx.numpy_helper.from_array(value, f"model.0.auto_model.{name}"))
    onnx.save(onnx.helper.make_model(onnx.helper.make_graph(nodes, "bert", [], [], initializers)), str(file))


def test_every_weight_comes_back_under_its_name(small_bert, toy_tokenizer, tmp_path):
    exported(small_bert, tmp_path / "bert.onnx")
    folder = convert(tmp_path / "bert.onnx", toy_tokenizer, tmp_path / "bert")
    again = AutoModel.from_pretrained(folder, add_pooling_layer=False)
    theirs = again.state_dict()
    assert all(torch.equal(weights, theirs[name]) for name, weights in small_bert.state_dict().items())
    assert again.config.num_attention_heads == 2


def test_a_graph_that_lacks_a_weight_is_refused(small_bert, toy_tokenizer, tmp_path):
    exported(small_bert, tmp_path / "bert.onnx")
    model = onnx.load(str(tmp_path / "bert.onnx"))
    del model.graph.node[-1]
    onnx.save(model, str(tmp_path / "bert.onnx"))
    with pytest.raises(ValueError, match="bert.onnx is not the graph of a BERT encoder"):
        convert(tmp_path / "bert.onnx", toy_tokenizer, tmp_path / "bert")


@pytest.mark.skipif(not installed, reason="comes with the extra minilm")
def test_the_real_encoder_agrees_with_its_graph(monkeypatch, tmp_path):
    from onnx.reference import ReferenceEvaluator

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    encoders.locate.cache_clear()
    found = encoders.locate(encoders.MINILM_L3)
    encoders.locate.cache_clear()
    model = encoders.load_weights(found)
    inputs = encoders.tokenizer(found)(["a hen breaks a ball"], return_tensors="np")
    packaged = encoders.PACKAGED[encoders.MINILM_L3]
    folder = importlib.util.find_spec(packaged.module).submodule_search_locations[0]
    graph = onnx.load(f"{folder}/{packaged.weights}")
    names = {one.name for one in graph.graph.input}
    given = {name: value.astype(np.int64) for name, value in inputs.items() if name in names}
    # The output of that number is the mean over the pieces.
    theirs = ReferenceEvaluator(graph).run(["461"], given)[0]
    with torch.no_grad():
        ours = model(**{name: torch.tensor(value) for name, value in inputs.items()}).last_hidden_state.numpy()
    np.testing.assert_allclose(ours.mean(axis=1), theirs, atol=1e-5)
    assert len(read_weights(type(tmp_path)(f"{folder}/{packaged.weights}"))) == 53
