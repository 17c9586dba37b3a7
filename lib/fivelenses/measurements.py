"""The records of one run: read where they are there and current, measured and kept otherwise."""

import inspect
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from fivelenses import processes, project, records
from fivelenses.chapters import Chapter, ChapterParameters
from fivelenses.records import Identity, Missing, Record

if TYPE_CHECKING:
    from fivelenses.checkpoints.specification import Specification
    from fivelenses.checkpoints.store import Checkpoint

# Parameters of a measurement that say where and how loudly it runs, not what it measures.
NOT_MEASURED = ("checkpoints", "device", "log")


@dataclass
class Measurements:
    """What one run has measured.

    Attributes:
        chapter, settings: what is run.
        log: takes a line of progress.
        committed: the folder of a published run's records; None for a run that may measure.
        files: their files, by the name of the measurement.
        not_measured: why a measurement was not made, by its name.
        outdated: the measurements whose code has changed since a published run.
        facts: what each record says of its making.
        addresses: of the checkpoints, in the order of their use.
        checkpoints: those that were trained or checked so far.
    """

    chapter: Chapter
    settings: ChapterParameters
    log: Callable[[str], None]
    committed: Path | None = None
    files: dict[str, list[str]] = field(default_factory=dict)
    not_measured: dict[str, str] = field(default_factory=dict)
    outdated: list[str] = field(default_factory=list)
    facts: list[dict] = field(default_factory=list)
    addresses: dict[str, None] = field(default_factory=dict)
    checkpoints: dict["Specification", "Checkpoint"] = field(default_factory=dict)

    def measure(
        self,
        function: str,
        of: Callable[..., Sequence] | None = None,
        each: str | Sequence[str] = (),
        over: Mapping[str, Iterable] | Sequence[Mapping] | Callable | None = None,
        **given,
    ) -> pd.DataFrame | dict[str, pd.DataFrame] | Missing:
        """The record that a function measures: read if it is there and current, measured and kept otherwise.

        The function is imported only to measure. Its parameters are filled in by name, from `given` first and from the
        chapter's parameters otherwise. `checkpoints` are the fine-tuned models, trained when they are first needed, and
        are a sequence; `device` and `log` are where it runs and whom it tells, and do not make another record.

        Args:
            function: the name of one in the chapter's `measures`; it returns one table, or several by name.
            of: gives the specifications of the models that are measured; all of the chapter when None. If it takes a
                parameter of `over`, each value is measured on its own models.
            each: names of a specification's fields: models that agree in these are measured together, and each group
                is a file of its own, so that a measurement that was interrupted goes on where it was.
            over: a parameter of the function to the values that are measured one after another, likewise; or these
                arguments one after another; or a function that gives either, which a published run does not ask.
            given: parameters of the function that are not the chapter's.

        Refused: a name that the chapter does not measure, and a damaged record of a published run.
        """
        module = records.measuring_module(function, self.chapter.measures)
        if self.committed is not None:
            return self._committed(function, module)
        return self._current(getattr(import_module(module), function), of, each, over, given)

    def _current(self, function, of, each, over, given) -> pd.DataFrame | dict[str, pd.DataFrame]:
        names = list(inspect.signature(function).parameters)
        measured = over() if callable(over) else over or {}
        if isinstance(measured, Mapping):
            measured = [dict(zip(measured, values, strict=True)) for values in product(*measured.values())]
        every = [self._groups(names, of, [each] if isinstance(each, str) else list(each), named) for named in measured]
        for groups in every:
            self.addresses |= {one.address: None for group in groups for one in group or ()}
        of_chapter = {*type(self.settings).model_fields} & {*names} - {*NOT_MEASURED}
        usual = {name: getattr(self.settings, name) for name in of_chapter}
        parts = []
        for named, groups in zip(measured, every, strict=True):
            parts += [self._part(function, usual | given | named, group, groups) for group in groups]
        if not parts:
            self.not_measured[function.__name__] = "its parameters ask for nothing of the kind"
            return pd.DataFrame()
        return _tables({name: records.merge([part[name] for part in parts]) for name in parts[0]})

    def _groups(self, names: Sequence[str], of: Callable | None, fields: list[str], named: Mapping) -> list:
        """The specifications whose models are measured together, those that agree in these fields; one group of none
        where no model is measured.
        """
        if "checkpoints" not in names:
            return [None]
        of = of or self.settings.specifications
        values = [named[name] for name in inspect.signature(of).parameters]
        groups: dict[tuple, list] = {}
        for one in of(*values):
            groups.setdefault(tuple(getattr(one, name) for name in fields), []).append(one)
        # A value of `over` may need no model: the pre-trained encoder does not.
        return list(groups.values()) or ([[]] if values else [])

    def _committed(self, name: str, module: str) -> pd.DataFrame | dict[str, pd.DataFrame] | Missing:
        files = sorted(self.committed.glob(f"{name}.parquet")) or sorted(self.committed.glob(f"{name}.*.parquet"))
        if not files:
            facts = json.loads((self.committed / "run.json").read_text(encoding="utf-8"))
            self.not_measured[name] = facts["not_measured"].get(name, "it was published before chapters measured this")
            return Missing(name, self.not_measured[name])
        read = [records.read(file) for file in files]
        if any(record.identity.code != records.measuring_code(module) for record in read):
            self.outdated.append(name)
        self.files[name] = [file.name for file in files]
        self.facts += [record.facts for record in read]
        for record in read:
            self.addresses |= dict.fromkeys(record.identity.checkpoints)
        return _tables(dict(zip([file.stem.partition(".")[2] for file in files], read, strict=True)))

    def _part(self, function: Callable, arguments: dict, group: list | None, groups: list) -> dict[str, Record]:
        """One part of a measurement, by the name of the table (empty where there is one table)."""
        described = json.loads(json.dumps(arguments))
        if self.settings.source == "toyworld":
            described["toyworld"] = records.toy_world_digest()
        if {"encoder", "encoders", "pretrained", "independent"} & {*arguments}:
            from fivelenses.models import encoders

            # What stands behind the names.
            read = self.settings.encoders_read()
            described["identities"] = {name: encoders.locate(name).identity for name in read}
        addresses = () if group is None else tuple(one.address for one in group)
        identity = Identity(function.__name__, records.measuring_code(function.__module__), described, addresses)
        place = project.records_folder() / self.chapter.slug
        files = sorted(place.glob(f"{function.__name__}.*{identity.digest}.parquet"))
        try:
            kept = [records.read(file) for file in files]
        except records.RecordError as error:
            self.log(f"{str(error).partition(':')[0]}: it is measured again.")
            kept = []
        # A run that was killed between two tables of one measurement left a part of them.
        if not kept or len(kept) < kept[0].facts.get("tables", 1):
            files = self._measure(function, arguments, group, groups, identity, place)
            kept = [records.read(file) for file in files]
        self.files.setdefault(function.__name__, []).extend(file.name for file in files)
        self.facts += [record.facts for record in kept]
        keys = [file.name.split(".")[1] if file.name.count(".") == 3 else "" for file in files]
        return dict(zip(keys, kept, strict=True))

    def _measure(self, function, arguments, group, groups, identity: Identity, place: Path) -> list[Path]:
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
        files = []
        for key, table in tables.items():
            files.append(place / ".".join(filter(None, (function.__name__, key, identity.digest, "parquet"))))
            records.write(files[-1], Record(table, identity, facts))
        self.log(f"{function.__name__} measured in {seconds:.0f} s")
        return files

    def _prepared(self, specifications: Sequence["Specification"]) -> list["Checkpoint"]:
        """The checkpoints of these specifications, each trained or checked once in a run."""
        from fivelenses.checkpoints.finetuning import prepare

        lacking = [one for one in dict.fromkeys(specifications) if one not in self.checkpoints]
        if lacking:
            made = prepare(lacking, log=self.log, device=self.settings.device)
            self.checkpoints |= zip(lacking, made, strict=True)
        return [self.checkpoints[one] for one in specifications]

    def summary(self) -> dict:
        """Which records were used, on what they were measured, and what measuring and training took, in seconds.

        `peak_memory` is the most bytes that a process that measured one of them had held by then.
        """
        trained = {address: took for facts in self.facts for address, took in facts["trained"].items()}
        packages = dict.fromkeys(name for facts in self.facts for name in facts["versions"])
        return {
            "records": self.files,
            "outdated": self.outdated,
            "not_measured": self.not_measured,
            "specifications": sorted(self.addresses),
            "device": " and ".join(dict.fromkeys(facts["device"] for facts in self.facts)),
            "python": ", ".join(dict.fromkeys(facts["python"] for facts in self.facts)),
            "versions": {
                name: ", ".join(dict.fromkeys(facts["versions"].get(name, "unknown") for facts in self.facts))
                for name in packages
            },
            # The tables of one measurement each have all of its seconds.
            "seconds": round(sum(facts["seconds"] / facts.get("tables", 1) for facts in self.facts), 1),
            "training_seconds": round(sum(trained.values()), 1),
            "peak_memory": max((facts.get("peak_memory", 0) for facts in self.facts), default=0),
        }


def _tables(named: Mapping[str, Record]) -> pd.DataFrame | dict[str, pd.DataFrame]:
    """The tables of a measurement by name; the one table of a measurement that names none."""
    tables = {name: record.table for name, record in named.items()}
    return tables[""] if list(tables) == [""] else tables
