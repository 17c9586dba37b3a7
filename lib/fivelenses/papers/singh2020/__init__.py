"""Singh and Giovanardi (2020), "How much does pre-trained information help? Partially re-initializing BERT during
fine-tuning to analyze the contribution of layers": measurements, exhibits and claims.
"""

from fivelenses.papers.singh2020.another_encoder import another_encoder
from fivelenses.papers.singh2020.claims import CLAIMS
from fivelenses.papers.singh2020.figures import (
    figure_1c,
    figure_4,
    probing,
    reinitialisation,
    table_1,
    table_of_shapes,
    table_of_sublayers,
    weight_distance,
)
from fivelenses.papers.singh2020.measure import frozen_probes, reinitialised_scores, weight_distances

__all__ = [
    "CLAIMS",
    "another_encoder",
    "figure_1c",
    "figure_4",
    "frozen_probes",
    "probing",
    "reinitialisation",
    "reinitialised_scores",
    "table_1",
    "table_of_shapes",
    "table_of_sublayers",
    "weight_distance",
    "weight_distances",
]
