"""The public index of the toy world: every task as tables of rows, one per split.

`table("mnli")["train"]` is a pandas table with the columns that the data set has on the hub.
"""

import hashlib
import os
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from platform import python_version

import joblib
import pandas

from toyworld.acceptability import cola_row
from toyworld.edge_tasks import EDGE_TASKS, edge_task
from toyworld.inference import mnli_row, mrpc_row, rte_row
from toyworld.plain import plain
from toyworld.question_tasks import COARSE_LABELS, FINE_LABELS, FINE_SHARES, qnli_row, squad, trec_row
from toyworld.rows import RowMaker, labelled_rows
from toyworld.second_domain import second_domain
from toyworld.sentiment import sst2_row
from toyworld.token_tasks import prepositions, treebank

Tables = dict[str, pandas.DataFrame]


def _labelled(
    make: RowMaker, fields: tuple[str, ...], shares: Sequence[float], *sizes: int, held_out: str = "validation"
) -> Callable[[str], Tables]:
    """A builder for a task of one label per row, with the share of each label and the sizes of the two splits."""

    def build(name: str) -> Tables:
        return labelled_rows(name, dict(zip(("train", held_out), sizes, strict=True)), shares, make, fields)

    return build


_THIRDS, _HALVES, _PAIR = (1 / 3, 1 / 3, 1 / 3), (0.5, 0.5), ("sentence1", "sentence2")
_LABELLED: dict[str, Callable[[str], Tables]] = {
    "mnli": _labelled(mnli_row, ("premise", "hypothesis"), _THIRDS, 8000, 600),
    "rte": _labelled(rte_row, _PAIR, _HALVES, 6000, 300),
    "mrpc": _labelled(mrpc_row, _PAIR, (0.33, 0.67), 6000, 400),
    "sst2": _labelled(sst2_row, ("sentence",), _HALVES, 4000, 500),
    "cola": _labelled(cola_row, ("sentence",), (0.3, 0.7), 4000, 500),
    "qnli": _labelled(qnli_row, ("question", "sentence"), _HALVES, 4000, 500),
    "trec": _labelled(
        trec_row, ("text",), [share / sum(FINE_SHARES) for share in FINE_SHARES], 3000, 400, held_out="test"
    ),
}
BUILDERS: dict[str, Callable[[], Tables]] = {
    **{name: partial(build, name) for name, build in _LABELLED.items()},
    "squad": squad,
    "treebank": treebank,
    "prepositions": prepositions,
    **{name: partial(edge_task, name) for name in EDGE_TASKS},
    "plain": plain,
    "second_domain": second_domain,
}
TASKS: tuple[str, ...] = tuple(BUILDERS)
LABELS: dict[str, tuple[str, ...]] = {
    "mnli": ("entailment", "neutral", "contradiction"),
    "rte": ("entailment", "not_entailment"),
    "mrpc": ("not_equivalent", "equivalent"),
    "sst2": ("negative", "positive"),
    "cola": ("unacceptable", "acceptable"),
    "qnli": ("entailment", "not_entailment"),
    "trec": COARSE_LABELS,
    "trec_fine": FINE_LABELS,
}


@cache
def table(name: str) -> Tables:
    """The splits of a task. Equal on every machine; made once per machine and version of this code, and read once per
    process, so do not change it in place.

    Raises ValueError for a name that is not in `TASKS`.

    >>> sorted(table("rte"))
    ['train', 'validation']
    """
    if name not in BUILDERS:
        raise ValueError(f"The toy world has no task {name!r}; choose one of {', '.join(TASKS)}.")
    return joblib.Memory(_folder(), verbose=0).cache(_built)(name)


def _built(name: str) -> Tables:
    return BUILDERS[name]()


def _folder() -> Path:
    """A part of the user's cache for this code, this Python and this pandas."""
    code = b"".join(file.read_bytes() for file in sorted(Path(__file__).parent.glob("*.py")))
    made_by = hashlib.sha256(f"{python_version()}{pandas.__version__}".encode() + code).hexdigest()[:16]
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "fivelenses" / "toyworld" / made_by
