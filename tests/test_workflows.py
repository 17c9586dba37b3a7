"""What runs on GitHub: workflows hold to their schema, to what zizmor asks of them, and to the commands of `make`."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from fivelenses.files import project_folder

ROOT = project_folder()
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def program(name: str) -> str:
    """A program of this environment."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.is_file() else shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed here: `make test` installs it")
    return found


def contents(file: Path) -> dict:
    # YAML reads the key `on` as a truth value.
    return yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)


def commands(file: Path) -> str:
    return "\n".join(step.get("run", "") for job in contents(file)["jobs"].values() for step in job["steps"])


@pytest.mark.parametrize(
    "command",
    [
        ("check-jsonschema", "--builtin-schema", "vendor.github-workflows"),
        ("zizmor", "--offline", "--no-progress", "--persona", "pedantic"),
    ],
    ids=lambda command: command[0],
)
def test_workflows_hold_to_their_schema_and_to_what_zizmor_asks(command):
    called = [program(command[0]), *command[1:], *map(str, WORKFLOWS)]
    result = subprocess.run(called, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_make_knows_every_target_and_actions_are_named_by_commit(file):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"\bmake (\w[\w-]*)", commands(file)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    uses = [step["uses"] for job in contents(file)["jobs"].values() for step in job["steps"] if "uses" in step]
    assert uses and all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", use) for use in uses)


def test_a_release_says_which_verdicts_changed_since_the_one_before(tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "build" / "before").mkdir(parents=True)
    for folder in ("build/book/html", "book/records", ".venv"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
    now, rows = tmp_path / "build/book/html/verdicts.csv", ["run,paper,claim,verdict", "small,p,rises,open"]
    changes = []
    for verdict in ("open", "reproduced"):  # the first release, and one in which a verdict changed
        now.write_text("\n".join([*rows, f"small,p,falls,{verdict}", ""]), encoding="utf-8")
        subprocess.run(["make", "--quiet", "-o", "book", "release"], cwd=tmp_path, check=True)
        changes.append((tmp_path / "build/release/CHANGES.md").read_text(encoding="utf-8").split("```")[1].split())
        shutil.copy(tmp_path / "build/release/verdicts.csv", tmp_path / "build/before")
    assert changes[0][1:] == [f"+{row}" for row in (*rows, "small,p,falls,open")]
    assert changes[1] == ["diff", "-small,p,falls,open", "+small,p,falls,reproduced"]
