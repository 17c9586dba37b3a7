"""A run as a notebook sees it: parameters, records, exhibits, claims.

`measure` gives a record if it is there and current, and measures otherwise; all that follows is a function of records.
A published run reads committed records and its parameters from its ``run.json``, and imports no library that trains.
"""

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import pandas as pd
from IPython.display import HTML, Markdown, display
from myst_nb import glue

from fivelenses import judging, project
from fivelenses.book.cards import card
from fivelenses.chapters import Chapter, ChapterParameters, check_device, find_chapter, folder_name, resolved, settings
from fivelenses.exhibits import Drawing, Exhibit, Format
from fivelenses.files import written_beside
from fivelenses.judging import HOLDS, REPRODUCED, Claim, Record, Verdict
from fivelenses.measurements import Measurements
from fivelenses.project import RECORDS_VARIABLE, RUN_FOLDER_VARIABLE
from fivelenses.records import Missing

NOTHING = "there is nothing to measure"
# What a parameter's value can be; everything else in a notebook's namespace is none.
PLAIN = (str, int, float, bool, list, tuple, dict)


@dataclass
class Run:
    """One execution of a chapter.

    Attributes:
        chapter, profile, settings: what is run.
        folder: where exhibits, verdicts and facts are written.
        committed: the folder of a published run's records; None for a run that may measure.
        exhibits, claims: those so far.
        excluded: why tasks that were not learned take no part in claims (`judging.unlearned`).
    """

    chapter: Chapter
    profile: str
    settings: ChapterParameters
    folder: Path
    committed: Path | None = None
    exhibits: list[Exhibit] = field(default_factory=list)
    claims: list[tuple[Claim, Verdict]] = field(default_factory=list)
    excluded: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.measurements = Measurements(self.chapter, self.settings, self.log, self.committed)
        # What the chapters of papers are called by is the paper's key, the others by their own name.
        self.name = self.chapter.paper or self.chapter.slug.partition("-")[2]

    def log(self, line: str) -> None:
        """One line of progress: to the run's log, where a runner in front shows it; printed when there is none."""
        if RUN_FOLDER_VARIABLE in os.environ:
            with (self.folder / "progress.log").open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        else:
            print(line)

    def measure(self, function: str, **arguments) -> pd.DataFrame | dict[str, pd.DataFrame] | Missing:
        """The record that a function of this name measures, missing where a run does not have it or has nothing to
        measure: see :meth:`fivelenses.measurements.Measurements.measure`.
        """
        record = self.measurements.measure(function, **arguments)
        if isinstance(record, pd.DataFrame) and not len(record.columns):
            return Missing(function, self.measurements.not_measured.get(function, NOTHING))
        return record

    def gate(
        self,
        models: pd.DataFrame | Missing,
        predictions: pd.DataFrame | Missing,
        gains: Mapping[str, float] | None = None,
        words: pd.DataFrame | Missing | None = None,
    ) -> None:
        """Find the tasks that the ordinary ones of `models` did not learn (`judging.unlearned`; without words, the null
        rate alone decides), say so on the page, and leave them out of all claims.
        """
        if lacking := [one for one in (models, predictions) if isinstance(one, Missing)]:
            display(Markdown(f"*It is not known what was learned*: {lacking[0].sentence}."))
            return
        words = None if isinstance(words, Missing) else words
        learned = judging.ordinary(models), predictions, self.settings.encoder
        self.excluded = judging.unlearned(*learned, gains, words)
        reasons = "; ".join(dict.fromkeys(self.excluded.values()))
        all_learned = "All tasks were learned, so all are judged."
        display(Markdown(f"*Not clearly learned, so left out of the claims*: {reasons}." if reasons else all_learned))

    def figure(
        self,
        title: str,
        drawing: Drawing | Missing | None,
        caption: str,
        if_empty: str = NOTHING,
        key: str = "",
    ) -> None:
        """Save a picture into the run's folder and show it; where there is nothing to draw, say why.

        Args:
            title: the paper's name of it, `Figure 1`, or our own.
            if_empty: the rest of a sentence that begins with "because".
            key: what it is called in addresses and findings, where that is not the title.
        """
        if isinstance(drawing, Drawing):
            self._show(Exhibit(self._key(key or title), title, caption, drawing.table, drawing))
        else:
            self._say_why(title, drawing, if_empty)

    def table(
        self,
        title: str,
        table: pd.DataFrame | Missing,
        caption: str,
        columns: Mapping[str, str] | None = None,
        formats: Mapping[str, Format] | None = None,
        if_empty: str = NOTHING,
        key: str = "",
        shown: pd.DataFrame | None = None,
    ) -> None:
        """As `figure`, a table: tidy, with the columns that the page prints and how (`exhibits.table_html`), or what
        is `shown` in another shape.
        """
        if isinstance(table, Missing) or table.empty:
            self._say_why(title, table, if_empty)
        else:
            printed = dict(columns=columns or {}, formats=formats or {}, shown=shown)
            self._show(Exhibit(self._key(key or title), title, caption, table, **printed))

    def _key(self, title: str) -> str:
        return f"{self.name}-" + re.sub(r"\W+", "-", title.lower()).strip("-")

    def _show(self, exhibit: Exhibit) -> None:
        exhibit.save(self.folder)
        self.exhibits.append(exhibit)
        display(HTML(exhibit.html))

    def _say_why(self, title: str, missing: object, if_empty: str) -> None:
        why = missing.sentence if isinstance(missing, Missing) else if_empty
        self.log(f"{title} is not here, because {why}.")
        display(Markdown(f"{title} is not here, because {why}."))

    def claim(self, key: str, says: str, place: str, record: Record, **declared_as) -> Callable:
        """Judge a claim by the function below, on the rows of fine-tuned models and of each control, and show its card.

        Args:
            key, says, place: its name, the paper's sentence in our words, and where it stands.
            record: the rows that it is about, with folds and controls; or several tables by name.
            declared_as: further fields of `judging.Claim`. `exhibits` are titles; the exhibit above is the one that
                shows it unless others are named.
        """

        def declare(function: Callable) -> Callable:
            titles = declared_as.pop("exhibits", None)
            keys = [one.key for one in self.exhibits[-1:]] if titles is None else map(self._key_of, titles)
            measure = " ".join((function.__doc__ or "").split()).removesuffix(".")
            if measure[1:2].islower():  # no name or abbreviation
                measure = measure[:1].lower() + measure[1:]
            code = function.__name__
            claim = Claim(key, self.name, says, place, measure, code, exhibits=tuple(keys), **declared_as)
            verdict = judging.judge(claim, function, record, self.excluded)
            self.claims.append((claim, verdict))
            name, held = key.replace("-", "_"), f"{len(verdict.of(HOLDS))} of {len(verdict.groups)}"
            values = {"verdict": verdict.outcome, "value": verdict.range, "held": held}
            self.glue(**{f"{name}_{what}": value for what, value in values.items()})
            shown = [one.key for one in self.exhibits]
            display(HTML(card(claim, verdict, shown)))
            return function

        return declare

    def _key_of(self, title: str) -> str:
        """The key of an exhibit above."""
        return next((one.key for one in self.exhibits if one.title == title), self._key(title))

    def glue(self, **values) -> None:
        """Make values available to the prose of the page, under these names."""
        for name, value in values.items():
            glue(name, value if isinstance(value, str) else f"{value:.3g}", display=False)

    def finish(self) -> None:
        """Write ``claims.json``, what became of the claims, and ``run.json``: what was run, from which records, and
        what measuring them took. A run without it is unfinished. Show the list of claims with links to their cards.
        """
        reproduced = sum(verdict.outcome == REPRODUCED for _, verdict in self.claims)
        self.glue(claims_reproduced=f"{reproduced} of {len(self.claims)}")
        judging.save(self.claims, self.folder)
        facts = {"chapter": self.chapter.number, "profile": self.profile}
        facts["parameters"] = self.settings.model_dump(mode="json")
        facts["exhibits"] = sorted(one.key for one in self.exhibits)
        facts |= self.measurements.summary()
        with written_beside(self.folder / "run.json") as place:
            place.write_text(json.dumps(facts, indent=1), encoding="utf-8")
        lines = [
            f'<li><a href="#claim-{claim.key}"><code>{claim.key}</code></a> {escape(claim.says)} '
            f"<em>{verdict.outcome.capitalize()}</em>.</li>"
            for claim, verdict in self.claims
        ]
        display(HTML(f'<ul class="claims">{"".join(lines)}</ul>'))


def begin(number: int, namespace: Mapping) -> Run:
    """Begin a run of a chapter: its parameters checked, its folder made. A notebook that is run by hand has a place of
    its own, and never writes into a finished run.

    Args:
        number: the chapter.
        namespace: the notebook's `globals()`, after its cell of parameters: None means as the profile says.

    Refused: a parameter that does not exist or fit, and a GPU asked for where there is none.
    """
    chapter = find_chapter(number)
    committed = os.environ.get(RECORDS_VARIABLE)
    if committed:
        facts = json.loads((Path(committed) / "run.json").read_text(encoding="utf-8"))
        parameters, profile, overrides = chapter.parameters(**facts["parameters"]), facts["profile"], {}
    else:
        profile = namespace.get("profile", "tiny")
        overrides = set_by_hand(namespace)
        parameters = settings(number, profile, **overrides)
        overrides = resolved(parameters, overrides)
        check_device(parameters)
    named = os.environ.get(RUN_FOLDER_VARIABLE)
    folder = Path(named) if named else project.runs_folder() / "by-hand" / folder_name(chapter, profile, overrides)
    folder.mkdir(parents=True, exist_ok=True)
    return Run(chapter, profile, parameters, folder, Path(committed) if committed else None)


def set_by_hand(namespace: Mapping) -> dict:
    """What a notebook's namespace sets: every plain value under a name in small letters; constants are in capitals.

    >>> set_by_hand({"profile": "tiny", "seeds": [0, 1], "tasks": None, "In": [], "_": 3, "json": json})
    {'seeds': [0, 1]}
    """
    of_ipython = ("exit", "quit", "open", "get_ipython", "profile")
    return {
        name: value
        for name, value in namespace.items()
        if name.islower() and not name.startswith("_") and name not in of_ipython and isinstance(value, PLAIN)
    }
