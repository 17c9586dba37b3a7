"""A BERT encoder from an ONNX graph: its weights get their names back and are written as a Hugging Face folder.

An exported graph keeps the names of embeddings, biases and LayerNorms, and loses those of the projections' weights,
which it transposes. Each of these is identified by the bias that is added to its product.
"""

import os
import shutil
from pathlib import Path

import numpy as np
import torch
from transformers import BertConfig, BertModel, PreTrainedTokenizerBase

HEAD_WIDTH = 32  # of an attention head, in every MiniLM


def read_weights(file: Path) -> dict[str, np.ndarray]:
    """The weights of a BERT in an ONNX file, by their names in transformers' BertModel.

    Raises:
        ValueError: the package `onnx` is not installed.
    """
    try:
        import onnx
    except ModuleNotFoundError:
        raise ValueError(f"Reading {file.name} needs the package onnx: run `make extras`.") from None
    graph = onnx.load(str(file)).graph
    stored = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
    product_of = {node.output[0]: node.input[1] for node in graph.node if node.op_type == "MatMul"}
    named = {}
    for node in graph.node:
        if node.op_type == "Add":
            bias = next((name for name in node.input if name.endswith(".bias")), None)
            product = next((product_of[name] for name in node.input if name in product_of), None)
            if bias and product in stored:
                named[bias.removesuffix("bias") + "weight"] = stored[product].T
    whole = named | {name: weights for name, weights in stored.items() if name.endswith((".weight", ".bias"))}
    return {name[min(_places(name)) :]: weights for name, weights in whole.items()}


def _places(name: str) -> list[int]:
    """Where the part of a name that BertModel knows can begin."""
    return [place for place in (name.find("embeddings."), name.find("encoder.layer.")) if place >= 0] or [0]


def convert(file: Path, tokenizer: PreTrainedTokenizerBase, folder: Path) -> Path:
    """Write the BERT of an ONNX file as a Hugging Face folder, which appears when it is complete, and return `folder`.

    Args:
        tokenizer: the tokeniser that its word embeddings belong to.

    Raises:
        ValueError: the graph lacks a weight of a BERT, or has one of another shape.
    """
    weights = {name: torch.tensor(value) for name, value in read_weights(file).items()}
    words = weights["embeddings.word_embeddings.weight"]
    layers = 1 + max(int(name.split(".")[2]) for name in weights if name.startswith("encoder.layer."))
    config = BertConfig(
        vocab_size=words.shape[0],
        hidden_size=words.shape[1],
        num_hidden_layers=layers,
        num_attention_heads=words.shape[1] // HEAD_WIDTH,
        intermediate_size=weights["encoder.layer.0.intermediate.dense.weight"].shape[0],
        max_position_embeddings=weights["embeddings.position_embeddings.weight"].shape[0],
        pad_token_id=tokenizer.pad_token_id,
    )
    model = BertModel(config, add_pooling_layer=False)
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise ValueError(
            f"{file.name} is not the graph of a BERT encoder: {str(error).splitlines()[-1].strip()}"
        ) from error
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = folder.with_name(f"{folder.name}.{os.getpid()}.partial")
    model.save_pretrained(partial)
    tokenizer.save_pretrained(partial)
    try:
        partial.rename(folder)
    except OSError:
        # Another process was first, and its folder is the same.
        shutil.rmtree(partial)
    return folder
