"""The book's page of this machine's sweeps: for each, score against every swept parameter, and what became of claims.

Everything on it is read from the sweeps' tables.
"""

from pathlib import Path

import pandas as pd
import yaml

from fivelenses.exhibits import style
from fivelenses.exhibits.claims import VERDICTS
from fivelenses.exhibits.exhibit import as_html
from fivelenses.exhibits.sweep import NAMES, fine_tuned, score_against
from fivelenses.runs.execution import RunError
from fivelenses.runs.parameters import ParameterError
from fivelenses.runs.sweep_tables import CLAIMS, MODELS, TABLE
from fivelenses.runs.sweeps import POINTS, sweeps_folder, why_not

PAGE = "here/sweeps.md"
HEAD = """# Sweeps on this machine

One chapter at many points of its parameters. How to make one, and what its table holds, is told in
[](../sweeps.md).
"""
NONE = "There is no sweep on this machine yet: `fivelenses sweep 1 --profile tiny --grid task=rte,mrpc` makes one."
OLD = """:::{{admonition}} Not all of it is current
:class: warning
{count} of its {of} points have no run of the code as it is now; the same command makes them.
:::"""


def stage(folder: Path) -> None:
    """Write the page and its pictures into the folder that the book is built from.

    Raises:
        RunError: a sweep's files are damaged; the sentence says which.
    """
    place = folder / PAGE
    pictures = place.with_suffix("")
    pictures.mkdir(parents=True, exist_ok=True)
    found = sorted(file.parent for file in sweeps_folder().glob(f"*/{TABLE}"))
    parts = [_part(sweep, pictures) for sweep in found] or [NONE]
    place.write_text("\n\n".join([HEAD, *parts]) + "\n", encoding="utf-8")


def _is_old(number: int, profile: str, overrides: dict) -> bool:
    try:
        return bool(why_not(number, profile, overrides))
    except ParameterError:
        return True  # The chapter no longer takes what it took then.


def _part(sweep: Path, pictures: Path) -> str:
    """The page's part on one sweep; its pictures are written."""
    try:
        what = yaml.safe_load((sweep / POINTS).read_text(encoding="utf-8"))
        table, verdicts = pd.read_parquet(sweep / TABLE), pd.read_parquet(sweep / CLAIMS)
        number, profile, swept, points = (what[name] for name in ("chapter", "profile", "swept", "points"))
    except (OSError, ValueError, KeyError, TypeError, yaml.YAMLError) as error:
        complaint = " ".join(str(error).split())
        raise RunError(
            f"The sweep in {sweep} is damaged ({complaint}): make it again, or remove the folder."
        ) from error
    values = "; ".join(f"`{name}` {', '.join(map(str, table[name].drop_duplicates()))}" for name in swept)
    parts = [f"## Chapter {number} against {' and '.join(swept)}"]
    parts.append(f"The sweep `{sweep.name}` on profile `{profile}`, {len(points)} points: {values}.")
    old = sum(_is_old(number, profile, overrides) for overrides in points.values())
    if old:
        parts.append(OLD.format(count=old, of=len(points)))
    models = table[table["exhibit"] == MODELS]
    if models.empty or fine_tuned(models, swept[0]).empty:
        parts.append("None of its models was fine-tuned as a whole, so there is no score to draw.")
        drawn = []
    else:
        varied = [name for name in swept if models[name].nunique() > 1] or swept
        drawn = [name for name in varied if name not in NAMES] or varied
    for parameter in drawn:
        exhibit = score_against(models, parameter, f"chapter {number} on profile {profile}")
        file = pictures / f"{sweep.name}-{parameter}.png"
        file.write_bytes(exhibit.png())
        style.close(exhibit.figure)
        parts.append(f"```{{image}} {pictures.name}/{file.name}\n:alt: {exhibit.alt}\n```")
        parts.append(f"**{exhibit.title}.** {exhibit.caption}")
    if not verdicts.empty:
        counts = verdicts.groupby(["claim", "verdict"], sort=False).size().unstack(fill_value=0)
        counts = counts.reindex(columns=VERDICTS, fill_value=0).reset_index()
        html = as_html(counts, f"At how many of the {verdicts['point'].nunique()} points each claim came out how.")
        parts.append(f"```{{raw}} html\n{html}\n```")
    return "\n\n".join(parts)
