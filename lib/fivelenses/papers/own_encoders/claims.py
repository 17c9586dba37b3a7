"""What this project says of its own encoders. An encoder is a draw: a pre-training, with a fine-tuning of its own."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from fivelenses.exhibits import effects, intervals
from fivelenses.exhibits.claims import OURS, CannotTest, Claims
from fivelenses.exhibits.verdicts import Effect, Part
from fivelenses.papers.toy_world import claims as toy_world
from fivelenses.records import WHOLE

CLAIMS = Claims("", place=OURS)
CLAIMS.add(
    "own-pretraining-pays",
    "A pre-trained encoder beats the same network from scratch at equal steps.",
    "score with pre-training less score from scratch",
    toy_world.PAYS,
    exhibits=("own-encoders-scores",),
    untwinned=toy_world.NEEDS_HEAD,
)(toy_world.pretraining_pays)

READS = Part("gain over frequencies", 1.0, "a nat: at each token, e times fewer words to choose from", "nats per token")
OVER_EMBEDDINGS = Part("best layer over embeddings", 0.005, "one word in two hundred: less would go unseen", "accuracy")
OVER_WORDS = Part("best layer over most frequent tags", unit="accuracy")
OVER_RANDOM = Part("best layer over that of random weights", unit="accuracy")


@CLAIMS.add(
    "own-reads-elsewhere",
    "It predicts words of text from elsewhere, not only of its own corpus.",
    "nats per masked token below the frequencies of tokens",
    READS,
    exhibits=("own-encoders-language",),
    unit="text",
    untwinned="it is about pre-training",
)
def reads_elsewhere(language_modelling: pd.DataFrame) -> Iterator[Effect]:
    elsewhere = language_modelling[language_modelling["text"] == "elsewhere"]
    encoders = elsewhere[~elsewhere["encoder"].isin(["frequency", "random"])]
    frequencies = elsewhere[elsewhere["encoder"] == "frequency"]
    gain = intervals.of_measure(encoders, lambda rows: -rows["masked_loss"].mean(), "encoder", frequencies)
    yield Effect("text from elsewhere", READS.name, gain)


@CLAIMS.add(
    "own-context-is-read",
    "From context it tells parts of speech that words alone leave open.",
    "a linear probe's accuracy on the best layer less that on embeddings, of words alone, and of random weights",
    OVER_EMBEDDINGS,
    OVER_WORDS,
    OVER_RANDOM,
    exhibits=("own-encoders-pos",),
    unit="data set",
    untwinned="it is about pre-training",
)
def context_is_read(parts_of_speech: pd.DataFrame) -> Iterator[Effect]:
    """Of a record with folds, the layer is chosen on nine tenths of the sentences and read on the last, so that
    choosing among layers earns nothing.
    """
    probes = parts_of_speech
    if (probes["layer"] > 0).sum() == 0:
        raise CannotTest("no layer above the embeddings was probed")
    kinds = probes["encoder"].map({"random": "random", "words alone": "words alone"}).fillna("pre-trained")
    best = {kind: _of_best_layer(probes[kinds == kind]) for kind in ("pre-trained", "random")}
    bottom = {kind: _at(probes[kinds == kind], 0) for kind in ("pre-trained", "words alone")}
    references = {
        OVER_EMBEDDINGS: bottom["pre-trained"],
        OVER_WORDS: bottom["words alone"],
        OVER_RANDOM: best["random"],
    }
    for part, reference in references.items():
        if best["pre-trained"].shape[1] > 1:
            gain = effects.interval(best["pre-trained"], reference)
        else:
            gain = effects.without_interval(float((best["pre-trained"] - reference).mean()))
        yield Effect("parts of speech", part.name, gain)


def _at(probes: pd.DataFrame, layer: int) -> np.ndarray:
    """(encoders, folds) the accuracy of a layer on each fold; of all sentences where the record has no folds."""
    return np.stack([_on_folds(rows)[1][:, layer] for _, rows in probes.groupby("encoder")])


def _of_best_layer(probes: pd.DataFrame) -> np.ndarray:
    """(encoders, folds) the accuracy on each fold of the layer above the embeddings that is best on all others."""
    losses = []
    for _, rows in probes.groupby("encoder"):
        others, on_fold = _on_folds(rows)
        best = 1 + others[:, 1:].argmax(1)
        losses.append(on_fold[np.arange(len(best)), best])
    return np.stack(losses)


def _on_folds(rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """(folds, layers) accuracies of an encoder without each fold, and on it: K times the whole less K − 1 times the
    rest, as in a jackknife.
    """
    if "fold" not in rows.columns:
        whole = rows.sort_values("layer")["accuracy"].to_numpy()[None]
        return whole, whole
    table = rows.pivot(index="fold", columns="layer", values="accuracy")
    whole, others = table.loc[WHOLE].to_numpy(), table.drop(index=WHOLE).to_numpy()
    return others, len(others) * whole - (len(others) - 1) * others
