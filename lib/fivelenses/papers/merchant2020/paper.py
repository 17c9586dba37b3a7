"""What Merchant et al. (2020) print."""

from fivelenses.papers.merchant2020.measure import BASE, LEXICAL, RANDOMISED

# Table 1, page 4: micro-F1 of the base encoder, and differences to it in points.
PAPER_TABLE_1 = {
    "pos": (97.5, -9.0, -13.6, -0.2, -1.5, -0.2),
    "constituents": (84.4, -12.9, -24.1, -2.2, 0.1, 4.4),
    "dependencies": (95.5, -15.6, -18.2, -0.5, -2.5, 0.2),
    "entities": (96.2, -6.6, -10.0, -0.3, -0.9, -0.6),
    "srl": (92.9, -13.6, -15.0, -0.4, -2.9, -0.5),
    "coreference": (95.7, -5.8, -6.2, -0.5, -0.8, -1.2),
    "spr": (84.6, -6.6, -12.2, -0.7, -0.4, -1.2),
    "relations": (79.5, -20.7, -40.5, -0.8, -0.4, -2.5),
}
PAPER_COLUMNS = (BASE, LEXICAL, RANDOMISED, "mnli", "squad", "parsing")
