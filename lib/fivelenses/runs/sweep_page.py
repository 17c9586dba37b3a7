"""The book's page of this machine's sweeps: scores against every swept parameter, and the verdicts on all claims.

Everything on it is read from the sweeps' tables.
"""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import yaml

from fivelenses.first_exhibits import style
from fivelenses.first_exhibits.exhibit import Exhibit, as_html
from fivelenses.first_exhibits.sweep import NAMES, fine_tuned, score_against
from fivelenses.first_exhibits.verdicts import OUTCOMES
from fivelenses.runs.execution import RunError
from fivelenses.runs.parameters import ParameterError
from fivelenses.runs.side_by_side import render
from fivelenses.runs.sweep import CLAIMS, MODELS, POINTS, TABLE, reason_to_run, sweeps_folder

PAGE = "here/sweeps.md"


def stage(folder: Path) -> None:
    """Write the page into the folder that the book is built from; nothing where there is no sweep.

    Raises:
        RunError: a sweep's files are damaged; the sentence says which.
    """
    page = folder / PAGE
    sweeps = sorted(file.parent for file in sweeps_folder().glob(f"*/{TABLE}"))
    if not sweeps:
        return
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(render("sweeps.md", sweeps=list(map(_content, sweeps))), encoding="utf-8")


def _content(sweep: Path) -> dict:
    """What the page says of one sweep."""
    try:
        content = yaml.safe_load((sweep / POINTS).read_text(encoding="utf-8"))
        table, verdicts = pd.read_parquet(sweep / TABLE), pd.read_parquet(sweep / CLAIMS)
        number, profile, swept, points = (content[name] for name in ("chapter", "profile", "swept", "points"))
        exhibits = _scores(table[table["exhibit"] == MODELS], swept, f"chapter {number} on profile {profile}")
    except (OSError, ValueError, KeyError, TypeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise RunError(f"The sweep in {sweep} is damaged ({reason}): make it again, or remove the folder.") from error
    pictures = []
    for parameter, exhibit in exhibits.items():
        pictures.append(replace(exhibit, key=f"{sweep.name}-{parameter}").html)
        style.close(exhibit.figure)
    return {
        "name": sweep.name,
        "chapter": number,
        "profile": profile,
        "swept": {name: table[name].drop_duplicates() for name in swept},
        "points": len(points),
        "outdated": sum(_is_outdated(number, profile, overrides) for overrides in points.values()),
        "pictures": pictures,
        "claims": [_claims(verdicts, name) for name in _varied(verdicts, swept)] if len(verdicts) else [],
    }


def _varied(table: pd.DataFrame, swept: list[str]) -> list[str]:
    """The parameters that differ between points; all that were swept where none does."""
    return [name for name in swept if table[name].nunique() > 1] or swept


def _claims(verdicts: pd.DataFrame, parameter: str) -> str:
    """The verdicts over one parameter: a row per claim, a column per value."""
    of_points = verdicts.drop_duplicates(["point", "claim"])
    grouped = of_points.groupby(["claim", parameter], sort=False)["verdict"]
    cells = {where: _verdicts(verdicts.tolist()) for where, verdicts in grouped}
    values, names = of_points[parameter].drop_duplicates(), of_points["claim"].drop_duplicates()
    rows = [{"claim": name} | {f"{parameter} {one}": cells.get((name, one)) for one in values} for name in names]
    caption = f"Verdicts by {parameter}, in brackets at how many points where there are several."
    return as_html(pd.DataFrame(rows), caption)


def _verdicts(outcomes: list[str]) -> str:
    """The verdicts of several points on one claim.

    Example:
        >>> _verdicts(["open"]), _verdicts(["open", "mixed", "open"])
        ('open', 'mixed (1), open (2)')
    """
    if len(outcomes) == 1:
        return outcomes[0]
    return ", ".join(f"{one} ({outcomes.count(one)})" for one in OUTCOMES if one in outcomes)


def _scores(models: pd.DataFrame, swept: list[str], title: str) -> dict[str, Exhibit]:
    """The picture of each parameter that varies; of seeds only where nothing else does."""
    if models.empty or fine_tuned(models, swept[0]).empty:
        return {}
    varied = _varied(models, swept)
    drawn = [name for name in varied if name not in NAMES] or varied
    return {parameter: score_against(models, parameter, title) for parameter in drawn}


def _is_outdated(number: int, profile: str, overrides: dict) -> bool:
    try:
        return bool(reason_to_run(number, profile, overrides))
    except ParameterError:
        return True  # The chapter no longer takes what it took then.
