"""Fifty bad days: `make` and a sweep are killed at random moments, and the call after that leaves the same result.

    python tests/bad_days.py [--kills 50] [--seed 0] [make | sweep]

A copy of the project with a small profile is made in a folder of its own. What an undisturbed call leaves there is the
standard: every table of every run, the verdicts, and for `make` the book. Then the same is begun anew from nothing, and
again and again one process of it, chosen by chance, is killed without warning; sometimes all of them, as when the power
fails. A last call is left alone: it has to end well, and leave the same.
"""

import argparse
import contextlib
import hashlib
import math
import os
import random
import shutil
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
CALLS = {
    "make": ["make", "--no-print-directory"],
    "sweep": [str(project.root() / ".venv" / "bin" / "fivelenses"), "sweep", "1", "--grid", "seeds=[0,1],[2,3]"],
}


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


def family(process: subprocess.Popen) -> list[psutil.Process]:
    """A call's processes, those it started included."""
    with contextlib.suppress(psutil.NoSuchProcess):
        first = psutil.Process(process.pid)
        return [first, *first.children(recursive=True)]
    return []


def kill(process: subprocess.Popen, chance: random.Random) -> str:
    """Kill one process of a call, or all; what is left then has to come to its own end. Returns what was killed."""
    members = family(process)
    every = chance.random() < 0.3
    chosen = members if every else chance.sample(members, 1)
    names = []
    for member in chosen:
        with contextlib.suppress(psutil.NoSuchProcess):
            names.append(member.name())
            member.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(5)
    # What goes on (a sweep that lost a worker, a chapter beside the one that died) is ended, as a user would.
    for member in {*members, *family(process)}:
        with contextlib.suppress(psutil.NoSuchProcess):
            member.kill()
    process.wait()
    return "everything" if every else names[0] if names else "nothing: it had ended"


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
    options.add_argument("what", nargs="?", choices=sorted(CALLS), help="both when it is left out")
    options.add_argument("--kills", type=int, default=50)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    bad = 0
    for what in [given.what] if given.what else sorted(CALLS):
        with tempfile.TemporaryDirectory(prefix="bad-days-") as folder:
            bad += not survives(what, Path(folder), given.kills, random.Random(given.seed))
    return 1 if bad else 0


def survives(what: str, folder: Path, kills: int, chance: random.Random) -> bool:
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
    for number in range(1, kills + 1):
        process = begin(what, home, places["killed"])
        # As many moments between one and two seconds as between ten and twenty: a call begins with as much that can be
        # left half done as it ends with, and calls that are killed late leave little for those after them.
        moment = math.exp(chance.uniform(math.log(0.5), math.log(alone / 4)))
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(moment)
        print(f"{what}: kill {number} after {moment:.0f} s: {kill(process, chance)}", flush=True)
    code = begin(what, home, places["killed"]).wait(LONGEST)
    found = left(places["killed"])
    differing = sorted(name for name in standard.keys() | found.keys() if standard.get(name) != found.get(name))
    for name in differing:
        print(f"{what}: {name} differs")
    page = home / "build" / "book" / "html" / "index.html"
    whole = code == 0 and not differing and (what != "make" or page.is_file())
    print(f"{what}: after {kills} kills the last call ended with {code}; {len(differing)} of {len(standard)} differ")
    return whole


if __name__ == "__main__":
    sys.exit(main())
