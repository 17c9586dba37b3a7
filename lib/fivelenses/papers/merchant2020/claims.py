"""The eight claims of Merchant et al. (2020), in the paper's order."""

import pandas as pd

from fivelenses.papers.merchant2020.layer_claims import CLAIMS as ON_LAYERS
from fivelenses.papers.merchant2020.probe_claims import CLAIMS as ON_PROBES

CLAIMS = (*ON_PROBES, *ON_LAYERS)
SCORES = {"mnli": 0.833, "squad": 0.892, "parsing": 0.963}  # section 3: accuracy, F1, LAS


def gains(models: pd.DataFrame) -> dict[str, float]:
    """By how much the paper's models score above the null rate of a run's tasks, for the gate.

    Example:
        >>> gains(pd.DataFrame({"task": ["mnli", "pos"], "null_rate": [0.25, 0.2]}))
        {'mnli': 0.583}
    """
    null = models.groupby("task")["null_rate"].first()
    return {task: score - float(null[task]) for task, score in SCORES.items() if task in null}
