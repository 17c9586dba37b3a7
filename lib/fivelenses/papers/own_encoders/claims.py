"""What this project says of its own encoders, as predicates on the tables."""

import pandas as pd

from fivelenses.exhibits.claims import OURS, Claim, as_cases
from fivelenses.papers.toy_world import claims as toy_world

MIN_GAIN = 1.0  # nats below the frequencies of tokens
MIN_RISE = 0.005  # of accuracy above the embeddings


def pretraining_pays(scores: pd.DataFrame) -> pd.DataFrame:
    """The worst pre-trained seed less the best one from scratch, per task, in the task's first measure."""
    return toy_world.pretraining_pays(scores[scores["metric"] != "F1"])


def reads_elsewhere(losses: pd.DataFrame) -> pd.DataFrame:
    """Nats per masked token, on text from elsewhere, below what the frequencies of tokens would reach; per encoder."""
    elsewhere = losses[losses["text"] == "elsewhere"].set_index("encoder")["masked_loss"]
    gains = elsewhere["frequency"] - elsewhere.drop(["frequency", "random"])
    return as_cases((name, "all", float(gain), gain > MIN_GAIN) for name, gain in gains.items())


def context_is_read(probes: pd.DataFrame) -> pd.DataFrame:
    """The best layer's accuracy less that of the embeddings, which know no context; per encoder.

    The best layer has to beat each word's most frequent tag and the untrained network as well.
    """
    layers = probes[probes["encoder"] != "words alone"]
    best, embeddings = (
        rows.groupby("encoder", sort=False)["accuracy"].max() for rows in (layers, layers[layers["layer"] == 0])
    )
    words = float(probes.loc[probes["encoder"] == "words alone", "accuracy"].iloc[0])
    return as_cases(
        (
            name,
            "all",
            float(value - embeddings[name]),
            value > max(words, best["random"], embeddings[name] + MIN_RISE),
        )
        for name, value in best.drop("random").items()
    )


CLAIMS = (
    Claim(
        "own-pretraining-pays",
        "",
        "A pre-trained encoder beats the same network from scratch at equal steps.",
        OURS,
        ("own-encoders-scores",),
        "the worst pre-trained seed less the best from scratch",
        "above 0",
        pretraining_pays,
    ),
    Claim(
        "own-reads-elsewhere",
        "",
        "It predicts words of text from elsewhere, not only of its own corpus.",
        OURS,
        ("own-encoders-language",),
        "nats per masked token below the frequencies of tokens",
        f"above {MIN_GAIN:g}",
        reads_elsewhere,
    ),
    Claim(
        "own-context-is-read",
        "",
        "From context it tells parts of speech that words alone leave open.",
        OURS,
        ("own-encoders-pos",),
        "a linear probe's accuracy on the best layer less that on the embeddings",
        f"above {MIN_RISE:g}, and the best layer above each word's most frequent tag and above random weights",
        context_is_read,
    ),
)
