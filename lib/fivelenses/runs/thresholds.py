"""The cases of a claim for a reader who moves its thresholds: per run, group and part the two ends that decide.

A page holds them as JSON, and ``_static/thresholds.js`` judges them by the rule of `judging.judge_group` and
`as_verdict`.
"""

import json
import math
from collections.abc import Mapping, Sequence

from fivelenses.judging import LEVEL, Group, Threshold, Verdict
from fivelenses.runs.intervals_drawn import intervals_of, scale


def cases(parts: Sequence[Threshold], runs: Mapping[str, Verdict]) -> str:
    """JSON with `parts` (name, unit, threshold, and the range and step of a slider), `halves` (of the sentence: the
    names of each one's parts) and `runs`: by run, group and part the lower end, which has to lie above the threshold,
    and the upper end, at the level corrected for the number of parts, below which it fails; null where there is no end.

    Args:
        parts: of the claim.
        runs: what became of it, by the run in a reader's words; those without a group are left out.

    >>> from fivelenses.judging import Part, over_seeds
    >>> group = Group("MRPC", "holds", (Part("growth", over_seeds([4, 6, 5])),))
    >>> json.loads(cases([Threshold("growth")], {"toy": Verdict("reproduced", (group,))}))["runs"]
    {'toy': {'MRPC': {'growth': [2.51586..., 7.48413...]}}}
    """
    tested = {name: verdict for name, verdict in runs.items() if verdict.groups}
    if not tested:
        return ""
    sliders = []
    for part in parts:
        intervals = [interval for verdict in tested.values() for interval in intervals_of(part, verdict).values()]
        if intervals:
            axis = scale(part, intervals)
            step = 10 ** math.floor(math.log10((axis.high - axis.low) / 50))
            ends = {"least": math.floor(axis.low / step) * step, "most": math.ceil(axis.high / step) * step}
            sliders.append({"name": part.name, "unit": part.unit, "threshold": part.threshold, "step": step} | ends)
    halves: dict[str, list[str]] = {}
    for part in parts:
        if part.half:
            halves.setdefault(part.half, []).append(part.name)
    by_run = {name: {group.name: _ends(group) for group in verdict.groups} for name, verdict in tested.items()}
    found = {"parts": sliders, "halves": list(halves.values()), "runs": by_run}
    return json.dumps(found, allow_nan=False).replace("<", "\\u003c")


def _ends(group: Group) -> dict[str, list[float | None]]:
    """The lower end of each part, and the upper one at the level corrected for the number of parts."""
    ends, corrected = {}, 1 - (1 - LEVEL) / len(group.parts)
    for part in group.parts:
        both = part.interval.bounds()[0], part.interval.bounds(corrected)[1]
        ends[part.name] = [end if math.isfinite(end) else None for end in both]
    return ends
