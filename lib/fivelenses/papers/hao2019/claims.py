"""The nine claims of Hao et al. (2019)."""

from fivelenses.exhibits.claims import Claim
from fivelenses.papers.hao2019 import differences as of
from fivelenses.papers.hao2019.basins import RISE
from fivelenses.papers.hao2019.tables import PAPER_TABLE_1

PAPER = "hao2019"
MEASURES = "hao2019-measures"


def _printed_falls() -> str:
    """What putting back low and high layers costs in the paper's Table 1, in points, from least to most."""
    falls = {
        group: sorted(tuned - put_back[place] for tuned, *put_back in PAPER_TABLE_1.values())
        for place, group in ((0, of.LOW), (2, of.HIGH))
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
        ("hao2019-figure-1", MEASURES),
        f"area of the basin around the end, at {RISE:g} nats above it and at half of the drop from start to end, tuned "
        "minus scratch, each in squared lengths of its own direction; only where both training losses end clearly more "
        f"than {RISE:g} nats below the entropy of the labels",
        (of.WIDER, of.WIDER_AT_HALF),
        ("landscapes",),
        of.wider_optima,
        untwinned=of.RANDOM_SURFACE,
    ),
    Claim(
        "easier",
        PAPER,
        "Fine-tuning converges faster than training from scratch, ends lower, even with fewer epochs, and has the "
        "smoother straight way from start to end.",
        "sections 5.1 and 5.2, Figures 1 and 2",
        ("hao2019-figure-2", MEASURES),
        "from scratch minus tuned, in nats: mean training loss over the steps of fine-tuning; loss at the end on all "
        "training examples; largest rise of the loss on the straight way from start to end",
        (of.FASTER, of.LOWER, of.SMOOTHER),
        ("landscapes", "histories"),
        of.easier,
        untwinned="what moved at random was not trained: it has no curve of training and no end",
    ),
    Claim(
        "straighter",
        PAPER,
        "Fine-tuning stays near its final direction; from scratch, the first epochs point elsewhere.",
        "section 5.2, Figure 3",
        ("hao2019-figure-3",),
        "angle between the way so far and the final direction after a third of the steps of each training, from "
        "scratch minus tuned, degrees; as a control, random walks whose steps have the same lengths",
        (of.STRAIGHTER,),
        ("trajectories",),
        of.straighter,
    ),
    Claim(
        "robust-overfitting",
        PAPER,
        "Many more epochs do not raise the development error much, and end in the same region of low error.",
        "section 5.3, Figure 4",
        ("hao2019-figure-4",),
        "development error of a finished training of the usual epochs minus that of a long one from the same start, "
        "and the higher of the two minus the highest on the straight way between; as a control, as far in a random "
        "direction",
        (of.KEPT, of.SAME_REGION),
        ("long_training",),
        of.robust_overfitting,
    ),
    Claim(
        "sharper-from-scratch",
        PAPER,
        "On curves with normalised axes, the optima of training from scratch are sharper than those of fine-tuning.",
        "section 6.1, Figure 5",
        ("hao2019-figure-5",),
        "width of the basin around the end at half of the drop from start to end along the direction between them, "
        "tuned minus scratch, each in lengths of its own direction; as a control, a random direction of that length; "
        "only where both models reached an optimum, as for `wider-optima`",
        (of.FLATTER,),
        ("landscapes",),
        of.sharper_from_scratch,
    ),
    Claim(
        "error-follows-loss",
        PAPER,
        "The surface of the development error agrees with that of the training loss, more so for fine-tuning than from "
        "scratch.",
        "section 6.2, Figures 1 and 6",
        ("hao2019-figure-6", MEASURES),
        "rank correlation of the two surfaces for the tuned model, and tuned minus scratch",
        (of.AGREES, of.AGREES_MORE),
        ("landscapes",),
        of.error_follows_loss,
        untwinned=of.RANDOM_SURFACE,
    ),
    Claim(
        "scratch-needs-data",
        PAPER,
        "From scratch, the surfaces of error and loss agree more on large data sets than on small ones.",
        "section 6.2, Figure 6",
        ("hao2019-figure-6", MEASURES),
        f"rank correlation of the two surfaces from scratch, on a task with at least {of.MANY} times as many training "
        "examples minus on the other",
        (of.MORE_WITH_DATA,),
        ("landscapes",),
        of.scratch_needs_data,
        unit="pair of tasks",
        untwinned=of.RANDOM_SURFACE,
    ),
    Claim(
        "low-invariant",
        PAPER,
        "The low layers have the wider optimum, and putting back the high ones leads to a high loss.",
        "section 7, Figure 7",
        ("hao2019-figure-7", "hao2019-groups"),
        f"distance from the fine-tuned model at which the training loss has risen by {RISE:g} nats towards the "
        "pre-trained layers and beyond, low minus high, in lengths of each group's direction; rise of the loss at the "
        "pre-trained layers, high minus low, nats; as a control, random directions of these lengths",
        (of.WIDER_LOW, of.HIGH_LOSS),
        ("group_surfaces",),
        of.low_invariant,
    ),
    Claim(
        "rollback",
        PAPER,
        "Putting back the low layers costs least, the high layers most.",
        "section 7, Table 1",
        ("hao2019-table-1",),
        "development accuracy with the low layers put back minus that with the high ones and with the middle ones, and "
        "with the middle ones minus the high ones; as a control, as far in random directions",
        (of.LEAST, of.LESS_THAN_MIDDLE, of.MOST),
        ("rollbacks",),
        of.rollback,
        printed=_printed_falls(),
    ),
)
