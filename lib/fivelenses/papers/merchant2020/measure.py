"""What Merchant et al. (2020) measure on representations, as tidy tables: edge probes and their codelengths,
structural probes, and similarity to the pre-trained encoder.

A model is named by what it was tuned on; `base` is the pre-trained encoder.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import datasets
import numpy as np
import pandas as pd
import torch
from torch import nn
from transformers import PreTrainedTokenizerBase

from fivelenses import tasks
from fivelenses.activations import stream, word_vectors
from fivelenses.checkpoints import Checkpoint, finite
from fivelenses.lenses import edge_probe, mdl, structural_probe, trees
from fivelenses.lenses.rsa import RSAAccumulator, sample_positions
from fivelenses.lenses.spans import Target
from fivelenses.models import encoders
from fivelenses.models.layers import layer_list
from fivelenses.tasks.edge_tasks import SPLITS, edge_table
from fivelenses.tasks.examples import subset

BASE, LEXICAL, RANDOMISED = "base", "lexical", "randomised"
RANDOM_SEED = 0  # of the randomised baseline
TABLE_SEED = 0  # of the sentences that are drawn from a table
PUNCTUATION = "PUNCT"
LEAST_WORDS, MOST_WORDS = 5, 50  # of a sentence in the structural probes


@dataclass(frozen=True)
class Probing:
    """How edge probes are trained; the rest is as published.

    Attributes:
        targets: of a training split at most; half as many of the others.
        learning_rate, validate_every, max_validations, width: of the probe.
        seeds: of its first weights and dropout.
    """

    targets: int
    learning_rate: float
    validate_every: int
    max_validations: int
    width: int
    seeds: tuple[int, ...] = (0,)


def whole_models(checkpoints: Sequence[Checkpoint]) -> dict[tuple[str, str], Checkpoint]:
    """(encoder, task) to the first model that was tuned from it without frozen or removed layers and did not diverge.

    Raises:
        ValueError: there is none.
    """
    found: dict[tuple[str, str], Checkpoint] = {}
    for checkpoint in finite(dict(enumerate(checkpoints))).values():
        made = checkpoint.manifest["specification"]
        if not made["frozen"] and made["truncated"] is None:
            found.setdefault((made["encoder"], made["task"]), checkpoint)
    return found


def probed_models(encoder: str, checkpoints: Mapping[tuple[str, str], Checkpoint]) -> dict[str, nn.Module]:
    """The pre-trained encoder, the same with random weights, and the encoders tuned from it, by name."""
    torch.manual_seed(RANDOM_SEED)
    blank = encoders.load_weights(encoders.locate(encoder if encoder.startswith("random:") else f"random:{encoder}"))
    tuned = {task: checkpoint.model() for (start, task), checkpoint in checkpoints.items() if start == encoder}
    return {BASE: encoders.load_weights(encoders.locate(encoder)), RANDOMISED: blank, **tuned}


def encoded_words(
    sentences: Sequence[list[str]], tokenizer: PreTrainedTokenizerBase, max_length: int
) -> datasets.Dataset:
    """Sentences that are split into words as pieces with their `word_ids`."""
    encoded = tokenizer(list(sentences), is_split_into_words=True, truncation=True, max_length=max_length)
    places = [
        [-1 if word is None else word for word in encoded.word_ids(row)] for row in range(len(encoded["input_ids"]))
    ]
    return datasets.Dataset.from_dict({**encoded, "word_ids": places})


def drawn_targets(table: pd.DataFrame, most: int) -> tuple[list[list[str]], list[Target]]:
    """Sentences of a table in random order, whole, until they hold `most` targets, and those targets.

    Args:
        table: of `tasks.edge_tasks.edge_table`.
        most: targets; all when there are no more.
    """
    keys = [tuple(tokens) for tokens in table["tokens"]]
    rows_of: dict[tuple[str, ...], list[int]] = {}
    for row, key in enumerate(keys):
        rows_of.setdefault(key, []).append(row)
    sentences, targets = [], []
    every = list(rows_of)
    for place in np.random.default_rng(TABLE_SEED).permutation(len(every)):
        if len(targets) >= most:
            break
        for row in rows_of[every[place]]:
            span2 = table["span2"].iat[row]
            second = None if span2 is None else tuple(span2)
            targets.append(Target(len(sentences), tuple(table["span1"].iat[row]), second, table["labels"].iat[row]))
        sentences.append(list(every[place]))
    return sentences, targets


def _within(targets: Sequence[Target], vectors: Sequence[np.ndarray]) -> list[Target]:
    """The targets whose spans were not cut off."""
    return [
        target
        for target in targets
        if max(target.span1[1], target.span2[1] if target.span2 else 0) <= vectors[target.sentence].shape[1]
    ]


def edge_probing(
    models: Mapping[str, nn.Module],
    tokenizer: PreTrainedTokenizerBase,
    names: Sequence[str],
    source: str,
    probing: Probing,
    max_length: int = 128,
    codelengths: Sequence[str] = (),
    device: str | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Table 1 and appendices A and B: edge probes of several models side by side on the same targets.

    The vectors of a task are computed once a model and read by the mixture of layers, by the probe of the top layer,
    and by the codelengths. The lexical baseline reads the pre-trained encoder's embeddings alone.

    Args:
        models: name to model, `base` among them; all with one tokeniser and depth.
        names: edge-probing tasks.
        codelengths: those of which codelengths are measured too: labels coded by a perceptron that reads the mean
            vector of each span, averaged over all layers.

    Returns:
        The scores (`task`, `model`, `seed`, `layers`: `mix` or `top`, `micro_f1`, `targets`), and the codelengths
        (`task`, `model`, `bits`, `uniform`, `compression`, `targets`).
    """
    scores, codes = [], []
    for name in names:
        table = edge_table(name, source)
        wanted = {split: probing.targets if split == "train" else probing.targets // 2 for split in SPLITS}
        drawn = {split: drawn_targets(table[split], wanted[split]) for split in SPLITS}
        vectors: dict[str, dict[str, list[np.ndarray]]] = {}
        for model_name, model in models.items():
            depth = len(layer_list(model))
            vectors[model_name] = {
                split: word_vectors(
                    model, encoded_words(sentences, tokenizer, max_length), range(depth + 1), device=device
                )
                for split, (sentences, _) in drawn.items()
            }
        targets = {split: _within(drawn[split][1], vectors[BASE][split]) for split in SPLITS}
        scores += _probe_all(name, vectors, targets, probing, device)
        if name in codelengths:
            codes += [_code(name, model, vectors[model]["train"], targets["train"]) for model in models]
    return pd.DataFrame(scores), pd.DataFrame(codes)


def _probe_all(name, vectors, targets, probing: Probing, device) -> list[dict]:
    how = dict(
        projection=probing.width,
        hidden=probing.width,
        learning_rate=probing.learning_rate,
        validate_every=probing.validate_every,
        max_validations=probing.max_validations,
        device=device,
    )
    embeddings = {split: [one[:1] for one in vectors[BASE][split]] for split in SPLITS}
    runs = [("mix", list(vectors), [vectors[model] for model in vectors])]
    runs += [("mix", [LEXICAL], [embeddings]), ("top", list(vectors), [vectors[model] for model in vectors])]
    rows = []
    for layers, read, of_models in runs:
        splits = [([of_model[split] for of_model in of_models], targets[split]) for split in SPLITS]
        for probe in edge_probe.fit(*splits, probing.seeds, layers=layers, **how):
            row = {"task": name, "model": read[probe.model], "seed": probe.seed, "layers": layers}
            rows.append(row | {"micro_f1": probe.micro_f1, "targets": len(targets["train"])})
    return rows


def _code(name: str, model: str, vectors: Sequence[np.ndarray], targets: Sequence[Target]) -> dict:
    labels = sorted({label for target in targets for label in target.labels})
    truth = np.array([[label in target.labels for label in labels] for target in targets])
    means = [one.astype(np.float32).mean(axis=0) for one in vectors]
    rows = []
    for target in targets:
        spans = [span for span in (target.span1, target.span2) if span is not None]
        rows.append(np.concatenate([means[target.sentence][slice(*span)].mean(axis=0) for span in spans]))
    single = (truth.sum(axis=1) == 1).all()
    code = mdl.online_code(np.stack(rows), truth.argmax(axis=1) if single else truth.astype(int), classes=len(labels))
    return {
        "task": name,
        "model": model,
        "bits": code.codelength,
        "uniform": code.uniform,
        "compression": code.compression,
        "targets": len(targets),
    }


def structural_probes(
    models: Mapping[str, nn.Module],
    tokenizer: PreTrainedTokenizerBase,
    treebank: Mapping[str, pd.DataFrame],
    sentences: int,
    max_length: int = 128,
    device: str | None = None,
) -> pd.DataFrame:
    """Figure 1: how well a projection of each layer gives distances and depths in the syntax tree.

    Args:
        treebank: splits `train`, `validation`, `test` with `tokens`, `upos`, `heads`.
        sentences: of the training split at most; half as many of the others. They are drawn.

    Returns:
        One row a model, layer (0…L) and kind (`distance`, `depth`): `spearman` over sentences of 5 to 50 words,
        `tree` (UUAS for distances, root accuracy for depths, without punctuation).
    """
    splits = {}
    for split in SPLITS:
        table = treebank[split]
        table = table[table["tokens"].map(len).between(LEAST_WORDS, MOST_WORDS)]
        most = sentences if split == "train" else sentences // 2
        # Drawn, not the first ones: a treebank stands in the order of its genres.
        splits[split] = table.iloc[subset(np.zeros(len(table)), most, TABLE_SEED)].reset_index(drop=True)
    rows = []
    for name, model in models.items():
        layers = range(len(layer_list(model)) + 1)
        read = {}
        for split, table in splits.items():
            vectors = word_vectors(
                model, encoded_words(list(table["tokens"]), tokenizer, max_length), layers, device=device
            )
            whole = [place for place, one in enumerate(vectors) if one.shape[1] == len(table["tokens"][place])]
            read[split] = [vectors[place] for place in whole], table.iloc[whole]
        for kind, gold, fit in (
            ("distance", trees.tree_distances, structural_probe.fit_distance),
            ("depth", trees.tree_depths, structural_probe.fit_depth),
        ):
            truth = {split: [gold(heads) for heads in table["heads"]] for split, (_, table) in read.items()}
            probe = fit(*((read[split][0], truth[split]) for split in ("train", "validation")), device=device)
            counted = [np.array(tags) != PUNCTUATION for tags in read["test"][1]["upos"]]
            found = probe.evaluate(read["test"][0], truth["test"], counted)
            tree = found.uuas if kind == "distance" else found.root_accuracy
            for layer in layers:
                row = {"model": name, "layer": layer, "kind": kind, "spearman": found.spearman[layer]}
                rows.append(row | {"tree": tree[layer]})
    return pd.DataFrame(rows)


def similarity_to_base(
    base: nn.Module,
    tuned: Mapping[str, nn.Module],
    inputs: Mapping[str, datasets.Dataset],
    tokens: int,
    device: str | None = None,
) -> pd.DataFrame:
    """Figures 2 and 5: RSA of each tuned model to the pre-trained encoder, layer by layer, on several inputs.

    Every model reads each input once, side by side with the others; special pieces are tokens too.

    Args:
        tuned: name to model.
        inputs: name to encoded examples.
        tokens: drawn from each input.

    Returns:
        One row an input, model and layer (0…L): `similarity`, `null` (rows of one side permuted), `tokens`.
    """
    layers = range(len(layer_list(base)) + 1)
    names, rows = list(tuned), []
    for input_name, examples in inputs.items():
        total = sum(len(pieces) for pieces in examples["input_ids"])
        positions = sample_positions(total, tokens)
        pairs = [(0, side) for side in range(1, len(names) + 1)]
        gathered = {layer: RSAAccumulator(pairs, positions, null_seed=TABLE_SEED) for layer in layers}
        streams = [stream(model, examples, hidden=layers, device=device) for model in (base, *tuned.values())]
        for batches in zip(*streams, strict=True):
            for layer in layers:
                gathered[layer].update(*(batch.tokens(layer) for batch in batches))
        for side, name in enumerate(names, 1):
            for layer in layers:
                found = gathered[layer]
                row = {"input": input_name, "model": name, "layer": layer, "similarity": found.similarity(0, side)}
                rows.append(row | {"null": found.null(0, side), "tokens": found.n})
    return pd.DataFrame(rows)


def similarities(
    checkpoints: Mapping[tuple[str, str], Checkpoint],
    source: str,
    tokens: int,
    examples: int,
    max_length: int = 128,
    device: str | None = None,
) -> pd.DataFrame:
    """Figures 2 and 5 over several pre-trained encoders: the first of them on all inputs, the others on running text.

    Args:
        checkpoints: (encoder, task) to the model that was tuned from it.
        tokens, examples: of each input at most.

    Returns:
        The columns of `similarity_to_base` after `pretrained`, the encoder.
    """
    parts = []
    for number, name in enumerate(dict.fromkeys(encoder for encoder, _ in checkpoints)):
        encoder = encoders.locate(name)
        inputs = plain_inputs(source, encoders.tokenizer(encoder), max_length, examples)
        if number:
            inputs = {"wikipedia": inputs["wikipedia"]}
        tuned = {task: checkpoint.model() for (start, task), checkpoint in checkpoints.items() if start == name}
        measured = similarity_to_base(encoders.load_weights(encoder), tuned, inputs, tokens, device)
        parts.append(measured.assign(pretrained=name))
    table = pd.concat(parts, ignore_index=True)
    return table[["pretrained", *table.columns.drop("pretrained")]]


def plain_inputs(
    source: str, tokenizer: PreTrainedTokenizerBase, max_length: int, examples: int
) -> dict[str, datasets.Dataset]:
    """The inputs of Figures 2 and 5, encoded: running text, and both sides of MNLI and SQuAD, paired and alone."""

    def encoded(*texts: Sequence[str]) -> datasets.Dataset:
        return datasets.Dataset.from_dict(dict(tokenizer(*map(list, texts), truncation=True, max_length=max_length)))

    plain = tasks.load("wikitext", source, ("validation",)).splits["validation"]["text"]
    # Headings and empty lines are no running text.
    plain = [text for text in plain if text.strip() and not text.strip().startswith("=")]
    found = {"wikipedia": encoded(plain[:examples])}
    for name, (first, second) in {"mnli": ("premise", "hypothesis"), "squad": ("question", "context")}.items():
        table = tasks.load(name, source, ("validation",)).splits["validation"]
        table = table.select(range(min(examples, table.num_rows)))
        found[name] = encoded(table[first], table[second])
        found[f"{name}, {first} alone"] = encoded(table[first])
    return found
