"""The exhibits of chapter 7, from the records `changes_seen` (`changes`), `properties_read`, `seconds` and `models`."""

import numpy as np
import pandas as pd

from fivelenses.first_exhibits import plots
from fivelenses.first_exhibits.exhibit import Absent, Exhibit, counted, printed, title
from fivelenses.first_exhibits.heat_maps import heat_maps
from fivelenses.lenses.checks import INVARIANCES
from fivelenses.papers.five_lenses.rank_statistics import between, number, with_interval
from fivelenses.papers.known_truth import scores
from fivelenses.papers.known_truth.instruments import BY_KEY, MEASURES, name
from fivelenses.records import FROZEN, FULL, SYMMETRIES, TREES

WIDTH = 5.6  # narrower than a page, so that letters are read on a phone
NARROW = 4.7  # a phone shows it whole
SHORT = {  # of the questions, over the columns of a narrow picture
    "where": "names the layer",
    "added": "by what it adds",
    "dose": "rises with dose",
    "ignores": "silent at no change",
    "learning": "learned or moved",
}
PROPERTY = {TREES: "syntax trees"}


def _measures(table: pd.DataFrame) -> dict[str, str]:
    """The measures that a table holds with their names in pictures, in the order of MEASURES."""
    return {measure.key: measure.name for measure in MEASURES if (table["measure"] == measure.key).any()}


def models_in_words(changes: pd.DataFrame, kind: str) -> str:
    """The models of a kind behind a picture, in words.

    Example:
        >>> rows = {"task": ["cola"] * 2, "seed": [0, 1], "kind": "tuned", "trained": "all", "dose": 1.0}
        >>> models_in_words(pd.DataFrame(rows), "tuned")
        '2 models, 2 seeds of 1 task'
    """
    rows = changes[changes["kind"] == kind]
    models = len(rows[[*scores.MODEL, "trained", "dose"]].drop_duplicates())
    seeds, kinds = rows["seed"].nunique(), rows["task"].nunique()
    return f"{counted(models, 'model')}, {counted(seeds, 'seed')} of {counted(kinds, 'task')}"


def table_of_models(models: pd.DataFrame, changes: pd.DataFrame) -> Exhibit:
    """The models that are fine-tuned as usual, and how many are made beside each; refused where every training
    diverged.
    """
    if models["diverged"].all():
        raise ValueError("The training of every model diverged, so nothing can be seen: lower learning_rate.")
    rows = []
    for task, group in models.groupby("task", sort=False):
        of_task = changes[(changes["task"] == task) & (changes["seed"] == changes["seed"].iloc[0])]
        made = of_task[["kind", "trained", "dose"]].drop_duplicates()["kind"].value_counts()
        row = {"task": title(task), "examples": f"{group['examples'].iloc[0]:,}"}
        row["score of each seed"] = ", ".join(
            np.where(group["diverged"], "diverged", group["score"].map("{:.3f}".format))
        )
        row |= {"null rate": f"{group['null_rate'].iloc[0]:.3f}", "places": int(made.get(FROZEN, 0))}
        rows.append(
            row | {"doses": int(made.get(FULL, 0)), "without effect": int(made.reindex(list(SYMMETRIES)).sum())}
        )
    caption = (
        "The models that are fine-tuned as usual, with their development scores (accuracy, or Matthews correlation "
        "where the null rate is 0). The last columns count the models made beside each: trained in one place alone, "
        "trained for longer or shorter, changed without effect; one more has shuffled labels, and one moved at random."
    )
    return Exhibit("known-truth-models", "The models", models, caption, shown=pd.DataFrame(rows))


def summary(changes: pd.DataFrame, seconds: pd.DataFrame) -> Exhibit:
    """The picture to remember: measures from the best to the worst, one column per question."""
    table = scores.summary(changes).merge(seconds, "left")
    means = table.groupby("measure")["score"].mean().sort_values(ascending=False, kind="stable")
    costs = seconds.set_index("measure")["seconds"]
    titles = {measure: f"{name(measure)}, {_seconds(costs[measure])}" for measure in means.index}
    matrix, bold = (_matrix(table, column, titles) for column in ("score", "bold"))
    figure = heat_maps(
        {"": matrix.round(2) + 0.0},
        "1 is right in all cases",
        written="{:.2f}",
        bold=bold.astype(bool),
        width=NARROW,
        height=0.36 * len(titles) + 1.1,
        col_wrap=1,
    )
    chance = {question: rows["by_chance"].iloc[0] for question, rows in table.groupby("question", sort=False)}
    caption = (
        f"Scores of each measure, from models with frozen layers ({models_in_words(changes, FROZEN)}) and models of "
        f"which all layers were trained, some longer than others ({models_in_words(changes, FULL)}). Columns: the "
        "share of cases in which it names a trained layer, by its value and by what each layer adds; rank correlation "
        "with the dose; 1 minus the share of fine-tuning's change that it reports where nothing changed; and the "
        "probability that it is larger after learning than after weights only moved (the harder of the two controls). "
        "Bold: the 95 % interval over models lies above chance "
        f"({'; '.join(f'{SHORT[question]}: {number(value)}' for question, value in chance.items())}). Beside each "
        "name: its seconds for one model."
    )
    told = "; ".join(
        f"{name(measure)} " + ", ".join(f"{SHORT[row.question]} {number(row.score)}" for row in rows.itertuples())
        for measure, rows in table.set_index("measure").loc[list(titles)].groupby(level=0, sort=False)
    )
    return Exhibit("known-truth-summary", "What each lens can see", table, caption, f"Scores: {told}.", figure)


def _matrix(table: pd.DataFrame, column: str, titles: dict[str, str]) -> pd.DataFrame:
    table = table.assign(bold=(table["low"] > table["by_chance"]) | ((table["score"] == 1) & (table["low"] >= 1)))
    wide = table.pivot(index="measure", columns="question", values=column).loc[list(titles), list(scores.QUESTIONS)]
    return wide.rename(index=titles, columns=SHORT)


def _seconds(value: float) -> str:
    """Seconds as far as they count.

    Example:
        >>> _seconds(0.031), _seconds(8.4)
        ('0.03 s', '8 s')
    """
    return f"{value:.2f} s" if value < 0.1 else f"{value:.1f} s" if value < 3 else f"{value:.0f} s"


def table_of_scores(changes: pd.DataFrame) -> Exhibit:
    """The scores with their intervals."""
    table = scores.summary(changes)
    rows = []
    for measure in _measures(table):
        of_measure = table[table["measure"] == measure].set_index("question")[["score", "low", "high"]]
        row = {"measure": name(measure), "lens": BY_KEY[measure].lens}
        rows.append(row | {words: between(*of_measure.loc[key]) for key, words in scores.QUESTIONS.items()})
    caption = "The scores of the picture, with 95 % intervals over models."
    return Exhibit("known-truth-scores", "Scores", table, caption, shown=pd.DataFrame(rows))


def named_places(changes: pd.DataFrame) -> Exhibit:
    """How far from the trained layer each measure names one, by either reading, where one layer was trained."""
    table = scores.places(changes)
    table = table[~table["trained"].str.contains("-")]
    names, depth = _measures(table), int(changes["layer"].max())
    cases = table.groupby(["reading", "measure"])["share"].sum()
    shares = table.groupby(["reading", "measure", "off"])["share"].sum() / cases
    matrices = {}
    for reading, words in scores.READINGS.items():
        wide = shares[reading].unstack("off").reindex(index=list(names), columns=range(1 - depth, depth)).fillna(0)
        matrices[words] = wide.rename(index=names, columns=_off)
    drawn = dict(x_label="named layer minus trained layer", ticks={0: "never", 1: "always"}, width=WIDTH + 1)
    figure = heat_maps(matrices, "", peaks=True, **drawn)
    for axes in figure.axes[: len(matrices)]:
        offs = np.arange(1 - depth, depth)
        even = np.flatnonzero(offs % 2 == 0)
        axes.set_xticks(even + 0.5, list(map(_off, offs[even])), rotation=0, ha="center")
    caption = (
        "How far from the layer that was trained alone each measure names a layer: share of the cases "
        f"({models_in_words(changes[~changes['trained'].str.contains('-')], FROZEN)}); a white dot at the most "
        f"frequent, the lowest of equals. A measure that always names the last layer has equal shares from 0 to "
        f"+{depth - 1}. To the right of 0 are layers above the trained one, whose features changed "
        "and whose weights did not."
    )
    told = []
    for words, matrix in matrices.items():
        tops = ", ".join(f"{measure} {row['0']:.0%}" for measure, row in matrix.iterrows())
        told.append(f"{words}, the trained layer is named by {tops}")
    return Exhibit(
        "known-truth-where", "Where", shares.rename("cases").reset_index(), caption, f"{'; '.join(told)}.", figure
    )


def _off(layers: int) -> str:
    return printed(layers, "+d") if layers else "0"


def table_of_places(changes: pd.DataFrame) -> Exhibit:
    """Cases in which each measure names a trained layer, its error in layers, and what it reports elsewhere."""
    table = scores.where(changes)
    rows = []
    for measure in _measures(table):
        row = {"measure": name(measure)}
        for reading, words in scores.READINGS.items():
            of_reading = table[(table["measure"] == measure) & (table["reading"] == reading)]
            right = scores.cases(changes, reading).loc[measure]
            error = scores.over_seeds(of_reading, "error")
            row |= {f"right, {words}": f"{right['right']} of {right['of']}"}
            row |= {"error" if reading == scores.VALUE else "error ": with_interval(error)}
            if reading == scores.VALUE:
                row["reported of trained layers"] = f"{of_reading['own'].mean():.0%}"
        rows.append(row)
    lot = table["error_by_lot"].mean()
    caption = (
        "Right: cases in which a measure names a trained layer. Error: layers from the named to the nearest trained "
        f"one, with 95 % intervals over models (at random {number(lot)}). Reported of trained layers: their share of "
        f"the sum over all layers; of features the rest is inherited ({models_in_words(changes, FROZEN)})."
    )
    return Exhibit("known-truth-places", "Places", table, caption, shown=pd.DataFrame(rows))


def dose_curves(changes: pd.DataFrame) -> Exhibit:
    """Each measure against the dose, mean over layers, in its own unit."""
    rows = changes[changes["kind"] == FULL]
    keys = [*scores.MODEL, "measure", "dose"]
    table = rows.groupby(keys, sort=False, as_index=False)["value"].mean()
    names = _measures(table)
    looks = plots.looks_of_tasks(table["task"].unique())
    drawn = dict(x="dose", x_label="share of the usual steps", col="measure", titles=names, col_wrap=3, height=1.75)
    figure = plots.curves(table, "value", "task", looks, "", **drawn)
    correlations = scores.doses(changes).groupby("measure")["correlation"].mean()
    caption = (
        "Each measure in its own unit, mean over the layers, after trainings of different length "
        f"({models_in_words(changes, FULL)}; bands from least to greatest seed)."
    )
    told = ", ".join(f"{words} {number(correlations[measure])}" for measure, words in names.items())
    return Exhibit("known-truth-dose", "How much", table, caption, f"Rank correlations with the dose: {told}.", figure)


def seen_of_nothing(changes: pd.DataFrame) -> Exhibit:
    """What each measure reports of changes that change no output, as a share of what it reports of fine-tuning."""
    table = scores.nothing(changes)
    names = _measures(table)
    kinds = [kind for kind in SYMMETRIES if kind in set(table["kind"])]
    matrix = table.pivot_table("share", "measure", "kind").loc[list(names), kinds].rename(index=names)
    drawn = dict(written="{:.2f}", width=WIDTH, height=0.33 * len(names) + 0.9, col_wrap=1)
    figure = heat_maps({"": matrix.round(2) + 0.0}, "share of what fine-tuning shows", **drawn)
    caption = (
        "What each measure reports of these changes of the pre-trained weights that change nothing that the encoder "
        "computes: mean over the layers, as a share of the same for fine-tuned models "
        f"({counted(changes['seed'].nunique(), 'draw')} each). 0 is right; above 1, nothing looks larger than "
        "fine-tuning."
    )
    seen = [f"{row} {column} {number(value)}" for (row, column), value in matrix.stack().items() if value >= 0.05]
    alt = f"Nearly all cells are 0. Others: {'; '.join(seen) or 'none'}."
    return Exhibit("known-truth-nothing", "Nothing", table, caption, alt, figure)


def table_of_noise(changes: pd.DataFrame) -> Exhibit | Absent:
    """Signal and noise between seeds."""
    table = scores.noise(changes)
    if table.empty:
        return Absent("known-truth-noise", "Noise", "it compares seeds and this run has one")
    columns = {
        "measure": ("measure", name),
        "task": ("task", title),
        "signal": ("signal", "{:.3g}"),
        "noise": ("noise", "{:.2g}"),
        "ratio": ("signal over noise", "{:.1f}"),
    }
    caption = (
        "Signal: the size of a measure after fine-tuning, averaged over seeds and layers. Noise: its standard "
        "deviation between seeds of one task at one layer, pooled over the layers. Both in the measure's own unit."
    )
    shown = table.sort_values("ratio", ascending=False)
    return Exhibit("known-truth-noise", "Noise", table, caption, shown=shown, columns=columns)


def learned_or_walked(changes: pd.DataFrame) -> Exhibit:
    """How well each measure tells models that learned from those that only moved."""
    table = scores.learning(changes)
    shown = table.drop_duplicates(["task", "measure", "walk"])
    names, looks = _measures(table), plots.looks_in_sequence(scores.WALKS)
    figure = plots.dots(
        shown, "area", "measure", names, "probability of being larger", "walk", looks, line=0.5, width=WIDTH
    )
    figure.axes[0].set_xlim(-0.04, 1.04)
    caption = (
        "The probability that a measure is larger at a layer of a fine-tuned model than at that layer of one that "
        "moved as far at random, or was trained on shuffled labels; mean over the layers "
        f"({models_in_words(changes[changes['dose'] == 1], FULL)}). Dashed: chance."
    )
    wide = shown.pivot_table("area", "measure", "walk")
    told = "; ".join(
        f"{header} " + ", ".join(f"{number(wide.loc[measure, walk])} ({words})" for walk, words in scores.WALKS.items())
        for measure, header in names.items()
    )
    return Exhibit("known-truth-learning", "Learned or moved", table, caption, f"Areas: {told}.", figure)


def planted(properties: pd.DataFrame) -> Exhibit | Absent:
    """What probes and geometry see of each property, by the property that was planted."""
    if properties.empty:
        return Absent("known-truth-planted", "Planted properties", "no property was planted in this run")
    table = properties.assign(gain=properties["after"] - properties["before"])
    of_labels = table["measure"] == "labels"
    table.loc[of_labels, "gain"] = np.log(table["after"] / table["before"])[of_labels]
    columns, matrices = list(dict.fromkeys(table["trained_on"])), {}
    probes = table[table["measure"].isin(["probe", "structure"])]
    for kind, rows in (("probes", probes), ("label distances", table[of_labels])):
        wide = rows.pivot_table("gain", "property", "trained_on", sort=False)[columns]
        matrices[kind] = (
            wide.reindex(list(dict.fromkeys(table["property"]))).rename(_property).rename(columns=_property)
        )
    most = max(np.nanmax(np.abs(matrix.to_numpy(dtype=float))) for matrix in matrices.values())
    drawn = dict(limits=(-most, most), signed=True, written="{:+.2f}", x_label="trained on", width=WIDTH + 1)
    figure = heat_maps(matrices, "change from the pre-trained encoder", **drawn)
    seeds = counted(table["seed"].nunique(), "seed")
    caption = (
        "One kind of annotation is asked for in training (columns), all are read (rows), mean over the layers and "
        f"{seeds}. Left, accuracy of a classifier probe, and of trees the rank correlation of a structural probe, "
        "after minus before; right, growth of the least distance between labels (natural logarithm). A lens that sees "
        "what was planted has large values on the diagonal alone."
    )
    told = "; ".join(
        f"{kind}, {row} after {column} {number(value)}"
        for kind, matrix in matrices.items()
        for (row, column), value in matrix.stack().dropna().items()
    )
    return Exhibit("known-truth-planted", "Planted properties", table, caption, f"Changes: {told}.", figure)


def _property(key: str) -> str:
    return PROPERTY.get(key, title(key))


def table_of_invariances() -> Exhibit:
    """What each measure is declared to ignore, of what it reads."""
    rows = [
        {"measure": measure.name, "lens": measure.lens}
        | {
            one: "–" if measure.invariances is None else "yes" if one in measure.invariances else "no"
            for one in INVARIANCES
        }
        for measure in MEASURES
    ]
    caption = (
        "What each measure ignores by its definition: changes of the model's features, where those of the encoder that "
        "it is compared with stay as they are. “–”: it reads no features."
    )
    return Exhibit("known-truth-invariances", "Declared invariances", pd.DataFrame(rows), caption)
