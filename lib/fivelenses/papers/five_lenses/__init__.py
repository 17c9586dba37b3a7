"""Chapter 6: whether the lenses of the five papers agree on which layers fine-tuning changes.

The same fine-tuned models are seen through all of them: `measurements` makes one tidy table of it, `agreement` asks
whether its measures order the layers alike, and `statement` says in words where they part.
"""

from fivelenses.papers.five_lenses.another_encoder import another_encoder
from fivelenses.papers.five_lenses.claims import CLAIMS
from fivelenses.papers.five_lenses.figures import all_curves, centres, correlations, overview
from fivelenses.papers.five_lenses.measure import Measuring, changes_by_layer, references
from fivelenses.papers.five_lenses.statement import findings
from fivelenses.papers.five_lenses.tables import (
    greatest_change,
    table_of_instruments,
    table_of_lenses,
    table_of_models,
    what_layers_add,
    what_sets_apart,
)

__all__ = [
    "CLAIMS",
    "Measuring",
    "all_curves",
    "another_encoder",
    "centres",
    "changes_by_layer",
    "correlations",
    "findings",
    "greatest_change",
    "overview",
    "references",
    "table_of_instruments",
    "table_of_lenses",
    "table_of_models",
    "what_layers_add",
    "what_sets_apart",
]
