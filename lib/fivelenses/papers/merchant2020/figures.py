"""The exhibits of Merchant et al. (2020), from the tables of `measurements`."""

from collections.abc import Sequence

import pandas as pd

from fivelenses import tasks
from fivelenses.checkpoints import Checkpoint
from fivelenses.exhibits import style
from fivelenses.exhibits.curves import ends, per_layer
from fivelenses.exhibits.exhibit import Absent, Exhibit, counted
from fivelenses.models import encoders
from fivelenses.papers.merchant2020.claims import title
from fivelenses.papers.merchant2020.measure import BASE, LEXICAL, RANDOMISED
from fivelenses.papers.merchant2020.paper import PAPER_COLUMNS, PAPER_TABLE_1
from fivelenses.tasks.edge_tasks import data_behind, find_edge_task

BASE_COLOUR, BASE_MARKER = "#000000", "o"
INPUTS = {"wikipedia": "running text", "mnli": "MNLI", "squad": "SQuAD"}
POINTS = 100  # the paper prints scores in per cent


def looks(names: Sequence[str]) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Names, colours and markers of models, the pre-trained encoder in black."""
    titles = {name: "pre-trained" if name == BASE else title(name) for name in names}
    colours = {name: style.TASK_COLOURS.get(name, BASE_COLOUR) for name in names}
    return titles, colours, {name: style.TASK_MARKERS.get(name, BASE_MARKER) for name in names}


def tuned_scores(checkpoints: Sequence[Checkpoint]) -> pd.DataFrame:
    """The score of each fine-tuned model, with what was frozen (-1: nothing) or kept of its encoder.

    Returns:
        One row a model: `task`, `encoder`, `seed`, `frozen` (the highest frozen layer, 0 for embeddings alone),
        `kept` (layers), `layers`, `score`, `null_rate`, `examples`, `steps`, `data`, `diverged`.
    """
    rows = []
    for checkpoint in checkpoints:
        manifest, made = checkpoint.manifest, checkpoint.manifest["specification"]
        depth = encoders.config(encoders.locate(made["encoder"])).num_hidden_layers
        rows.append(
            {
                "task": made["task"],
                "encoder": made["encoder"],
                "seed": made["seed"],
                "frozen": max(made["frozen"], default=-1),
                "kept": made["truncated"] or depth,
                "layers": depth,
                "score": manifest["score"],
                "null_rate": manifest["null_rate"],
                "examples": manifest["training_examples"],
                "steps": manifest["steps"],
                "data": manifest["provenance"]["train"],
                "diverged": manifest["diverged"],
            }
        )
    return pd.DataFrame(rows)


def edge_table_exhibit(scores: pd.DataFrame, layers: str, source: str) -> Exhibit:
    """Table 1 (`layers="mix"`) or the table of appendix A (`"top"`): edge probes as differences to the encoder."""
    table = scores[scores["layers"] == layers].reset_index(drop=True)
    means = table.pivot_table(index="task", columns="model", values="micro_f1", sort=False) * POINTS
    view = pd.DataFrame({"task": [find_edge_task(name).title for name in means.index]})
    view["data"] = [data_behind(name, source) for name in means.index]
    paper = PAPER_TABLE_1 if layers == "mix" else {}
    for column, name in enumerate(PAPER_COLUMNS):
        if name not in means.columns:
            continue
        ours = means[BASE] if name == BASE else means[name] - means[BASE]
        form = "{:.1f}" if name == BASE else "{:+.1f}"
        view[title(name) if name not in (BASE, LEXICAL, RANDOMISED) else name] = [
            form.format(value) + (f" ({form.format(paper[task][column])})" if task in paper else "")
            for task, value in ours.items()
        ]
    read = "a mixture of all layers" if layers == "mix" else "the top layer alone"
    caption = (
        f"Edge probes that read {read}: micro-F1 in per cent of the pre-trained encoder, and the differences to it of "
        "its embeddings alone (lexical), of random weights (randomised) and of the fine-tuned encoders (mean of "
        f"{counted(table['seed'].nunique(), 'probing seed')}; at most {table['targets'].max():,} training targets)"
        + (", with the paper's in brackets." if paper else ".")
    )
    key, name = ("merchant2020-table-1", "Table 1") if layers == "mix" else ("merchant2020-top", "Appendix A")
    return Exhibit(key, name, table, caption, shown=view)


def codelengths(table: pd.DataFrame) -> Exhibit:
    """Appendix B: online codelengths of the labels, in thousands of bits."""
    view = pd.DataFrame({"task": [find_edge_task(name).title for name in table["task"].unique()]})
    bits = table.pivot(index="task", columns="model", values="bits").loc[table["task"].unique()]
    view["uniform code"] = [f"{value / 1000:.2f}" for value in table.groupby("task", sort=False)["uniform"].first()]
    for name in table["model"].unique():
        view[title(name)] = [f"{value / 1000:.2f}" for value in bits[name]]
    caption = (
        "Bits, in thousands, that the labels cost when a perceptron learns as it reads them (online code with the "
        "published fractions); it reads the mean vector of each span, averaged over all layers."
    )
    return Exhibit("merchant2020-codelengths", "Appendix B", table, caption, shown=view)


def figure_1(structure: pd.DataFrame, kind: str) -> Exhibit:
    """Figures 1a (distances) and 1b (depths): structural probes per layer."""
    table = structure[structure["kind"] == kind].reset_index(drop=True)
    letter, tree = ("a", "UUAS") if kind == "distance" else ("b", "root accuracy")
    best = "; ".join(
        f"{looks([name])[0][name]} {rows['tree'].max():.2f}" for name, rows in table.groupby("model", sort=False)
    )
    caption = (
        f"Spearman's correlation of predicted and true {kind}s in the syntax tree, for a linear probe of each layer "
        f"(0: embeddings), averaged over sentences of each length from 5 to 50. Best {tree} of a layer: {best}."
    )
    alt = f"Curves of Spearman's correlation of tree {kind}s over layers. {ends(table, 'spearman', 'model', 'layer')}."
    drawn_as = looks(list(table["model"].unique()))
    figure = per_layer(table, "spearman", "model", f"Spearman, {kind}", *drawn_as, bottom=None)
    return Exhibit(f"merchant2020-figure-1{letter}", f"Figure 1{letter}", table, caption, alt, figure)


def figure_2(similarities: pd.DataFrame, text: str = "wikipedia") -> Exhibit:
    """Figure 2: similarity of each tuned encoder to its own pre-trained one, on running text."""
    table = similarities[similarities["input"] == text].reset_index(drop=True)
    null = table.groupby("layer")["null"].mean()
    starts = counted(table["pretrained"].nunique(), "independent pre-training")
    caption = (
        "RSA of each fine-tuned encoder to the encoder that it was tuned from, per layer (0: embeddings), on "
        f"{table['tokens'].max():,} tokens of running text ({starts}, bands from least to "
        "greatest). Dashed: the same with tokens permuted."
    )
    alt = f"Curves of similarity over layers. {ends(table, 'similarity', 'model', 'layer')}."
    drawn_as = looks(list(table["model"].unique()))
    figure = per_layer(table, "similarity", "model", "RSA to pre-trained", *drawn_as, null=null, null_name="permuted")
    return Exhibit("merchant2020-figure-2", "Figure 2", table, caption, alt, figure)


def figure_5(similarities: pd.DataFrame, model: str) -> Exhibit:
    """Figure 5: similarity of one tuned encoder to its pre-trained one on several kinds of input."""
    table = similarities[similarities["model"] == model].reset_index(drop=True)
    inputs = list(table["input"].unique())
    names = {name: ", ".join([INPUTS[name.split(", ")[0]], *name.split(", ")[1:]]) for name in inputs}
    colours = dict(zip(inputs, style.SEQUENCE, strict=False))
    markers = dict(zip(inputs, style.SEQUENCE_MARKERS, strict=False))
    caption = (
        f"RSA of the encoder tuned on {title(model)} to its pre-trained one, by the input on which it is taken "
        f"(at most {table['tokens'].max():,} tokens of each)."
    )
    alt = f"Curves of similarity over layers, one an input. {ends(table, 'similarity', 'input', 'layer')}."
    figure = per_layer(table, "similarity", "input", "RSA to pre-trained", names, colours, markers, bottom=None)
    return Exhibit(f"merchant2020-figure-5-{model}", f"Figure 5, {title(model)}", table, caption, alt, figure)


def whole_encoders(scores: pd.DataFrame) -> pd.DataFrame:
    """The rows of `tuned_scores` whose encoders were neither frozen nor truncated."""
    return scores[(scores["kept"] == scores["layers"]) & (scores["frozen"] == -1)]


def varied(scores: pd.DataFrame, position: str) -> pd.DataFrame:
    """The rows of `tuned_scores` that differ from a whole encoder in `frozen` or in `kept` alone; a task of which only
    the whole encoder was tuned has no curve, and no rows here.
    """
    alone = scores["kept"] == scores["layers"] if position == "frozen" else scores["frozen"] == -1
    found = scores[alone].groupby("task").filter(lambda rows: rows[position].nunique() > 1)
    return found.reset_index(drop=True)


def figure_3(scores: pd.DataFrame) -> Exhibit | Absent:
    """Figure 3: score with the bottom layers frozen."""
    table = varied(scores, "frozen")
    caption = (
        "Score after fine-tuning with the embeddings and the bottom layers frozen, by the highest frozen layer (-1: "
        "nothing frozen; 0: embeddings alone)."
    )
    return _ablation(table, "frozen", "highest frozen layer", "merchant2020-figure-3", "Figure 3", caption)


def figure_4(scores: pd.DataFrame) -> Exhibit | Absent:
    """Figure 4: score of truncated encoders."""
    table = varied(scores, "kept")
    caption = "Score after fine-tuning the first layers of the encoder alone, by their number."
    return _ablation(table, "kept", "layers kept", "merchant2020-figure-4", "Figure 4", caption)


def _metrics(table: pd.DataFrame) -> str:
    said = [
        f"{tasks.find(name).title} {tasks.find(name).score_name} (null {rows['null_rate'].iloc[0]:.2f})"
        for name, rows in table.groupby("task", sort=False)
    ]
    return f"{', '.join(said)}; bands from least to greatest seed."


def _ablation(table: pd.DataFrame, position: str, label: str, key: str, name: str, caption: str) -> Exhibit | Absent:
    if table.empty:
        return Absent(key, name, "only whole encoders were tuned")
    caption = f"{caption} {_metrics(table)}"
    alt = f"Curves of score over the {label}. {ends(table, 'score', 'task', position)}."
    drawn_as = looks(list(table["task"].unique()))
    figure = per_layer(table, "score", "task", "score", *drawn_as, position=position, layer_label=label, bottom=None)
    return Exhibit(key, name, table, caption, alt, figure)


def appendix_c(scores: pd.DataFrame) -> Exhibit:
    """Appendix C: data, training and scores of the fine-tuned models."""
    whole = whole_encoders(scores)
    rows = []
    for (task, encoder), models in whole.groupby(["task", "encoder"], sort=False):
        found = tasks.find(task)
        rows.append(
            {
                "task": found.title,
                "encoder": encoder,
                "trained on": models["data"].iloc[0],
                "examples": f"{models['examples'].iloc[0]:,}",
                "steps": f"{models['steps'].iloc[0]:,}",
                "metric": found.score_name,
                "score": f"{models['score'].mean():.3f} ± {(models['score'].max() - models['score'].min()) / 2:.3f}",
                "null rate": f"{models['null_rate'].iloc[0]:.3f}",
            }
        )
    caption = (
        "The fine-tuned models: mean score over seeds and half the range. The paper reports MNLI 83.3 ± 0.1, SQuAD F1 "
        "89.2 ± 0.2 and LAS 96.3 ± 0.1 for BERT-base on whole training sets."
    )
    return Exhibit("merchant2020-models", "Appendix C", whole.reset_index(drop=True), caption, shown=pd.DataFrame(rows))
