"""Hao, Dong, Wei and Xu (2020), "Investigating Learning Dynamics of BERT Fine-Tuning": measurements, exhibits and
claims.

The paper counts 24 layers from 0; here layers are 1…L, so its layers 0–10 are our 1–11, the lower 11/24 of any encoder.
"""

from fivelenses.papers.hao2020.another_encoder import another_encoder
from fivelenses.papers.hao2020.claims import CLAIMS
from fivelenses.papers.hao2020.figures import (
    figure_1,
    figure_2,
    figure_3,
    figure_4,
    figure_5,
    figure_6,
    figure_7,
    table_1,
    table_of_measures,
)
from fivelenses.papers.hao2020.measure import between_datasets, changes_by_layer, rollbacks

__all__ = [
    "CLAIMS",
    "another_encoder",
    "between_datasets",
    "changes_by_layer",
    "figure_1",
    "figure_2",
    "figure_3",
    "figure_4",
    "figure_5",
    "figure_6",
    "figure_7",
    "rollbacks",
    "table_1",
    "table_of_measures",
]
