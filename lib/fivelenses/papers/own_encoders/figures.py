"""The pictures and tables of encoders of one's own."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from fivelenses import tasks
from fivelenses.exhibits import curves, score_dots, style
from fivelenses.exhibits.exhibit import Exhibit
from fivelenses.exhibits.score_dots import PRETRAINED, SCRATCH

Published = Mapping[str, Mapping[tuple[str, str], float]]

# Test scores that Google publishes with its miniatures, which saw whole training sets: by task and measure.
PUBLISHED: Published = MappingProxyType(
    {
        "BERT-tiny": {
            ("sst2", "accuracy"): 0.832,
            ("mrpc", "F1"): 0.811,
            ("mnli", "accuracy"): 0.702,
            ("qnli", "accuracy"): 0.815,
            ("rte", "accuracy"): 0.572,
            ("cola", "matthews"): 0.0,
        },
        "BERT-mini": {
            ("sst2", "accuracy"): 0.859,
            ("mrpc", "F1"): 0.811,
            ("mnli", "accuracy"): 0.748,
            ("qnli", "accuracy"): 0.841,
            ("rte", "accuracy"): 0.579,
            ("cola", "matthews"): 0.0,
        },
    }
)


def loss_figure(table: pd.DataFrame, language: pd.DataFrame) -> Exhibit:
    """The masked loss along pre-training, one curve an encoder, and what each reached on held-out text.

    Args:
        table: of `loss_curves`.
        language: of `language_modelling`.
    """
    names = list(dict.fromkeys(table["encoder"]))
    held_out = language[language["text"] == "held out"].set_index("encoder")["masked_loss"]
    figure, axes = plt.subplots(figsize=(style.WIDTH, 3.6), layout="constrained")
    for name, colour, marker in zip(names, style.SEQUENCE, style.SEQUENCE_MARKERS, strict=False):
        rows = table[table["encoder"] == name]
        axes.plot(rows["step"], rows["masked"], color=colour, linewidth=1.2, label=_short(name))
        axes.plot(rows["step"].iloc[-1], held_out[name], marker, color=colour, markersize=8, markeredgecolor="white")
    frequency = language.set_index("encoder").loc["frequency", "masked_loss"]
    axes.axhline(frequency, color=style.NULL_COLOUR, linestyle="--", linewidth=1.4)
    axes.annotate(
        "frequencies of pieces", (table["step"].max(), frequency), ha="right", va="bottom", color=style.NULL_COLOUR
    )
    axes.set_xscale("log")
    axes.set_xlabel("step of pre-training")
    axes.set_ylabel("masked loss (nats a piece)")
    axes.legend(loc="lower left")
    last = table.groupby("encoder", sort=False)["masked"].last()
    ends = "; ".join(
        f"{_short(name)} ends at {last[name]:.2f} in training and {held_out[name]:.2f} held out" for name in names
    )
    caption = (
        "Cross-entropy at masked pieces along pre-training, each point the mean since the one before; the larger marks "
        "are the loss on held-out text of the same corpus. The dashed line is the entropy of the pieces of the text "
        "from elsewhere: what their frequencies alone would reach."
    )
    return Exhibit(
        "own-encoders-loss", "Pre-training", table, caption, f"Masked loss along pre-training. {ends}.", figure
    )


def language_table(table: pd.DataFrame, text: str) -> Exhibit:
    """Losses and accuracies of BERT's two tasks.

    Args:
        table: of `language_modelling`.
        text: what "elsewhere" is, in words.
    """
    names = {"held out": "own corpus, held out", "elsewhere": text}
    titles = {"random": "random weights", "frequency": "frequencies of pieces"}
    shown = pd.DataFrame(
        {
            "encoder": table["encoder"].map(lambda name: titles.get(name, name)),
            "text": table["text"].map(names),
            "masked pieces (nats)": table["masked_loss"].map("{:.2f}".format),
            "masked pieces right": table["masked_accuracy"].map("{:.1%}".format),
            "next sentence right": table["next_sentence_accuracy"].map(lambda v: "–" if np.isnan(v) else f"{v:.1%}"),
            "pieces read": (table["pieces_read"] / 1e6).map("{:.1f} M".format),
            "hours, one core": table["hours"].map("{:.1f}".format),
        }
    )
    caption = (
        f"BERT's two tasks on text held out of an encoder's own corpus, and on {text}, which it never read. Next "
        "sentence by chance is 50 %; frequencies of pieces know how often each occurs in that text, and no more."
    )
    return Exhibit("own-encoders-language", "Masked words and next sentences", table, caption, shown=shown)


def _rows(table: pd.DataFrame) -> list[tuple[str, str]]:
    """Task and measure of each line of the scores; MRPC's two measures stand together."""
    order = list(dict.fromkeys(table["task"]))
    pairs = dict.fromkeys(zip(table["task"], table["metric"], strict=True))
    return sorted(pairs, key=lambda pair: order.index(pair[0]))


def _title(task: str, metric: str) -> str:
    return f"{tasks.find(task).title} ({_score_name(task, metric)})"


def _score_name(task: str, metric: str) -> str:
    return metric if metric == "F1" else tasks.find(task).score_name


def scores_figure(table: pd.DataFrame, published: Published) -> Exhibit:
    """Development scores, a point a seed, beside what needs no reading and beside published encoders.

    Args:
        table: of `scores`.
        published: encoder to its scores, `PUBLISHED` where the examples are those that these are known for.
    """
    # A measure is a line of its own, MRPC's two among them.
    table = table.assign(line=list(zip(table["task"], table["metric"], strict=True)))
    titles = {pair: _title(*pair) for pair in _rows(table)}
    axis_label = "development score" + ("; of the miniatures, test score" if published else "")
    figure = score_dots.beside_baselines(table, "line", titles, axis_label, "one answer always", published)
    caption = (
        f"Each dot is one of {table['seed'].nunique()} seeds, each with a pre-training of its own: filled with "
        "pre-training, open from scratch at equal steps."
    )
    if published:
        caption += (
            " Diamonds and stars are what Google publishes for its smallest models, on the test sets and after whole "
            "training sets: for orientation, not for comparison."
        )
    alt = score_dots.against_scratch(table, "line", titles)
    return Exhibit("own-encoders-scores", "Scores beside baselines", table.drop(columns="line"), caption, alt, figure)


def scores_table(table: pd.DataFrame, examples: str, published: Published) -> Exhibit:
    """The scores as a table.

    Args:
        table: of `scores`.
        examples: how many examples models were trained on, in words.
        published: as in `scores_figure`.
    """
    lines = []
    for task, metric in _rows(table):
        rows = table[(table["task"] == task) & (table["metric"] == metric)]
        found = {start: rows[rows["start"] == start]["score"] for start in (SCRATCH, PRETRAINED)}
        words = rows["bag_of_words"].iloc[0]
        lines.append(
            {
                "task": tasks.find(task).title,
                "score": _score_name(task, metric),
                "one answer": f"{rows['majority'].iloc[0]:.3f}",
                "bag of words": "–" if np.isnan(words) else f"{words:.3f}",
                **{start: f"{of.mean():.3f} ({of.min():.3f}–{of.max():.3f})" for start, of in found.items()},
                **{
                    name: f"{known[task, metric]:.3f}" if (task, metric) in known else "–"
                    for name, known in published.items()
                },
            }
        )
    caption = (
        f"Development scores over {table['seed'].nunique()} seeds (mean, and range in brackets), after fine-tuning on "
        f"{examples}"
        + ("; and the published test scores of two miniatures after whole training sets." if published else ".")
    )
    keys = table.drop(columns="length")
    return Exhibit("own-encoders-scores-table", "Scores", keys, caption, shown=pd.DataFrame(lines))


def behind_published(table: pd.DataFrame, published: Published) -> str:
    """By how many points the mean score lies below each published encoder's, mean over tasks, as words for prose."""
    means = table[table["start"] == PRETRAINED].groupby(["task", "metric"])["score"].mean()
    behind = []
    for name, known in published.items():
        shared = [100 * (score - means[line]) for line, score in known.items() if line in means.index]
        if shared:
            behind.append(f"{np.mean(shared):.1f} points behind {name}")
    return " and ".join(behind) or "beside no published encoder, which has no score on these data"


def parts_of_speech_figure(table: pd.DataFrame) -> Exhibit:
    """The accuracy of a linear probe for parts of speech, per layer."""
    words = float(table.loc[table["encoder"] == "words alone", "accuracy"].iloc[0])
    layered = table[table["encoder"] != "words alone"]
    random = layered[layered["encoder"] == "random"].set_index("layer")["accuracy"]
    ours = layered[layered["encoder"] != "random"].assign(kind="ours")
    colour, marker = style.TASK_COLOURS["pos"], style.TASK_MARKERS["pos"]
    figure = curves.per_layer(
        ours,
        "accuracy",
        "kind",
        "accuracy on development words",
        {"ours": "pre-trained"},
        {"ours": colour},
        {"ours": marker},
        random,
        "random weights",
        "layer (0: embeddings)",
        bottom=None,
    )
    axes = figure.axes[0]
    axes.axhline(words, color="#333333", linestyle=":", linewidth=1.4)
    axes.annotate(
        "each word's most frequent tag",
        (0, words),
        xytext=(0, 4),
        textcoords="offset points",
        color="#333333",
        fontsize=10,
    )
    count = ours["encoder"].nunique()
    caption = (
        f"Accuracy of a linear probe for parts of speech on each layer: mean of {count} encoders, with a band from the "
        "least to the greatest; the same network with random weights; and the words without context."
    )
    means = ours.groupby("layer")["accuracy"].mean()
    alt = (
        f"Probe accuracy by layer: {curves.ends(ours, 'accuracy', 'kind')}, at most {means.max():.3f} at layer "
        f"{means.idxmax()}; random weights {random.iloc[0]:.3f} to {random.iloc[-1]:.3f}; words alone {words:.3f}."
    )
    return Exhibit("own-encoders-pos", "Parts of speech", table, caption, alt, figure)


def _short(name: str) -> str:
    return name.rpartition("/")[2].replace("-", " ")
