"""The exhibits of Merchant et al. (2020), from the records of `measure`."""

from itertools import product

import pandas as pd

from fivelenses import tasks
from fivelenses.first_exhibits.claims import of_all, seen_as
from fivelenses.first_exhibits.exhibit import Absent, Exhibit, counted, title, trained_on
from fivelenses.first_exhibits.intervals import whole
from fivelenses.first_exhibits.plots import (
    AT_RANDOM,
    OF_TWINS,
    Looks,
    curves,
    ends,
    looks_in_sequence,
    looks_of_tasks,
    with_twins,
)
from fivelenses.papers.merchant2020.ablations import varied
from fivelenses.papers.merchant2020.probe_claims import PAPER_COLUMNS, PAPER_TABLE_1
from fivelenses.records import BASE, RUNNING_TEXT, TWIN
from fivelenses.tasks.edge_tasks import find_edge_task

POINTS = 100  # the paper prints scores in per cent


def _looks(models) -> Looks:
    """Names, colours and markers of models, the pre-trained encoder in black."""
    return looks_of_tasks(models, base="pre-trained")


def _with_twins(record: pd.DataFrame, value: str, by: list[str]) -> tuple[pd.DataFrame, dict[str, str], str]:
    """A record's rows of the fine-tuned and shared models, with the values of their twins; the names of these columns
    in a picture, and what a caption says of them.
    """
    by = by + [name for name in ["tuned_seed"] if name in record.columns]
    table, names = with_twins(of_all(record).reset_index(drop=True), whole(record), value, by)
    return table, names, "".join(f" {OF_TWINS[column]}" for column in names)


def _tuned(table: pd.DataFrame) -> str:
    """How many fine-tuned models of each task a mean is over, in words; empty where it is one."""
    seeds = table.loc[table["tuned_seed"] >= 0, "tuned_seed"].nunique() if "tuned_seed" in table.columns else 1
    return f"{seeds} models of each task" if seeds > 1 else ""


def appendix_c(models: pd.DataFrame) -> Exhibit:
    """Appendix C: data, training and scores of the models that were tuned whole."""
    tuned = models[(models["frozen"] == -1) & (models["truncated"] == -1)]
    table = tuned.groupby(["task", "encoder"], sort=False, as_index=False).agg(
        training_data=("training_data", "first"),
        examples=("examples", "first"),
        steps=("steps", "first"),
        seeds=("seed", "nunique"),
        score=("score", "mean"),
        score_spread=("score", lambda scores: (scores.max() - scores.min()) / 2),
        null_rate=("null_rate", "first"),
    )
    table["metric"] = [tasks.find(task).score_name for task in table["task"]]
    several = bool((table["seeds"] > 1).any())
    caption = f"The fine-tuned models: {'mean score over seeds and half the range' if several else 'score, one seed'}."
    columns = {
        "task": ("task", title),
        "encoder": "encoder",
        "training_data": "trained on",
        "steps": ("steps", "{:,.0f}"),
        "metric": "metric",
        "score": "score",
        "null_rate": ("null rate", "{:.3f}"),
    }
    scores = [f"{row.score:.3f}" + f" ± {row.score_spread:.3f}" * (row.seeds > 1) for row in table.itertuples()]
    sizes = zip(table["examples"], table["training_data"], strict=True)
    shown = table.assign(score=scores, training_data=[trained_on(*size) for size in sizes])
    return Exhibit("merchant2020-models", "Appendix C", table, caption, shown=shown, columns=columns)


def table_1(probes: pd.DataFrame) -> Exhibit:
    """Table 1: edge probes that read all layers, as differences to the pre-trained encoder."""
    key, name = "merchant2020-table-1", "Table 1"
    return _edge_table(probes, "mix", key, name, "a mixture of all layers", PAPER_TABLE_1)


def appendix_a(probes: pd.DataFrame) -> Exhibit | Absent:
    """Appendix A: edge probes that read the top layer alone."""
    key, name = "merchant2020-top", "Appendix A"
    if not (probes["layers"] == "top").any():
        return Absent(key, name, "this run has only the scores of probes that read a mixture of all layers")
    return _edge_table(probes, "top", key, name, "the top layer alone", {})


def _edge_table(probes: pd.DataFrame, layers: str, key: str, name: str, read: str, paper: dict) -> Exhibit:
    record = whole(probes[probes["layers"] == layers]).reset_index(drop=True)
    table = seen_as(record)
    means = table.pivot_table(index="task", columns="model", values="micro_f1", sort=False) * POINTS
    view = pd.DataFrame({"task": [find_edge_task(task).title for task in means.index]})
    view["data"] = table.groupby("task", sort=False)["data"].first().tolist()
    for column, model in enumerate(PAPER_COLUMNS):
        if model not in means.columns:
            continue
        values, form = (means[model], "{:.1f}") if model == BASE else (means[model] - means[BASE], "{:+.1f}")
        view[title(model)] = [
            (form.format(value) + (f" ({form.format(paper[task][column])})" if task in paper else "")).replace("-", "−")
            for task, value in values.items()
        ]
    twins = record[record["control"] == TWIN] if "control" in record.columns else record[:0]
    for model, rows in twins.groupby("model"):
        changes = rows.groupby("task", sort=False)["micro_f1"].mean().reindex(means.index) * POINTS - means[BASE]
        words = ["–" if pd.isna(change) else f"{change:+.1f}".replace("-", "−") for change in changes]
        view[f"{title(model)}, {AT_RANDOM}"] = words
    seeds = table["seed"].nunique()
    means_over = ", ".join(filter(None, [_tuned(table), counted(seeds, "probing seed")]))
    caption = (
        f"Edge probes that read {read}: micro-F1 in per cent of the pre-trained encoder, and how far the others differ "
        f"from it ({'mean of ' * (means_over[0] != '1')}{means_over}; at most {table['targets'].max():,} "
        "training targets)" + (", with the paper's in brackets." if paper else ".")
    )
    return Exhibit(key, name, record, caption, shown=view)


def appendix_b(codelengths: pd.DataFrame) -> Exhibit:
    """Appendix B: online codelengths of the labels, in thousands of bits."""
    codelengths = of_all(codelengths)
    bits = codelengths.pivot_table(index=["task", "uniform"], columns="model", values="bits", sort=False).reset_index()
    view = pd.DataFrame({"task": bits["task"].map(lambda task: find_edge_task(task).title)})
    for column in bits.columns[1:]:
        name = "uniform code" if column == "uniform" else title(column)
        view[name] = (bits[column] / 1000).map("{:.2f}".format)
    caption = (
        "Codelengths of the labels, in thousands of bits: an online code with the published fractions, by a perceptron "
        "that reads the mean vector of each span, averaged over all layers."
    )
    return Exhibit("merchant2020-codelengths", "Appendix B", codelengths, caption, shown=view)


def figure_1(structure: pd.DataFrame, kind: str) -> Exhibit:
    """Figures 1a (distances) and 1b (depths): structural probes per layer."""
    table, nulls, of_twins = _with_twins(structure[structure["kind"] == kind], "spearman", ["model", "layer"])
    letter, tree = ("a", "UUAS") if kind == "distance" else ("b", "root accuracy")
    looks, trees = _looks(table["model"].unique()), table.groupby("model", sort=False)["tree"].max()
    best = "; ".join(f"{looks.names[model]} {value:.2f}" for model, value in trees.items())
    caption = (
        f"Spearman's correlation of predicted and true {kind}s in the syntax tree, for a linear probe of each layer "
        f"(0: embeddings), averaged over sentences of each length from 5 to 50. Best {tree} of a layer: {best}."
    )
    alt = f"Curves of Spearman's correlation of tree {kind}s over layers. {ends(table, 'spearman', 'model')}."
    caption += f" Means of {_tuned(table)}, bands from least to greatest." if _tuned(table) else ""
    caption += of_twins
    figure = curves(table, "spearman", "model", looks, f"Spearman, {kind}", bottom=None, nulls=nulls)
    return Exhibit(f"merchant2020-figure-1{letter}", f"Figure 1{letter}", table, caption, alt, figure)


def figure_2(similarities: pd.DataFrame) -> Exhibit:
    """Figure 2: similarity of each tuned encoder to its own pre-trained one, on running text."""
    table, nulls, of_twins = _with_twins(similarities, "similarity", ["pretrained", "input", "model", "layer"])
    counted_tokens = "tokens, special ones left out," if "fold" in similarities.columns else "tokens, special ones too,"
    nulls = {"null": "permuted"} | nulls
    pretrainings = table["pretrained"].nunique()
    drawn = counted(pretrainings, f"{'independent ' * (pretrainings > 1)}pre-training")
    drawn += f", {_tuned(table)}" if _tuned(table) else ""
    drawn += ", bands from least to greatest" if pretrainings > 1 or _tuned(table) else ""
    caption = (
        "RSA of each fine-tuned encoder to its pre-trained one, per layer (0: embeddings), on "
        f"{table['tokens'].max():,} {counted_tokens} of running text ({drawn}). Dashed: the same with tokens permuted."
    )
    caption += of_twins
    alt = f"Curves of similarity over layers. {ends(table, 'similarity', 'model')}."
    figure = curves(table, "similarity", "model", _looks(table["model"].unique()), "RSA to pre-trained", nulls=nulls)
    return Exhibit("merchant2020-figure-2", "Figure 2", table, caption, alt, figure)


def figure_5(similarities: pd.DataFrame, by_input: pd.DataFrame, model: str) -> Exhibit | Absent:
    """Figure 5: similarity of the encoder tuned on one task (`model`) to its pre-trained one on several kinds of input;
    of the same encoder, the rows on running text are drawn beside them.
    """
    key, name = f"merchant2020-figure-5-{model}", f"Figure 5, {title(model)}"
    if by_input.empty or model not in set(by_input["model"]):
        return Absent(key, name, f"no encoder that was tuned on {title(model)} was measured on its input")
    both = pd.concat([similarities[similarities["pretrained"].isin(by_input["pretrained"])], by_input])
    by = ["pretrained", "input", "model", "layer"]
    table, twins, _ = _with_twins(both[both["model"] == model], "similarity", by)
    nulls = {}
    for twin, (one, inputs) in product(twins, ((model, "own input"), (RUNNING_TEXT, "running text"))):
        nulls[f"{twin}_{one}"] = f"{'at random' if twin == 'twin' else 'functional'}, {inputs}"
        table[f"{twin}_{one}"] = table[twin].where(table["input"] == one)
    names = {one: "running text" if one == RUNNING_TEXT else _input_name(one) for one in table["input"].unique()}
    caption = (
        f"RSA of the encoder tuned on {title(model)} to its pre-trained one, by the input on which it is taken "
        f"(at most {table['tokens'].max():,} tokens of each)."
    )
    caption += " Grey and black without markers: its twins, which moved as far in random directions." if nulls else ""
    alt = f"Curves of similarity over layers, one per input. {ends(table, 'similarity', 'input')}."
    drawn = dict(bottom=None, nulls=nulls)
    figure = curves(table, "similarity", "input", looks_in_sequence(names), "RSA to pre-trained", **drawn)
    return Exhibit(key, name, table, caption, alt, figure)


def _input_name(name: str) -> str:
    """The name of an input in words: the task's title, and which side alone."""
    task, *side = name.split(", ")
    return ", ".join([title(task), *side])


def figure_3(models: pd.DataFrame, similarities: pd.DataFrame, encoder: str) -> Exhibit | Absent:
    """Figure 3: score of one encoder's models with the bottom layers frozen; `similarities` have a row
    for every layer.
    """
    caption = (
        "Score after fine-tuning with the embeddings and the bottom layers frozen, by the highest frozen layer k (−1: "
        "nothing frozen; 0: embeddings alone). The paper counts layers from 0: its k is ours minus 1."
    )
    table = varied(models, similarities, encoder, "frozen")
    return _ablation(table, "frozen", "highest frozen layer", "merchant2020-figure-3", "Figure 3", caption)


def figure_4(models: pd.DataFrame, similarities: pd.DataFrame, encoder: str) -> Exhibit | Absent:
    """Figure 4: score of truncated encoders; arguments as `figure_3`."""
    caption = "Score after fine-tuning the first layers of the encoder alone, by their number k."
    table = varied(models, similarities, encoder, "kept")
    return _ablation(table, "kept", "layers kept", "merchant2020-figure-4", "Figure 4", caption)


def _ablation(table: pd.DataFrame, position: str, label: str, key: str, name: str, caption: str) -> Exhibit | Absent:
    if table.empty:
        return Absent(key, name, "only whole encoders were tuned")
    metrics = ", ".join(
        f"{title(task)} {tasks.find(task).score_name} (null {null:.2f})"
        for task, null in table.groupby("task", sort=False)["null_rate"].first().items()
    )
    alt = f"Curves of score over the {label}. {ends(table, 'score', 'task', position)}."
    looks = _looks(table["task"].unique())
    figure = curves(table, "score", "task", looks, "score", x=position, x_label=label, bottom=None)
    bands = "bands from least to greatest seed" if table["seed"].nunique() > 1 else "one seed"
    return Exhibit(key, name, table, f"{caption} {metrics}; {bands}.", alt, figure)
