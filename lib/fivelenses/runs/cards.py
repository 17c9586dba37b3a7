"""A claim and what runs say of it, as a card: the sentence, our effect with its interval per group, the verdict."""

from collections.abc import Sequence

import pandas as pd

from fivelenses.exhibits import verdicts
from fivelenses.exhibits.claims import OURS, Claim, Judged
from fivelenses.exhibits.exhibit import as_html


def cards(claims: Sequence[Claim], judged: Sequence[Judged]) -> str:
    """The claims of a chapter with what its run says of them, as HTML."""
    said = "the statement" if all(claim.place == OURS for claim in claims) else "the paper says"
    rows = []
    for claim, one in zip(claims, judged, strict=True):
        rows.append(
            {
                "claim": claim.key,
                said: f"{claim.sentence} ({claim.place})",
                "our measure": claim.measure,
                "ours": one.spread(claim.parts[0]),
                "verdict": verdicts.sentence(one.verdict, claim.unit),
            }
        )
    return as_html(pd.DataFrame(rows), "The claims, and what this run says of them.")
