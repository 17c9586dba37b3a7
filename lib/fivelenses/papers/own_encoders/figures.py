"""The pictures and tables of encoders of one's own."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import pandas as pd

from fivelenses import tasks
from fivelenses.exhibits import style
from fivelenses.exhibits.exhibit import Exhibit, title
from fivelenses.exhibits.intervals import whole
from fivelenses.exhibits.plots import Looks, curves, dots, looks_in_sequence, looks_of_tasks
from fivelenses.papers.toy_world import figures as toy_world
from fivelenses.papers.toy_world.figures import PRETRAINED, SCRATCH, against_scratch, in_millions, mean_and_range

Published = Mapping[str, Mapping[tuple[str, str], float]]

# Test scores that Google publishes with its miniatures, which saw whole training sets: by task and measure.
LINES = [("sst2", "accuracy"), ("mrpc", "F1"), *((task, "accuracy") for task in ("mnli", "qnli", "rte"))]
LINES += [("cola", "matthews")]
PUBLISHED: Published = MappingProxyType(
    {
        "BERT-tiny": dict(zip(LINES, (0.832, 0.811, 0.702, 0.815, 0.572, 0.0), strict=True)),
        "BERT-mini": dict(zip(LINES, (0.859, 0.811, 0.748, 0.841, 0.579, 0.0), strict=True)),
    }
)


def loss_figure(table: pd.DataFrame, language: pd.DataFrame) -> Exhibit:
    """The masked loss along pre-training, one curve per encoder, and what each reached on held-out text."""
    table = _at_equal_distances(table)
    of_text = whole(language).set_index(["text", "encoder"])["masked_loss"]
    table = table.assign(held_out=table["encoder"].map(of_text["held out"]))
    table["frequency"] = of_text.xs("frequency", level="encoder").iloc[0]
    looks = looks_in_sequence({name: _short(name) for name in table["encoder"].unique()})
    lines, label = Looks(looks.names, looks.colours), "masked loss (nats per token)"
    axes = dict(x="step", x_label="step of pre-training", log_x=True, bottom=None, height=3.4)
    nulls = {"frequency": "frequencies of tokens"}
    figure = curves(table, "masked", "encoder", lines, label, nulls=nulls, label="legend", **axes)
    last = table.groupby("encoder", sort=False).last()
    for name, end in last.iterrows():
        mark = dict(color=looks.colours[name], marker=looks.markers[name], markersize=8, markeredgecolor="white")
        figure.axes[0].plot(end["step"], end["held_out"], **mark)
    words = "; ".join(
        f"{_short(name)} ends at {end['masked']:.2f} in training and {end['held_out']:.2f} held out"
        for name, end in last.iterrows()
    )
    caption = (
        "Cross-entropy at masked tokens along pre-training, each point the mean since the previous one; larger marks "
        "are the loss on held-out text of the same corpus. Dashed: what the frequencies of tokens would reach "
        "on the text from elsewhere."
    )
    alt = f"Masked loss along pre-training. {words}."
    return Exhibit("own-encoders-loss", "Pre-training", table, caption, alt, figure)


def _at_equal_distances(table: pd.DataFrame) -> pd.DataFrame:
    """The losses as means over equally many steps: at a checkpoint the log has a further mean, of one step or a few,
    which would show as a spike.
    """
    of_encoder, losses = table.groupby("encoder", sort=False)["step"], ["masked", "next_sentence"]
    table = table.assign(steps=table["step"] - of_encoder.shift(fill_value=0))
    table["place"] = -(-table["step"] // of_encoder.transform("min"))
    table[losses] = table[losses].mul(table["steps"], axis=0)
    sums = {"step": "last", "steps": "sum"} | dict.fromkeys(losses, "sum")
    merged = table.groupby(["encoder", "place"], sort=False, as_index=False).agg(sums)
    merged[losses] = merged[losses].div(merged["steps"], axis=0)
    return merged[["encoder", "step", *losses]]


def language_table(table: pd.DataFrame, text: str) -> Exhibit:
    """Losses and accuracies of BERT's two tasks; `text` is what "elsewhere" is, in words."""
    table = whole(table)
    texts = {"held out": "own corpus, held out", "elsewhere": text}
    titles = {"random": "random weights", "frequency": "frequencies of tokens"}
    columns = {
        "encoder": ("encoder", lambda name: titles.get(name, name)),
        "text": ("text", texts.get),
        "masked_loss": ("masked tokens (nats)", "{:.2f}"),
        "masked_accuracy": ("masked tokens right", "{:.1%}"),
        "next_sentence_accuracy": ("next sentence right", "{:.1%}"),
        "pieces_read": ("tokens read", in_millions),
        "hours": ("hours, one core", "{:.1f}"),
    }
    caption = (
        f"BERT's two tasks on text held out of an encoder's own corpus, and on {text}, which it never read. Next "
        "sentence by chance is 50 %."
    )
    title = "Masked words and next sentences"
    return Exhibit("own-encoders-language", title, table, caption, columns=columns)


def scores(models: pd.DataFrame, baselines: pd.DataFrame, paraphrase: pd.DataFrame) -> pd.DataFrame:
    """Development scores beside those that need no reading, in the measures of the GLUE benchmark: the columns of
    `toy_world.figures.scores`, where `metric` is `F1` in MRPC's second set of rows; there `majority` is the score of
    answering always that the sentences say the same.
    """
    table = toy_world.scores(models, baselines)
    if paraphrase.empty:
        return table
    alone = paraphrase[["task"]].drop_duplicates().assign(metric="F1", length=np.nan, bag_of_words=np.nan)
    second = toy_world.scores(paraphrase, alone.assign(majority=paraphrase["majority"].iloc[0]))
    return pd.concat([table, second], ignore_index=True)


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
    """Development scores, one point per seed, beside what needs no reading and beside published encoders: `PUBLISHED`
    where the examples are those that these are known for.
    """
    # A measure is a row of its own, MRPC's two among them.
    lines = list(zip(table["task"], table["metric"], strict=True))
    table = table.assign(**{name: [known.get(line, np.nan) for line in lines] for name, known in published.items()})
    titles = {pair: _title(*pair) for pair in _rows(table)}
    looks = Looks(titles, {pair: style.task_colour(pair[0]) for pair in titles})
    label = "development score" + ("; of the miniatures, test score" if published else "")
    marks = {"majority": "null rate", "bag_of_words": "bag of words"} | {name: name for name in published}
    drawn = table.assign(line=lines)
    figure = dots(drawn, "score", "line", titles, label, "start", looks, open=[SCRATCH], marks=marks)
    caption = (
        f"Each dot is one of {table['seed'].nunique()} seeds, each with a pre-training of its own: filled with "
        "pre-training, open from scratch at equal steps."
    )
    if published:
        caption += (
            " Diamonds and stars: Google's test scores of its smallest models (the miniatures) after whole training "
            "sets, for orientation."
        )
    alt = against_scratch(drawn, "line", titles)
    return Exhibit("own-encoders-scores", "Scores beside baselines", table, caption, alt, figure)


def scores_table(table: pd.DataFrame, examples: str, published: Published) -> Exhibit:
    """The scores as a table; `examples` says in words on how many models were trained."""
    lines = []
    for task, metric in _rows(table):
        rows = table[(table["task"] == task) & (table["metric"] == metric)]
        words = rows["bag_of_words"].iloc[0]
        line = {"task": tasks.find(task).title, "score": _score_name(task, metric)}
        line |= {"null rate": f"{rows['majority'].iloc[0]:.3f}"}
        line |= {"bag of words": "–" if np.isnan(words) else f"{words:.3f}"} | mean_and_range(rows)
        of_miniatures = {name: known.get((task, metric)) for name, known in published.items()}
        lines.append(line | {name: "–" if one is None else f"{one:.3f}" for name, one in of_miniatures.items()})
    caption = (
        f"Development scores over {table['seed'].nunique()} seeds (mean, and range in brackets), after fine-tuning on "
        f"{examples}"
        + ("; and the published test scores of two miniatures after whole training sets." if published else ".")
    )
    keys = table.drop(columns="length")
    return Exhibit("own-encoders-scores-table", "Scores", keys, caption, shown=pd.DataFrame(lines))


def behind_published(table: pd.DataFrame, published: Published) -> str:
    """By how many points the mean score lies below each published encoder's, mean and range over tasks, in words."""
    means = table[table["start"] == PRETRAINED].groupby(["task", "metric"])["score"].mean()
    behind = []
    for name, known in published.items():
        shared = [100 * (score - means[line]) for line, score in known.items() if line in means.index]
        if shared:
            reach = f" (from {min(shared):.0f} to {max(shared):.0f}, by task)" if len(shared) > 1 else ""
            behind.append(f"{np.mean(shared):.1f} points behind {name}{reach.replace('-', '−')}")
    return " and ".join(behind) or "beside no published encoder, which has no score on these data"


def behind_words(table: pd.DataFrame) -> str:
    """The lines on which a bag of words has a higher score than the pre-trained models' mean, as words for prose."""
    lines = table[table["start"] == PRETRAINED].groupby(["task", "metric"], sort=False)
    means = lines[["score", "bag_of_words"]].mean()
    ahead = (100 * (means["bag_of_words"] - means["score"])).loc[lambda gaps: gaps > 0]
    return " and ".join(f"{title(task)} by {gap:.1f} points" for (task, _), gap in ahead.items()) or "no task"


def parts_of_speech_figure(table: pd.DataFrame) -> Exhibit:
    """The accuracy of a linear probe for parts of speech, per layer."""
    table = whole(table)
    words = float(table.loc[table["encoder"] == "words alone", "accuracy"].iloc[0])
    layered = table[table["encoder"] != "words alone"]
    random = layered[layered["encoder"] == "random"].set_index("layer")["accuracy"]
    pretrained = layered[layered["encoder"] != "random"].assign(kind="pos", words=words)
    pretrained["random"] = pretrained["layer"].map(random)
    looks, label = looks_of_tasks(["pos"], pos="pre-trained"), "accuracy on development words"
    drawn = dict(x_label="layer (0: embeddings)", nulls={"random": "random weights", "words": "most frequent tag"})
    figure = curves(pretrained, "accuracy", "kind", looks, label, bottom=None, **drawn)
    count = pretrained["encoder"].nunique()
    caption = (
        f"Accuracy of a linear probe for parts of speech on each layer: mean of {count} encoders, with a band from the "
        "least to the greatest; dashed, the same network with random weights; dotted, each word's most frequent tag, "
        "without context."
    )
    means = pretrained.groupby("layer")["accuracy"].mean()
    alt = (
        f"Probe accuracy by layer: pre-trained {means.iloc[0]:.3f} at {means.index[0]} and {means.iloc[-1]:.3f} at "
        f"{means.index[-1]}, at most {means.max():.3f} at layer {means.idxmax()}; random weights "
        f"{random.iloc[0]:.3f} to {random.iloc[-1]:.3f}; words alone {words:.3f}."
    )
    return Exhibit("own-encoders-pos", "Parts of speech", table, caption, alt, figure)


def _short(name: str) -> str:
    return name.rpartition("/")[2].replace("-", " ")
