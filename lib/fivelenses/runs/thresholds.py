"""The cases of a claim for a reader who moves its thresholds: per run, group and part the two ends that decide.

A page holds them as JSON, and ``_static/thresholds.js`` judges them by the rule of `verdicts.judge_group` and `judge`.
"""

import json
import math
from collections.abc import Mapping, Sequence

from fivelenses.first_exhibits import effects
from fivelenses.first_exhibits.claims import Judged
from fivelenses.first_exhibits.verdicts import BOUNDS, Effect, Part
from fivelenses.runs.intervals_drawn import scale


def cases(parts: Sequence[Part], runs: Mapping[str, Judged]) -> str:
    """JSON with `parts` (name, unit, threshold, and the range and step of a slider), `halves` (of the sentence: the
    names of each one's parts) and `runs`: by run, group and part the lower end, which has to lie above the threshold,
    and the upper end, at the level corrected for the number of parts, below which it fails; null where there is no end.

    Args:
        parts: of the claim.
        runs: what became of it, by the run in a reader's words; those without a group are left out.

    Example:
        >>> from fivelenses.first_exhibits.effects import over_models
        >>> from fivelenses.first_exhibits.verdicts import judge
        >>> part, found = Part("growth"), [Effect("MRPC", "growth", over_models([4, 6, 5]))]
        >>> json.loads(cases([part], {"toy": Judged("rises", judge([part], found), tuple(found))}))["runs"]
        {'toy': {'MRPC': {'growth': [2.51586..., 7.48413...]}}}
    """
    told = {name: judged for name, judged in runs.items() if judged.verdict.groups}
    if not told:
        return ""
    sliders = []
    for part in parts:
        effects = [effect for judged in told.values() for effect in judged.effects if effect.part == part.name]
        if effects:
            axis = scale(part, effects)
            step = 10 ** math.floor(math.log10((axis.high - axis.low) / 50))
            ends = {"least": math.floor(axis.low / step) * step, "most": math.ceil(axis.high / step) * step}
            sliders.append({"name": part.name, "unit": part.unit, "threshold": part.threshold, "step": step} | ends)
    halves: dict[str, list[str]] = {}
    for part in parts:
        if part.half:
            halves.setdefault(part.half, []).append(part.name)
    by_run = {}
    for name, judged in told.items():
        of_groups: dict[str, dict[str, list]] = {}
        for effect in judged.effects:
            together = sum(other.group == effect.group for other in judged.effects)
            of_groups.setdefault(effect.group, {})[effect.part] = _ends(effect, together)
        by_run[name] = of_groups
    found = {"parts": sliders, "halves": list(halves.values()), "runs": by_run}
    return json.dumps(found, allow_nan=False).replace("<", "\\u003c")


def _ends(effect: Effect, parts: int) -> list[float | None]:
    own, (low_counts, high_counts) = effect.interval, BOUNDS[effect.bound]
    corrected = own if parts == 1 or not own.measured else effects.at_level(own, 1 - (1 - own.level) / parts)
    ends = (own.low if low_counts else -math.inf, corrected.high if high_counts else math.inf)
    return [float(end) if math.isfinite(end) else None for end in ends]
