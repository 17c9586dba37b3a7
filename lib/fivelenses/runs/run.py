"""A run as a notebook sees it: parameters, records, exhibits, verdicts.

`Run.measure` gives a record if it is there and current, and measures otherwise. Everything else is a pure function of
records. A published run is read-only: its parameters come from its ``run.json``, its records are those that are
committed, and neither data nor encoders nor checkpoints are needed.
"""

import inspect
import json
import os
import platform
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from itertools import product
from pathlib import Path

import pandas as pd
from IPython.display import HTML, Markdown, display
from myst_nb import glue

from fivelenses import project, records
from fivelenses.exhibits import gate
from fivelenses.exhibits.claims import Claim, judge_all, save
from fivelenses.exhibits.exhibit import Absent, Exhibit
from fivelenses.exhibits.verdicts import HOLDS, REPRODUCED
from fivelenses.files import written_beside
from fivelenses.records import Identity, Record
from fivelenses.runs.cards import cards
from fivelenses.runs.folders import RECORDS_VARIABLE, RUN_FOLDER_VARIABLE, STAMP_VARIABLE, folder_name
from fivelenses.runs.own_tasks import resolved
from fivelenses.runs.parameters import ChapterParameters, ParameterError
from fivelenses.runs.settings import Chapter, find_chapter, settings

PACKAGES = ("torch", "transformers", "datasets", "numpy", "scipy", "scikit-learn")
# Parameters of a measurement that say where and how loudly it runs, not what it measures.
NOT_MEASURED = ("checkpoints", "device", "log")
# What a parameter's value can be; everything else in a notebook's namespace is none.
PLAIN = (str, int, float, bool, list, tuple, dict)


@dataclass(frozen=True)
class NotMeasured:
    """In the place of a record that a published run does not have.

    Attributes:
        name: of the measurement.
        reason: the rest of a sentence that begins with "because".
    """

    name: str
    reason: str


@dataclass
class Run:
    """One execution of a chapter.

    Attributes:
        chapter, profile, settings: what is run.
        folder: where exhibits, verdicts and facts are written.
        committed: the folder of a published run's records; None for a run that may measure.
        tables: the tables of the exhibits so far, by key.
        used: the records so far, by the name of the measurement: their files.
        not_measured: why a measurement was not made, by its name.
        measured: the records so far, by the name of the measurement.
        unlearned: why tasks that were not learned take no part in claims, by task (`gate.unlearned`).
    """

    chapter: Chapter
    profile: str
    settings: ChapterParameters
    folder: Path
    committed: Path | None = None
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    used: dict[str, list[str]] = field(default_factory=dict)
    not_measured: dict[str, str] = field(default_factory=dict)
    facts: list[dict] = field(default_factory=list)
    addresses: dict[str, None] = field(default_factory=dict)
    outdated: list[str] = field(default_factory=list)
    measured: dict[str, pd.DataFrame | dict[str, pd.DataFrame] | NotMeasured] = field(default_factory=dict)
    unlearned: dict[str, str] = field(default_factory=dict)

    def log(self, line: str) -> None:
        """One line of progress: to the run's log, where a runner in front shows it; printed when there is none."""
        if RUN_FOLDER_VARIABLE in os.environ:
            with (self.folder / "progress.log").open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        else:
            print(line)

    # --- records ---

    def measure(
        self,
        function: Callable,
        of: Callable[[], Sequence] | None = None,
        each: str | Sequence[str] = (),
        over: Mapping[str, Iterable] | None = None,
        **given,
    ) -> pd.DataFrame | dict[str, pd.DataFrame] | NotMeasured:
        """The record that a function measures: read if it is there and current, measured and kept otherwise.

        The function's parameters are filled in by name, from `given` first and from the chapter's parameters
        otherwise. `checkpoints` are the fine-tuned models, trained when they are first needed, and are a sequence;
        `device` and `log` are where it runs and whom it tells, and do not make another record.

        Args:
            function: returns one table, or several by name.
            of: gives the specifications of the models that are measured; all of the chapter when None.
            each: names of a specification's fields: models that agree in these are measured together, and each group
                is a file of its own, so that a measurement that was interrupted goes on where it was.
            over: a parameter of the function to the values that are measured one after another, likewise.
            given: parameters of the function that are not the chapter's.

        Raises:
            RecordError: a published run lacks the record.
            TypeError: the function has a parameter that nobody gives.
        """
        committed = self.committed is not None
        record = self._committed(function) if committed else self._current(function, of, each, over, given)
        self.measured[function.__name__] = record
        return record

    def _current(self, function, of, each, over, given) -> pd.DataFrame | dict[str, pd.DataFrame]:
        names = list(inspect.signature(function).parameters)
        groups = [None]
        if "checkpoints" in names:
            groups = _grouped((of or self.settings.specifications)(), [each] if isinstance(each, str) else list(each))
            for specification in (one for group in groups for one in group):
                self.addresses[specification.address] = None
        parts = []
        for group in groups:
            for values in product(*(over or {}).values()):
                arguments = self._arguments(function, names, given | dict(zip(over or {}, values, strict=True)))
                parts.append(self._part(function, arguments, group, groups))
        if not parts:
            self.not_measured[function.__name__] = "its parameters ask for nothing of the kind"
            return pd.DataFrame()
        return _tables([(name, records.merge(of_table)) for name, of_table in _by_name(parts)])

    def _committed(self, function: Callable):
        name = function.__name__
        lacking = json.loads((self.committed / "run.json").read_text(encoding="utf-8")).get("not_measured", {})
        if name in lacking:
            self.not_measured[name] = lacking[name]
            return NotMeasured(name, lacking[name])
        files = sorted(self.committed.glob(f"{name}.parquet")) or sorted(self.committed.glob(f"{name}.*.parquet"))
        if not files:
            raise records.RecordError(
                f"The published run of chapter {self.chapter.number} in {self.committed.parent.name} has no record of "
                f"{name}: measure it with `fivelenses run {self.chapter.number} --profile {self.profile}`, and publish."
            )
        read = [records.read(file) for file in files]
        code = records.measuring_code(function)
        if os.environ.get(STAMP_VARIABLE):
            read = [replace(record, identity=replace(record.identity, code=code)) for record in read]
            for file, record in zip(files, read, strict=True):
                records.write(file, record)
        if any(record.identity.code != code for record in read):
            self.outdated.append(name)
        self.used[name] = [file.name for file in files]
        self.facts += [record.facts for record in read]
        for record in read:
            self.addresses |= dict.fromkeys(record.identity.checkpoints)
        return _tables(list(zip([file.stem.partition(".")[2] for file in files], read, strict=True)))

    def _arguments(self, function: Callable, names: Sequence[str], given: Mapping) -> dict:
        """The function's parameters by name, but for those that make no other record."""
        parameters, arguments = inspect.signature(function).parameters, {}
        unknown = [name for name in given if name not in names]
        if unknown:
            raise TypeError(f"{function.__name__} has no parameter {unknown[0]!r}.")
        for name in names:
            if name in NOT_MEASURED:
                continue
            if name in given:
                arguments[name] = given[name]
            elif name in type(self.settings).model_fields:
                arguments[name] = getattr(self.settings, name)
            elif parameters[name].default is inspect.Parameter.empty:
                raise TypeError(f"{function.__name__} asks for {name!r}, which chapter {self.chapter.number} has not.")
        return arguments

    def _part(self, function: Callable, arguments: dict, group: list | None, groups: list) -> dict[str, Record]:
        """One part of a measurement, by the name of the table (empty where there is one table)."""
        described = json.loads(json.dumps(arguments, sort_keys=True, default=_as_json))
        if self.settings.source == "toyworld":
            described["toyworld"] = records.toy_world_digest()
        described |= self._encoders(arguments)
        addresses = () if group is None else tuple(one.address for one in group)
        identity = Identity(function.__name__, records.measuring_code(function), described, addresses)
        place = project.records_folder() / self.chapter.slug
        files = sorted(place.glob(f"{function.__name__}.*{identity.digest}.parquet"))
        # A run that was killed between two tables of one measurement left a part of them.
        if not files or len(files) < records.read(files[0]).facts.get("tables", 1):
            files = self._measured(function, arguments, group, groups, identity, place)
        self.used.setdefault(function.__name__, []).extend(file.name for file in files)
        found = {file.name.split(".")[1] if file.name.count(".") == 3 else "": records.read(file) for file in files}
        self.facts += [record.facts for record in found.values()]
        return found

    def _encoders(self, arguments: Mapping) -> dict:
        """What stands behind the names of encoders among the arguments."""
        from fivelenses.models import encoders

        if not {"encoder", "encoders", "pretrained", "independent"} & {*arguments}:
            return {}
        return {"identities": {name: encoders.locate(name).identity for name in self.settings.encoders_read()}}

    def _measured(self, function, arguments, group, groups, identity: Identity, place: Path) -> list[Path]:
        import torch

        from fivelenses.checkpoints.finetuning import prepare

        names, trained = inspect.signature(function).parameters, {}
        if group is not None:
            # All groups at once, so that small models train side by side.
            prepare([one for other in groups for one in other], log=self.log, device=self.settings.device)
            checkpoints = prepare(group, log=self.log, device=self.settings.device)
            trained = {one.folder.name: one.manifest["seconds"] for one in checkpoints}
            arguments = {"checkpoints": checkpoints, **arguments}
        if "device" in names:
            arguments = arguments | {"device": None if self.settings.device == "auto" else self.settings.device}
        if "log" in names:
            arguments = arguments | {"log": self.log}
        started = time.monotonic()
        result = function(**arguments)
        on_gpu = torch.cuda.is_available() and self.settings.device != "cpu"
        facts = {
            "device": torch.cuda.get_device_name() if on_gpu else f"CPU, {os.cpu_count()} cores",
            "python": platform.python_version(),
            "versions": {name: version(name) for name in PACKAGES},
            "seconds": round(time.monotonic() - started, 1),
            "trained": trained,
        }
        tables = result if isinstance(result, dict) else {"": result}
        facts["tables"] = len(tables)
        files = []
        for key, table in tables.items():
            files.append(place / ".".join(filter(None, (function.__name__, key, identity.digest, "parquet"))))
            records.write(files[-1], Record(table, identity, facts))
        self.log(f"{function.__name__} measured in {facts['seconds']:.0f} s")
        return files

    # --- what is made from records ---

    def exhibit(self, draw: Callable[..., Exhibit | Absent], *measured, **options) -> None:
        """Draw an exhibit from records, save it into the run's folder and show it; of one that the run cannot have,
        show why.

        Args:
            draw: takes what was measured, and gives the exhibit.
            measured: records, or what was made of them.
            options: further arguments.
        """
        lacking = [one for one in measured if isinstance(one, NotMeasured)]
        if lacking:
            of = [str(one) for one in (*measured, *options.values()) if isinstance(one, str)]
            # The papers' names of exhibits: Appendix B, Table 1.
            words = re.sub(r" ([a-z])$", lambda last: last.group().upper(), draw.__name__.replace("_", " "))
            title = words[:1].upper() + words[1:] + (f" of {', '.join(of)}" if of else "")
            Absent(draw.__name__, title, lacking[0].reason).show()
            return
        drawn = draw(*measured, **options)
        if isinstance(drawn, Absent):
            self.log(drawn.sentence)
            drawn.show()
            return
        drawn.save(self.folder)
        self.tables[drawn.key] = drawn.table
        drawn.show()

    def gate(
        self,
        models: pd.DataFrame | NotMeasured,
        predictions: pd.DataFrame | NotMeasured,
        of: Callable[[pd.DataFrame], pd.DataFrame] = gate.ordinary,
        leading: str = "",
    ) -> None:
        """Find the tasks that the ordinary models did not learn, say so on the page, and leave them out of all claims.

        Args:
            models: `checkpoints.tables.models`, of which the ordinary ones decide; none is left out if not measured.
            predictions: `checkpoints.predictions.by_example` of these; scores decide without intervals if not measured.
            of: takes the ordinary ones from the models.
            leading: the encoder whose tasks go by their names alone; the chapter's own if empty.
        """
        if isinstance(models, NotMeasured):
            display(Markdown(f"*Left out of all claims*: it is not known what was learned, because {models.reason}."))
            return
        table = gate.learned(of(models), None if isinstance(predictions, NotMeasured) else predictions)
        self.unlearned = dict(gate.unlearned(table, leading or self.settings.encoder))
        said = "; ".join(dict.fromkeys(self.unlearned.values()))
        display(Markdown(f"*Left out of all claims*: {said}." if said else "*Every task was learned*: all take part."))

    def judge(self, claims: Iterable[Claim]) -> None:
        """Judge claims on the records so far, save what became of them, show it, and glue the verdicts, the range of
        each first part over the groups, and the number of groups in which a claim holds, for the prose.
        """
        claims = list(claims)
        judged = judge_all(claims, {name: _given(record) for name, record in self.measured.items()}, self.unlearned)
        save(judged, self.folder)
        for claim, one in zip(claims, judged, strict=True):
            name, verdict = claim.key.replace("-", "_"), one.verdict
            self.glue(**{f"{name}_verdict": verdict.outcome, f"{name}_value": one.spread(claim.parts[0])})
            self.glue(**{f"{name}_held": f"{len(verdict.of(HOLDS))} of {len(verdict.groups)}"})
        reproduced = sum(one.verdict.outcome == REPRODUCED for one in judged)
        self.glue(claims_reproduced=f"{reproduced} of {len(judged)}")
        display(HTML(cards(claims, judged, self.tables)))

    def glue(self, **values) -> None:
        """Make values available to the prose of the page, under these names."""
        for name, value in values.items():
            glue(name, value if isinstance(value, str) else f"{value:.3g}", display=False)

    def finish(self) -> None:
        """Write ``run.json``: what was run, from which records, and what measuring them took. A run without it is
        unfinished.
        """
        trained = {address: took for facts in self.facts for address, took in facts["trained"].items()}
        facts = {
            "chapter": self.chapter.number,
            "profile": self.profile,
            "parameters": self.settings.model_dump(mode="json"),
            "records": self.used,
            "outdated": self.outdated,
            "not_measured": self.not_measured,
            "exhibits": sorted(self.tables),
            "specifications": sorted(self.addresses),
            "device": ", ".join(dict.fromkeys(facts["device"] for facts in self.facts)),
            "python": ", ".join(dict.fromkeys(facts["python"] for facts in self.facts)),
            "versions": {
                name: ", ".join(dict.fromkeys(facts["versions"].get(name, "unknown") for facts in self.facts))
                for name in PACKAGES
            },
            "seconds": measuring_seconds(self.facts),
            "training_seconds": round(sum(trained.values()), 1),
        }
        if self.committed is None and hasattr(self.settings, "encoders_read"):
            from fivelenses.runs.inputs import floating_revisions

            # What was read from a branch of the hub, and the commit that the branch was at.
            facts["floating_revisions"] = floating_revisions(self.settings)
        with written_beside(self.folder / "run.json") as place:
            place.write_text(json.dumps(facts, indent=1), encoding="utf-8")


def _given(record) -> pd.DataFrame | dict[str, pd.DataFrame] | str:
    """A record as `claims.judge` takes it: a text where there is none."""
    return record.reason if isinstance(record, NotMeasured) else record


def _as_json(value):
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    raise TypeError(f"A parameter of a measurement is plain data, not {type(value).__name__}.")


def _grouped(specifications: Sequence, fields: Sequence[str]) -> list[list]:
    """Specifications that agree in these fields, in the order in which they first come; all together without fields."""
    groups: dict[tuple, list] = {}
    for specification in specifications:
        groups.setdefault(tuple(getattr(specification, name) for name in fields), []).append(specification)
    return list(groups.values())


def _by_name(parts: Sequence[dict[str, Record]]) -> list[tuple[str, list[Record]]]:
    return [(name, [part[name] for part in parts]) for name in parts[0]]


def measuring_seconds(facts: Iterable[Mapping]) -> float:
    """What measuring took, from the facts of records: the tables of one measurement each have all of its seconds.

    Example:
        >>> measuring_seconds([{"seconds": 6.0, "tables": 2}, {"seconds": 6.0, "tables": 2}, {"seconds": 1.0}])
        7.0
    """
    return round(sum(one["seconds"] / one.get("tables", 1) for one in facts), 1)


def _tables(named: list[tuple[str, Record]]) -> pd.DataFrame | dict[str, pd.DataFrame]:
    tables = {name: record.table for name, record in named}
    return tables[""] if list(tables) == [""] else tables


def begin(number: int, given: Mapping) -> Run:
    """Begin a run of a chapter: its parameters checked, its folder made.

    The folder is the one that the runner in front names. A notebook that is run by hand has a place of its own, and
    never writes into a finished run.

    Args:
        number: the chapter.
        given: the notebook's `globals()`, after its cell of parameters: None means as the profile says.

    Raises:
        ParameterError: a parameter that does not exist or fit, or a GPU asked for where there is none.
    """
    chapter = find_chapter(number)
    committed = os.environ.get(RECORDS_VARIABLE)
    if committed:
        facts = json.loads((Path(committed) / "run.json").read_text(encoding="utf-8"))
        chosen, profile, overrides = chapter.parameters(**facts["parameters"]), facts["profile"], {}
    else:
        profile, overrides = given.get("profile", "tiny"), resolved(set_by_hand(given))
        chosen = settings(number, profile, **overrides)
        check_device(chosen, profile)
    named = os.environ.get(RUN_FOLDER_VARIABLE)
    folder = Path(named) if named else project.runs_folder() / "by-hand" / folder_name(chapter, profile, overrides)
    folder.mkdir(parents=True, exist_ok=True)
    return Run(chapter, profile, chosen, folder, Path(committed) if committed else None)


def set_by_hand(namespace: Mapping) -> dict:
    """What a notebook's namespace sets: every plain value that IPython has not put there.

    Example:
        >>> set_by_hand({"profile": "tiny", "seeds": [0, 1], "tasks": None, "In": [], "_": 3, "json": json})
        {'seeds': [0, 1]}
    """
    of_ipython = ("In", "Out", "exit", "quit", "open", "get_ipython", "profile")
    return {
        name: value
        for name, value in namespace.items()
        if value is not None and not name.startswith("_") and name not in of_ipython and isinstance(value, PLAIN)
    }


def check_device(chosen: ChapterParameters, profile: str) -> None:
    """Refuse a run that asks for a GPU on a machine without one.

    Raises:
        ParameterError: in one sentence.
    """
    import torch

    if chosen.device == "cuda" and not torch.cuda.is_available():
        raise ParameterError(
            f"The profile {profile!r} asks for a GPU and there is none here: run it on a machine with one, "
            "see what it would take with --dry-run, or pass -p device=cpu to run it all the same."
        )
