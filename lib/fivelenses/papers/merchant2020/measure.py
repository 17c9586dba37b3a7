"""What Merchant et al. (2020) measure on representations, as records: edge probes and codelengths, structural probes,
and similarity to the pre-trained encoder.

A model is named by what it was tuned on; `base` is the pre-trained encoder. All functions take the models of one
encoder that were neither frozen nor truncated.
"""

from collections.abc import Iterable, Mapping, Sequence

import datasets
import numpy as np
import pandas as pd
import torch
from torch import nn
from transformers import PreTrainedTokenizerBase

from fivelenses import tasks
from fivelenses.activations import word_vectors
from fivelenses.checkpoints.store import Checkpoint, finite
from fivelenses.comparison import RSA, compare_with
from fivelenses.lenses import edge_probe, mdl, structural_probe, trees
from fivelenses.lenses.rsa import sample_positions
from fivelenses.lenses.spans import Target
from fivelenses.models import encoders
from fivelenses.models.layers import layer_list
from fivelenses.tasks.edge_tasks import SPLITS, data_behind, edge_table
from fivelenses.tasks.examples import subset
from fivelenses.tasks.treebanks import treebank_of

BASE, LEXICAL, RANDOMISED = "base", "lexical", "randomised"
RANDOM_SEED = 0  # of the randomised baseline
TABLE_SEED = 0  # of the sentences that are drawn from a table
PUNCTUATION = "PUNCT"
MIN_WORDS, MAX_WORDS = 5, 50  # of a sentence in the structural probes
SIDES = {"mnli": ("premise", "hypothesis"), "squad": ("question", "context")}
RUNNING_TEXT = "wikipedia"


def first_models(checkpoints: Sequence[Checkpoint]) -> dict[str, Checkpoint]:
    """Task to the first of its models whose training did not diverge.

    Raises:
        ValueError: there is none.
    """
    models: dict[str, Checkpoint] = {}
    for checkpoint in finite(dict(enumerate(checkpoints))).values():
        models.setdefault(checkpoint.specification.task, checkpoint)
    return models


def _tokenizer(checkpoints: Sequence[Checkpoint]) -> PreTrainedTokenizerBase:
    return encoders.tokenizer(encoders.locate(checkpoints[0].specification.encoder))


def _randomised(encoder: str) -> nn.Module:
    torch.manual_seed(RANDOM_SEED)
    return encoders.load_weights(encoders.locate(encoder if encoder.startswith("random:") else f"random:{encoder}"))


def probed_models(checkpoints: Sequence[Checkpoint], wanted: Iterable[str] | None = None) -> dict[str, nn.Module]:
    """The pre-trained encoder, the same with random weights, and the encoders tuned from it, by name; or only those
    that are wanted.
    """
    encoder = checkpoints[0].specification.encoder
    load = {BASE: lambda: encoders.load_weights(encoders.locate(encoder)), RANDOMISED: lambda: _randomised(encoder)}
    load |= {task: checkpoint.model for task, checkpoint in first_models(checkpoints).items()}
    return {name: read() for name, read in load.items() if wanted is None or name in wanted}


def encoded_words(
    sentences: Sequence[list[str]], tokenizer: PreTrainedTokenizerBase, max_length: int
) -> datasets.Dataset:
    """Sentences that are split into words, tokenised, with their `word_ids`."""
    encoded = tokenizer(list(sentences), is_split_into_words=True, truncation=True, max_length=max_length)
    places = [
        [-1 if word is None else word for word in encoded.word_ids(row)] for row in range(len(encoded["input_ids"]))
    ]
    return datasets.Dataset.from_dict({**encoded, "word_ids": places})


# --- edge probes and codelengths --------------------------------------------------------------------------------------


def drawn_targets(table: pd.DataFrame, most: int) -> tuple[list[list[str]], list[Target]]:
    """Sentences of a table in random order, whole, until they hold `most` targets, and those targets.

    Args:
        table: of `tasks.edge_tasks.edge_table`.
        most: targets; all when there are no more.
    """
    rows_of = table.groupby(table["tokens"].map(tuple), sort=False).indices
    sentences, targets, every = [], [], list(dict.fromkeys(map(tuple, table["tokens"])))
    for place in np.random.default_rng(TABLE_SEED).permutation(len(every)):
        if len(targets) >= most:
            break
        for row in table.iloc[rows_of[every[place]]].itertuples():
            second = None if row.span2 is None else tuple(row.span2)
            targets.append(Target(len(sentences), tuple(row.span1), second, row.labels))
        sentences.append(list(every[place]))
    return sentences, targets


def _vectors_and_targets(
    checkpoints: Sequence[Checkpoint], edge_task: str, splits: Sequence[str], most: int, max_tokens: int, device
) -> tuple[dict[str, dict[str, list[np.ndarray]]], dict[str, list[Target]]]:
    """Model and split to the vectors of its sentences in all layers, and split to its targets that were not cut off."""
    table = edge_table(edge_task, checkpoints[0].specification.source)
    drawn = {split: drawn_targets(table[split], most if split == "train" else most // 2) for split in splits}
    tokenizer = _tokenizer(checkpoints)
    words = {split: encoded_words(sentences, tokenizer, max_tokens) for split, (sentences, _) in drawn.items()}
    vectors = {
        name: {split: word_vectors(model, words[split], _layers(model), device=device) for split in splits}
        for name, model in probed_models(checkpoints).items()
    }
    targets = {}
    for split in splits:
        ends = [max(target.span1[1], (target.span2 or target.span1)[1]) for target in drawn[split][1]]
        targets[split] = [
            target
            for target, end in zip(drawn[split][1], ends, strict=True)
            if end <= vectors[BASE][split][target.sentence].shape[1]
        ]
    return vectors, targets


def _layers(model: nn.Module) -> range:
    return range(len(layer_list(model)) + 1)


def edge_probing(
    checkpoints: Sequence[Checkpoint],
    edge_task: str,
    probe_targets: int,
    probe_learning_rate: float = 1e-4,
    probe_validate_every: int = 500,
    probe_validations: int = 200,
    probe_width: int = 256,
    probe_seeds: Sequence[int] = (0,),
    max_tokens: int = 128,
    device: str | None = None,
) -> pd.DataFrame:
    """Table 1 and appendix A: edge probes of all models side by side on the same targets.

    Every model reads the sentences once, for the mixture of layers and for the top layer. The lexical baseline reads
    the pre-trained encoder's embeddings alone.

    Args:
        edge_task: of `tasks.edge_tasks`.
        probe_targets: of the training split at most; half as many of the others.
        probe_learning_rate, probe_validate_every, probe_validations, probe_width: of `lenses.edge_probe.fit`; the rest
            is as published.
        probe_seeds: of a probe's first weights and dropout.
        max_tokens: a sentence is cut to.

    Returns:
        `task` (of edge probing), `model`, `seed`, `layers` (`mix` or `top`), `micro_f1`, `targets` (for training),
        `data` (in words).
    """
    vectors, targets = _vectors_and_targets(checkpoints, edge_task, SPLITS, probe_targets, max_tokens, device)
    embeddings = {split: [one[:1] for one in vectors[BASE][split]] for split in SPLITS}
    rows = []
    for layers, read in (("mix", vectors), ("mix", {LEXICAL: embeddings}), ("top", vectors)):
        probes = edge_probe.fit(
            *(([of_model[split] for of_model in read.values()], targets[split]) for split in SPLITS),
            probe_seeds,
            layers=layers,
            projection=probe_width,
            hidden=probe_width,
            learning_rate=probe_learning_rate,
            validate_every=probe_validate_every,
            max_validations=probe_validations,
            device=device,
        )
        rows += [(list(read)[probe.model], probe.seed, layers, probe.micro_f1) for probe in probes]
    table = pd.DataFrame(rows, columns=["model", "seed", "layers", "micro_f1"])
    table.insert(0, "task", edge_task)
    data = data_behind(edge_task, checkpoints[0].specification.source)
    return table.assign(targets=len(targets["train"]), data=data)


def codelengths(
    checkpoints: Sequence[Checkpoint],
    edge_task: str,
    probe_targets: int,
    max_tokens: int = 128,
    device: str | None = None,
) -> pd.DataFrame:
    """Appendix B: labels of the training targets coded by a perceptron that reads the mean vector of each span,
    averaged over all layers; arguments as `edge_probing`.

    Returns:
        `task`, `model`, `bits`, `uniform` (bits of a uniform code), `compression`, `targets`.
    """
    vectors, targets = _vectors_and_targets(checkpoints, edge_task, ["train"], probe_targets, max_tokens, device)
    targets = targets["train"]
    labels = sorted({label for target in targets for label in target.labels})
    truth = np.array([[label in target.labels for label in labels] for target in targets])
    single = (truth.sum(axis=1) == 1).all()
    rows = []
    for model, of_model in vectors.items():
        means = [one.astype(np.float32).mean(axis=0) for one in of_model["train"]]
        read = [
            np.concatenate(
                [means[one.sentence][slice(*span)].mean(axis=0) for span in (one.span1, one.span2) if span is not None]
            )
            for one in targets
        ]
        code = mdl.online_code(
            np.stack(read), truth.argmax(axis=1) if single else truth.astype(int), classes=len(labels)
        )
        rows.append((edge_task, model, code.codelength, code.uniform, code.compression, len(targets)))
    return pd.DataFrame(rows, columns=["task", "model", "bits", "uniform", "compression", "targets"])


# --- structural probes ------------------------------------------------------------------------------------------------


def structure(
    checkpoints: Sequence[Checkpoint],
    model: str,
    structural_sentences: int,
    max_tokens: int = 128,
    device: str | None = None,
) -> pd.DataFrame:
    """Figure 1: `structural_probes` of one model.

    Args:
        model: its name; there are no rows for a task whose every training diverged.
        structural_sentences, max_tokens: of `structural_probes`.
    """
    treebank = treebank_of(checkpoints[0].specification.source)
    tokenizer = _tokenizer(checkpoints)
    models = probed_models(checkpoints, [model])
    return structural_probes(models, tokenizer, treebank, structural_sentences, max_tokens, device)


def structural_probes(
    models: Mapping[str, nn.Module],
    tokenizer: PreTrainedTokenizerBase,
    treebank: Mapping[str, pd.DataFrame],
    sentences: int,
    max_length: int = 128,
    device: str | None = None,
) -> pd.DataFrame:
    """How well a projection of each layer gives distances and depths in the syntax tree.

    Args:
        treebank: splits `train`, `validation`, `test` with `tokens`, `upos`, `heads`.
        sentences: of the training split at most; half as many of the others. They are drawn.

    Returns:
        One row per model, layer (0…L) and kind (`distance`, `depth`): `spearman` over sentences of 5 to 50 words,
        `tree` (UUAS for distances, root accuracy for depths, without punctuation).
    """
    splits = {}
    for split in SPLITS:
        table = treebank[split]
        table = table[table["tokens"].map(len).between(MIN_WORDS, MAX_WORDS)]
        most = sentences if split == "train" else sentences // 2
        # Drawn, not the first ones: a treebank stands in the order of its genres.
        splits[split] = table.iloc[subset(np.zeros(len(table)), most, TABLE_SEED)].reset_index(drop=True)
    rows = []
    for name, model in models.items():
        read = {}
        for split, table in splits.items():
            words = encoded_words(list(table["tokens"]), tokenizer, max_length)
            vectors = word_vectors(model, words, _layers(model), device=device)
            whole = [place for place, one in enumerate(vectors) if one.shape[1] == len(table["tokens"][place])]
            read[split] = [vectors[place] for place in whole], table.iloc[whole]
        for kind, gold, fit in (
            ("distance", trees.tree_distances, structural_probe.fit_distance),
            ("depth", trees.tree_depths, structural_probe.fit_depth),
        ):
            truth = {split: [gold(heads) for heads in table["heads"]] for split, (_, table) in read.items()}
            probe = fit(*((read[split][0], truth[split]) for split in ("train", "validation")), device=device)
            counted = [np.array(tags) != PUNCTUATION for tags in read["test"][1]["upos"]]
            scores = probe.evaluate(read["test"][0], truth["test"], counted)
            tree = scores.uuas if kind == "distance" else scores.root_accuracy
            rows += [(name, layer, kind, scores.spearman[layer], tree[layer]) for layer in _layers(model)]
    return pd.DataFrame(rows, columns=["model", "layer", "kind", "spearman", "tree"])


# --- similarity -------------------------------------------------------------------------------------------------------


def similarity_to_base(
    models: Mapping[str, nn.Module],
    texts: Mapping[str, Sequence[Sequence[str]]],
    tokenizer: PreTrainedTokenizerBase,
    tokens: int,
    max_length: int = 128,
    device: str | None = None,
) -> pd.DataFrame:
    """RSA of each model to the first, the pre-trained encoder, layer by layer, on several inputs; special tokens count.

    Args:
        models: name to model.
        texts: name of an input to its texts, or to the first and the second texts of its pairs.
        tokens: drawn from each input, at most.
        max_length: tokens that a text or pair is cut to.

    Returns:
        One row per input, model and layer (0…L), with `similarity`, `null` (rows of one side permuted), `tokens`.
    """
    base, *tuned = models
    parts = []
    for name, sides in texts.items():
        examples = datasets.Dataset.from_dict(
            dict(tokenizer(*map(list, sides), truncation=True, max_length=max_length))
        )
        positions = sample_positions(sum(map(len, examples["input_ids"])), tokens)
        pairs = [(base, model) for model in tuned]
        lens = RSA(positions, null_seed=TABLE_SEED)
        measured = compare_with([lens], models, pairs, examples, _layers(models[base]), device=device)
        parts.append(measured.assign(input=name))
    names = {"second": "model", "rsa": "similarity", "rsa_null": "null", "rsa_tokens": "tokens"}
    table = pd.concat(parts, ignore_index=True).rename(columns=names)
    return table[["input", "model", "layer", "similarity", "null", "tokens"]]


def inputs(source: str, names: Iterable[str], examples: int) -> dict[str, tuple[list[str], ...]]:
    """Texts for `similarity_to_base`: lines of running text, or the pairs of a task and their first sides alone.

    Args:
        names: `RUNNING_TEXT`, or of `SIDES`.
        examples: lines or pairs, at most.
    """
    texts = {}
    for name in names:
        table = tasks.load("wikitext" if name == RUNNING_TEXT else name, source, ("validation",)).splits["validation"]
        if name == RUNNING_TEXT:
            # Headings and empty lines are no running text.
            lines = [line for line in table["text"] if line.strip() and not line.strip().startswith("=")]
            texts[name] = (lines[:examples],)
        else:
            sides = [list(table[side][:examples]) for side in SIDES[name]]
            texts |= {name: tuple(sides), f"{name}, {SIDES[name][0]} alone": (sides[0],)}
    return texts


def similarities(
    checkpoints: Sequence[Checkpoint],
    similarity_tokens: int = 5000,
    similarity_examples: int = 1000,
    max_tokens: int = 128,
    device: str | None = None,
    names: Sequence[str] = (RUNNING_TEXT,),
) -> pd.DataFrame:
    """Figure 2: similarity of the tuned encoders of one pre-training to it on running text.

    Args:
        similarity_tokens, similarity_examples: of each input, at most.
        max_tokens: a text is cut to.
        names: of `inputs`.

    Returns:
        `pretrained` (the encoder) and the columns of `similarity_to_base`; no rows where every training diverged.
    """
    if all(checkpoint.manifest["diverged"] for checkpoint in checkpoints):
        return pd.DataFrame()
    made = checkpoints[0].specification
    models = probed_models(checkpoints, (BASE, *{checkpoint.specification.task for checkpoint in checkpoints}))
    texts, tokenizer = inputs(made.source, names, similarity_examples), _tokenizer(checkpoints)
    table = similarity_to_base(models, texts, tokenizer, similarity_tokens, max_tokens, device)
    table.insert(0, "pretrained", made.encoder)
    return table


def similarities_by_input(
    checkpoints: Sequence[Checkpoint],
    similarity_tokens: int = 5000,
    similarity_examples: int = 1000,
    max_tokens: int = 128,
    device: str | None = None,
) -> pd.DataFrame:
    """Figure 5: as `similarities` on the inputs of MNLI and SQuAD, for the models of these two tasks."""
    of_inputs = [checkpoint for checkpoint in checkpoints if checkpoint.specification.task in SIDES]
    return similarities(of_inputs, similarity_tokens, similarity_examples, max_tokens, device, tuple(SIDES))
