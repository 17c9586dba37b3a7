"""Every parameter of every chapter with every kind of bad value, and bad words to every command; answers are counted.

    python -m tests.hostile.commands [--verbose]

An answer is good where the command ends with status 2 and one sentence. It is bad where work would begin (nothing is
run here: the functions that work are replaced), an exception comes through, or the answer is no sentence.
"""

import argparse
import os
import re
import tempfile
import time
import typing
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from typer.testing import CliRunner

from fivelenses.cli import app
from fivelenses.runs.settings import CHAPTERS

SLOW = 2.0  # seconds of processor time that a refusal may take once the libraries are loaded
WORK = (
    "fivelenses.runs.execution.run",
    "fivelenses.runs.all_chapters.run_all",
    "fivelenses.runs.dry_run.dry_run",
    "fivelenses.runs.sweeps.sweep",
    "fivelenses.runs.report.execution.run",
    "fivelenses.checkpoints.finetuning.prepare",
    "pretraining.pretrain",
)
NAMES = ["x", "[nope]", "[true]", "[null]", "{a: 1}", "[[nope]]", "[./none.csv]", "3", "true"]
WHOLE = ["-1", "0.5", ".nan", ".inf", "x", "[1]", "true", "{}", "[]", "-10000000000000000000000"]
NUMBER = ["-1", ".nan", ".inf", "-.inf", "x", "[1]", "true", "{}"]
BAD = {
    "seeds": ["x", "[]", "[-1]", "[4294967296]", "[0.5]", "[true]", "[null]", "[a]", "[0, 0]", "{}", "true", "-1"],
    "encoder": [
        "/nowhere",
        "./x",
        "a/b/c",
        "''",
        "' '",
        "3",
        "[]",
        "true",
        "{}",
        "toy-bert/seed-99",
        "random:/nowhere",
    ],
    "source": ["x", "3", "true", "[]", "''"],
    "device": ["x", "3", "true", "[]", "cuda:9"],
    "tasks": [*NAMES, "[]", "[1]", "[rte, rte]", "[squad, pos]", "[wikitext]", "[./x.xlsx]"],
    "schedules": ["x", "3", "[]", "{nope: 1}", "{rte: 3}", "{rte: {epochs: true}}", "true"],
}
COMMANDS = """
run 9|run -- -1|run x|run all -p seeds=[1]|run 1 --profile x|run 1 -p seeds|run 1 -p =1|run 1 -p seeds=[1
run 7 --profile paper|train 9|train x|train 1 --profile x|train 1 -p seeds=x|train 1 -p encoder=/nowhere
train 1 -p tasks=[./none.csv]|sweep 1|sweep 1 --grid task|sweep 1 --grid task=|sweep 1 --grid =1
sweep 1 --grid task=rte task=mrpc|sweep 1 --list none.yaml|sweep 1 --grid task=rte,rte|sweep 9 --grid task=rte
sweep 1 --grid task=./none.csv|sweep 1 --grid encoder=/nowhere|sweep 1 --grid seed=true|sweep 1 --grid seed=-1
sweep 1 --grid task=rte --list x.yaml|sweep 1 --grid width=1|report /nowhere|report a/b/c|report toy-bert/seed-99
report toy-bert/seed-0 --tasks nope|report toy-bert/seed-0 --seeds x|report toy-bert/seed-0 --seeds -1
report toy-bert/seed-0 --examples 0|report toy-bert/seed-0 --examples -3|report ' '
report toy-bert/seed-0 --profile x|report toy-bert/seed-0 --tasks ./none.csv|report toy-bert/seed-0 --seeds 1,1
publish 9|publish x|publish 1 --profile x|publish 1 -p seeds=x|publish 1 --profile paper
doctor --remove x|doctor --remove ../..|doctor --remove 00000000000000000000
pretrain --folder {folder}/n|pretrain --toy --text a --folder {folder}/n
pretrain --toy --layers 0 --folder {folder}/n|pretrain --toy --seed -1 --folder {folder}/n
pretrain --text none.txt --folder {folder}/n|pretrain --toy
pretrain --text {folder}/ok.txt --steps 0 --folder {folder}/n
pretrain --text {folder}/ok.txt --layers 0 --folder {folder}/n
pretrain --text {folder}/ok.txt --hidden 7 --heads 2 --folder {folder}/n
pretrain --text {folder} --folder {folder}/n|pretrain --text {folder}/ok.txt --learning-rate nan --folder {folder}/n
pretrain --text {folder}/ok.txt --passes inf --folder {folder}/n|run 1 -p tasks=[{folder}/empty.csv]
run 1 -p tasks=[{folder}/binary.csv]|run 1 -p tasks=[{folder}/one.csv]|run 1 -p tasks=[{folder}]
run 1 -p tasks=[{folder}/cut.parquet]|run 1 -p tasks=[{folder}/good.csv:colour=red]|run 1 -p tasks=[hub:a/b]
run 1 -p tasks=['hub:']|run 2 -p tasks=[{folder}/good.csv]|run 3 -p tasks=[{folder}/good.csv]
run 1 -p encoder={folder}/broken|run 1 -p encoder={folder}/t5
run 3 -p encoder={folder}/shallow|run 1 -p encoder={folder}
"""


class _Began(Exception):
    pass


def _values(field: str, kind) -> list[str]:
    if field in BAD:
        return BAD[field]
    if field == "independent":
        return BAD["encoder"]
    kinds = {part for one in (kind, *typing.get_args(kind)) for part in (one, *typing.get_args(one))}
    origins = {typing.get_origin(one) for one in kinds}
    if typing.Literal in origins:
        return BAD["source"]
    if kind is bool:
        return ["x", "3", "[]", "{}"]
    if tuple in origins or dict in origins:
        return NAMES
    if int in kinds and float not in kinds:
        return WHOLE
    return NUMBER if float in kinds else ["3", "[]", "true", "{}", "nope"]


def attempts(folder: Path) -> Iterator[list[str]]:
    """The arguments of each bad command."""
    for line in COMMANDS.replace("{folder}", str(folder)).splitlines():
        for command in filter(None, line.split("|")):
            yield [word.strip("'") or " " for word in re.split(r"(?<!,) (?!')|(?<= )(?=')", command)]
    for number, chapter in CHAPTERS.items():
        for field, information in chapter.parameters.model_fields.items():
            for value in _values(field, information.annotation):
                yield ["run", str(number), "-p", f"{field}={value}"]


def hostile_files(folder: Path) -> None:
    """Files and encoders that cannot be right, and a table that is."""
    (folder / "ok.txt").write_text("The hen sings.\n\nA dog barks.\n")
    (folder / "empty.csv").write_text("")
    (folder / "binary.csv").write_bytes(bytes(range(256)))
    (folder / "one.csv").write_text("text,label\n" + "".join(f"the hen {row},a\n" for row in range(60)))
    (folder / "good.csv").write_text("text,label\n" + "".join(f"the hen {row},{row % 2}\n" for row in range(60)))
    (folder / "cut.parquet").write_bytes(b"PAR1")
    for name, content in {
        "broken": "{",
        "t5": '{"model_type": "t5", "is_encoder_decoder": true}',
        "shallow": '{"model_type": "bert", "num_hidden_layers": 2}',
    }.items():
        (folder / name).mkdir()
        (folder / name / "config.json").write_text(content)


def answer(arguments: list[str]) -> tuple[str, str]:
    """Whether a command is answered well, and with what."""
    started = time.process_time()
    result = CliRunner().invoke(app, arguments)
    took = time.process_time() - started
    said = result.stderr.strip()
    if isinstance(result.exception, _Began) or result.exit_code == 0:
        return "began", said
    if not isinstance(result.exception, SystemExit):
        return "foreign", repr(result.exception)[:200]
    # An argument that is no number is answered by the command line itself, in a box.
    if result.exit_code != 2 or not ("Usage:" in said or (said.startswith("fivelenses: ") and said.count("\n") == 0)):
        return "no sentence", said[:200]
    return ("slow" if took > SLOW else "refused"), f"{took:.1f} s {said[:150]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--verbose", action="store_true", help="list good answers, too")
    verbose = parser.parse_args().verbose
    counts: Counter = Counter()
    with tempfile.TemporaryDirectory() as name, mock.patch.dict(os.environ, {"HF_HUB_OFFLINE": "1"}):
        folder = Path(name)
        hostile_files(folder)
        os.environ |= {"FIVELENSES_STORE": f"{folder}/store", "FIVELENSES_RUNS": f"{folder}/runs"}
        os.environ.pop("FIVELENSES_MIRROR", None)
        for work in WORK:
            mock.patch(work, side_effect=_Began).start()
        for arguments in attempts(folder):
            kind, said = answer(arguments)
            counts[kind] += 1
            if verbose or kind != "refused":
                print(f"{kind:>11}  {' '.join(arguments)}: {said}", flush=True)
    total = ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
    print(f"{sum(counts.values())} bad commands: {total}")


if __name__ == "__main__":
    main()
