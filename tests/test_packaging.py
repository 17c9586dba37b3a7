"""pyproject.toml, the constraints, environment.yml and the notebooks' two halves hold to one another."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import jupytext
import pytest
import yaml

from fivelenses.files import project_folder

ROOT = project_folder()
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
DEPENDENCIES = PYPROJECT["project"]["dependencies"]
EXTRAS = PYPROJECT["project"]["optional-dependencies"]
# Packages of the extras, as Python imports them.
BEYOND_LENSES = "transformers datasets tokenizers safetensors pyarrow yaml filelock conllu papermill jupytext nbformat"
BEYOND_LENSES += " matplotlib seaborn PIL jinja2 pydantic typer psutil dask bokeh sphinx"
ALONE = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[1].split():
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
"""


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[\[<>=!~; ]", name, maxsplit=1)[0]).lower()


def constraints() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {canonical(name): version for name, version in pairs}


def needed(name: str, seen: set[str]) -> set[str]:
    """A package and all that it needs here, by canonical name."""
    if canonical(name) in seen:
        return seen
    try:
        requirements = distribution(name).requires or []
    except PackageNotFoundError:
        return seen
    seen.add(canonical(name))
    from packaging.requirements import Requirement

    for line in requirements:
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            needed(requirement.name, seen)
    return seen


def test_everything_installed_is_pinned_at_its_version():
    closure: set[str] = set()
    for name in DEPENDENCIES + [name for group in ("models", "runs", "book", "test") for name in EXTRAS[group]]:
        needed(canonical(name), closure)
    closure.discard("fivelenses")
    pins = constraints()
    assert len(closure) > 100
    unpinned = closure - set(pins)
    assert not unpinned
    differing = {name for name in closure if distribution(name).version.split("+")[0] != pins[name]}
    assert not differing


def without_extras(code: str) -> subprocess.CompletedProcess:
    """Python code run as if no package of an extra were installed."""
    command = [sys.executable, "-c", ALONE + code, BEYOND_LENSES]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def test_the_lenses_need_no_package_of_an_extra():
    lenses = {file.stem for file in (ROOT / "lib" / "fivelenses" / "lenses").glob("[!_]*.py")}
    # These two measure a classifier on encoded examples.
    alone = sorted(lenses - {"classifier_loss"})
    ended = without_extras("\n".join(f"import fivelenses.lenses.{name}" for name in alone))
    assert len(alone) > 15 and not ended.stderr


def test_the_command_without_its_packages_says_what_to_install():
    ended = without_extras("import fivelenses.cli")
    assert ended.returncode == 1
    assert ended.stderr.startswith("fivelenses: ") and "pip install 'fivelenses[book]'" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_conda_users_get_the_same_environment():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    pip = next(entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict))
    assert pip == ["--constraint constraints.txt", "-e .[book,test]"]
    python = next(entry for entry in environment["dependencies"] if str(entry).startswith("python="))
    assert PYPROJECT["project"]["requires-python"] == f">={python.removeprefix('python=')}"


@pytest.mark.parametrize("percent", sorted((ROOT / "notebooks").glob("[0-9]*.py")), ids=lambda file: file.stem)
def test_the_halves_of_a_notebook_say_the_same_in_short_cells_without_outputs(percent):
    halves = [jupytext.read(file).cells for file in (percent, percent.with_suffix(".ipynb"))]
    first, second = ([(cell.cell_type, cell.source, cell.metadata.get("tags")) for cell in half] for half in halves)
    assert first == second
    for cell in halves[1]:
        if cell.cell_type == "code":
            assert not cell.outputs and cell.execution_count is None
            assert "parameters" in cell.metadata.get("tags", []) or len(cell.source.splitlines()) <= 35


def imported(file: Path) -> list[str]:
    """Our modules that a file imports, also within a function."""
    text = file.read_text(encoding="utf-8")
    ours = re.findall(r"^\s*(?:from|import) ((?:toyworld|pretraining|fivelenses)\b[\w.]*)", text, re.MULTILINE)
    for names in re.findall(r"^\s*from fivelenses import (.+)$", text, re.MULTILINE):
        ours += [f"fivelenses.{name.split()[0]}" for name in names.split(",")]
    return ours


def test_the_chain_of_modules_runs_one_way():
    left = ["tasks", "models", "checkpoints", "activations", "lenses", "comparison"]
    order = [*left, "judging", "exhibits", "papers", "book", "run", "report", "cli"]
    package = ROOT / "lib" / "fivelenses"
    for place, name in enumerate(order):
        for file in [*(package / name).rglob("*.py"), *package.glob(f"{name}.py")]:
            right = {module.split(".")[1] for module in imported(file) if "." in module} & set(order[place + 1 :])
            assert not right, f"{file.relative_to(ROOT)} imports {right} from its right"
