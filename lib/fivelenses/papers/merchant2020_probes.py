"""What Merchant et al. (2020) measure with probes: edge probes, codelengths and structural probes.

Rows of the pre-trained encoder and of its baselines (random weights, embeddings without context) have the `control`
`all`. Each score is there for all test sentences (`fold` −1) and without each of ten folds of them; a sentence belongs
to the fold of its place among those that are drawn, modulo ten.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import datasets
import numpy as np
import pandas as pd
from sklearn.preprocessing import MultiLabelBinarizer
from torch import nn
from transformers import PreTrainedTokenizerBase

from fivelenses.activations import word_vectors
from fivelenses.catalogue import EDGE_TASKS
from fivelenses.checkpoints.store import Checkpoint
from fivelenses.lenses import edge_probe, mdl, structural_probe
from fivelenses.lenses.edge_probe import Target
from fivelenses.models import encoders
from fivelenses.models.layers import layer_list
from fivelenses.papers.merchant2020 import SAMPLE_SEED, Models, pretrained_and_fine_tuned, tuned_seed
from fivelenses.papers.models import randomly_initialised
from fivelenses.records import BASE, FINE_TUNED, LEXICAL, PARSER, RANDOMISED, SHARED, TWIN, WHOLE
from fivelenses.tasks import FOLDS, subset
from fivelenses.tasks.encoding import NO_WORD, encode_words
from fivelenses.tasks.treebanks import edge_table, read_treebank

MIN_WORDS, MAX_WORDS = 5, 50  # of a sentence in the structural probes
EDGES = ["task", "model", "control", "tuned_seed", "seed", "layers", "fold", "micro_f1", "targets", "examples", "data"]
CODES = ["task", "model", "control", "tuned_seed", "seed", "fold", "bits", "uniform", "examples"]
TREES = ["model", "control", "tuned_seed", "layer", "kind", "fold", "spearman", "tree", "examples"]


@dataclass(frozen=True)
class Split:
    """Encoded sentences, and their targets whose words all have tokens."""

    sentences: datasets.Dataset
    targets: list[Target]


def edge_probing(
    checkpoints: Sequence[Checkpoint],
    encoder: str,
    source: str,
    model: str,
    edge_task: str,
    probe: Mapping,
    max_tokens: int = 128,
    device: str | None = None,
) -> pd.DataFrame:
    """Table 1 and appendix A: edge probes of one model, on targets that are the same for all models.

    Args:
        checkpoints: of one task and seed; none for the pre-trained encoder, beside which its baselines stand.
        model: `base`, or the task that it was fine-tuned on.
        probe: `targets` for training at most, half as many of the other splits; `seeds` of first weights and dropout;
            the rest are settings of `lenses.edge_probe.fit`.
        max_tokens: a sentence is cut to.

    Returns:
        EDGES: `seed` is the probe's, `layers` is `mix` or `top` (which has no folds), `targets` are those for training,
        `examples` test sentences, `data` where these come from.
    """
    models = _probed(encoder, checkpoints, model, device, edges=True)
    if not models:
        return pd.DataFrame(columns=EDGES)
    splits = targets_of_splits(edge_table(edge_task, source), encoder, probe["targets"], max_tokens)
    vectors = {name: vectors_of(one, splits, device) for name, one in models.items()}
    rows = edge_scores(vectors, splits, "mix", probe, device)
    if model == BASE:
        # The lexical baseline: the embeddings alone, without context.
        embeddings = [[one[:1] for one in of_split] for of_split in vectors[BASE, SHARED]]
        rows += edge_scores({(LEXICAL, SHARED): embeddings}, splits, "mix", probe, device)
    rows += edge_scores(vectors, splits, "top", probe, device)
    table = pd.DataFrame(rows, columns=["model", "control", "seed", "layers", "fold", "micro_f1"])
    read = {target.sentence for target in splits[-1].targets}
    sizes = {"targets": len(splits[0].targets), "examples": len(read)}
    sizes |= {"data": "toy world" if source == "toyworld" else EDGE_TASKS[edge_task]["data"]}
    return table.assign(task=edge_task, tuned_seed=tuned_seed(checkpoints), **sizes)[EDGES]


def _probed(encoder: str, checkpoints: Sequence[Checkpoint], model: str, device: str | None, *, edges: bool) -> Models:
    """The pre-trained encoder, for edge probes with random weights beside it; or a fine-tuned one that converged, with
    its twin: for edge probes, which take long, that of the parser alone, which training moves most.
    """
    twins = (TWIN,) if model == PARSER or not edges else ()
    models = pretrained_and_fine_tuned(encoder, checkpoints, (FINE_TUNED, *twins), device)
    if model != BASE:
        del models[BASE, SHARED]
    elif edges:
        models[RANDOMISED, SHARED] = randomly_initialised(encoder)
    return models


def targets_of_splits(tables: Mapping, encoder: str, most: int, max_tokens: int) -> list[Split]:
    """The targets of each table, half of `most` where it is not for training."""
    tokenizer, splits = encoders.tokenizer(encoders.locate(encoder)), []
    for name, table in tables.items():
        sentences, targets = random_targets(table, most if name == "train" else most // 2)
        encoded = datasets.Dataset.from_dict(encode_words(sentences, tokenizer, max_tokens))
        with_tokens = _words_with_tokens(encoded)
        words = ({*range(*one.span1), *range(*(one.span2 or one.span1))} for one in targets)
        read = [one for one, of_one in zip(targets, words, strict=True) if of_one <= with_tokens[one.sentence]]
        splits.append(Split(encoded, read))
    return splits


def random_targets(table: pd.DataFrame, most: int) -> tuple[list[list[str]], list[Target]]:
    """Sentences of a table of `edge_table` in random order, whole, until they hold `most` targets; and these."""
    rows_of = table.groupby(table["tokens"].map(tuple), sort=False).indices
    sentences, targets, every = [], [], list(dict.fromkeys(map(tuple, table["tokens"])))
    for place in np.random.default_rng(SAMPLE_SEED).permutation(len(every)):
        if len(targets) >= most:
            break
        for row in table.iloc[rows_of[every[place]]].itertuples():
            second = None if row.span2 is None else tuple(row.span2)
            targets.append(Target(len(sentences), tuple(row.span1), second, row.labels))
        sentences.append(list(every[place]))
    return sentences, targets


def _words_with_tokens(encoded: datasets.Dataset) -> list[set[int]]:
    """Of each sentence the words that can be measured: not cut off, and none that the tokeniser drops, as U+200B."""
    return [set(words) - {NO_WORD} for words in encoded["word_ids"]]


def vectors_of(model: nn.Module, splits: Iterable[Split], device: str | None) -> list[list[np.ndarray]]:
    """Of each split, for each sentence (1 + L, words, d)."""
    layers = range(len(layer_list(model)) + 1)
    return [word_vectors(model, split.sentences, layers, device=device) for split in splits]


def edge_scores(vectors: Mapping, splits: Sequence[Split], layers: str, probe: Mapping, device: str | None) -> list:
    """Rows of model, control, seed, layers, fold and micro-F1; of the mixture of layers also without each fold."""
    settings, rows = {name: value for name, value in probe.items() if name not in ("targets", "seeds")}, []
    of_splits = zip(*vectors.values(), strict=True)
    training, development, _ = [(list(one), split.targets) for one, split in zip(of_splits, splits, strict=True)]
    for fitted in edge_probe.fit(training, development, probe["seeds"], layers=layers, device=device, **settings):
        name = list(vectors)[fitted.model]
        scores = micro_f1(fitted, vectors[name][-1], splits[-1].targets)
        scores = scores if layers == "mix" else scores[:1]
        rows += [(*name, fitted.seed, layers, fold, score) for fold, score in enumerate(scores, WHOLE)]
    return rows


def micro_f1(probe: edge_probe.EdgeProbe, vectors: Sequence[np.ndarray], targets: Sequence[Target]) -> np.ndarray:
    """(1 + FOLDS,) a probe's score on all targets and without each fold."""
    predicted = probe.predict(vectors, targets) >= 0.5
    truth = np.array([[label in target.labels for label in probe.labels] for target in targets])
    # A label that does not occur in training cannot be predicted, but is wanted.
    wanted = np.array([len(set(target.labels)) for target in targets])
    counts = np.stack([(predicted & truth).sum(1), predicted.sum(1) + wanted])
    right, other = without_each_fold(counts, [target.sentence for target in targets])
    return 2 * right / np.maximum(other, 1)


def without_each_fold(counts: np.ndarray, sentences: Sequence[int]) -> np.ndarray:
    """(…, 1 + FOLDS) sums of what each example counts, (…, examples): of all, and without each fold of sentences."""
    fold_of = np.asarray(sentences) % FOLDS
    return counts @ np.stack([np.ones(len(fold_of)), *(fold_of != fold for fold in range(FOLDS))], axis=-1)


def codelengths(
    checkpoints: Sequence[Checkpoint],
    encoder: str,
    source: str,
    model: str,
    edge_task: str,
    probe: Mapping,
    max_tokens: int = 128,
    device: str | None = None,
) -> pd.DataFrame:
    """Appendix B: labels of the training targets coded by a perceptron that reads the mean vector of each span,
    averaged over all layers; arguments as for `edge_probing`, `probe` with `targets` and `seeds`.

    Returns:
        CODES: `seed` of the order that is sent and of the perceptron, `bits` and `uniform` of the targets that are not
        of the fold (`uniform` of a code that knows nothing), `examples` all sentences.
    """
    models, codes = _probed(encoder, checkpoints, model, device, edges=True), []
    if not models:
        return pd.DataFrame(columns=CODES)
    train = {"train": edge_table(edge_task, source)["train"]}
    splits = targets_of_splits(train, encoder, probe["targets"], max_tokens)
    targets = splits[0].targets
    places = [target.sentence for target in targets]
    labels = MultiLabelBinarizer().fit_transform([target.labels for target in targets])
    # Numbers where each target has one, and else a column each.
    y = labels.argmax(axis=1) if (labels.sum(axis=1) == 1).all() else labels
    counted = without_each_fold(np.ones(len(targets)), places).astype(int)
    for (name, control), one in models.items():
        x = span_means(vectors_of(one, splits, device)[0], targets)
        for seed in probe["seeds"]:
            code = mdl.online_code(x, y, seed)
            bits, uniform = without_each_fold(code.bits, places), counted * (code.uniform / len(y))
            columns = {"model": name, "control": control, "seed": seed, "fold": range(WHOLE, FOLDS)}
            codes.append(pd.DataFrame(columns | {"bits": bits, "uniform": uniform}))
    table = pd.concat(codes, ignore_index=True).assign(task=edge_task, tuned_seed=tuned_seed(checkpoints))
    return table.assign(examples=len(set(places)))[CODES]


def span_means(vectors: Sequence[np.ndarray], targets: Sequence[Target]) -> np.ndarray:
    """(targets, d or 2 d) the mean vector of each span over its words and all layers, side by side where two."""
    means = [one.astype(np.float32).mean(axis=0) for one in vectors]
    rows = []
    for one in targets:
        spans = [span for span in (one.span1, one.span2) if span is not None]
        rows.append(np.concatenate([means[one.sentence][slice(*span)].mean(axis=0) for span in spans]))
    return np.stack(rows)


def structure(
    checkpoints: Sequence[Checkpoint],
    encoder: str,
    source: str,
    model: str,
    structural_sentences: int,
    max_tokens: int = 128,
    device: str | None = None,
) -> pd.DataFrame:
    """Figure 1: `structural_probes` of one model and of its twin, with folds; arguments as for `edge_probing`, the
    source that of the treebank.

    Returns:
        TREES; no rows where the training diverged.
    """
    models = _probed(encoder, checkpoints, model, device, edges=False)
    if not models:
        return pd.DataFrame(columns=TREES)
    tokenizer = encoders.tokenizer(encoders.locate(encoder))
    table = structural_probes(models, tokenizer, source, structural_sentences, max_tokens, device)
    table["model"], table["control"] = zip(*table["model"], strict=True)
    return table.assign(tuned_seed=tuned_seed(checkpoints))[TREES]


def structural_probes(
    models: Mapping[Hashable, nn.Module],
    tokenizer: PreTrainedTokenizerBase,
    source: str,
    sentences: int,
    max_length: int = 128,
    device: str | None = None,
) -> pd.DataFrame:
    """How well a projection of each layer gives distances and depths in the syntax trees of a source's treebank.

    Args:
        sentences: of the training split at most, half as many of the others, drawn at random; a sentence is left out
            where a word has no tokens.

    Returns:
        One row per model, kind (`distance`, `depth`), fold of the test sentences left out (−1: none) and layer (0…L):
        `spearman` over sentences of 5 to 50 words, `tree` (UUAS for distances, root accuracy for depths, without
        punctuation), and `examples` (test sentences).
    """
    tables, encoded, rows = {}, {}, []
    for split, table in read_treebank("ewt", source).items():
        most = sentences if split == "train" else sentences // 2
        table = table[table["tokens"].map(len).between(MIN_WORDS, MAX_WORDS)]
        # Drawn and not the first: a treebank stands in the order of its genres.
        drawn = table.iloc[subset(np.zeros(len(table)), most, SAMPLE_SEED)]
        words = datasets.Dataset.from_dict(encode_words(drawn["tokens"], tokenizer, max_length))
        whole = np.flatnonzero(drawn["tokens"].map(len) == list(map(len, _words_with_tokens(words))))
        tables[split], encoded[split] = drawn.iloc[whole], words.select(whole)
    for name, model in models.items():
        layers = range(len(layer_list(model)) + 1)
        vectors = {split: word_vectors(model, words, layers, device=device) for split, words in encoded.items()}
        for kind in ("distance", "depth"):
            rows += [(name, *row) for row in tree_scores(kind, vectors, tables, device)]
    table = pd.DataFrame(rows, columns=["model", "kind", "fold", "layer", "spearman", "tree"])
    return table.assign(examples=len(tables["test"]))


def tree_scores(kind: str, vectors: Mapping, tables: Mapping, device: str | None) -> list:
    """Rows of kind, fold, layer, Spearman's correlation and the tree that is found, of one model's probes."""
    geometry = structural_probe.tree_distances if kind == "distance" else structural_probe.tree_depths
    truth = {split: [geometry(heads) for heads in table["heads"]] for split, table in tables.items()}
    training, development = ((vectors[split], truth[split]) for split in ("train", "validation"))
    probe = structural_probe.fit(kind, training, development, device=device)
    counted = [np.array(tags) != "PUNCT" for tags in tables["test"]["upos"]]
    of_sentences = structural_probe.sentence_scores(kind, probe.predict(vectors["test"]), truth["test"], counted)
    rows = []
    for fold in range(WHOLE, FOLDS):
        scores = structural_probe.summary(of_sentences[of_sentences["sentence"] % FOLDS != fold])
        rows += [(kind, fold, *of_layer) for of_layer in scores[["spearman", "tree"]].itertuples()]
    return rows
