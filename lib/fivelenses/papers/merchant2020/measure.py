"""What Merchant et al. (2020) measure with probes, as records: edge probes, codelengths and structural probes.

A model is named as in `probed`. Rows that hold for all controls (`base`, `lexical`, `randomised`) have the `control`
`all`, those of twins `twin`. Each score is there for all test sentences (`fold` -1) and without each fold of them; a
sentence belongs to the fold of its place among those drawn, modulo the number of folds.
"""

from collections.abc import Mapping, Sequence

import datasets
import numpy as np
import pandas as pd
from torch import nn
from transformers import PreTrainedTokenizerBase

from fivelenses.activations import word_vectors
from fivelenses.checkpoints.store import Checkpoint
from fivelenses.lenses import edge_probe, mdl, structural_probe, trees
from fivelenses.lenses.edge_probe import Target
from fivelenses.models import encoders
from fivelenses.models.layers import layer_list
from fivelenses.papers.merchant2020.probed import TWIN_OF, probed_models, tuned_seed, with_control
from fivelenses.records import BASE, FOLDS, LEXICAL, PARSER, RANDOMISED, WHOLE
from fivelenses.tasks.edge_tasks import SPLITS, data_behind, edge_table
from fivelenses.tasks.encoding import NO_WORD, encode_words
from fivelenses.tasks.subsets import subset
from fivelenses.tasks.treebanks import treebank_of

TABLE_SEED = 0  # of the sentences that are drawn from a table
PUNCTUATION = "PUNCT"
MIN_WORDS, MAX_WORDS = 5, 50  # of a sentence in the structural probes


def encoded_words(
    sentences: Sequence[list[str]], tokenizer: PreTrainedTokenizerBase, max_length: int
) -> datasets.Dataset:
    """Sentences that are split into words, tokenised, with their `word_ids`."""
    return datasets.Dataset.from_dict(encode_words(sentences, tokenizer, max_length))


def words_with_tokens(encoded: datasets.Dataset) -> list[set[int]]:
    """Of each sentence the words that can be measured: not cut off, and none that the tokeniser drops, as U+200B."""
    return [set(words) - {NO_WORD} for words in encoded["word_ids"]]


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


def _probed(model: str) -> set[str]:
    """What is read with a model. Of the twins only the parser's, which training moves most: probes take long."""
    return {BASE: {BASE, RANDOMISED}, PARSER: {PARSER, TWIN_OF + PARSER}}.get(model, {model})


def _vectors_and_targets(
    models: Mapping[str, nn.Module],
    tokenizer: PreTrainedTokenizerBase,
    table: Mapping[str, pd.DataFrame],
    most: int,
    max_tokens: int,
    device: str | None,
) -> tuple[dict[str, dict[str, list[np.ndarray]]], dict[str, list[Target]], int]:
    """Model and split to the vectors of its sentences in all layers; split to its targets whose words all have tokens;
    and how many targets have not.
    """
    splits = list(table)
    drawn = {split: drawn_targets(table[split], most if split == "train" else most // 2) for split in splits}
    words = {split: encoded_words(sentences, tokenizer, max_tokens) for split, (sentences, _) in drawn.items()}
    vectors = {
        name: {split: word_vectors(model, words[split], _layers(model), device=device) for split in splits}
        for name, model in models.items()
    }
    targets = {}
    for split in splits:
        measured = words_with_tokens(words[split])
        targets[split] = [
            target
            for target in drawn[split][1]
            if measured[target.sentence].issuperset([*range(*target.span1), *range(*(target.span2 or target.span1))])
        ]
    return vectors, targets, sum(len(drawn[split][1]) - len(targets[split]) for split in splits)


def _layers(model: nn.Module) -> range:
    return range(len(layer_list(model)) + 1)


def edge_probing(
    checkpoints: Sequence[Checkpoint],
    encoder: str,
    source: str,
    model: str,
    edge_task: str,
    probe_targets: int,
    probe_learning_rate: float = 1e-4,
    probe_validate_every: int = 500,
    probe_validations: int = 200,
    probe_width: int = 256,
    probe_seeds: Sequence[int] = (0,),
    max_tokens: int = 128,
    device: str | None = None,
    probe_validate_every_of: Mapping[str, int] | None = None,
) -> pd.DataFrame:
    """Table 1 and appendix A: edge probes of one model, on targets that are the same for all of them.

    A model reads the sentences once, for the mixture of layers and for the top layer. Beside the pre-trained encoder
    stand its baselines: random weights, and its embeddings alone (lexical).

    Args:
        checkpoints: the model of one task and seed, which is probed unless it diverged; none for `base`.
        encoder: the pre-trained one.
        source: of the edge-probing tasks.
        model: its name, `base` or the task that it was tuned on.
        edge_task: of `tasks.edge_tasks`.
        probe_targets: of the training split at most; half as many of the others.
        probe_learning_rate, probe_validate_every, probe_validations, probe_width: of `lenses.edge_probe.fit`; the rest
            is as published.
        probe_validate_every_of: edge task to its own `probe_validate_every`.
        probe_seeds: of a probe's first weights and dropout.
        max_tokens: a sentence is cut to.

    Returns:
        `task` (of edge probing), `model`, `control`, `tuned_seed`, `seed` (of the probe), `layers` (`mix` or `top`),
        `fold` (of test sentences left out, for the mixture; -1 none), `micro_f1`, `targets` (for training), `left_out`
        (targets of all splits with a word that has no tokens), `examples` (test sentences, all folds), `data` (in
        words); no rows where the training diverged.
    """
    models = probed_models(encoder, checkpoints, _probed(model), device)
    if not models:
        return pd.DataFrame()
    tokenizer, table = encoders.tokenizer(encoders.locate(encoder)), edge_table(edge_task, source)
    vectors, targets, left_out = _vectors_and_targets(models, tokenizer, table, probe_targets, max_tokens, device)
    several, rows = [("mix", vectors), ("top", vectors)], []
    if BASE in vectors:
        several.insert(1, ("mix", {LEXICAL: {split: [one[:1] for one in vectors[BASE][split]] for split in SPLITS}}))
    for layers, read in several:
        probes = edge_probe.fit(
            *(([of_model[split] for of_model in read.values()], targets[split]) for split in SPLITS),
            probe_seeds,
            layers=layers,
            projection=probe_width,
            hidden=probe_width,
            learning_rate=probe_learning_rate,
            validate_every=(probe_validate_every_of or {}).get(edge_task, probe_validate_every),
            max_validations=probe_validations,
            device=device,
        )
        for probe in probes:
            name = list(read)[probe.model]
            scores = _micro_f1(probe, read[name]["test"], targets["test"])
            kept = scores.items() if layers == "mix" else [(WHOLE, scores[WHOLE])]
            rows += [(name, probe.seed, layers, fold, score) for fold, score in kept]
    table = with_control(pd.DataFrame(rows, columns=["model", "seed", "layers", "fold", "micro_f1"]))
    table.insert(0, "task", edge_task)
    data = data_behind(edge_task, source)
    examples = len({target.sentence for target in targets["test"]})
    table = table.assign(targets=len(targets["train"]), left_out=left_out, examples=examples, data=data)
    return table.assign(tuned_seed=tuned_seed(checkpoints))


def _micro_f1(probe: edge_probe.EdgeProbe, vectors: Sequence[np.ndarray], targets: Sequence[Target]) -> dict:
    """A probe's score on all targets, by fold left out."""
    predicted = probe.predict(vectors, targets) >= 0.5
    truth = np.array([[label in target.labels for label in probe.labels] for target in targets])
    # A label that does not occur in training cannot be predicted, but is wanted.
    wanted = np.array([len(set(target.labels)) for target in targets])
    counts = np.stack([(predicted & truth).sum(1), predicted.sum(1) + wanted])
    right, other = without_each_fold(counts, [target.sentence for target in targets])
    return dict(zip(range(WHOLE, FOLDS), 2 * right / np.maximum(other, 1), strict=True))


def without_each_fold(counts: np.ndarray, sentences: Sequence[int]) -> np.ndarray:
    """Sums of what each example counts: of all of them first, and then without the sentences of each fold.

    Args:
        counts: (…, examples).
        sentences: (examples,) the sentence that each stands in.

    Returns:
        (…, 1 + FOLDS).

    Example:
        >>> without_each_fold(np.array([1, 2, 4]), [0, 1, 11])[:3]
        array([7., 6., 1.])
    """
    fold_of = np.asarray(sentences) % FOLDS
    return counts @ np.stack([np.ones(len(fold_of)), *(fold_of != fold for fold in range(FOLDS))], axis=-1)


def codelengths(
    checkpoints: Sequence[Checkpoint],
    encoder: str,
    source: str,
    model: str,
    edge_task: str,
    probe_targets: int,
    probe_seeds: Sequence[int] = (0,),
    max_tokens: int = 128,
    device: str | None = None,
) -> pd.DataFrame:
    """Appendix B: labels of the training targets coded by a perceptron that reads the mean vector of each span,
    averaged over all layers; arguments as `edge_probing`.

    Returns:
        `task`, `model`, `control`, `tuned_seed`, `seed` (of the order sent and of the perceptron), `fold` (of sentences
        whose labels are not counted, but seen; -1 none), `bits`, `uniform` (bits of a uniform code), `compression`,
        `targets` (counted), `left_out` (targets with a word that has no tokens), `examples` (sentences, all folds).
    """
    models = probed_models(encoder, checkpoints, _probed(model), device)
    if not models:
        return pd.DataFrame()
    tokenizer, table = encoders.tokenizer(encoders.locate(encoder)), {"train": edge_table(edge_task, source)["train"]}
    vectors, targets, left_out = _vectors_and_targets(models, tokenizer, table, probe_targets, max_tokens, device)
    targets = targets["train"]
    labels = sorted({label for target in targets for label in target.labels})
    truth = np.array([[label in target.labels for label in labels] for target in targets])
    single = (truth.sum(axis=1) == 1).all()
    rows = []
    for name, of_model in vectors.items():
        means = [one.astype(np.float32).mean(axis=0) for one in of_model["train"]]
        read = [
            np.concatenate(
                [means[one.sentence][slice(*span)].mean(axis=0) for span in (one.span1, one.span2) if span is not None]
            )
            for one in targets
        ]
        x, y = np.stack(read), truth.argmax(axis=1) if single else truth.astype(int)
        for seed in probe_seeds:
            code = mdl.online_code(x, y, fit=mdl.Perceptron(seed=seed), classes=len(labels), seed=seed)
            counts = without_each_fold(np.stack([code.bits, np.ones(len(y))]), [one.sentence for one in targets])
            rows += [(name, seed, fold, *of_fold) for fold, of_fold in zip(range(WHOLE, FOLDS), counts.T, strict=True)]
    table = with_control(pd.DataFrame(rows, columns=["model", "seed", "fold", "bits", "targets"]))
    table.insert(0, "task", edge_task)
    table["targets"] = table["targets"].astype(int)
    table["uniform"] = table["targets"] * (code.uniform / len(targets))
    examples = len({target.sentence for target in targets})
    table = table.assign(compression=table["uniform"] / table["bits"], left_out=left_out, examples=examples)
    return table.assign(tuned_seed=tuned_seed(checkpoints))


# --- structural probes ------------------------------------------------------------------------------------------------


def structure(
    checkpoints: Sequence[Checkpoint],
    encoder: str,
    source: str,
    model: str,
    structural_sentences: int,
    max_tokens: int = 128,
    device: str | None = None,
) -> pd.DataFrame:
    """Figure 1: `structural_probes` of one model and of its twin, with folds and `tuned_seed`.

    Args:
        checkpoints, encoder, source, model: of `edge_probing`, the source that of the treebank.
        structural_sentences, max_tokens: of `structural_probes`.
    """
    models = probed_models(encoder, checkpoints, [model, TWIN_OF + model], device)
    if not models:
        return pd.DataFrame()
    how = (encoders.tokenizer(encoders.locate(encoder)), treebank_of(source), structural_sentences, max_tokens, device)
    return with_control(structural_probes(models, *how, with_folds=True)).assign(tuned_seed=tuned_seed(checkpoints))


def structural_probes(
    models: Mapping[str, nn.Module],
    tokenizer: PreTrainedTokenizerBase,
    treebank: Mapping[str, pd.DataFrame],
    sentences: int,
    max_length: int = 128,
    device: str | None = None,
    with_folds: bool = False,
) -> pd.DataFrame:
    """How well a projection of each layer gives distances and depths in the syntax tree.

    Args:
        treebank: splits `train`, `validation`, `test` with `tokens`, `upos`, `heads`.
        sentences: of the training split at most; half as many of the others. They are drawn.
        with_folds: also without each fold of the test sentences.

    Returns:
        One row per model, layer (0…L) and kind (`distance`, `depth`): `spearman` over sentences of 5 to 50 words,
        `tree` (UUAS for distances, root accuracy for depths, without punctuation), and with folds `fold` (-1 none),
        `examples` (test sentences, all folds) and `left_out` (sentences of all splits with a word that has no tokens).
    """
    tables, encoded, left_out = {}, {}, 0
    for split in SPLITS:
        drawn = _drawn_sentences(treebank[split], sentences if split == "train" else sentences // 2)
        words = encoded_words(list(drawn["tokens"]), tokenizer, max_length)
        measured = [len(of_sentence) for of_sentence in words_with_tokens(words)]
        whole = np.flatnonzero(drawn["tokens"].map(len) == measured)
        tables[split], encoded[split] = drawn.iloc[whole], words.select(whole)
        left_out += len(drawn) - len(whole)
    rows = []
    for name, model in models.items():
        vectors = {split: word_vectors(model, words, _layers(model), device=device) for split, words in encoded.items()}
        for kind, gold, fit in (
            ("distance", trees.tree_distances, structural_probe.fit_distance),
            ("depth", trees.tree_depths, structural_probe.fit_depth),
        ):
            truth = {split: [gold(heads) for heads in table["heads"]] for split, table in tables.items()}
            probe = fit(*((vectors[split], truth[split]) for split in ("train", "validation")), device=device)
            counted = [np.array(tags) != PUNCTUATION for tags in tables["test"]["upos"]]
            of_sentences = trees.sentence_scores(kind, probe.predict(vectors["test"]), truth["test"], counted)
            for fold in range(WHOLE, FOLDS) if with_folds else [WHOLE]:
                scores = trees.summary(kind, of_sentences[of_sentences["sentence"] % FOLDS != fold])
                tree = scores.uuas if kind == "distance" else scores.root_accuracy
                rows += [(name, layer, kind, fold, scores.spearman[layer], tree[layer]) for layer in _layers(model)]
    table = pd.DataFrame(rows, columns=["model", "layer", "kind", "fold", "spearman", "tree"])
    if not with_folds:
        return table.drop(columns="fold")
    return table.assign(examples=len(tables["test"]), left_out=left_out)


def _drawn_sentences(table: pd.DataFrame, most: int) -> pd.DataFrame:
    """At most so many sentences of a treebank, drawn and not the first: it stands in the order of its genres."""
    table = table[table["tokens"].map(len).between(MIN_WORDS, MAX_WORDS)]
    return table.iloc[subset(np.zeros(len(table)), most, TABLE_SEED)].reset_index(drop=True)
