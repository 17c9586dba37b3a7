"""A run as a notebook sees it: parameters, records, exhibits, claims.

`measure` gives a record if it is there and current, and measures otherwise; all that follows is a function of records.
A published run reads committed records and its parameters from its ``run.json``, and imports no library that trains.
"""

import inspect
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from IPython.display import HTML, Markdown, display
from myst_nb import glue

from fivelenses import judging, processes, records
from fivelenses.book.cards import card
from fivelenses.chapters import Chapter, ChapterParameters, check_device, find_chapter, folder_name, resolved, settings
from fivelenses.exhibits import Drawing, Exhibit, Format
from fivelenses.files import RECORDS_VARIABLE, RUN_FOLDER_VARIABLE, records_folder, runs_folder, written_beside
from fivelenses.judging import HOLDS, REPRODUCED, Claim, Record, Verdict
from fivelenses.records import Identity, Missing

if TYPE_CHECKING:
    from fivelenses.checkpoints.specification import Specification
    from fivelenses.checkpoints.store import Checkpoint

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
        used: the records so far, by the name of their file.
        not_measured: why a measurement was not made, by its name.
        outdated: measurements of a published run whose code has changed since.
        checkpoints: those that were trained or checked so far.
    """

    chapter: Chapter
    profile: str
    settings: ChapterParameters
    folder: Path
    committed: Path | None = None
    exhibits: list[Exhibit] = field(default_factory=list)
    claims: list[tuple[Claim, Verdict]] = field(default_factory=list)
    excluded: dict[str, str] = field(default_factory=dict)
    used: dict[str, records.Record] = field(default_factory=dict)
    not_measured: dict[str, str] = field(default_factory=dict)
    outdated: list[str] = field(default_factory=list)
    checkpoints: dict["Specification", "Checkpoint"] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The paper's key; of a chapter without a paper its own name."""
        return self.chapter.paper or self.chapter.slug.partition("-")[2]

    def log(self, line: str) -> None:
        """One line of progress: to the run's log, where a runner in front shows it; printed when there is none."""
        if RUN_FOLDER_VARIABLE in os.environ:
            with (self.folder / "progress.log").open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        else:
            print(line)

    # --- measurements -------------------------------------------------------------------------------------------------

    def measure(
        self,
        function: str,
        of: Mapping | Callable[..., Sequence] | None = None,
        each: str | Sequence[str] = (),
        over: Mapping[str, Iterable] | Sequence[Mapping] | Callable | None = None,
        **given,
    ) -> pd.DataFrame | dict[str, pd.DataFrame] | Missing:
        """The record that a function measures: read if it is there and current, measured and kept otherwise; missing
        where a published run does not have it, or there is nothing to measure.

        The function is imported only to measure. Its parameters are filled in by name, from `given` first and from the
        chapter's parameters otherwise. `checkpoints` are the fine-tuned models, trained when they are first needed, and
        are a sequence; `device` and `log` are where it runs and whom it tells, and do not make another record.

        Args:
            function: the name of one in the chapter's `measures`; it returns one table, or several by name.
            of: the models that are measured, by fields of their specifications (`ChapterParameters.models`); all of the
                chapter when None. Or what gives the specifications: if it takes a parameter of `over`, each value is
                measured on its own models.
            each: names of a specification's fields: models that agree in these are measured together, and each group
                is a file of its own, so that a measurement that was interrupted goes on where it was.
            over: a parameter of the function to the values that are measured one after another, likewise; or these
                arguments one after another; or a function that gives either, which a published run does not ask.
            given: parameters of the function that are not the chapter's.

        Refused: a name that the chapter does not measure, and a damaged record of a published run.
        """
        module = records.measuring_module(function, self.chapter.measures)
        if self.committed is not None:
            parts = self._published(function, module)
        else:
            parts = self._parts(getattr(import_module(module), function), of, each, over, given)
        if not parts:
            return Missing(function, self.not_measured[function])
        tables = {name: records.merge([part[name] for part in parts]).table for name in parts[0]}
        if list(tables) != [""]:
            return tables
        return tables[""] if len(tables[""].columns) else Missing(function, NOTHING)

    def _published(self, name: str, module: str) -> list[dict[str, records.Record]]:
        """A measurement's committed tables by name, empty where there is one; none that was not made."""
        files = sorted(self.committed.glob(f"{name}.parquet")) or sorted(self.committed.glob(f"{name}.*.parquet"))
        if not files:
            facts = json.loads((self.committed / "run.json").read_text(encoding="utf-8"))
            self.not_measured[name] = facts["not_measured"].get(name, "it was published before chapters measured this")
            return []
        tables = {file.stem.partition(".")[2]: records.read(file) for file in files}
        if any(record.identity.code != records.measuring_code(module) for record in tables.values()):
            self.outdated.append(name)
        self.used |= zip((file.name for file in files), tables.values(), strict=True)
        return [tables]

    def _parts(self, function: Callable, of, each, over, given: Mapping) -> list[dict[str, records.Record]]:
        """The tables of each part of a measurement."""
        measured = over() if callable(over) else over or {}
        if isinstance(measured, Mapping):
            measured = [dict(zip(measured, values, strict=True)) for values in product(*measured.values())]
        asked = [(named, self._groups(function, of, each, named)) for named in measured]
        parts = [self._part(function, given | named, group, groups) for named, groups in asked for group in groups]
        if not parts:
            self.not_measured[function.__name__] = "its parameters ask for nothing of the kind"
        return parts

    def _groups(
        self, function: Callable, of: Mapping | Callable | None, each: str | Sequence[str], named: Mapping
    ) -> list:
        """The specifications whose models are measured together; one group, None, where no model is measured."""
        if "checkpoints" not in inspect.signature(function).parameters:
            return [None]
        values = [named[name] for name in inspect.signature(of).parameters] if callable(of) else []
        fields = [each] if isinstance(each, str) else each
        groups: dict[tuple, list] = {}
        for one in of(*values) if callable(of) else self.settings.models(**(of or {})):
            groups.setdefault(tuple(getattr(one, name) for name in fields), []).append(one)
        # A value of `over` may need no model: the pre-trained encoder does not.
        return list(groups.values()) or ([[]] if values else [])

    def _part(self, function: Callable, arguments: dict, group: list | None, groups: list) -> dict[str, records.Record]:
        """The tables of one part by name: read if they are there and whole, measured otherwise."""
        taken = {*inspect.signature(function).parameters} - {"device"}
        arguments = {name: value for name, value in self.settings if name in taken} | arguments
        described = json.loads(json.dumps(arguments))
        if self.settings.source == "toyworld":
            described["toyworld"] = records.toy_world_digest()
        if {"encoder", "encoders", "pretrained", "independent"} & {*arguments}:
            from fivelenses.models import encoders

            # What stands behind the names.
            read = self.settings.encoders_read()
            described["identities"] = {name: encoders.locate(name).identity for name in read}
        addresses = tuple(one.address for one in group or ())
        identity = Identity(function.__name__, records.measuring_code(function.__module__), described, addresses)
        kept = self._kept(identity)
        # A run that was killed between two tables of one measurement left a part of them.
        if not kept or len(kept) < next(iter(kept.values())).facts.get("tables", 1):
            self._measure(function, arguments, group, groups, identity)
            kept = self._kept(identity)
        self.used |= kept
        # NAME.TABLE.DIGEST.parquet, or without a table.
        return {"".join(name.split(".")[1:-2]): record for name, record in kept.items()}

    def _kept(self, identity: Identity) -> dict[str, records.Record]:
        """This machine's records of a part, by the name of their file; none where one is damaged."""
        files = (records_folder() / self.chapter.slug).glob(f"{identity.function}.*{identity.digest}.parquet")
        try:
            return {file.name: records.read(file) for file in sorted(files)}
        except records.RecordError as error:
            self.log(f"{str(error).partition(':')[0]}: it is measured again.")
            return {}

    def _measure(self, function: Callable, arguments: dict, group: list | None, groups: list, identity: Identity):
        from fivelenses.checkpoints.finetuning import environment

        names, trained = inspect.signature(function).parameters, {}
        if group is not None:
            # All groups at once, so that small models train side by side.
            self._prepared([one for other in groups for one in other])
            checkpoints = self._prepared(group)
            trained = {one.folder.name: one.manifest["seconds"] for one in checkpoints}
            arguments = {"checkpoints": checkpoints, **arguments}
        if "device" in names:
            arguments = arguments | {"device": None if self.settings.device == "auto" else self.settings.device}
        if "log" in names:
            arguments = arguments | {"log": self.log}
        started = time.monotonic()
        progress = f"{function.__name__} is being measured, for {{:.0f}} s so far"
        with processes.repeated(lambda: self.log(progress.format(time.monotonic() - started))):
            result = function(**arguments)
        tables = result if isinstance(result, dict) else {"": result}
        seconds = round(time.monotonic() - started, 1)
        facts = environment(self.settings.device) | {"seconds": seconds, "trained": trained, "tables": len(tables)}
        facts["peak_memory"] = processes.peak_memory()
        for key, table in tables.items():
            file = ".".join(filter(None, (function.__name__, key, identity.digest, "parquet")))
            records.write(records_folder() / self.chapter.slug / file, records.Record(table, identity, facts))
        self.log(f"{function.__name__} measured in {seconds:.0f} s")

    def _prepared(self, specifications: Sequence["Specification"]) -> list["Checkpoint"]:
        """The checkpoints of these specifications, each trained or checked once in a run."""
        from fivelenses.checkpoints.finetuning import prepare

        lacking = [one for one in dict.fromkeys(specifications) if one not in self.checkpoints]
        if lacking:
            made = prepare(lacking, log=self.log, device=self.settings.device)
            self.checkpoints |= zip(lacking, made, strict=True)
        return [self.checkpoints[one] for one in specifications]

    def summary(self) -> dict:
        """Which records were used, on what they were measured, and what measuring and training took, in seconds;
        `peak_memory` is the most bytes that a process that measured one of them had held by then.
        """
        files: dict[str, list[str]] = {}
        for name, record in self.used.items():
            files.setdefault(record.identity.function, []).append(name)
        facts = [record.facts for record in self.used.values()]
        trained = {address: took for one in facts for address, took in one["trained"].items()}
        versions = pd.DataFrame([one["versions"] for one in facts])
        return {
            "records": files,
            "outdated": self.outdated,
            "not_measured": self.not_measured,
            "specifications": sorted({address for one in self.used.values() for address in one.identity.checkpoints}),
            "device": " and ".join(dict.fromkeys(one["device"] for one in facts)),
            "python": ", ".join(dict.fromkeys(one["python"] for one in facts)),
            "versions": {name: ", ".join(column.dropna().unique()) for name, column in versions.items()},
            # The tables of one measurement each have all of its seconds.
            "seconds": round(sum(one["seconds"] / one.get("tables", 1) for one in facts), 1),
            "training_seconds": round(sum(trained.values()), 1),
            "peak_memory": max((one.get("peak_memory", 0) for one in facts), default=0),
        }

    # --- exhibits and claims ------------------------------------------------------------------------------------------

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
        facts |= self.summary()
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
    folder = Path(named) if named else runs_folder() / "by-hand" / folder_name(chapter, profile, overrides)
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
