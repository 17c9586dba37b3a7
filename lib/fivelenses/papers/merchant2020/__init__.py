"""Merchant, Rahimtoroghi, Pavlick and Tenney (2020), "What Happens To BERT Embeddings During Fine-tuning?":
measurements, exhibits and claims.
"""

from fivelenses.papers.merchant2020.another_encoder import figures_of_another_encoder, table_of_another_encoder
from fivelenses.papers.merchant2020.claims import CLAIMS
from fivelenses.papers.merchant2020.figures import (
    appendix_c,
    codelengths,
    edge_table_exhibit,
    figure_1,
    figure_2,
    figure_3,
    figure_4,
    figure_5,
    tuned_scores,
)
from fivelenses.papers.merchant2020.measure import (
    Probing,
    edge_probing,
    plain_inputs,
    probed_models,
    similarities,
    similarity_to_base,
    structural_probes,
    whole_models,
)

__all__ = [
    "CLAIMS",
    "Probing",
    "appendix_c",
    "codelengths",
    "edge_probing",
    "edge_table_exhibit",
    "figure_1",
    "figure_2",
    "figure_3",
    "figure_4",
    "figure_5",
    "figures_of_another_encoder",
    "plain_inputs",
    "probed_models",
    "similarities",
    "similarity_to_base",
    "structural_probes",
    "table_of_another_encoder",
    "tuned_scores",
    "whole_models",
]
