"""Fifty bad days: `make`, a sweep and a run are killed at random moments, and a last call leaves the same result.

    python tests/bad_days.py [--kills 50] [--seed 0] [--ways group,parent,machine,one] [make | sweep | run]

A copy of the project with a small profile is made in a folder of its own. What an undisturbed call leaves there is the
standard: every table of every run, the verdicts, and for `make` the book. Then the same is begun anew from nothing, and
killed again and again, in these ways by turns:

- `group`: SIGTERM to the call's group, as `timeout`, `docker stop` and `scancel` send it;
- `parent`: SIGKILL to the process that was called, alone;
- `machine`: SIGKILL to all of its processes, as when the power fails;
- `one`: SIGKILL to one of them, chosen by chance, after which a user ends what goes on.

After the first two nothing may go on for long. A last call is left alone: it has to end well, and leave the same, and
nothing half done beside it.
"""

import argparse
import contextlib
import hashlib
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd
import psutil
import yaml

from fivelenses import project

# A chapter's values in place of those of the profile `tiny`: enough of each kind of work to be killed in it.
SMALLER = {
    1: {"tasks": ["rte", "mrpc"], "training_examples": 200, "evaluation_examples": 100, "mixed_examples": 60},
    2: {
        "encoders": ["toy-bert/seed-0"],
        "training_examples": 300,
        "points": 300,
        "followed_points": 150,
        "probe_points": 200,
        "probe_epochs": 20,
        "states": 3,
    },
    3: {"training_examples": 300, "points": 5, "line_points": 9, "grid_examples": 20, "long_epochs": [3, 4]},
    4: {"seeds": [0, 1], "training_examples": 200, "fractions": [1.0, 0.5], "matched_examples": 100},
    5: {
        "pretrained": ["toy-bert/seed-0", "toy-bert/seed-1"],
        "training_examples": 200,
        "edge_tasks": ["pos", "dependencies"],
        "codelength_tasks": ["pos"],
        "probe_targets": 100,
        "probe_validations": 2,
        "structural_sentences": 40,
        "similarity_tokens": 300,
        "similarity_examples": 40,
        "frozen": [6],
        "truncated": [2],
    },
    6: {"tasks": ["rte", "mrpc"], "training_examples": 200, "evaluation_examples": 100},
    7: {"training_examples": 200, "planted_examples": 100, "evaluation_examples": 100, "structural_sentences": 20},
}
LONGEST = 3600  # seconds that one undisturbed call may take
AFTER = 20  # seconds after a kill until nothing of the call goes on
FIVELENSES = str(project.root() / ".venv" / "bin" / "fivelenses")
CALLS = {
    "make": ["make", "--no-print-directory"],
    "run": [FIVELENSES, "run", "1"],
    "sweep": [FIVELENSES, "sweep", "1", "--grid", "seeds=[0,1],[2,3]"],
}
WAYS = ("group", "parent", "machine", "one")


def small_project(folder: Path) -> Path:
    """A copy of the project whose profile `tiny` trains on few examples, with this project's environment."""
    home = folder / "project"
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=project.root(),
        capture_output=True,
        text=True,
        check=True,
    )
    for name in listed.stdout.splitlines():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        if (project.root() / name).is_file():
            shutil.copy2(project.root() / name, home / name)
    (home / ".venv").symlink_to(project.root() / ".venv")
    profile = home / "notebooks" / "profiles" / "tiny.yaml"
    content = yaml.safe_load(profile.read_text(encoding="utf-8"))
    for number, values in SMALLER.items():
        content["chapters"][number] |= values
    profile.write_text(yaml.safe_dump(content), encoding="utf-8")
    return home


def begin(what: str, home: Path, place: Path) -> subprocess.Popen:
    """Start a call whose runs and checkpoints lie in `place`."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FIVELENSES_")}
    environment |= {"FIVELENSES_HOME": str(home), "PYTHONPATH": str(home / "lib"), "HF_HUB_OFFLINE": "1"}
    environment |= {"FIVELENSES_RUNS": str(place / "runs"), "FIVELENSES_STORE": str(place / "store")}
    log = (place / "log").open("a", encoding="utf-8")
    return subprocess.Popen(CALLS[what], cwd=home, env=environment, stdout=log, stderr=log, start_new_session=True)


def of_call(place: Path) -> list[psutil.Process]:
    """The processes of a call whose runs lie in `place`, also those whose parent is gone."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("FIVELENSES_RUNS") == str(place / "runs"):
                found.append(process)
    return [one for one in found if one.status() != psutil.STATUS_ZOMBIE]


def kill(process: subprocess.Popen, place: Path, way: str, chance: random.Random) -> list[str]:
    """Kill a call in one of `WAYS`. Returns the commands that went on when nothing should."""
    members = of_call(place)
    if way == "group":
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
    elif way == "parent":
        process.kill()
    else:
        for member in members if way == "machine" else chance.sample(members, min(1, len(members))):
            with contextlib.suppress(psutil.NoSuchProcess):
                member.kill()
    if way == "one":
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
    else:
        until = time.monotonic() + AFTER
        while of_call(place) and time.monotonic() < until:
            process.poll()
            time.sleep(0.2)
    lasting = of_call(place)
    commands = [] if way == "one" else [_command(member) for member in lasting]
    for member in lasting:
        with contextlib.suppress(psutil.NoSuchProcess):
            member.kill()
    process.wait()
    return commands


def _command(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.Error):
        return " ".join(process.cmdline())[:120]
    return "one that has just ended"


def half_done(place: Path) -> list[str]:
    """Folders and files of a call that stand for something unfinished, by name under `place`."""
    found = [file for file in place.rglob("*") if file.name.endswith((".partial", ".replaced"))]
    return sorted(str(file.relative_to(place)) for file in [*found, *(place / "store" / "partial").glob("*")])


def left(place: Path) -> dict[str, str]:
    """What a call left: a hash of each table and of each file of verdicts, by name under `place`."""
    found = {}
    for file in sorted((place / "runs").rglob("*")):
        name = str(file.relative_to(place))
        if file.name.startswith(".") or any(part.startswith(".") for part in file.relative_to(place).parts):
            continue
        if file.suffix == ".parquet":
            table = pd.read_parquet(file)
            timed = [column for column in table.columns if "second" in str(column)]
            content = (
                pd.util.hash_pandas_object(table.drop(columns=timed).astype(str), index=False).to_numpy().tobytes()
            )
            found[name] = hashlib.sha256(content).hexdigest()[:16]
        elif file.name == "claims.json":
            found[name] = hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    return found


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("what", nargs="?", choices=sorted(CALLS), help="all when it is left out")
    options.add_argument("--kills", type=int, default=50)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--ways", default=",".join(WAYS), help="by turns")
    given = options.parse_args()
    ways = given.ways.split(",")
    if not set(ways) <= set(WAYS):
        options.error(f"ways are {', '.join(WAYS)}, not {given.ways}")
    bad = 0
    for what in [given.what] if given.what else sorted(CALLS):
        with tempfile.TemporaryDirectory(prefix="bad-days-") as folder:
            bad += not survives(what, Path(folder), given.kills, ways, random.Random(given.seed))
    return 1 if bad else 0


def survives(what: str, folder: Path, kills: int, ways: list[str], chance: random.Random) -> bool:
    """Whether a call that was killed so many times leaves what an undisturbed one does."""
    home = small_project(folder)
    places = {name: folder / name for name in ("undisturbed", "killed")}
    for place in places.values():
        place.mkdir()
    started = time.monotonic()
    if begin(what, home, places["undisturbed"]).wait(LONGEST):
        print((places["undisturbed"] / "log").read_text(encoding="utf-8")[-2000:])
        print(f"{what}: the undisturbed call failed")
        return False
    alone = time.monotonic() - started
    standard = left(places["undisturbed"])
    print(f"{what}: undisturbed {alone:.0f} s, {len(standard)} tables and verdicts", flush=True)
    shutil.rmtree(home / "build", ignore_errors=True)
    went_on = 0
    for number in range(kills):
        way = ways[number % len(ways)]
        process = begin(what, home, places["killed"])
        # As many moments between one and two seconds as between ten and twenty: a call begins with as much that can be
        # left half done as it ends with, and calls that are killed late leave little for those after them.
        moment = math.exp(chance.uniform(math.log(0.5), math.log(alone / 4)))
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(moment)
        ended = " (it had ended)" if process.poll() is not None else ""
        commands = kill(process, places["killed"], way, chance)
        went_on += bool(commands)
        print(
            f"{what}: kill {number + 1} after {moment:.1f} s, {way}{ended}: {commands or 'nothing goes on'}", flush=True
        )
    code = begin(what, home, places["killed"]).wait(LONGEST)
    found = left(places["killed"])
    differing = sorted(name for name in standard.keys() | found.keys() if standard.get(name) != found.get(name))
    for name in differing:
        print(f"{what}: {name} differs")
    page = home / "build" / "book" / "html" / "index.html"
    beside = sorted({*half_done(places["killed"])} - {*half_done(places["undisturbed"])})
    print(
        f"{what}: after {kills} kills, {went_on} of which left something going on, the last call ended with {code}; "
        f"{len(differing)} of {len(standard)} differ; half done beside them: {', '.join(beside) or 'nothing'}"
    )
    return code == 0 and not differing and not beside and not went_on and (what != "make" or page.is_file())


if __name__ == "__main__":
    sys.exit(main())
