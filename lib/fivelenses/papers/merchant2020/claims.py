"""The eight claims of Merchant et al. (2020), in the paper's order."""

from fivelenses.papers.merchant2020.layer_claims import CLAIMS as ON_LAYERS
from fivelenses.papers.merchant2020.probe_claims import CLAIMS as ON_PROBES

CLAIMS = (*ON_PROBES, *ON_LAYERS)
