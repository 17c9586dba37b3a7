"""The table of coverage on the ledger's page is what its script prints."""

import csv
import runpy
from types import SimpleNamespace

import pytest

from fivelenses.files import project_folder


@pytest.fixture(scope="module")
def coverage():
    return SimpleNamespace(**runpy.run_path(str(project_folder() / "bench" / "coverage.py")))


@pytest.fixture(scope="module")
def rows(coverage):
    """The lines of the table, all of them."""
    with (project_folder() / "book" / "coverage.csv").open(encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header == ["models", "models differ", "our interval", "Multi-Bootstrap"]
    assert [row[:2] for row in rows] == [[str(models), name] for models in coverage.MODELS for name in coverage.SPREADS]
    return rows


@pytest.mark.parametrize("models", [2, 3])
def test_the_lines_that_matter_most_are_simulated_again(coverage, rows, models):
    """The fewest models that differ most, with 1,000 simulations: a standard error of about a point."""
    printed = next(row for row in rows if row[:2] == [str(models), list(coverage.SPREADS)[-1]])
    again = coverage.coverage(models, coverage.SPREADS[printed[1]], 1000, seed=1)
    assert [100 * share for share in again] == pytest.approx([float(share[:-1]) for share in printed[2:]], abs=4)
