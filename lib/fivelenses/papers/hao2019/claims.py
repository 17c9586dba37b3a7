"""The seven claims of Hao et al. (2019) as predicates on its exhibits' tables.

The paper shows pictures and gives no thresholds. Those here are ours, fixed before any run on real data and stated in
each claim. A model from scratch whose training loss does not fall below that of the labels' shares has reached no
optimum, whose width could be compared; its task is left out where a claim is about widths. A basin that reaches the
edge of the grid is at least as wide as what is seen of it; where that leaves open which of two is wider, they are not
compared. That rule came after the first runs on real data, in which most basins reached the edge.
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from fivelenses import tasks
from fivelenses.exhibits.claims import CannotTest, Claim, as_cases
from fivelenses.papers.hao2019.basins import RISE
from fivelenses.papers.hao2019.measure import BETWEEN, STATE
from fivelenses.papers.hao2019.planes import PRETRAINED, SCRATCH
from fivelenses.papers.hao2019.tables import PAPER_TABLE_1

PAPER = "hao2019"
MEASURES = "hao2019-measures"
THIRD = 1 / 3  # of the steps
MORE_ERROR = 0.02  # of the development examples
AGREEING = 0.5  # rank correlation
LOW, MIDDLE, HIGH = "low", "middle", "high"
WIDEN = "widen its range"


def _title(task: str) -> str:
    return tasks.find(task).title


def _pairs(measures: pd.DataFrame) -> list[tuple[str, str, pd.Series, pd.Series]]:
    """Task, seed, and the rows of the two models, from scratch and tuned."""
    pairs = []
    for (task, seed), rows in measures.groupby(["task", "seed"], sort=False):
        by_init = rows.set_index("init")
        pairs.append((_title(task), str(seed), by_init.loc[SCRATCH], by_init.loc[PRETRAINED]))
    return pairs


def exceeds(extent: float, whole: bool, other: float, other_whole: bool) -> bool | None:
    """Whether a basin's width or area is greater than another's; None where the edge of the grid leaves it open.

    Args:
        extent, other: as far as the grid reaches.
        whole, other_whole: False where the basin reaches the edge, so that its extent is at least this.

    Example:
        >>> exceeds(3.0, False, 2.0, True), exceeds(2.0, True, 3.0, False), exceeds(3.0, False, 2.0, False)
        (True, False, None)
    """
    greater, decided = (True, other_whole) if extent > other else (False, whole)
    return greater if decided else None


def _all(answers: Iterable[bool | None]) -> bool | None:
    """True if all are, False if any is not, None if that is open."""
    answers = list(answers)
    return False if False in answers else None if None in answers else True


def _not(answer: bool | None) -> bool | None:
    return None if answer is None else not answer


def wider_optima(measures: pd.DataFrame) -> pd.DataFrame:
    """Area of the tuned model's basin minus that of the one from scratch."""
    rows, learned = [], False
    for title, seed, scratch, tuned in _pairs(measures):
        if not (scratch["learned"] and tuned["learned"]):
            continue
        learned = True
        wider = _all(
            exceeds(tuned[area], tuned[whole], scratch[area], scratch[whole])
            for area, whole in (("area", "whole"), ("half_area", "half_whole"))
        )
        if wider is not None:
            rows.append((title, seed, tuned["area"] - scratch["area"], wider))
    if not learned:
        raise CannotTest(f"on no task do both models end {RISE:g} nats below the entropy of the labels")
    if not rows:
        raise CannotTest(f"basins reach the edge of the grid, so that which is wider stays open: {WIDEN}")
    return as_cases(rows)


def _mean_loss(history: pd.DataFrame, until: int) -> float:
    """The mean training loss of the steps up to one; each value is a mean over the steps since the one before."""
    history = history.sort_values("step")
    before = history["step"].shift(fill_value=0)
    lengths = (history["step"].clip(upper=until) - before).clip(lower=0)
    return float(np.average(history["loss"], weights=lengths))


def easier(history: pd.DataFrame, measures: pd.DataFrame) -> pd.DataFrame:
    """Mean training loss over the tuned model's steps, from scratch minus tuned."""
    rows = []
    curves = dict(list(history.groupby(["task", "seed", "init"])))
    for (task, seed), models in measures.groupby(["task", "seed"], sort=False):
        by_init, tuned, scratch = models.set_index("init"), curves[task, seed, PRETRAINED], curves[task, seed, SCRATCH]
        faster = _mean_loss(scratch, tuned["step"].max()) - _mean_loss(tuned, tuned["step"].max())
        lower = by_init.loc[PRETRAINED, "end_loss"] < by_init.loc[SCRATCH, "end_loss"]
        falls = by_init.loc[PRETRAINED, "climb"] <= RISE
        rows.append((_title(task), str(seed), faster, bool(faster > 0 and lower and falls)))
    return as_cases(rows)


def _angle_at(path: pd.DataFrame, share: float) -> float:
    moved = path[path["step"] > 0].sort_values("share")
    return float(np.interp(share, moved["share"], moved["angle"]))


def straighter(paths: pd.DataFrame) -> pd.DataFrame:
    """Angle to the final direction after the first epoch, from scratch minus tuned."""
    rows = []
    for (task, seed), both in paths.groupby(["task", "seed"], sort=False):
        scratch, tuned = (both[both["init"] == init] for init in (SCRATCH, PRETRAINED))
        after_one = [_angle_at(path, path["share"].max() / path["epoch"].max()) for path in (scratch, tuned)]
        at_third = [_angle_at(path, THIRD) for path in (scratch, tuned)]
        more = after_one[0] - after_one[1]
        rows.append((_title(task), str(seed), more, bool(more > 0 and at_third[0] > at_third[1])))
    return as_cases(rows)


def robust_overfitting(table: pd.DataFrame) -> pd.DataFrame:
    """Development error at the end of the long training minus that after its first epochs."""
    rows = []
    for (task, seed), training in table.groupby(["task", "seed"], sort=False):
        between = training[training["kind"] == BETWEEN].sort_values("share")
        states = training[training["kind"] == STATE].sort_values("step")
        first = states.iloc[(states["alpha"] - 1).abs().argmin()]
        more = float(states["error"].iloc[-1] - first["error"])
        climb = float((between["loss"] - between["loss"].cummin()).max())
        rows.append((_title(task), str(seed), more, bool(more <= MORE_ERROR and climb <= RISE)))
    return as_cases(rows)


def error_follows_loss(measures: pd.DataFrame) -> pd.DataFrame:
    """Rank correlation of training loss and development error over the cells, tuned minus scratch; and from scratch,
    most examples minus fewest.
    """
    rows = []
    for title, seed, scratch, tuned in _pairs(measures):
        if not np.isfinite([tuned["correlation"], scratch["correlation"]]).all():
            continue
        more = tuned["correlation"] - scratch["correlation"]
        rows.append((title, seed, more, bool(more > 0 and tuned["correlation"] >= AGREEING)))
    if not rows:
        raise CannotTest("the development error is the same in all cells of a surface")
    for seed, models in measures[measures["init"] == SCRATCH].groupby("seed"):
        sizes = models.dropna(subset="correlation").groupby("examples")["correlation"].mean()
        if len(sizes) > 1:
            more = float(sizes.iloc[-1] - sizes.iloc[0])
            rows.append(("most against fewest examples", str(seed), more, more > 0))
    return as_cases(rows)


def low_invariant(groups: pd.DataFrame) -> pd.DataFrame:
    """Width along the low layers minus that along the high ones."""
    rows = []
    for (task, seed), thirds in groups.groupby(["task", "seed"], sort=False):
        by_group = thirds.set_index("group")
        of_group = {group: by_group.loc[group, ["width", "width_whole"]] for group in (LOW, MIDDLE, HIGH)}
        contrary = [exceeds(*of_group[one], *of_group[other]) for one, other in ((MIDDLE, LOW), (HIGH, MIDDLE))]
        ordered = _all([exceeds(*of_group[LOW], *of_group[HIGH]), *(_not(answer) for answer in contrary)])
        if ordered is not None:
            more = float(by_group.loc[LOW, "width"] - by_group.loc[HIGH, "width"])
            rows.append((_title(task), str(seed), more, ordered))
    if not rows:
        raise CannotTest(f"basins along the groups of layers reach the edge of the grid: {WIDEN}")
    return as_cases(rows)


def rollback(table: pd.DataFrame) -> pd.DataFrame:
    """Accuracy with the low layers put back minus that with the high ones put back."""
    rows = []
    for (task, seed), thirds in table.groupby(["task", "seed"], sort=False):
        left = thirds.set_index("group")["accuracy"]
        more = float(left[LOW] - left[HIGH])
        rows.append((_title(task), str(seed), more, bool(more > 0 and left[LOW] >= left[MIDDLE] >= left[HIGH])))
    return as_cases(rows)


def _printed_falls() -> str:
    """What putting back low and high layers costs in the paper's Table 1, in points, from least to most."""
    falls = {
        group: sorted(tuned - put_back[place] for tuned, *put_back in PAPER_TABLE_1.values())
        for place, group in ((0, LOW), (2, HIGH))
    }
    return "; ".join(
        f"{group} layers {-least:+.1f} to {-most:+.1f} points" for group, (least, *_, most) in falls.items()
    )


CLAIMS = (
    Claim(
        "wider-optima",
        PAPER,
        "Fine-tuning ends in wider optima than training from scratch.",
        "section 5.1, Figure 1",
        (MEASURES,),
        f"area of the basin at {RISE:g} nats above the end within the grid, tuned minus scratch, in squared lengths of "
        "the direction",
        "positive, and so is the difference at half of the drop from start to end; a task is left out if a model does "
        f"not end {RISE:g} nats below the entropy of the labels, or if the edge of the grid leaves open which is wider",
        wider_optima,
    ),
    Claim(
        "easier",
        PAPER,
        "Fine-tuning's loss falls monotonically along its direction and converges faster; from scratch ends higher, "
        "even with more epochs.",
        "sections 5.1 and 5.2, Figures 1 and 2",
        ("hao2019-figure-2", MEASURES),
        "mean training loss over the steps of fine-tuning, from scratch minus tuned, nats",
        f"positive, the tuned model's straight way nowhere climbs by more than {RISE:g} nats, and it ends lower",
        easier,
    ),
    Claim(
        "straighter",
        PAPER,
        "Fine-tuning stays near its final direction; from scratch, the first epochs point elsewhere.",
        "section 5.2, Figure 3",
        ("hao2019-figure-3",),
        "angle between the way after the first epoch and the final one, from scratch minus tuned, degrees",
        "positive, both after the first epoch and after a third of the steps",
        straighter,
    ),
    Claim(
        "robust-overfitting",
        PAPER,
        "Many more epochs keep the development error and stay in the same basin.",
        "section 5.3, Figure 4",
        ("hao2019-figure-4",),
        "development error after all epochs minus that after the first ones",
        f"at most {MORE_ERROR:g}, and the training loss climbs by at most {RISE:g} nats on the straight way",
        robust_overfitting,
    ),
    Claim(
        "error-follows-loss",
        PAPER,
        "The surface of the development error agrees with that of the training loss, more so for fine-tuning and, "
        "from scratch, more so with large data.",
        "section 6.2, Figures 1 and 6",
        (MEASURES,),
        "rank correlation of the two surfaces, tuned minus scratch; from scratch, most examples minus fewest",
        f"positive, with at least {AGREEING:g} for the tuned model",
        error_follows_loss,
    ),
    Claim(
        "low-invariant",
        PAPER,
        "The basin is widest along the low layers and narrowest along the high ones.",
        "section 7, Figure 7",
        ("hao2019-groups",),
        f"width at {RISE:g} nats within the grid along the low layers' direction minus that along the high ones', in "
        "lengths of each",
        "positive, with the middle layers' between them; a task is left out if the edge of the grid leaves the order "
        "open",
        low_invariant,
    ),
    Claim(
        "rollback",
        PAPER,
        "Putting back the low layers costs least, the high layers most.",
        "section 7, Table 1",
        ("hao2019-table-1",),
        "development accuracy with the low layers put back minus that with the high layers put back",
        "positive, with the middle layers' between them",
        rollback,
        _printed_falls(),
    ),
)
