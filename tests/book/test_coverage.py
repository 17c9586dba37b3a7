"""The table of coverage on the ledger's page is what its script prints."""

import csv
import importlib.util

import pytest

from fivelenses import project


@pytest.fixture(scope="module")
def coverage():
    spec = importlib.util.spec_from_file_location("coverage_bench", project.root() / "bench" / "coverage.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def rows(coverage):
    with (project.root() / "book" / "coverage.csv").open(encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header == ["models", "models differ", "our interval", "Multi-Bootstrap"]
    return rows


def test_every_line_is_there(coverage, rows):
    assert [row[:2] for row in rows] == [[str(models), name] for models in coverage.MODELS for name in coverage.SPREADS]


@pytest.mark.parametrize("models", [2, 3])
def test_the_lines_that_matter_most_are_simulated_again(coverage, rows, models):
    """The fewest models that differ most, with 1,000 simulations: a standard error of about a point."""
    printed = next(row for row in rows if row[:2] == [str(models), list(coverage.SPREADS)[-1]])
    again = coverage.coverage(models, coverage.SPREADS[printed[1]], 1000, seed=1)
    assert [100 * share for share in again] == pytest.approx([float(share[:-1]) for share in printed[2:]], abs=4)


def test_three_models_are_enough_for_ninety_percent(rows):
    assert all(float(row[2][:-1]) >= 90 for row in rows if int(row[0]) >= 3)
