"""A run as a notebook sees it: its settings, and the folder that exhibits, claims and facts about the run go to."""

import hashlib
import json
import os
import platform
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import pandas as pd
import torch
from IPython.display import HTML, display
from myst_nb import glue

from fivelenses import project
from fivelenses.checkpoints import Checkpoint, Specification, prepare
from fivelenses.exhibits import claims as ledger
from fivelenses.exhibits.exhibit import Absent, Exhibit, as_html
from fivelenses.runs.parameters import ChapterParameters, ParameterError
from fivelenses.runs.settings import Chapter, find_chapter, settings

FOLDER_VARIABLE = "FIVELENSES_RUN_FOLDER"
PACKAGES = ("torch", "transformers", "datasets", "numpy", "scipy", "scikit-learn")


def folder_name(chapter: Chapter, profile: str, overrides: dict) -> Path:
    """Where a run of these parameters is left, under the runs folder: one place a profile, and one for each set
    of overrides.
    """
    given = {name: value for name, value in sorted(overrides.items()) if value is not None}
    suffix = "-" + hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()[:8] if given else ""
    return Path(profile) / f"{chapter.slug}{suffix}"


@dataclass
class Run:
    """One execution of a chapter.

    Attributes:
        chapter, profile, settings: what is run.
        folder: where its outputs go.
        tables: the exhibits' tables so far, by key.
        specifications, training_seconds: the checkpoints used, and the time it took to train them, whenever that was.
    """

    chapter: Chapter
    profile: str
    settings: ChapterParameters
    folder: Path
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    specifications: list[Specification] = field(default_factory=list)
    verdicts: list[ledger.Verdict] = field(default_factory=list)
    training_seconds: float = 0.0
    started: float = field(default_factory=time.monotonic)

    def tell(self, line: str) -> None:
        """One line of progress: to the run's log, where a runner in front shows it; printed when there is none."""
        if FOLDER_VARIABLE in os.environ:
            with (self.folder / "progress.log").open("a", encoding="utf-8") as log:
                log.write(line + "\n")
        else:
            print(line)

    def prepare(self, specifications: list[Specification]) -> list[Checkpoint]:
        """The checkpoints of these specifications, trained where missing; the run records what it used."""
        self.specifications += specifications
        checkpoints = prepare(specifications, notify=self.tell, device=self.settings.device)
        # By folder: one checkpoint may stand for several specifications that are equal.
        trained = {checkpoint.folder: checkpoint.manifest["seconds"] for checkpoint in checkpoints}
        self.training_seconds += sum(trained.values())
        return checkpoints

    def exhibit(self, exhibit: Exhibit | Absent) -> None:
        """Save an exhibit into the run's folder and show it; of one that the run cannot have, show why."""
        if isinstance(exhibit, Absent):
            self.tell(exhibit.sentence)
            exhibit.show()
            return
        exhibit.save(self.folder)
        self.tables[exhibit.key] = exhibit.table
        self.tell(f"{exhibit.key} measured")
        exhibit.show()

    def judge(self, claims: Iterable[ledger.Claim]) -> None:
        """Judge claims on the tables so far, save the verdicts, show the ledger, and glue each verdict and
        number for the prose.
        """
        claims = list(claims)
        self.verdicts = ledger.judge_all(claims, self.tables)
        ledger.save(self.verdicts, self.folder)
        for verdict in self.verdicts:
            name = verdict.claim.replace("-", "_")
            value = "not measured" if verdict.value is None else verdict.number
            self.glue(**{f"{name}_verdict": verdict.verdict, f"{name}_value": value})
            self.glue(**{f"{name}_held": f"{verdict.held} of {verdict.groups}"})
        reproduced = sum(verdict.verdict == ledger.REPRODUCED for verdict in self.verdicts)
        self.glue(claims_reproduced=f"{reproduced} of {len(self.verdicts)}")
        display(HTML(as_html(ledger.ledger(claims, self.verdicts), "The claims, and what this run says of them.")))

    def glue(self, **values) -> None:
        """Make values available to the prose of the page, under these names."""
        for name, value in values.items():
            glue(name, value if isinstance(value, str) else f"{value:.3g}", display=False)

    def finish(self) -> None:
        """Write ``run.json``: what was run, on what, how long. A run without it is unfinished."""
        facts = {
            "chapter": self.chapter.number,
            "profile": self.profile,
            "parameters": self.settings.model_dump(mode="json"),
            "exhibits": sorted(self.tables),
            "specifications": sorted({one.address for one in self.specifications}),
            "device": torch.cuda.get_device_name() if torch.cuda.is_available() else f"CPU, {os.cpu_count()} cores",
            "python": platform.python_version(),
            "versions": {name: version(name) for name in PACKAGES},
            "seconds": round(time.monotonic() - self.started, 1),
            "training_seconds": round(self.training_seconds, 1),
        }
        beside = self.folder / f".run.{os.getpid()}.partial"
        beside.write_text(json.dumps(facts, indent=1), encoding="utf-8")
        beside.replace(self.folder / "run.json")


def begin(number: int, profile: str, **overrides) -> Run:
    """Begin a run of a chapter: parameters checked, its folder made.

    The folder is the one that the runner in front names (FIVELENSES_RUN_FOLDER), or the profile's place under the
    runs folder.

    Args:
        number: the chapter.
        profile: `tiny`, `small` or `paper`.
        overrides: parameters; None means as the profile says.

    Raises:
        ParameterError: a parameter that does not exist or fit, or a GPU asked for where there is none.
    """
    chapter = find_chapter(number)
    chosen = settings(number, profile, **overrides)
    check_device(chosen, profile)
    named = os.environ.get(FOLDER_VARIABLE)
    folder = Path(named) if named else project.runs_folder() / folder_name(chapter, profile, overrides)
    folder.mkdir(parents=True, exist_ok=True)
    return Run(chapter, profile, chosen, folder)


def check_device(chosen: ChapterParameters, profile: str) -> None:
    """Refuse a run that asks for a GPU on a machine without one.

    Raises:
        ParameterError: in one sentence.
    """
    if chosen.device == "cuda" and not torch.cuda.is_available():
        raise ParameterError(
            f"The profile {profile!r} asks for a GPU and there is none here: run it on a machine with one, "
            "see what it would take with --dry-run, or pass -p device=cpu to run it all the same."
        )
