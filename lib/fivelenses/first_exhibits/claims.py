"""Claims of a paper: what it says, the effects that a run's records give for it, and what becomes of it.

A claim has parts with thresholds and a function from records to effects, one per part and group; `verdicts` judges
them, by one rule for all claims. A record may hold controls beside what it measures, told apart by its column
`control`: empty for the fine-tuned models, TWIN for what moved as far at random, FUNCTIONAL_TWIN for what moved at
random until the last layer had changed as much, SHUFFLED for models that were trained on shuffled labels, SHARED for
rows that belong to all of them, such as the pre-trained encoder's. A claim that holds for a control, too, may be true,
but it does not speak of what was learned.

A verdict rests on settings that could have been others: the *multiverse* judges the same records in each of them.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from inspect import Parameter, signature
from pathlib import Path
from types import SimpleNamespace

import pandas as pd

from fivelenses.files import written_beside
from fivelenses.first_exhibits import verdicts
from fivelenses.first_exhibits.intervals import whole
from fivelenses.first_exhibits.verdicts import CANNOT_BE_TESTED, Effect, Group, Part, Verdict
from fivelenses.records import SHARED, SHUFFLED, TWINS

OURS = "this project"  # the place of a statement that no paper makes
CONTROLS = (*TWINS, SHUFFLED)
TABLE = dict.fromkeys(("claim", "verdict", "reason", "group", "group_outcome", "part"), "string")
TABLE |= dict.fromkeys(("estimate", "low", "high"), "float64") | {"bound": "string", "measured": "boolean"}
TABLE |= {"outcome": "string"}
Record = pd.DataFrame | Mapping[str, pd.DataFrame] | None
Records = Mapping[str, Record]


class CannotTest(ValueError):
    """Raised where records lack what a claim is about; the message is the reason, the rest of "because …"."""


@dataclass(frozen=True)
class LeftOut:
    """In the place of a group's effects, where the record itself shows that the group can decide nothing.

    If a task that it stands on was not learned, that is the reason given.
    """

    group: str
    reason: str
    stands_on: tuple[str, ...] = ()


@dataclass(frozen=True)
class Claim:
    """One statement of a paper that records can support or not.

    Attributes:
        key, paper: the ledger's name, and the paper's key.
        sentence, place: what the paper says, in our words and short, and where.
        exhibits: the exhibits that show it.
        measure: what the numbers are, with units or range.
        parts: the numbers that must lie above their thresholds.
        records: the names of the measurements that `effects` takes, in order.
        effects: records to effects, one per part and group, or to a LeftOut.
        unit: what a group is, in the singular: a task, a pair of tasks.
        printed: the number that the paper itself prints for it, empty where it draws only a shape.
        untwinned: why no twin can be measured; empty where one can.
        spare: the names of further measurements that `effects` takes, None where a run lacks them.
        columns: `record.column` of what older records lack: without one of them the claim cannot be tested.
        variants: further settings of the multiverse, by name: arguments of `effects` that are given by keyword alone.
        pools_tasks: a group is a mean over tasks. Rows of a task that was not learned are then taken out of the
            records, where otherwise the groups that stand on it are left out.
        nothing: why it cannot be tested where there are no effects.
    """

    key: str
    paper: str
    sentence: str
    place: str
    exhibits: tuple[str, ...]
    measure: str
    parts: tuple[Part, ...]
    records: tuple[str, ...]
    effects: Callable[..., Iterable[Effect | LeftOut]]
    unit: str = "task"
    printed: str = ""
    untwinned: str = ""
    spare: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    variants: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    pools_tasks: bool = False
    nothing: str = "there is nothing to compare"


class Claims(list[Claim]):
    """The claims of a paper, each declared above the function from records to its effects, in the order written.

    Args:
        paper: the paper's key.
        usual: what its claims have in common, by the names of `Claim`.

    Example:
        >>> CLAIMS = Claims("p", unit="pair of tasks")
        >>> @CLAIMS.add("up", "It rises.", "change", Part("change"), place="section 1", exhibits=("p-figure-1",))
        ... def rises(changes, models=None):
        ...     yield Effect("RTE–MNLI", "change", over_models(changes["x"]))
        >>> CLAIMS[0].records, CLAIMS[0].spare, CLAIMS[0].unit
        (('changes',), ('models',), 'pair of tasks')
    """

    def __init__(self, paper: str, **usual) -> None:
        self._paper, self._usual = paper, usual

    def add(self, key: str, sentence: str, measure: str, *parts: Part, **further) -> Callable[[Callable], Callable]:
        """Declare a claim, by the fields of `Claim`; its measurements are the names of its function's parameters, those
        that default to None are spare, and those given by keyword alone are settings.
        """

        def declare(effects: Callable[..., Iterable[Effect | LeftOut]]) -> Callable[..., Iterable[Effect | LeftOut]]:
            given = {
                name: one for name, one in signature(effects).parameters.items() if one.kind != Parameter.KEYWORD_ONLY
            }
            records = tuple(name for name, one in given.items() if one.default is one.empty)
            spare, more = tuple(name for name in given if name not in records), self._usual | further
            more |= dict(records=records, effects=effects, spare=spare)
            self.append(Claim(key, self._paper, sentence, measure=measure, parts=parts, **more))
            return effects

        return declare


@dataclass(frozen=True)
class Judged:
    """What became of a claim in one run: the claim's key, the outcome with its groups, the numbers that were judged,
    one per part and group, the same for each control that the run has, by its name, and the outcome in each setting of
    the multiverse.
    """

    claim: str
    verdict: Verdict
    effects: tuple[Effect, ...] = ()
    controls: Mapping[str, "Judged"] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def changed(self) -> dict[str, str]:
        """The settings in which the verdict is another."""
        return {name: outcome for name, outcome in self.settings.items() if outcome != self.verdict.outcome}

    @property
    def stays(self) -> str:
        """In how many of the settings the verdict stays, for a table; empty where there are none.

        Example:
            >>> settings = {"90 % intervals": "mixed", "99 % intervals": "open"}
            >>> Judged("rises", Verdict("open", ()), settings=settings).stays
            '1/2'
        """
        return f"{len(self.settings) - len(self.changed)}/{len(self.settings)}" if self.settings else ""

    def of(self, part: Part) -> dict[str, Effect]:
        """The effects of one part by group."""
        return {effect.group: effect for effect in self.effects if effect.part == part.name}

    def spread(self, part: Part) -> str:
        """The range of a part's estimates over the groups, for prose; a dash where there is none.

        Example:
            >>> from fivelenses.first_exhibits.effects import without_interval
            >>> found = tuple(Effect(name, "ratio", without_interval(x)) for name, x in (("RTE", -0.2), ("MRPC", 2.91)))
            >>> Judged("deeper", Verdict("mixed", ()), found).spread(Part("ratio"))
            '−0.2 to 2.91'
        """
        numbers = sorted(effect.interval.estimate for effect in self.of(part).values())
        ends = dict.fromkeys(f"{number:z.3g}".replace("-", "−") for number in (numbers[:1] + numbers[-1:]))
        return " to ".join(ends) or "–"


def seen_as(table: pd.DataFrame, control: str = "") -> pd.DataFrame:
    """The rows of a record that speak of one control, or of the fine-tuned models; all where it holds no controls.

    Example:
        >>> rows = pd.DataFrame({"js": [0.1, 0.2, 0.6], "control": ["", "twin", "all"]})
        >>> seen_as(rows, "twin")["js"].tolist()
        [0.2, 0.6]
    """
    if "control" not in table.columns:
        return table
    return table[table["control"].isin([control, SHARED])].drop(columns="control").reset_index(drop=True)


def of_all(record: pd.DataFrame, control: str = "") -> pd.DataFrame:
    """As `seen_as`, of all examples: without the rows that leave out a fold.

    Example:
        >>> of_all(pd.DataFrame({"fold": [-1, 0, -1], "control": ["", "", "twin"], "loss": [0.3, 0.2, 0.4]}))
           loss
        0   0.3
    """
    return seen_as(whole(record), control)


def _tables(record: Record) -> list[pd.DataFrame]:
    return [] if record is None else list(record.values()) if isinstance(record, Mapping) else [record]


def _mapped(record: Record, change: Callable[[pd.DataFrame], pd.DataFrame]) -> Record:
    if record is None:
        return None
    return {key: change(table) for key, table in record.items()} if isinstance(record, Mapping) else change(record)


def of_encoder(records: Records, encoder: str) -> dict[str, Record]:
    """Of records that compare encoders, the rows of one: what stands under its name is measured on it.

    Example:
        >>> record = pd.DataFrame({"encoder": ["bert-base", "bert-tiny"], "clusters": [17, 23]})
        >>> of_encoder({"geometry": record, "sizes": "it is old"}, "bert-base")["geometry"]["clusters"].tolist()
        [17]
    """

    def rows(table: pd.DataFrame) -> pd.DataFrame:
        return table[table["encoder"] == encoder] if "encoder" in table.columns else table

    return {name: one if isinstance(one, str) else _mapped(one, rows) for name, one in records.items()}


def controls_of(records: Iterable) -> list[str]:
    """The controls of which some of these records has rows."""
    tables = [table for record in records for table in _tables(record) if "control" in table.columns]
    return [one for one in CONTROLS if any((table["control"] == one).any() for table in tables)]


def judge(claim: Claim, records: Records, unlearned: Mapping[str, str] | None = None) -> Judged:
    """What becomes of a claim with the records of a run.

    Args:
        records: by the name of the measurement; one that the run lacks is None, or a text that says why it does. So
            is a column that it lacks, as `record.column`.
        unlearned: `gate.unlearned`: groups that stand on such a task take no part.

    Example:
        >>> from fivelenses.first_exhibits.effects import over_models
        >>> def change(table):
        ...     return [Effect(task, "change", over_models(of["x"])) for task, of in table.groupby("task")]
        >>> claim = Claim("up", "p", "It rises.", "§1", (), "change", (Part("change"),), ("changes",), change)
        >>> judge(claim, {"changes": pd.DataFrame({"task": ["rte"] * 3, "x": [4, 6, 5]})}).verdict.outcome
        'reproduced'
    """
    given = {name: records.get(name) for name in claim.records}
    for name, record in given.items():
        if record is None or isinstance(record, str):
            why = f", because {record}" if record else ""
            return Judged(claim.key, Verdict(CANNOT_BE_TESTED, (), f"this run has not measured {name}{why}"))
    for name in claim.columns:
        of_record, _, column = name.rpartition(".")
        if not any(column in table.columns for table in _tables(given[of_record])):
            why = f", because {records[name]}" if records.get(name) else ""
            return Judged(claim.key, Verdict(CANNOT_BE_TESTED, (), f"this run has not measured {name}{why}"))
    spare = {name: records.get(name) for name in claim.spare}
    given |= {name: None if isinstance(record, str) else record for name, record in spare.items()}
    judged = _judge_as(claim, given, "", unlearned or {})
    # A claim without twins may still read a record that has them.
    names = [name for name in controls_of(given.values()) if name not in TWINS or not claim.untwinned]
    controls = {name: _judge_as(claim, given, name, unlearned or {}) for name in names}
    return replace(judged, controls=controls, settings=_multiverse(claim, given, unlearned or {}, judged))


def _multiverse(claim: Claim, records: Records, unlearned: Mapping[str, str], judged: Judged) -> dict[str, str]:
    """The outcome in each setting, of a claim that can be tested."""
    if not judged.effects:
        return {}
    outcomes = {
        name: verdicts.judge(parts, values, judged.verdict.left_out).outcome
        for name, parts, values in verdicts.varied(claim.parts, judged.effects)
    }
    variants = {name: _judge_as(claim, records, "", unlearned, given) for name, given in claim.variants.items()}
    return outcomes | {name: one.verdict.outcome for name, one in variants.items()}


def _judge_as(
    claim: Claim,
    records: Records,
    control: str,
    unlearned: Mapping[str, str],
    setting: Mapping[str, object] | None = None,
) -> Judged:
    left_out, tasks_out = {}, {}

    def seen(table: pd.DataFrame) -> pd.DataFrame:
        table = seen_as(table, control)
        if not claim.pools_tasks or "task" not in table.columns:
            return table
        out = table["task"].isin(list(unlearned))
        tasks_out.update({task: unlearned[task] for task in table.loc[out, "task"].unique()})
        return table[~out]

    try:
        given = list(claim.effects(*(_mapped(record, seen) for record in records.values()), **setting or {}))
    except CannotTest as reason:
        return Judged(claim.key, Verdict(CANNOT_BE_TESTED, (), str(reason), tasks_out))
    left_out |= {one.group: one.reason for one in given if isinstance(one, LeftOut)}
    for one in given:
        reasons = dict.fromkeys(unlearned[task] for task in one.stands_on if task in unlearned)
        if reasons:
            left_out[one.group] = "; ".join(reasons)
    kept = tuple(one for one in given if one.group not in left_out)
    verdict = verdicts.judge(claim.parts, kept, left_out, "" if given else claim.nothing)
    return Judged(claim.key, replace(verdict, left_out=left_out | tasks_out), kept)


def judge_all(claims: Iterable[Claim], records: Records, unlearned: Mapping[str, str] | None = None) -> list[Judged]:
    """What becomes of several claims in one run."""
    return [judge(claim, records, unlearned) for claim in claims]


def as_table(judged: Iterable[Judged]) -> pd.DataFrame:
    """What became of claims as a table: a row per claim, group and part; one row where a claim has no group.

    Returns:
        `claim`, `verdict`, `reason` (of a claim that cannot be tested), `group`, `group_outcome` (holds, fails, open),
        `part`, `estimate`, `low`, `high`, `bound` (which end is censored), `measured` (whether there is an interval),
        `outcome` (of the part in the group). What a claim without groups lacks is empty.
    """
    rows = []
    for one in judged:
        of_claim = {"claim": one.claim, "verdict": one.verdict.outcome, "reason": one.verdict.reason}
        groups = {group.name: group for group in one.verdict.groups}
        for effect in one.effects:
            group, number = groups[effect.group], effect.interval
            of_group = {"group": group.name, "group_outcome": group.outcome, "part": effect.part}
            of_group |= {name: getattr(number, name) for name in ("estimate", "low", "high", "measured")}
            rows.append(of_claim | of_group | {"bound": effect.bound, "outcome": group.of(effect.part)})
        if not one.effects:
            rows.append(of_claim)
    return pd.DataFrame(rows, columns=list(TABLE)).astype(TABLE)


def save(judged: Iterable[Judged], folder: Path, claims: Iterable[Claim]) -> None:
    """Write ``claims.json`` into a run's folder, beside and renamed: what the claims are, and what became of them."""
    entries = [_as_json(one) | {"declared": _declaration(claim)} for one, claim in zip(judged, claims, strict=True)]
    with written_beside(folder / "claims.json") as place:
        place.write_text(json.dumps(entries, indent=1), encoding="utf-8")


def _declaration(claim: Claim) -> dict:
    """As `judging.as_json` has it."""
    names = ("key", "paper", "place", "measure", "printed", "exhibits")
    said = {name: getattr(claim, name) for name in names}
    said |= {"says": claim.sentence, "no_twin": claim.untwinned, "per": claim.unit}
    code = f"{claim.effects.__module__}.{claim.effects.__qualname__}"
    return said | {"parts": [asdict(part) for part in claim.parts], "code": code}


def _as_json(judged: Judged) -> dict:
    rows = verdicts.as_table(judged.effects).to_dict("records")
    controls = {name: _as_json(one) for name, one in judged.controls.items()}
    of_claim = {"claim": judged.claim, "verdict": asdict(judged.verdict), "effects": rows}
    return of_claim | {"controls": controls, "settings": dict(judged.settings)}


def from_json(entry: Mapping) -> Judged:
    groups = tuple(
        Group(**group | {name: tuple(group[name]) for name in ("failed", "undecided", "halves")})
        for group in entry["verdict"]["groups"]
    )
    verdict = entry["verdict"] | {"groups": groups, "untested": tuple(entry["verdict"]["untested"])}
    effects = verdicts.from_table(pd.DataFrame(entry["effects"], columns=verdicts.COLUMNS))
    controls = {name: from_json(one) for name, one in entry["controls"].items()}
    return Judged(entry["claim"], Verdict(**verdict), tuple(effects), controls, entry["settings"])


def declared(entry: Mapping) -> Claim:
    """The claim of an entry of ``claims.json``."""
    said = entry["declared"]
    parts = tuple(Part(**part | {"groups": tuple(part["groups"])}) for part in said["parts"])
    module, _, name = said["code"].rpartition(".")
    code = SimpleNamespace(__module__=module, __qualname__=name)
    names = dict(unit=said["per"], printed=said["printed"], untwinned=said["no_twin"])
    what = said["key"], said["paper"], said["says"], said["place"], tuple(said["exhibits"]), said["measure"]
    return Claim(*what, parts, (), code, **names)


def load(folder: Path) -> list[Judged]:
    """What became of the claims of a run, from its ``claims.json``.

    Raises:
        ValueError: the file is damaged, or was written by another version of this code.
    """
    return [judged for _, judged in load_with_claims(folder)]


def load_with_claims(folder: Path) -> list[tuple[Claim, Judged]]:
    """The claims of a run with what became of them, from its ``claims.json``; errors as `load`."""
    file = folder / "claims.json"
    try:
        return [(declared(entry), from_json(entry)) for entry in json.loads(file.read_text(encoding="utf-8"))]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{file} holds no verdicts of this version ({error}): run its chapter again.") from error
