"""Zhou and Srikumar (2022), "A Closer Look at How Fine-tuning Changes BERT": measurements, exhibits and claims."""

from fivelenses.papers.zhou2022.along_training import centroid_paths, dynamics, movements
from fivelenses.papers.zhou2022.claims import CLAIMS
from fivelenses.papers.zhou2022.figures import (
    figure_1,
    figure_2,
    figure_3,
    figure_4,
    figure_5,
    figure_6,
    figures_7_to_10,
)
from fivelenses.papers.zhou2022.measure import cross_task, family, geometry, probe_accuracy, task_sizes
from fivelenses.papers.zhou2022.tables import table_1, table_2, table_3, table_4, table_5, table_6, table_7

__all__ = [
    "CLAIMS",
    "centroid_paths",
    "cross_task",
    "dynamics",
    "family",
    "figure_1",
    "figure_2",
    "figure_3",
    "figure_4",
    "figure_5",
    "figure_6",
    "figures_7_to_10",
    "geometry",
    "movements",
    "probe_accuracy",
    "table_1",
    "table_2",
    "table_3",
    "table_4",
    "table_5",
    "table_6",
    "table_7",
    "task_sizes",
]
