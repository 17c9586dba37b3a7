"""Whether the lenses agree in another encoder, and whether they agree there as they do in the first."""

import dataclasses

import pandas as pd

from fivelenses.exhibits import claims
from fivelenses.exhibits.exhibit import Exhibit
from fivelenses.papers.five_lenses import agreement
from fivelenses.papers.five_lenses.claims import CLAIMS, TABLE
from fivelenses.papers.five_lenses.figures import correlations
from fivelenses.papers.five_lenses.rank_statistics import number, rank_correlation


def likeness(first: pd.DataFrame, second: pd.DataFrame) -> tuple[float, int]:
    """Spearman's correlation of the rank correlations of all pairs of measures in two encoders, and how many pairs have
    one in both; NaN for fewer than three, or where they are all the same in one encoder.

    Args:
        first, second: of `changes_by_layer`, for one encoder each.
    """
    pairs = [
        agreement.between_measures(changes).set_index(["first", "second"])["correlation"] for changes in (first, second)
    ]
    both = pd.concat(pairs, axis=1, join="inner").dropna()
    return (rank_correlation(*both.to_numpy().T) if len(both) > 2 else float("nan")), len(both)


def another_encoder(changes: pd.DataFrame, usual: pd.DataFrame, encoder: str) -> Exhibit:
    """The rank correlations between measures in another encoder, with the verdicts on the statements in the caption.

    Args:
        changes: of `changes_by_layer` for this encoder.
        usual: the same for the encoder that the chapter follows.
        encoder: its name.
    """
    exhibit = correlations(changes)
    alike, pairs = likeness(usual, changes)
    return dataclasses.replace(
        exhibit,
        key=f"five-lenses-correlations-{encoder.replace('/', '-')}",
        title="Rank correlations, another encoder",
        table=exhibit.table.assign(encoder=encoder),
        caption=(
            f"The same for {encoder}. {exhibit.caption} Over {pairs} pairs of measures, the correlations here and "
            f"those of the first encoder have a rank correlation of {number(alike)}. Of the five statements, judged "
            f"on this encoder, {claims.in_words(CLAIMS, {TABLE: changes})}."
        ),
    )
