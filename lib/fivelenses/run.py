"""A run as a notebook sees it: parameters, records, exhibits, claims.

A published run reads committed records and its parameters from its ``run.json``, and imports no library that trains.
"""

import inspect
import json
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib import import_module
from itertools import product
from pathlib import Path

import pandas as pd
from IPython.display import HTML, Markdown, display
from myst_nb import glue

from fivelenses import judging, processes, records
from fivelenses.book.cards import by_value, card
from fivelenses.chapters import CHAPTERS, Chapter, ChapterParameters, check_device, settings
from fivelenses.exhibits import Drawing, Exhibit
from fivelenses.files import RECORDS_VARIABLE, RUN_FOLDER_VARIABLE, RunError, records_folder, runs_folder
from fivelenses.judging import HOLDS, REPRODUCED, Claim, Record, Verdict
from fivelenses.records import Identity, Missing

NOTHING = "there is nothing to measure"
PLAIN = (str, int, float, list, tuple, dict)  # the types of a parameter's value


@dataclass
class Run:
    """One execution of a chapter: what is run, the folder that it writes to, that of a published run's records
    (`committed`, None for a run that may measure), and what came of it so far.
    """

    chapter: Chapter
    profile: str
    settings: ChapterParameters
    folder: Path
    committed: Path | None = None
    exhibits: list[Exhibit] = field(default_factory=list)
    claims: list[tuple[Claim, Verdict]] = field(default_factory=list)
    excluded: dict[str, str] = field(default_factory=dict)  # why tasks take no part in claims (`judging.unlearned`)
    used: dict[str, records.Record] = field(default_factory=dict)  # by the name of the file
    not_measured: dict[str, str] = field(default_factory=dict)  # why, by the measurement's name
    outdated: list[str] = field(default_factory=list)  # published measurements whose code has changed since
    checkpoints: dict = field(default_factory=dict)  # trained or checked, by specification
    checked: bool = False  # whether its inputs are fit, which is asked before anything is measured

    @property
    def name(self) -> str:
        """The paper's key; of a chapter without a paper its own name."""
        return self.chapter.paper or self.chapter.slug.partition("-")[2]

    def log(self, line: str) -> None:
        """One line of progress, which a runner in front takes out of the page."""
        print(f"{line}\n", end="", flush=True)  # whole, whatever another thread prints

    # --- measurements -------------------------------------------------------------------------------------------------

    def measure(self, function: str, of=None, each: str | Sequence[str] = (), over=None, **given) -> Record:
        """The record that a function measures: read if it is there and current, measured and kept otherwise; missing
        where a published run does not have it, or there is nothing to measure.

        The function's parameters are filled in by name, from `given` and the chapter's; `checkpoints`, a sequence, are
        the fine-tuned models; `device` and `log` do not make another record.

        Args:
            function: the name of one in the chapter's `measures`; it returns one table, or several by name.
            of: fields of the models' specifications (`ChapterParameters.models`), by default all; or a function that
                gives the specifications, for each value of a parameter of `over` that it takes.
            each: fields of a specification: models that agree in these are measured together and are a file of their
                own, so that a measurement that was interrupted goes on where it was.
            over: values of parameters, of which every combination is measured likewise; or the combinations; or a
                function that gives either, which a published run does not call.

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
        files = sorted(self.committed.glob(f"{name}.*parquet"))
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
        """The tables of each part of a measurement, by name: read if they are there and whole, measured otherwise."""
        taken = inspect.signature(function).parameters
        given = {name: one for name, one in self.settings if name in taken and name != "device"} | given
        measured = over() if callable(over) else over or {}
        if isinstance(measured, Mapping):
            measured = [dict(zip(measured, values, strict=True)) for values in product(*measured.values())]
        asked = [(given | named, group) for named in measured for group in self._groups(function, of, each, named)]
        if not asked:
            self.not_measured[function.__name__] = "its parameters leave it out"
        identities = [self._identity(function, *one) for one in asked]
        parts = [self._kept(identity) for identity in identities]
        missing = [number for number, part in enumerate(parts) if not part]
        # All at once, so that small models train side by side; a part that is kept needs none.
        models = [one for number in missing for one in asked[number][1]]
        for number in missing:
            self._measure(function, *asked[number], models, identities[number])
            parts[number] = self._kept(identities[number])
        self.used |= {name: record for part in parts for name, record in part.items()}
        # NAME.TABLE.DIGEST.parquet, or without a table.
        return [{"".join(name.split(".")[1:-2]): record for name, record in part.items()} for part in parts]

    def _groups(self, function: Callable, of, each: str | Sequence[str], named: Mapping) -> list:
        """The specifications whose models are measured together; an empty group where no model is measured."""
        if "checkpoints" not in inspect.signature(function).parameters:
            return [[]]
        values = [named[name] for name in inspect.signature(of).parameters] if callable(of) else []
        fields = [each] if isinstance(each, str) else each
        groups: dict[tuple, list] = {}
        for one in of(*values) if callable(of) else self.settings.models(**(of or {})):
            groups.setdefault(tuple(getattr(one, name) for name in fields), []).append(one)
        # A value of `over` may need no model: the pre-trained encoder does not.
        return list(groups.values()) or ([[]] if values else [])

    def _identity(self, function: Callable, arguments: Mapping, group: list) -> Identity:
        described = json.loads(json.dumps(arguments))
        if self.settings.source == "toyworld":
            described["toyworld"] = records.code_digest(["toyworld.__init__"])
        if {"encoder", "encoders", "pretrained", "independent"} & {*arguments}:
            from fivelenses.models.encoders import locate

            described["identities"] = {name: locate(name).identity for name in self.settings.encoders_read()}
        code = records.measuring_code(function.__module__)
        return Identity(function.__name__, code, described, tuple(one.address for one in group))

    def _kept(self, identity: Identity) -> dict[str, records.Record]:
        """This machine's records of a part by file; none where one is damaged or was not written before a kill."""
        files = (records_folder() / self.chapter.slug).glob(f"{identity.function}.*{identity.digest}.parquet")
        try:
            kept = {file.name: records.read(file) for file in sorted(files)}
        except RunError as error:
            self.log(f"{str(error).partition(':')[0]}: it is measured again.")
            return {}
        return kept if all(len(kept) >= record.facts["tables"] for record in kept.values()) else {}

    def _measure(self, function: Callable, arguments: Mapping, group: list, models: list, identity: Identity):
        """Write the records of one part; `models` are those that all missing parts need."""
        from fivelenses.checkpoints.finetuning import environment
        from fivelenses.inputs import check_inputs

        if not self.checked:
            check_inputs(self.settings, self.log)
            self.checked = True
        self._prepared(models)
        name, device, checkpoints = function.__name__, self.settings.device, self._prepared(group)
        others = {"checkpoints": checkpoints, "device": None if device == "auto" else device, "log": self.log}
        taken = inspect.signature(function).parameters
        arguments = {key: value for key, value in others.items() if key in taken} | arguments
        started = time.monotonic()
        progress = f"{name} is being measured, for {{:.0f}} s so far"
        with processes.repeated(lambda: self.log(progress.format(time.monotonic() - started))):
            result = function(**arguments)
        tables = result if isinstance(result, dict) else {"": result}
        facts = environment(device) | {"seconds": round(time.monotonic() - started, 1), "tables": len(tables)}
        trained = {one.folder.name: one.manifest["seconds"] for one in checkpoints}
        facts |= {"trained": trained, "peak_memory": processes.peak_memory()}
        for key, table in tables.items():
            file = ".".join(filter(None, (name, key, identity.digest, "parquet")))
            records.write(records_folder() / self.chapter.slug / file, records.Record(table, identity, facts))
        self.log(f"{name} measured in {facts['seconds']:.0f} s")

    def _prepared(self, specifications: Sequence) -> list:
        """The checkpoints of these specifications, each trained or checked once in a run."""
        from fivelenses.checkpoints.finetuning import prepare

        if missing := [one for one in dict.fromkeys(specifications) if one not in self.checkpoints]:
            made = prepare(missing, log=self.log, device=self.settings.device)
            self.checkpoints |= zip(missing, made, strict=True)
        return [self.checkpoints[one] for one in specifications]

    def summary(self) -> dict:
        """Which records were used, on what they were measured, and what measuring and training took, in seconds."""
        facts = [record.facts for record in self.used.values()]
        trained = {address: took for one in facts for address, took in one["trained"].items()}
        versions = pd.DataFrame([one["versions"] for one in facts])
        return {
            "records": by_value({name: record.identity.function for name, record in self.used.items()}),
            "outdated": self.outdated,
            "not_measured": self.not_measured,
            "specifications": sorted({address for one in self.used.values() for address in one.identity.checkpoints}),
            "device": " and ".join(dict.fromkeys(one["device"] for one in facts)),
            "python": ", ".join(dict.fromkeys(one["python"] for one in facts)),
            "versions": {name: ", ".join(column.dropna().unique()) for name, column in versions.items()},
            # The tables of one measurement each have all of its seconds.
            "seconds": round(sum(one["seconds"] / one["tables"] for one in facts), 1),
            "training_seconds": round(sum(trained.values()), 1),
            "peak_memory": max((one.get("peak_memory", 0) for one in facts), default=0),
        }

    # --- exhibits and claims ------------------------------------------------------------------------------------------

    def gate(self, models: Record, predictions: Record, gains: Mapping | None = None, words: Record = ()) -> None:
        """Find the tasks that the ordinary ones of `models` did not learn (`judging.unlearned`; without words, the null
        rate alone decides), say so on the page, and leave them out of all claims.
        """
        if missing := [one for one in (models, predictions) if isinstance(one, Missing)]:
            display(Markdown(f"*It is not known what was learned*: {missing[0].sentence}."))
            return
        self.excluded = judging.unlearned(judging.ordinary(models), predictions, self.settings.encoder, gains, words)
        reasons = "; ".join(dict.fromkeys(self.excluded.values()))
        all_learned = "All tasks were learned, so all are judged."
        display(Markdown(f"*Not clearly learned, so left out of the claims*: {reasons}." if reasons else all_learned))

    def figure(
        self, title: str, drawing: Drawing | Record, caption: str, if_empty: str = NOTHING, key: str = ""
    ) -> None:
        """Save a picture into the run's folder and show it; arguments as `table`."""
        table = drawing.table if isinstance(drawing, Drawing) else drawing
        self.table(title, table, caption, if_empty, key, drawing=drawing)

    def table(self, title: str, table: Record, caption: str, if_empty: str = NOTHING, key: str = "", **printed) -> None:
        """Save a table into the run's folder and show it; where there is nothing to show, say why.

        Args:
            title: the paper's name of it, `Table 1`, or our own.
            if_empty: why it is not here, the rest of a sentence.
            key: what it is called in addresses and findings, where that is not the title.
            printed: the `columns` that the page prints and their `formats` (`exhibits.table_html`), or what is `shown`
                in another shape than the tidy one.
        """
        if not len(table):
            why = f"{title} is not here: {table.sentence if isinstance(table, Missing) else if_empty}."
            self.log(why)
            display(Markdown(why))
            return
        exhibit = Exhibit(self._key(key or title), title, caption, table, **printed)
        exhibit.save(self.folder)
        self.exhibits.append(exhibit)
        display(HTML(exhibit.html))

    def _key(self, title: str) -> str:
        return f"{self.name}-" + re.sub(r"\W+", "-", title.lower()).strip("-")

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
            shown = {one.title: one.key for one in self.exhibits}
            keys = [*shown.values()][-1:] if titles is None else [shown.get(one, self._key(one)) for one in titles]
            measure = " ".join((function.__doc__ or "").split()).removesuffix(".")
            if measure[1:2].islower():  # no name or abbreviation
                measure = measure[:1].lower() + measure[1:]
            claim = Claim(key, self.name, says, place, measure, function.__name__, exhibits=tuple(keys), **declared_as)
            verdict = judging.judge(claim, function, record, self.excluded)
            self.claims.append((claim, verdict))
            held = f"{len(verdict.of(HOLDS))} of {len(verdict.groups)}"
            name = key.replace("-", "_")
            self.glue(**{f"{name}_verdict": verdict.outcome, f"{name}_value": verdict.range, f"{name}_held": held})
            display(HTML(card(claim, verdict, [one.key for one in self.exhibits])))
            return function

        return declare

    def glue(self, **values) -> None:
        """Make values available to the prose of the page, under these names."""
        for name, value in values.items():
            glue(name, value if isinstance(value, str) else f"{value:.3g}", display=False)

    def finish(self) -> None:
        """Show the list of claims with links to their cards, and write ``claims.json``, what became of them, and
        ``run.json``: what was run, from which records, and what measuring took. A run without it is unfinished.
        """
        reproduced = sum(verdict.outcome == REPRODUCED for _, verdict in self.claims)
        self.glue(claims_reproduced=f"{reproduced} of {len(self.claims)}")
        judging.save(self.claims, self.folder)
        facts = {"chapter": self.chapter.number, "profile": self.profile, **self.summary()}
        facts["parameters"] = self.settings.model_dump(mode="json")
        if self.committed is None:
            from fivelenses.checkpoints.finetuning import resolved_precision

            # On another machine `auto` may be another one.
            facts["parameters"]["precision"] = resolved_precision(self.settings.precision, self.settings.device)
        facts["exhibits"] = sorted(one.key for one in self.exhibits)
        (self.folder / "run.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")
        lines = "".join(
            f'<li><a href="#claim-{claim.key}"><code>{claim.key}</code></a> {escape(claim.says)} '
            f"<em>{verdict.outcome.capitalize()}</em>.</li>"
            for claim, verdict in self.claims
        )
        display(HTML(f'<ul class="claims">{lines}</ul>'))


def begin(number: int, namespace: Mapping) -> Run:
    """Begin a run of a chapter: its parameters checked, its folder made. A notebook that is run by hand has a place of
    its own, and never writes into a finished run.

    Of `namespace`, the notebook's `globals()` after its cell of parameters, every plain value under a name in small
    letters is one; None means as the profile says. Refused: a parameter that does not exist or fit, and a GPU asked
    for where there is none.
    """
    chapter, committed = CHAPTERS[number], os.environ.get(RECORDS_VARIABLE)
    if committed:
        facts = json.loads((Path(committed) / "run.json").read_text(encoding="utf-8"))
        parameters, profile = chapter.parameters(**facts["parameters"]), facts["profile"]
    else:
        # Constants are in capitals, and what begins with an underscore is the notebook's own; so is every other name
        # where all cells are run again.
        names = [name for name in namespace if name.islower() and not name.startswith("_")]
        if "run" in namespace:
            names = [name for name in names if name in {"profile", *chapter.parameters.model_fields}]
        given = {name: namespace[name] for name in names if isinstance(namespace[name], PLAIN)}
        profile = given.pop("profile", "tiny")
        parameters = settings(number, profile, **given)
        check_device(parameters)
    folder = Path(os.environ.get(RUN_FOLDER_VARIABLE) or runs_folder() / "by-hand" / profile / chapter.slug)
    folder.mkdir(parents=True, exist_ok=True)
    return Run(chapter, profile, parameters, folder, Path(committed) if committed else None)
