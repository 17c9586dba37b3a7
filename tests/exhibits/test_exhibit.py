import pandas as pd

from fivelenses.exhibits.claims import CANNOT_BE_TESTED, judge
from fivelenses.exhibits.exhibit import Absent
from fivelenses.papers import hao2020
from fivelenses.runs.run import Run
from fivelenses.runs.settings import find_chapter, settings


def test_an_exhibit_that_a_run_cannot_have_says_why_and_leaves_its_claims_untested(tmp_path):
    one_seed = pd.DataFrame(
        {"first": ["pre-trained", "pre-trained"], "second": ["0", "untrained"], "layer": 1, "js": 0.1}
    )
    run = Run(find_chapter(1), "tiny", settings(1, "tiny", seeds=[0]), tmp_path)
    for figure in (hao2020.figure_4, hao2020.figure_5):
        exhibit = figure(one_seed)
        assert isinstance(exhibit, Absent) and "compares seeds" in exhibit.sentence
        run.exhibit(exhibit)
    assert not run.tables and not list(tmp_path.glob("*.parquet"))
    of_seeds = [claim for claim in hao2020.CLAIMS if claim.key.startswith("seeds-")]
    assert {judge(claim, run.tables).verdict for claim in of_seeds} == {CANNOT_BE_TESTED}
