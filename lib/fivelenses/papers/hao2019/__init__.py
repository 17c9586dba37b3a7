"""Hao, Dong, Wei and Xu (2019), "Visualizing and understanding the effectiveness of BERT": models and planes,
measurements, exhibits and claims.
"""

from fivelenses.papers.hao2019.another_encoder import another_encoder
from fivelenses.papers.hao2019.claims import CLAIMS
from fivelenses.papers.hao2019.figures import (
    figure_1,
    figure_2,
    figure_3,
    figure_4,
    figure_5,
    figure_6,
    figure_7,
)
from fivelenses.papers.hao2019.layer_groups import group_surfaces, rollbacks
from fivelenses.papers.hao2019.measure import (
    Sampling,
    histories,
    landscapes,
    long_training,
    trajectories,
)
from fivelenses.papers.hao2019.measures import group_measures, measures
from fivelenses.papers.hao2019.planes import Models
from fivelenses.papers.hao2019.tables import table_1, table_of_groups, table_of_measures, table_of_models

__all__ = [
    "CLAIMS",
    "Models",
    "Sampling",
    "another_encoder",
    "figure_1",
    "figure_2",
    "figure_3",
    "figure_4",
    "figure_5",
    "figure_6",
    "figure_7",
    "group_measures",
    "group_surfaces",
    "histories",
    "landscapes",
    "long_training",
    "measures",
    "rollbacks",
    "table_1",
    "table_of_groups",
    "table_of_measures",
    "table_of_models",
    "trajectories",
]
