# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Loss landscapes (Hao et al., 2019)
#
# **The question.** Why does fine-tuning a pre-trained encoder work better than training the same
# network from scratch? {cite:t}`hao2019` compare their {term}`loss surfaces <loss surface>` on
# lines, on planes and along the steps of the optimiser.
#
# **The answer in numbers.** A positive number points in the paper's direction; ranges are over
# tasks. [The last section](#the-claims) has all claims; reproduced here:
# {glue:text}`claims_reproduced`.
# - `wider-optima`: {glue:text}`wider_optima_verdict` (share of a disc around the end with low
#   loss, fine-tuned minus from scratch: {glue:text}`wider_optima_value`).
# - `straighter`: {glue:text}`straighter_verdict` (degrees by which fine-tuning is nearer to its
#   final direction after a third of the steps: {glue:text}`straighter_value`).
# - `rollback`: {glue:text}`rollback_verdict` (accuracy lost with the middle layers rolled back,
#   minus that with the low ones: {glue:text}`rollback_value`).
#
# *You need* the {doc}`primer </primer>` and gradient descent. *Reading*: 20 minutes. *Running*: 2
# minutes on the toy world with two cores.

# %% tags=["parameters", "hide-input"]
profile = "tiny"  # tiny, small or paper: the files in notebooks/profiles
# Everything below is as the profile says unless it is given here.
encoder = None
source = None
tasks = None
seeds = None
schedules = None
learning_rate = None
learning_rate_by_encoder = None
batch_size = None
epochs = None
training_examples = None
precision = None
scratch_epochs = None
second = None
low = None
high = None
points = None
line_points = None
grid_examples = None
bfloat16 = None
followed = None
states = None
long_task = None
long_epochs = None
curvature_examples = None
grouped = None
device = None

# %% tags=["hide-input", "claim"]
from itertools import product

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from fivelenses.exhibits import Contours, Layout, curves, first_seed, printed, surfaces
from fivelenses.judging import CannotTest, crossed, estimate, over_seeds, title
from fivelenses.lenses.basin import Surface, area, half_widths, path, share_below
from fivelenses.records import INITS, Missing, select
from fivelenses.run import begin

run = begin(3, globals())
settings = run.settings

# %% [markdown]
# ## The setting
#
# Each task is trained from the pre-trained encoder and, for more epochs, from random weights; in
# the paper, BERT-large on MNLI, RTE, SST-2 and MRPC. Figures and tables have the paper's numbers.
# Lengths are in units of $\lVert \delta_1 \rVert$, how far each training moved its encoder.

# %% tags=["hide-input", "claim"]
models = run.measure("models")
from_scratch = models["encoder"].str.startswith("random:")
models = models.assign(init=from_scratch.map({True: "scratch", False: "pre-trained"}))
fewest = models.groupby(["task", "init", "seed"])["epochs"].transform("min")
models = models[models["epochs"] == fewest]  # without the long trainings
diverged = set(models.loc[models["diverged"], ["task", "seed"]].itertuples(index=False, name=None))
needs = [{(m.task, m.seed), (settings.second[m.task], m.seed)} for m in models.itertuples()]
models["left_out"] = [not diverged.isdisjoint(trainings) for trainings in needs]

# %% tags=["hide-input"]
left_out = models[models["left_out"]].drop_duplicates(["task", "seed"])
names = ", ".join(f"{title(row.task)} (seed {row.seed})" for row in left_out.itertuples())
columns = ["seed", "examples", "epochs", "steps", "metric", "score"]
run.table(
    "Models",
    models.sort_values(["task", "init"], kind="stable"),
    "The models, and their scores on all development examples beside the null rate, that of the "
    "most frequent label (0 for a correlation)."
    + " Left out of all that follows, because one of its trainings diverged or one of the task "
    f"that gives its second direction: {names}." * bool(names),
    columns={"task": "task", "init": "start"}
    | {one: one for one in columns}
    | {"null_rate": "null rate", "diverged": "diverged"},
    formats={"task": title, "examples": "{:,}", "epochs": "{:g}"}
    | {"diverged": {True: "yes", False: "no"}.get, "score": "{:.3f}", "null_rate": "{:.3f}"},
)

# %% tags=["hide-input", "claim"]
# Table 1, page 9: accuracy (%), fine-tuned and with the low, middle and high third rolled back.
PAPER_TABLE_1 = {
    "mnli": (86.54, 86.73, 84.71, 32.85),
    "rte": (75.45, 73.29, 70.04, 47.29),
    "sst2": (94.04, 93.69, 93.12, 59.29),
    "mrpc": (90.20, 87.99, 80.15, 78.17),
}
GROUPS = ("low", "middle", "high")

# %% tags=["hide-input"]
scores = run.measure("by_example", of=settings.ordinary_models, each=("task", "seed"))
words = run.measure("words_by_example", over=settings.training_sets)
null = models.groupby("task")["null_rate"].first()
papers = [task for task in null.index if task in PAPER_TABLE_1]
gains = {task: round(PAPER_TABLE_1[task][0] / 100 - float(null[task]), 6) for task in papers}
run.gate(models[models["init"] == "pre-trained"], scores, gains, words)

# %% [markdown]
# Training leads from $\theta_0$ to $\theta_1$, by $\delta_1 = \theta_1 - \theta_0$, and from the
# same start on another task by $\delta_2$. The paper draws the loss $\mathcal{J}$ on a line and on
# a plane:
#
# $$f(\alpha) = \mathcal{J}(\theta_0 + \alpha \delta_1), \qquad
# f(\alpha, \beta) = \mathcal{J}\Bigl(\theta_0 + \alpha \delta_1
# + \beta \frac{\lVert \delta_1 \rVert}{\lVert \delta_2 \rVert} \delta_2\Bigr).$$
#
# The line for a logistic regression with two weights, and how far beyond its end the loss has
# risen by a tenth of a nat:

# %% tags=["method"]
import fivelenses.lenses.basin

chance = np.random.default_rng(0)
y = np.repeat([1.0, -1.0], 25)
x = chance.normal(size=(50, 2)) + y[:, None]
start, end = np.zeros(2), np.array([2.0, 1.0])
alphas = np.linspace(-1, 5, 61).round(9)
losses = np.array([np.logaddexp(0, -y * (x @ (start + a * (end - start)))).mean() for a in alphas])
beyond = alphas >= 1
level = losses[alphas == 1][0] + 0.1
outer = int(np.flatnonzero(losses[beyond] > level)[0])  # the first grid point above the level
inside, outside = losses[beyond][outer - 1 : outer + 1]
by_hand = 0.1 * (outer - 1 + (level - inside) / (outside - inside))
library = fivelenses.lenses.basin.half_widths(alphas, losses, at=1, rise=0.1)[1]
{"by hand": round(float(by_hand), 6), "library": round(library, 6)}

# %% [markdown]
# Encoder and embeddings move; the head stays, with the pooler, BERT's extra layer on [CLS].
# $\mathcal{J}$ is the mean over one random subset of the examples, without dropout.

# %% tags=["hide-input", "claim"]
RISE, HALF = 0.1, 0.5  # nats above the end; of the drop from start to end
RADII = (1, 2, 3)  # of discs around the end; the paper's grid holds no larger one
NEAR = 1.5  # lengths from the middle of the way, on both axes
START, END, BACK = 0.0, 1.0, -1.0  # on the first axis
MODEL, GROUP = ["task", "init", "seed"], ["task", "seed", "group"]
NAMES = {"scratch": "from scratch", "pre-trained": "fine-tuned"}


def merged(tables, on):
    """Tables side by side; where a run does not have one of them, the whole is missing."""
    lacking = [table for table in tables if isinstance(table, Missing)]
    whole = lacking[0] if lacking else tables[0]
    for table in () if lacking else tables[1:]:
        whole = whole.merge(table, on=on)
    return whole


def of_each(table, by, read):
    """One row for each model and fold: what is read from its rows."""
    if not len(table):
        return table
    groups = table.groupby(by, sort=False)
    return pd.DataFrame([dict(zip(by, key, strict=True)) | read(rows) for key, rows in groups])


# %% tags=["hide-input", "claim"]
def as_surface(cells, value="loss"):
    """The cells of one surface as a surface of the lens."""
    grid = cells.set_index(["beta", "alpha"])[value].unstack()
    return Surface(grid.columns.to_numpy(), grid.index.to_numpy(), grid.to_numpy(float))


def width(positions, losses, at, rise):
    """How wide a basin is on a line, and whether the loss exceeds its rim on both sides, or the
    basin goes on beyond the grid. NaN where the point has no finite loss, or there is no rise.
    """
    if not (np.isfinite(losses[positions == at]).all() and rise > 0):
        return np.nan, False
    sides = half_widths(positions, losses, at, rise)
    within = np.minimum(sides, (at - positions[0], positions[-1] - at))
    return float(within.sum()), bool(np.isfinite(sides).all())


# %% tags=["hide-input", "claim"]
def basin_in_numbers(cells):
    """Losses at start and end, the width along the second direction at `RISE`, and the shares of
    discs around the end that lie below `RISE`, and below half of the drop.
    """
    surface, axis = as_surface(cells), cells[cells["beta"] == 0].set_index("alpha")["loss"]
    row = {"examples": cells["examples"].min(), "start_loss": axis[START], "end_loss": axis[END]}
    row["drop"] = row["start_loss"] - row["end_loss"]
    across = surface.losses[:, surface.alphas == END].ravel()
    row["second_width"], row["second_width_whole"] = width(surface.betas, across, 0.0, RISE)
    for name, rise in (("share", RISE), ("half_share", HALF * row["drop"])):
        for radius in RADII:
            has_basin = np.isfinite(row["end_loss"]) and rise > 0
            share = share_below(surface, (END, 0.0), float(rise), radius) if has_basin else np.nan
            row[f"{name}_{radius}"] = share
    return row


def rank_correlation(one, other):
    """Spearman's, over what is finite in both; NaN where one is constant."""
    columns = pd.DataFrame({"one": np.ravel(one), "other": np.ravel(other)})
    return columns.corr("spearman").loc["one", "other"]


# %% tags=["hide-input", "claim"]
def agreement(cells):
    """The rank correlation of training loss and development error over all cells, and over those
    near the way from start to end: far away both lie on plateaus where chance orders them. NaN
    where one of the two is constant.
    """
    of_split = dict(list(cells.groupby("split")))
    training, development = as_surface(of_split["train"]), of_split["validation"]
    development = as_surface(development, "error")
    along, across = np.abs(training.alphas - 0.5) <= NEAR, np.abs(training.betas) <= NEAR
    near = np.ix_(across, along)
    return {
        "examples": cells["examples"].min(),
        "correlation": rank_correlation(training.losses, development.losses),
        "near_correlation": rank_correlation(training.losses[near], development.losses[near]),
    }


def line_in_numbers(line):
    """The largest rise from start to end on a line, at so many steps, and widths around the end."""
    line = line.sort_values("alpha")
    positions, losses = line["alpha"].to_numpy(), line["loss"].to_numpy(float)
    way, steps = path(positions, losses), ((positions > START) & (positions <= END)).sum()
    row = {"examples": line["examples"].min(), "falling": way.falling, "climb": way.climb}
    row["steps"] = int(steps)
    for name, rise in (("width", RISE), ("half_width", HALF * line["drop"].iloc[0])):
        row[name], row[f"{name}_whole"] = width(positions, losses, END, float(rise))
    return row


# %% tags=["hide-input", "claim"]
each_model = {"init": INITS, "task": settings.tasks, "seed": settings.seeds}
landscapes = run.measure("landscapes", over=each_model, grid=settings.grid())
cells = landscapes["surfaces"]
basins = of_each(cells.query("split == 'train'"), [*MODEL, "fold"], basin_in_numbers)
agreements = of_each(cells, [*MODEL, "fold"], agreement)
lines = landscapes["lines"].merge(basins[[*MODEL, "fold", "drop"]], on=[*MODEL, "fold"])
lines = of_each(lines, [*MODEL, "fold", "direction", "control"], line_in_numbers)
ends = landscapes["ends"].query("split == 'train'")
ends = ends.merge(landscapes["models"][[*MODEL, "null_loss"]], on=MODEL)
ends = ends.assign(below=ends["null_loss"] - ends["loss"])

# %% [markdown]
# A claim about an optimum takes a task only where both models reached one, a tenth of a nat below
# the entropy of the labels. A width cut by the edge of the grid bounds a difference on one side.

# %% tags=["hide-input", "claim"]
RANDOM_PLANE = "it would take as long as all surfaces; the claim on curves has a random line"


def by_task(rows, columns, parts):
    """For each task the intervals of parts, functions of one seed's rows; or why it has none."""
    groups = {}
    for task, of_task in rows.groupby("task", sort=False):
        finite = np.isfinite(of_task[columns].to_numpy(float)).all()
        why = f"on {title(task)} a measure is not finite: its loss does not fall, or overflows"
        groups[task] = estimate(of_task, parts) if finite else why
    return groups


def fine_tuned_minus_scratch(rows, column):
    """A column's value for the fine-tuned model minus that from scratch, in one seed's rows."""
    values = rows.set_index("init")[column]
    return values["pre-trained"] - values["scratch"]


def bounded(interval, rows, whole, names, more, less):
    """A difference whose end is open where an extent of one side goes on beyond the grid."""
    reached = rows.groupby(names)[whole].all()
    interval = interval if reached[more] else interval.at_least()
    return interval if reached[less] else interval.at_most()


# %% tags=["hide-input", "claim"]
def without_optimum(ends):
    """Why a task has no two optima to compare, by task."""
    reasons = {}
    for (task, init), rows in ends.groupby(["task", "init"], sort=False):
        below = estimate(rows, lambda of_model: of_model["below"].iloc[0])
        if not below.low > RISE + 1e-12:
            reach = ", ".join(printed(end, ".3f") for end in below.bounds())
            reasons[task] = (
                f"the model {NAMES[init]} of {title(task)} has no optimum: it ends "
                f"{printed(below.estimate, '.3f')} [{reach}] nats below the entropy of the labels, "
                f"not clearly above {RISE:g}"
            )
    return reasons


# %% [markdown]
# ## Basins and paths
#
# A wide {term}`basin` tolerates small changes of the parameters.
#
# :::{admonition} Predict, then look
# :class: tip
# Around which end is the basin larger, in lengths of its own $\delta_1$?
#
# - **a** Around the fine-tuned one: pre-training led to a flat region.
# - **b** Around the one from scratch: it trains for more epochs and ends deeper.
# - **c** Around neither, in this unit.
# :::

# %% tags=["hide-cell"] mystnb={"code_prompt_show": "I have made my choice: show the figure"}
WAY, LOSS = {"start": (START, 0.0), "end": (END, 0.0)}, "training loss (nats)"


def by_model(table):
    """With a panel for each task's model from scratch and, beside it, for its fine-tuned one."""
    models_of = zip(table["task"], table["init"], strict=True)
    table = table.assign(panel=[f"{title(task)}, {NAMES[init]}" for task, init in models_of])
    return table.sort_values(["task", "init"], ascending=[True, False], kind="stable")


training = by_model(select(cells).query("split == 'train'"))
planes, seeds = first_seed(training)
contours = Contours(WAY, rims={"end": RISE}, turnable=True)
drawing = surfaces(planes, "loss", "panel", label=LOSS, table=training, contours=contours)
grids = planes.groupby("panel", sort=False)
for axes, (_, plane) in zip(drawing.figure.axes if len(planes) else (), grids, strict=False):
    axes.add_patch(plt.Circle((END, 0), RADII[-1], fill=False, color="white"))
    grid = plane.pivot(index="beta", columns="alpha", values="loss")
    level = grid.at[0.0, END] + HALF * (grid.at[0.0, START] - grid.at[0.0, END])
    axes.contour(grid.columns, grid.index, grid, [level], colors="white", linewidths=1.6)
run.figure(
    "Figure 1",
    drawing,
    "Training loss on the plane of the task's direction (start (0, 0), end (1, 0)) and its second "
    f"task's, both in lengths of δ₁; each cell is a mean over {planes['examples'].max():,} "
    "examples. All panels share the shades, in equal ratios, with contours no closer than the "
    f"standard error of a cell. Circle: a disc of radius {RADII[-1]} around the end. Thick line: "
    f"half of the drop from start to end; dashed: {RISE:g} nats above the end.{seeds}",
)


# %% tags=["hide-cell", "claim"] mystnb={"code_prompt_show": "Show what the paper claims"}
@run.claim(
    "wider-optima",
    says="Fine-tuning ends in wider optima than training from scratch.",
    place="section 5.1, Figure 1",
    exhibits=("Figure 1", "Measures"),
    record={"basins": basins, "ends": ends},
    unit="of a disc",
    per="task",
    no_twin=RANDOM_PLANE,
    variants={f"radius {radius}": {"most": radius} for radius in RADII[:-1]}
    | {f"{RISE:g} nats above the end": {"level": "share"}},
)
def wider_optima(tables, level="half_share", most=RADII[-1]):
    """Share of a disc of radius 3 around the end in which the training loss is at most half of the
    drop from start to end above that of the end, fine-tuned minus scratch; radii are lengths of
    each model's own direction, and smaller where the grid does not hold the disc; only where both
    training losses end clearly more than 0.1 nats below the entropy of the labels.
    """
    columns = [f"{level}_{radius}" for radius in RADII if radius <= most]
    column = ([one for one in columns if tables["basins"][one].notna().any()] or columns)[-1]

    def wider(of_seed):
        return {"wider at half of the drop": fine_tuned_minus_scratch(of_seed, column)}

    return by_task(tables["basins"], [column], wider) | without_optimum(tables["ends"])


# %% [markdown]
# *Your prediction*: a is right where `wider-optima` is reproduced, b where it is contradicted.
# In this run: {glue:text}`wider_optima_verdict`.

# %% tags=["hide-input", "claim"]
histories = run.measure("histories")[["address", "steps", "step", "loss"]]
learning = models[~models["left_out"]][["init", "task", "seed", "epochs", "address"]]
learning = merged([learning, histories], on=["address"])
learning["epoch"] = learning["step"] * (learning["epochs"] / learning["steps"])

# %% tags=["hide-input"]
shown = learning.assign(start=learning["init"].map(NAMES)).sort_values("init", kind="stable")
shown = shown[["task", "init", "start", "seed", "step", "epoch", "loss"]]
layout = Layout(panels="task", dashes="start", height=2.8)
run.figure(
    "Figure 2",
    curves(shown, "loss", by="task", x="step", y_label=LOSS, layout=layout),
    "Training loss as the optimiser measures it, with dropout (mean and range over seeds).",
)


# %% tags=["hide-input", "claim"]
STEPS = 40  # from start to end, at least: between fewer points an obstacle is stepped over


def mean_loss(of_model, until):
    """The mean training loss up to a step; each value is a mean over the steps since the last."""
    of_model = of_model.sort_values("step")
    before = of_model["step"].shift(fill_value=0)
    lengths = (of_model["step"].clip(upper=until) - before).clip(lower=0)
    return float(np.average(of_model["loss"], weights=lengths))


def lower_on_the_way(learning):
    """Mean training loss over the steps of fine-tuning, from scratch minus fine-tuned."""
    gaps = []
    for _, of_seed in learning.groupby("seed"):
        of_init = dict(list(of_seed.groupby("init")))
        until = of_init["pre-trained"]["step"].max()
        gaps.append(mean_loss(of_init["scratch"], until) - mean_loss(of_init["pre-trained"], until))
    return over_seeds(gaps)


# %% tags=["hide-input", "claim"]
@run.claim(
    "easier",
    says="Fine-tuning converges faster than training from scratch, ends lower, even with fewer "
    "epochs, and has the smoother straight line from start to end.",
    place="sections 5.1 and 5.2, Figures 1 and 2",
    exhibits=("Figure 2", "Measures"),
    record={"ends": ends, "lines": lines, "learning": learning},
    above={"smoother": RISE},
    because={
        "smoother": "0.1 nats, at which a basin ends: less is no obstacle. A line of fewer than 40 "
        "steps can step over one, so that no interval has an end there"
    },
    unit="nats",
    per="task",
    no_twin="what moved at random was not trained: it has no curve of training and no end",
)
def easier(tables):
    """From scratch minus fine-tuned, in nats: mean training loss over the steps of fine-tuning;
    loss at the end on all training examples; largest rise of the loss on the straight line from
    start to end, which a line of fewer than 40 steps does not show.
    """
    lower = by_task(tables["ends"], ["loss"], lambda rows: -fine_tuned_minus_scratch(rows, "loss"))
    lines, groups = tables["lines"], {}
    smoother = by_task(lines, ["climb"], lambda rows: -fine_tuned_minus_scratch(rows, "climb"))
    least = lines.groupby("task")["steps"].min()
    for task in lower:
        parts = {"lower at the end": lower[task], "smoother": smoother[task]}
        reasons = [one for one in parts.values() if isinstance(one, str)]
        if not reasons and least[task] < STEPS:
            parts["smoother"] = parts["smoother"].at_least().at_most()
        of_seeds = lower_on_the_way(tables["learning"].query("task == @task"))
        groups[task] = reasons[0] if reasons else {"lower on the way": of_seeds} | parts
    return groups


# %% [markdown]
# The paper draws a state $\theta^i$ of the training, with $\delta^i = \theta^i - \theta_0$, at
# $(d^\alpha, d^\beta)$; $v_{\cos}$ is the cosine of its angle to the final direction:
#
# $$v_{\cos} =
# \frac{\langle \delta^i, \delta_1 \rangle}{\lVert \delta^i \rVert \lVert \delta_1 \rVert},
# \qquad d^\alpha = \frac{\langle \delta^i, \delta_1 \rangle}{\lVert \delta_1 \rVert^2}, \qquad
# d^\beta = \sqrt{\frac{\lVert \delta^i \rVert^2}{\lVert \delta_1 \rVert^2} - (d^\alpha)^2}.$$
#
# $d^\beta$ is a distance without a sign, so we also draw the nearest point of the plane. A random
# walk turns towards its end, too: its steps are nearly orthogonal, so after a share $s$ of their
# summed squared lengths it is at $\alpha = s$, $\beta = \sqrt{s - s^2}$.

# %% tags=["hide-input", "claim"]
paths = run.measure("trajectories", over={"task": settings.followed, "seed": settings.seeds})

# %% tags=["hide-input"]
states, seeds = first_seed(by_model(paths))
trained = states.query("control == ''")
held = trained[trained["share"] < 1].groupby("init")["in_plane"].median()
there = planes[planes["task"].isin(list(states["task"]))]
contours = Contours(WAY, paths=states, inset=trained)
run.figure(
    "Figure 3",
    surfaces(there, "loss", "panel", label=LOSS, table=paths, contours=contours),
    "Trajectories on the surfaces of Figure 1, enlarged in the corner: the paper's coordinates, "
    f"and the nearest point of the plane, which holds {held['scratch']:.0%} of the squared "
    f"displacement from scratch, {held['pre-trained']:.0%} fine-tuned (medians over states). Grey: "
    f"a random walk with equal steps.{seeds}",
)


# %% tags=["hide-input", "claim"]
@run.claim(
    "straighter",
    says="Fine-tuning stays near its final direction; from scratch, the first epochs point "
    "elsewhere.",
    place="section 5.2, Figure 3",
    exhibits=("Figure 3",),
    record=paths,
    unit="degrees",
    per="task",
)
def straighter(paths):
    """Angle between the way so far and the final direction after a third of the steps of each
    training, from scratch minus fine-tuned, degrees; as a control, random walks whose steps have
    the same lengths.
    """
    groups = {}
    for task, of_task in paths[paths["step"] > 0].sort_values("share").groupby("task"):
        ways = of_task.groupby(["seed", "init"])[["share", "angle"]]
        angles = ways.apply(lambda way: np.interp(1 / 3, way["share"], way["angle"], left=np.nan))
        angles = angles.unstack("init")
        nearer = angles["scratch"] - angles["pre-trained"]
        why = f"no state of {title(task)} was saved in a third of the steps: raise `states`"
        finite = np.isfinite(nearer).all()
        groups[task] = {"nearer to the final direction": over_seeds(nearer)} if finite else why
    return groups


# %% [markdown]
# What if training goes on? The paper continues five epochs by twenty more; we do so at a tenth of
# the rate, of which it says nothing. A separate training has as many epochs from the start.

# %% tags=["hide-input", "claim"]
seeds = settings.seeds if settings.long_task in settings.tasks else ()
longer = run.measure("long_training", over={"seed": seeds}, grid=settings.grid())
if "training" not in longer:  # a record that has the separate training alone
    longer = longer.assign(training="separate")

# %% tags=["hide-input"]
long = select(longer).assign(panel=title(settings.long_task))
plane, seeds = first_seed(long.query("kind == 'cell'"))
shown = next(iter(plane["training"]), "")
states = first_seed(long.query("kind == 'state' and training == @shown"))[0].assign(control="")
first = long.query("kind == 'between' and training == @shown")["epoch"].min()
REFERENCES = {"continued": "end of the first part", "separate": "end of the shorter training"}
marks = {"start": WAY["start"], REFERENCES.get(shown, "end"): WAY["end"]}
later, error = states[states["epoch"] >= first], "development error"
contours = Contours(marks, paths=states, inset=later)
run.figure(
    "Figure 4",
    surfaces(plane, "error", "panel", label=error, table=long, contours=contours),
    f"The {shown} training of {title(settings.long_task)} on the surface of the development error "
    f"({plane['examples'].max():,.0f} examples), whose first direction leads to the "
    f"{REFERENCES.get(shown)}; in the corner, the states from epoch {first:g} on.{seeds}",
)
axes = dict(x="epoch", y_label="development error", layout=Layout(height=2.8))
run.figure(
    "Errors",
    curves(long.query("kind == 'state'"), "error", by="training", **axes),
    "Development error along long trainings (mean and range over seeds).",
)


# %% tags=["hide-input", "claim"]
@run.claim(
    "robust-overfitting",
    says="Many more epochs do not raise the development error much, and end in the same region of "
    "low error.",
    place="section 5.3, Figure 4",
    exhibits=("Figure 4",),
    record=longer,
    above=dict.fromkeys(("error kept", "no barrier"), -0.02),
    because="two points: the paper says that the error does not increase dramatically and prints "
    "no number",
    unit="of the development examples",
    per="task",
)
def robust_overfitting(longer):
    """Development error of a model after a few epochs, whose rate has fallen to a tenth, minus that
    after many more at that rate, and the higher of the two minus the highest on the straight line
    between; as a control, as far in a random direction.
    """
    between = longer.query("kind == 'between' and training == 'continued'").sort_values("share")
    if between.empty:
        raise CannotTest("this run has no training that was continued, only a separate one as long")

    def errors_of(way):
        errors = way["error"].to_numpy()
        barrier = errors.max() - errors[[0, -1]].max()
        return {"error kept": errors[0] - errors[-1], "no barrier": -barrier}

    groups = {task: estimate(rows, errors_of) for task, rows in between.groupby("task", sort=False)}
    for parts in groups.values():
        for name, highest in (("error kept", 1), ("no barrier", 0)):
            parts[name] = parts[name].cut(-1, highest)
    return groups


# %% [markdown]
# ## Generalisation
#
# A basin that looks wide along $\delta_1$ may be wide in every direction, so Figure 5 also leaves
# the end in a random one.

# %% tags=["hide-input"]
LEAST_FALL = 0.01  # nats; the loss of a model that learned nothing has no shape to be scaled
along = landscapes["lines"].query("fold == -1").drop(columns="fold")
optimisation = along[along["direction"] == "optimisation"]
least = optimisation.groupby(MODEL)["loss"].min().rename("least")
unit = optimisation[optimisation["alpha"] == START].set_index(MODEL)["loss"] - least
along = along.join(least, on=MODEL).join(unit.where(unit >= LEAST_FALL).rename("unit"), on=MODEL)
along["height"] = (along["loss"] - along["least"]) / along["unit"]
along["line"] = along["task"].where(along["direction"] == "optimisation", "random direction")
along = along.assign(start=along["init"].map(NAMES)).sort_values(["task", "init"], kind="stable")
flat = along[along["unit"].isna()].drop_duplicates(["task", "init"])
flat = ", ".join(f"{title(row.task)} {NAMES[row.init]}" for row in flat.itertuples())
missing = f"falls by less than {LEAST_FALL} nats"
layout = Layout(panels="task", dashes="start", shared=True, height=2.8, missing=missing)
axes = dict(x="alpha", x_label="α, along δ₁", y_label="loss (start: 1)", layout=layout)
drawing = curves(along, "height", by="line", **axes)
# In a random direction the loss can fall below the least of the line.
drawing.figure.axes[0].set_ylim(1.05 * min(0.0, along["height"].min()), 2)
run.figure(
    "Figure 5",
    drawing,
    "Training loss from start (0) to end (1), its least value scaled to 0 and its start to 1 "
    "(mean and range over seeds; cut off above 2). In the random direction, as long, rows have "
    "the weights' lengths." + f" Not drawn, since the loss {missing}: {flat}." * bool(flat),
)


# %% tags=["hide-input", "claim"]
@run.claim(
    "sharper-from-scratch",
    says="On curves with normalised axes, the optima of training from scratch are sharper than "
    "those of fine-tuning.",
    place="section 6.1, Figure 5",
    exhibits=("Figure 5",),
    record={"lines": lines, "ends": ends},
    unit="lengths of its direction",
    per="task",
)
def sharper_from_scratch(tables):
    """Width of the basin around the end at half of the drop from start to end along the direction
    between them, fine-tuned minus scratch, each in lengths of its own direction; as a control, a
    random direction of that length; only where both models reached an optimum, as for
    wider-optima.
    """
    lines, width = tables["lines"], "half_width"
    groups = by_task(lines, [width], lambda rows: fine_tuned_minus_scratch(rows, width))
    for task, rows in lines.groupby("task"):
        if not isinstance(groups[task], str):
            which = "half_width_whole", "init", "pre-trained", "scratch"
            groups[task] = {"width at half of the drop": bounded(groups[task], rows, *which)}
    return groups | without_optimum(tables["ends"])


# %% tags=["hide-input"]
development = by_model(select(cells).query("split == 'validation'"))
drawn, seeds = first_seed(development)
spread = drawn["error_standard_error"].median()
look = dict(label="development error", table=development, contours=Contours(WAY))
run.figure(
    "Figure 6",
    surfaces(drawn, "error", "panel", **look),
    "Development error on the planes of Figure 1 (means over "
    f"{drawn['examples'].max():,} examples; their standard error is {spread:.3f}).{seeds}",
)


# %% tags=["hide-input", "claim"]
ON_GRID = {"the whole grid": {"measure": "correlation"}}


@run.claim(
    "error-follows-loss",
    says="The surface of the development error agrees with that of the training loss, more so for "
    "fine-tuning than from scratch.",
    place="section 6.2, Figures 1 and 6",
    exhibits=("Figure 6", "Measures"),
    record=agreements,
    above={"agreement": 0.5},
    because={"agreement": "half of perfect: below it, a lower loss says little of the error"},
    unit="rank correlation",
    per="task",
    no_twin=RANDOM_PLANE,
    variants=ON_GRID,
)
def error_follows_loss(rows, measure="near_correlation"):
    """Rank correlation of the two surfaces over the cells near the way from start to end, for the
    fine-tuned model, and fine-tuned minus scratch.
    """

    def agreements_of(of_seed):
        fine_tuned = of_seed.set_index("init")[measure]["pre-trained"]
        more = fine_tuned_minus_scratch(of_seed, measure)
        return {"agreement": fine_tuned, "more than from scratch": more}

    groups = by_task(rows, [measure], agreements_of)
    for parts in groups.values():
        for most, name in enumerate(() if isinstance(parts, str) else parts, start=1):
            parts[name] = parts[name].cut(-most, most)
    return groups


# %% tags=["hide-input", "claim"]
@run.claim(
    "scratch-needs-data",
    says="From scratch, the surfaces of error and loss agree more on large data sets than on small "
    "ones.",
    place="section 6.2, Figure 6",
    exhibits=("Figure 6", "Measures"),
    record={"agreements": agreements, "models": landscapes["models"]},
    unit="rank correlation",
    per="pair of tasks",
    no_twin=RANDOM_PLANE,
    variants=ON_GRID,
)
def scratch_needs_data(tables, measure="near_correlation"):
    """Rank correlation of the two surfaces from scratch over the cells near the way from start to
    end, on a task with at least 10 times as many training examples minus on the other.
    """
    # MNLI and SST-2 have 18 to 158 times as many training examples as MRPC and RTE.
    sizes, groups = tables["models"].groupby("task", sort=False)["examples"].max(), {}
    both = product(sizes.index, repeat=2)
    pairs = [(large, small) for large, small in both if sizes[large] >= 10 * sizes[small]]
    if not pairs:
        raise CannotTest("no task of this run has 10 times as many training examples as another")
    from_scratch = tables["agreements"].query("init == 'scratch'")
    of_task = by_task(from_scratch, [measure], lambda rows: rows[measure].iloc[0])
    for pair in pairs:
        name, (large, small) = " against ".join(map(title, pair)), (of_task[task] for task in pair)
        constant = isinstance(large, str) or isinstance(small, str)
        same = f"the error is the same in all cells of a surface of {name}"
        groups[name, *pair] = same if constant else {"more with more data": large - small}
    return groups


# %% [markdown]
# The pictures in numbers:


# %% tags=["hide-input"]
def marked(table, extents):
    """With a mark for each extent that reaches the edge of the grid: it is at least this."""
    marks = {}
    for name, whole in extents.items():
        cut = table[name].notna() & ~table[whole].astype(bool)
        marks[f"{name}_mark"] = cut.map({True: "≥\u202f", False: ""})
    return table.assign(**marks)


whole = select(lines.assign(control=""))  # both directions
at_random = whole[whole["direction"] == "random"].add_prefix("random_")
at_random = at_random.rename(columns={f"random_{name}": name for name in MODEL})
on_way = whole[whole["direction"] == "optimisation"].drop(columns=["direction", "examples"])
at_end = select(cells).query("split == 'validation' and alpha == @END and beta == 0")
measures = merged(
    [
        landscapes["models"],
        on_way,
        at_random[[*MODEL, "random_width", "random_width_whole"]],
        select(basins).drop(columns="examples"),
        select(agreements).drop(columns="examples"),
        select(ends)[[*MODEL, "loss"]].rename(columns={"loss": "train_loss"}),
        at_end[[*MODEL, "error"]],
    ],
    on=MODEL,
)
measures = measures.sort_values("task", kind="stable")

# %% tags=["hide-input"]
columns = {"task": "task", "init": "start", "seed": "seed", "train_loss": "loss, end"}
columns |= {"width": "width along δ₁", "second_width": "along δ₂", "random_width": "random"}
columns |= {"half_width": "along δ₁, at half", "half_share_1": "share of discs", "norm": "‖δ₁‖"}
columns |= {"sharpness": "sharpness", "correlation": "ρ", "near_correlation": "ρ, near"}
extents = [name for name in columns if "width" in name]
measures = marked(measures, {name: f"{name}_whole" for name in extents})
formats = {name: f"{{{name}_mark}}{{{name}:.2f}}" for name in extents}
formats["half_share_1"] = " ".join(f"{{half_share_{radius}:.2f}}" for radius in RADII)
formats |= {"task": title, "norm": "{norm:.2f} ({relative_norm:.1%})"}
formats |= dict.fromkeys(("train_loss", "correlation", "near_correlation"), "{:.2f}")
formats["sharpness"] = "{sharpness:.3f} ± {sharpness_standard_error:.3f}"
run.table(
    "Measures",
    measures,
    f"Widths of the basin {RISE:g} nats above the end, and at half of the drop from start to end, "
    "in lengths of δ₁ (≥: it reaches the edge of the grid); random: in a random direction as "
    "long. Shares: how much of a disc of radius 1, 2 and 3 around the end lies below half of the "
    "drop (–: it leaves the grid). The loss at the end is of all training examples. ‖δ₁‖: also as "
    "a share of the start's length. Sharpness: mean rise (nats) when each filter (a row of a "
    "weight matrix) moves at random by a tenth of its length. ρ: rank correlation of training "
    f"loss and development error over the cells; near: over those at most {NEAR:g} lengths from "
    "(½, 0) on both axes.",
    columns=columns,
    formats=formats,
)

# %% [markdown]
# A width depends on a direction and its length, the {term}`Hessian` on the scale of weights alone.
# Its largest eigenvalue is the greatest curvature in any direction, its trace the sum over all.

# %% tags=["hide-input"]
curved = settings.curvature_examples or settings.grid_examples
curvatures = run.measure("end_curvature", over=each_model, grid_examples=curved)
whole = curvatures.query("group == 'all'").drop(columns=["group", "examples"])
for name in ("top", "trace"):
    whole = whole.assign(**{f"{name}_in_lengths": whole[name] * whole["norm"] * whole["norm"]})
thirds = curvatures.query("group != 'all'").pivot(index=MODEL, columns="group", values="top")
widths = measures[[*MODEL, "width", "width_whole", "width_mark", "sharpness"]]
table = merged(
    [widths, whole.drop(columns="norm"), thirds.add_prefix("top_").reset_index()], on=MODEL
)
table = table.sort_values(MODEL, ascending=[True, False, True])
compared = {"sharpness": "sharpness", "top_in_lengths": "λ₁ ‖δ₁‖²", "top": "λ₁"}
words = [
    f"{printed(rank_correlation(table['width'], table[one]), '+.2f')} with {symbol}"
    for one, symbol in compared.items()
    if len(table) >= 3 and table[["width", one]].nunique().min() > 1
]
agreement = f"Rank correlation of the width over {len(table)} models: {', '.join(words)}"
agreement += "; −1 if wide basins are always flat."


# %% tags=["hide-input"]
def eigenvalue(value):
    return printed(value, ",.0f" if abs(value) >= 100 else ".3g")


tops = {f"top_{group}": f"λ₁, {group}" for group in GROUPS}
run.table(
    "Width and curvature",
    table,
    f"The width of the basin along δ₁ at {RISE:g} nats, in lengths of δ₁ (≥: it reaches the edge "
    "of the grid), and the sharpness of the table above; the largest eigenvalue λ₁ and the trace "
    f"of the Hessian of the training loss at the end ({curvatures['examples'].max():,} examples; "
    "nats per squared unit of the parameters; the trace ± its standard error over draws); λ₁ in "
    "squared lengths of δ₁; and λ₁ of the low, middle and high third of the layers. "
    + (agreement if words else "Too few models for a rank correlation."),
    columns={"task": "task", "init": "start", "seed": "seed", "width": "width along δ₁"}
    | {"sharpness": "sharpness", "top": "λ₁", "trace": "trace", "top_in_lengths": "λ₁ ‖δ₁‖²"}
    | tops,
    formats={"task": title, "width": "{width_mark}{width:.2f}", "sharpness": "{:.3f}"}
    | {"trace": "{trace:,.0f} ± {trace_standard_error:,.0f}", "top_in_lengths": "{:,.0f}"}
    | dict.fromkeys(("top", *tops), eigenvalue),
    key="curvature",
)

# %% [markdown]
# ## Rolling back a third of the layers
#
# Now only a third $G$ of the layers moves, around the fine-tuned model: $f(\alpha, \beta) =
# \mathcal{J}(\theta_1 + \alpha \delta_1^G + \beta \delta_2^G)$, where $\delta^G$ is $\delta$ in the
# layers of $G$ and 0 elsewhere. At $(-1, 0)$ this third is {term}`rolled back`.

# %% tags=["hide-input", "claim"]
each_third = {"task": settings.grouped, "seed": settings.seeds}
moved = run.measure("group_surfaces", over=each_third, grid=settings.grid())


def way_in_numbers(line):
    """From the fine-tuned model towards the rolled-back third and beyond: how far the training loss
    stays within `RISE`, whether it then exceeds it, and its rise at the rolled-back third.
    """
    line = line.sort_values("alpha")
    positions, losses = line["alpha"].to_numpy(), line["loss"].to_numpy(float)
    here, back = (losses[positions == place][0] for place in (START, BACK))
    side = half_widths(positions, losses, START, RISE)[0] if np.isfinite(here) else np.nan
    cut = START - positions[0] if np.isinf(side) else side
    row = {"examples": line["examples"].min(), "side": cut, "side_whole": bool(np.isfinite(side))}
    return row | {"rise": back - here}


on_axis = of_each(moved[moved["beta"] == 0], [*GROUP, "fold", "control"], way_in_numbers)
gained = basins.query("init == 'pre-trained'")[["task", "seed", "fold", "drop"]]
gained = gained.assign(drop=gained["drop"].where(gained["drop"] > 0))
of_groups = merged([on_axis, gained], on=["task", "seed", "fold"])
of_groups = of_groups.assign(share=of_groups["rise"] / of_groups["drop"])

# %% tags=["hide-input"]
shown = select(moved)
shown = shown.sort_values("group", key=lambda group: group.map(GROUPS.index), kind="stable")
panels = zip(shown["task"], shown["group"], strict=True)
shown = shown.assign(panel=[f"{title(task)}, {group} layers" for task, group in panels])
planes, seeds = first_seed(shown)
marks = {"fine-tuned": (START, 0.0), "group rolled back": (BACK, 0.0)}
look = dict(label=LOSS, table=shown, contours=Contours(marks, rims={"fine-tuned": RISE}))
run.figure(
    "Figure 7",
    surfaces(planes, "loss", "panel", **look),
    "Training loss around the fine-tuned model (0, 0) when one third of its layers moves (means "
    f"over {planes['examples'].max():,} examples). Dashed: {RISE:g} nats above that model.{seeds}",
)


# %% tags=["hide-input", "claim"]
def third_by_third(rows):
    """The parts of the claim below, of one seed."""
    side, share = (dict(zip(rows["group"], rows[name], strict=True)) for name in ("side", "share"))
    return {
        "low wider than middle": side["low"] - side["middle"],
        "low wider than high": side["low"] - side["high"],
        "high leads to a high loss": share["high"],
        "low keeps the loss low": -share["low"],
    }


OF_DROP = {
    "high leads to a high loss": "half of what training had gained: less is nearer to the end",
    "low keeps the loss low": "a fifth of what training had gained: twice the share of the gain "
    "in accuracy over the null rate that the low third costs at most in the paper's Table 1",
}
WIDER = ("low wider than middle", "low wider than high")


# %% tags=["hide-input", "claim"]
@run.claim(
    "low-invariant",
    says="The low layers have the widest optimum, and rolling them back does not hurt much; "
    "rolling back the high ones leads to a high loss.",
    place="section 7, Figure 7",
    exhibits=("Figure 7", "Groups"),
    record=of_groups,
    above={"high leads to a high loss": HALF, "low keeps the loss low": -0.2},
    because=OF_DROP,
    unit=dict.fromkeys(WIDER, "lengths of its direction") | dict.fromkeys(OF_DROP, "of the drop"),
    per="task",
)
def low_invariant(rows):
    """Distance from the fine-tuned model at which the training loss has risen by 0.1 nats towards
    the pre-trained layers and beyond, low minus middle and low minus high, in lengths of each
    group's direction; rise of the loss at the pre-trained layers, as a share of the drop from start
    to end, of the high layers, and of the low ones with a minus; as a control, random directions of
    these lengths.
    """
    groups = by_task(rows, ["side", "share"], third_by_third)
    for task, of_task in rows.groupby("task", sort=False):
        wider = zip(WIDER, ("middle", "high"), strict=True)
        for part, other in () if isinstance(groups[task], str) else wider:
            which = "side_whole", "group", "low", other
            groups[task][part] = bounded(groups[task][part], of_task, *which)
    return groups


# %% tags=["hide-input", "claim"]
rollbacks = run.measure("rollbacks", over={"task": settings.tasks, "seed": settings.seeds})


def scores_of(rows, group):
    """(models, examples): which are right with a group rolled back; "tuned" is the model itself."""
    of_group = rows[rows["group"] == group]
    return of_group.pivot(index="seed", columns="example", values="score").to_numpy(float)


# %% tags=["hide-input"]
means = rollbacks.groupby([*GROUP, "control"], sort=False)[["score", "norm", "relative_norm"]]
means = means.mean().reset_index()
at_random = means[means["control"] == "twin"][[*GROUP, "score"]].rename(columns={"score": "random"})
tuned = means[means["group"] == "tuned"][["task", "seed", "score"]]
tuned = tuned.rename(columns={"score": "tuned"})
rolled_back = means[means["control"] == ""].drop(columns="control")
rolled_back = rolled_back.rename(columns={"score": "accuracy"})
rolled_back = rolled_back.merge(at_random, on=GROUP).merge(tuned, on=["task", "seed"])
errors = []
for task, rows in select(rollbacks).groupby("task", sort=False):
    before = scores_of(rows, "tuned")
    for group in GROUPS:
        intervals = crossed(before), crossed(scores_of(rows, group) - before)
        errors.append((task, group, *(one.variance.variance**0.5 for one in intervals)))
errors = pd.DataFrame(errors, columns=["task", "group", "tuned_error", "change_error"])
rolled_back = merged([rolled_back, errors], on=["task", "group"])


# %% tags=["hide-input"]
rows, columns = {}, ["accuracy", "tuned", "tuned_error", "change_error"]
means = rolled_back.groupby(["task", "group"], sort=False)[columns].mean()
for (task, group), (after, before, error, error_of_change) in means.iterrows():
    row = rows.setdefault(task, {"fine-tuned": f"{before:.1%} ± {100 * error:.1f}"})
    change = f"{printed(100 * (after - before), '+.1f')} ± {100 * error_of_change:.1f}"
    row[f"{group} rolled back"] = f"{after:.1%} ({change})"
for task, (before, *after) in PAPER_TABLE_1.items():
    row = rows.setdefault(task, {})
    row["paper"] = f"{before:.2f}"
    for group, score in zip(GROUPS, after, strict=True):
        row[f"paper, {group}"] = f"{score:.2f} ({printed(score - before, '+.2f')})"
columns = ["fine-tuned", "paper"]
for group in GROUPS:
    columns += [f"{group} rolled back", f"paper, {group}"]
shown = pd.DataFrame(rows, columns).T
shown = shown.rename(index=title).rename_axis("task").reset_index()
seeds = len(set(rollbacks["seed"]))
run.table(
    "Table 1",
    rolled_back,
    "Accuracy on all development examples, fine-tuned and with the low, middle or high third of "
    "the layers as they were before; differences in points (means over seeds; ±: standard error "
    f"over {'seeds and ' * (seeds > 1)}examples). The paper's columns: BERT-large, on all its "
    "tasks. The paper prints −53.88 for the high layers on MNLI; its accuracies give −53.69.",
    shown=shown,
)


# %% tags=["hide-input", "claim"]
@run.claim(
    "rollback",
    says="Rolling back the low layers costs least, the high layers most.",
    place="section 7, Table 1",
    exhibits=("Table 1",),
    printed="low layers +0.2 to −2.2 points; high layers −12.0 to −53.7 points",
    record=rollbacks,
    unit="of the development examples",
    per="task",
)
def rollback(rows):
    """Development accuracy with the low layers rolled back minus that with the middle ones, and
    with the middle ones minus that with the high ones; as a control, as far in random directions.
    """
    groups = {}
    for task, of_task in rows.groupby("task", sort=False):
        low, middle, high = (scores_of(of_task, group) for group in GROUPS)
        groups[task] = {
            "middle costs more than low": crossed(low - middle),
            "high costs more than middle": crossed(middle - high),
        }
    return groups


# %% [markdown]
# A third may matter little because it has hardly moved:


# %% tags=["hide-input"]
def basin_of_start(cells):
    """The area of the basin of the fine-tuned layers, and whether it ends on the grid."""
    return dict(zip(("area", "whole"), area(as_surface(cells), (START, 0.0), RISE), strict=True))


areas = of_each(select(moved), GROUP, basin_of_start)
ways = select(on_axis).drop(columns="examples")
table = merged([ways, areas[[*GROUP, "area", "whole"]], rolled_back], on=GROUP)
table = marked(table, {"side": "side_whole", "area": "whole"})
table = table.assign(after=table["accuracy"] - table["tuned"])
table = table.assign(walked=table["random"] - table["tuned"])
run.table(
    "Groups",
    table,
    "Distance, in lengths of the third's own δ₁ (δ₁ᴳ), towards the pre-trained layers (at 1) and "
    f"beyond, at which the loss has risen by {RISE:g} nats, and area of that basin (≥: it reaches "
    "the edge of the grid); what rolling the third back does to training loss and accuracy, beside "
    "a random move as far; and how far fine-tuning had moved it.",
    columns={"task": "task", "seed": "seed", "group": "layers", "side": "distance to the rim"}
    | {"area": "area", "rise": "loss rises, rolled back", "after": "accuracy, rolled back"}
    | {"walked": "accuracy, random move", "norm": "‖δ₁ᴳ‖"},
    formats={"task": title, "rise": "{:+.2f}", "norm": "{norm:.2f} ({relative_norm:.1%})"}
    | {name: f"{{{name}_mark}}{{{name}:.2f}}" for name in ("side", "area")}
    | dict.fromkeys(("after", "walked"), "{:+.3f}"),
)

# %% [markdown]
# ## The claims
#
# Intervals cover seeds and ten folds of the examples, those of angles seeds alone.
# {doc}`The ledger </claims>` explains the verdicts.

# %% tags=["hide-input"]
run.finish()

# %% [markdown]
# **Limits.** One plane says nothing about other dimensions.
# Three [exercises](/exercises.md#chapter-3-loss-landscapes) go with this chapter.
