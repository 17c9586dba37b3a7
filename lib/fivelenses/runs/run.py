"""A run as a notebook sees it: parameters, records, exhibits, verdicts.

`Run.measure` gives a record if it is there and current, and measures otherwise. Everything else is a pure function of
records. A published run is read-only: its parameters come from its ``run.json``, its records are those that are
committed, and neither data nor encoders nor checkpoints are needed.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
from IPython.display import HTML, Markdown, display
from myst_nb import glue

from fivelenses import project
from fivelenses.files import written_beside
from fivelenses.first_exhibits import gate
from fivelenses.first_exhibits.claims import Claim, judge_all, of_encoder, save
from fivelenses.first_exhibits.exhibit import Absent, Exhibit
from fivelenses.first_exhibits.verdicts import HOLDS, REPRODUCED
from fivelenses.records import Missing
from fivelenses.runs.cards import cards
from fivelenses.runs.folders import RECORDS_VARIABLE, RUN_FOLDER_VARIABLE, folder_name
from fivelenses.runs.measurements import Measurements
from fivelenses.runs.parameters import ChapterParameters, ParameterError
from fivelenses.runs.settings import Chapter, find_chapter, resolved, settings

# What a parameter's value can be; everything else in a notebook's namespace is none.
PLAIN = (str, int, float, bool, list, tuple, dict)


@dataclass
class Run:
    """One execution of a chapter.

    Attributes:
        chapter, profile, settings: what is run.
        folder: where exhibits, verdicts and facts are written.
        committed: the folder of a published run's records; None for a run that may measure.
        tables: the tables of the exhibits so far, by key.
        measurements: the records so far.
        unlearned: why tasks that were not learned take no part in claims, by task (`gate.unlearned`).
    """

    chapter: Chapter
    profile: str
    settings: ChapterParameters
    folder: Path
    committed: Path | None = None
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    measurements: Measurements = field(init=False)
    unlearned: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.measurements = Measurements(self.chapter, self.profile, self.settings, self.log, self.committed)

    def log(self, line: str) -> None:
        """One line of progress: to the run's log, where a runner in front shows it; printed when there is none."""
        if RUN_FOLDER_VARIABLE in os.environ:
            with (self.folder / "progress.log").open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        else:
            print(line)

    def measure(self, function: str, **asked) -> pd.DataFrame | dict[str, pd.DataFrame] | Missing:
        """The record that a function of this name measures: read if it is there and current, measured otherwise.

        :meth:`fivelenses.runs.measurements.Measurements.measure` says what can be asked.
        """
        return self.measurements.measure(function, **asked)

    def exhibit(self, draw: Callable[..., Exhibit | Absent], *measured, **options) -> None:
        """Draw an exhibit from records, save it into the run's folder and show it; of one that the run cannot have,
        show why.

        Args:
            draw: takes what was measured, and gives the exhibit.
            measured: records, or what was made of them.
            options: further arguments.
        """
        lacking = [one for one in measured if isinstance(one, Missing)]
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
        models: pd.DataFrame | Missing,
        predictions: pd.DataFrame | Missing,
        of: Callable[[pd.DataFrame], pd.DataFrame] = gate.ordinary,
        gains: Mapping[str, float] | None = None,
        words: pd.DataFrame | Missing | None = None,
    ) -> None:
        """Find the tasks that the ordinary models did not learn, say so on the page, and leave them out of all claims.

        Args:
            models: `checkpoints.tables.models`, of which the ordinary ones decide; none is left out if not measured.
            predictions: `checkpoints.predictions.by_example` of these; scores decide without intervals if not measured.
            of: takes the ordinary ones from the models.
            gains, words: of `gate.learned`; without words, the null rate alone decides.
        """
        if isinstance(models, Missing):
            display(Markdown(f"*Left out of the claims*: it is not known what was learned, because {models.reason}."))
            return
        measured = (None if isinstance(record, Missing) else record for record in (predictions, words))
        predictions, words = measured
        table = gate.learned(of(models), predictions, gains, words)
        self.unlearned = dict(gate.unlearned(table, self.settings.encoder))
        reasons = "; ".join(dict.fromkeys(self.unlearned.values()))
        all_learned = "*Every task was learned*: all take part."
        display(Markdown(f"*Not clearly learned, so left out of the claims*: {reasons}." if reasons else all_learned))

    def judge(self, claims: Iterable[Claim], encoder: str = "") -> None:
        """Judge claims on the records so far, save what became of them, show it, and glue the verdicts, the range of
        each first part over the groups, and the number of groups in which a claim holds, for the prose. Where records
        compare encoders, the rows of one `encoder` are judged.
        """
        claims = list(claims)
        records = {name: _given(record) for name, record in self.measurements.tables.items()}
        records = self.measurements.not_measured | (of_encoder(records, encoder) if encoder else records)
        judged = judge_all(claims, records, self.unlearned)
        save(judged, self.folder, claims)
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
        facts = {
            "chapter": self.chapter.number,
            "profile": self.profile,
            "parameters": self.settings.model_dump(mode="json"),
            "exhibits": sorted(self.tables),
            **self.measurements.summary(),
        }
        if self.committed is None and hasattr(self.settings, "encoders_read"):
            from fivelenses.models import encoders

            names = self.settings.encoders_read()
            facts["encoder_identities"] = {name: encoders.locate(name).identity for name in names}
        with written_beside(self.folder / "run.json") as place:
            place.write_text(json.dumps(facts, indent=1), encoding="utf-8")


def _given(record) -> pd.DataFrame | dict[str, pd.DataFrame] | str:
    """A record as `claims.judge` takes it: a text where there is none."""
    return record.reason if isinstance(record, Missing) else record


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
        parameters, profile, overrides = chapter.parameters(**facts["parameters"]), facts["profile"], {}
    else:
        profile = given.get("profile", "tiny")
        overrides = resolved(number, profile, set_by_hand(given))
        parameters = settings(number, profile, **overrides)
        check_device(parameters, profile)
    named = os.environ.get(RUN_FOLDER_VARIABLE)
    folder = Path(named) if named else project.runs_folder() / "by-hand" / folder_name(chapter, profile, overrides)
    folder.mkdir(parents=True, exist_ok=True)
    return Run(chapter, profile, parameters, folder, Path(committed) if committed else None)


def set_by_hand(namespace: Mapping) -> dict:
    """What a notebook's namespace sets: every plain value under a name in small letters; constants are in capitals.

    Example:
        >>> set_by_hand({"profile": "tiny", "seeds": [0, 1], "tasks": None, "In": [], "_": 3, "json": json})
        {'seeds': [0, 1]}
    """
    of_ipython = ("exit", "quit", "open", "get_ipython", "profile")
    return {
        name: value
        for name, value in namespace.items()
        if name.islower() and not name.startswith("_") and name not in of_ipython and isinstance(value, PLAIN)
    }


def check_device(parameters: ChapterParameters, profile: str) -> None:
    """Refuse a run that asks for a GPU on a machine without one.

    Raises:
        ParameterError: in one sentence.
    """
    if parameters.device != "cuda":
        return
    import torch

    if not torch.cuda.is_available():
        raise ParameterError(
            f"The profile {profile!r} asks for a GPU and there is none here: run it on a machine with one, "
            "see what it would take with --dry-run, or pass -p device=cpu to run it all the same."
        )
