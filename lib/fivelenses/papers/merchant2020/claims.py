"""The eight claims of Merchant et al. (2020): what the paper says, and what in a run's records speaks for it."""

from fivelenses.exhibits.claims import Claim
from fivelenses.papers.merchant2020 import layer_claims as layers
from fivelenses.papers.merchant2020 import probe_claims as probes
from fivelenses.papers.merchant2020.probe_claims import NOT_SYNTAX, PAPER_COLUMNS, PAPER_TABLE_1, SYNTAX
from fivelenses.papers.merchant2020.probed import LEXICAL, PARSER, RANDOMISED
from fivelenses.papers.merchant2020.similarity import SIDES

PAPER = "merchant2020"


def _printed(tasks_probed: tuple[str, ...], *models: str) -> str:
    """The least and the greatest change that the paper's Table 1 prints for these probes and models, in points."""
    columns = [PAPER_COLUMNS.index(model) for model in models]
    changes = [PAPER_TABLE_1[task][column] for task in tasks_probed for column in columns]
    return f"{min(changes):+.1f} to {max(changes):+.1f}"


TRAINED_ANEW = "each ablated model is trained by itself, and a model moved at random is not trained"
CLAIMS = (
    Claim(
        "no-forgetting",
        PAPER,
        "Fine-tuning costs edge probes little, and far less than taking context or pre-training away does.",
        "section 4.1, Table 1",
        ("merchant2020-table-1",),
        "change of micro-F1 in a fine-tuned encoder; half of the smaller fall of the two baselines minus the fall",
        (probes.CHANGE, probes.FAR_LESS),
        ("edge_probing",),
        probes.no_forgetting,
        "case",
        f"{_printed(tuple(PAPER_TABLE_1), *SIDES, PARSER)} points; lexical "
        f"{_printed(tuple(PAPER_TABLE_1), LEXICAL)}, randomised {_printed(tuple(PAPER_TABLE_1), RANDOMISED)}",
    ),
    Claim(
        "dep-helps-syntax",
        PAPER,
        "The parser's encoder gains on constituents and dependencies and loses on coreference, proto-roles and "
        "relations.",
        "section 4.1, Table 1",
        ("merchant2020-table-1",),
        "change of micro-F1 in the parser's encoder: up for the two syntactic tasks, down for the others",
        (probes.EXPECTED,),
        ("edge_probing",),
        probes.parsing_helps_syntax,
        "probe",
        f"{_printed(SYNTAX, PARSER)} points; the others {_printed(NOT_SYNTAX, PARSER)}",
    ),
    Claim(
        "structure-kept",
        PAPER,
        "Structural probes hardly change for MNLI and SQuAD, except at the top, and improve for the parser from about "
        "layer 5 of 12.",
        "section 4.1, Figure 1",
        ("merchant2020-figure-1a", "merchant2020-figure-1b"),
        "mean change of Spearman's correlation below the last sixth of the layers; for the parser, from 5/12 of the "
        "depth on",
        (probes.NO_FALL, probes.NO_RISE, probes.PARSER_RISE, probes.EARLY_RISE),
        ("structure",),
        probes.structure_kept,
        "curve",
        "the parser improves from layer 5 of 12",
    ),
    Claim(
        "mdl-same",
        PAPER,
        "Codelengths hardly change, except that the parser makes dependencies, and only them, cheaper.",
        "section 4.1, appendix B",
        ("merchant2020-codelengths",),
        "saving and cost of bits, relative to the pre-trained encoder; the parser's saving on dependencies",
        (probes.NO_LONGER, probes.NO_SHORTER, probes.CHEAPER),
        ("codelengths",),
        probes.same_codelength,
        "code",
    ),
    Claim(
        "top-layers-change",
        PAPER,
        "Similarity to the pre-trained encoder falls in the top layers: least for MNLI, then SQuAD, most for the "
        "parser.",
        "section 5.1, Figure 2",
        ("merchant2020-figure-2",),
        "loss of similarity between thirds of the layers: the rise from the middle to the top minus that from the "
        "bottom to the middle, and top minus bottom; difference of two tasks",
        (layers.ON_TOP, layers.GROWTH, layers.OTHERS_GROWTH, layers.ORDER),
        ("similarities",),
        layers.top_layers_change,
        "pair",
        "0.84 ± 0.02 in MNLI's last layer but one; the parser departs at layers 4 and 5 of 12",
    ),
    Claim(
        "few-layers-suffice",
        PAPER,
        "Freezing most of the bottom layers costs MNLI and SQuAD little, and the parser more.",
        "section 5.2, Figure 3",
        ("merchant2020-figure-3",),
        "share of the gain over the null rate that is lost, at the worst number of frozen layers up to half of them; "
        "the parser's mean loss over these",
        (layers.KEPT, layers.PARSER_LOSES, layers.PARSER_LOSES_MORE),
        ("models", "similarities"),
        layers.few_layers_suffice,
        printed="MNLI drops with the last two of 12 layers frozen, SQuAD with three or fewer free",
        untwinned=TRAINED_ANEW,
        spare=("by_example",),
    ),
    Claim(
        "shallow-truncation",
        PAPER,
        "Half of the layers come near the full score on MNLI and SQuAD; the parser needs more of them.",
        "section 5.2, Figure 4",
        ("merchant2020-figure-4",),
        "share of the gain over the null rate that is lost with half of the layers",
        (layers.KEPT, layers.PARSER_LOSES, layers.PARSER_LOSES_MORE),
        ("models", "similarities"),
        layers.shallow_truncation,
        printed="near the full score by layer 6 of 12; three layers suffice for MNLI, five for SQuAD",
        untwinned=TRAINED_ANEW,
        spare=("by_example",),
    ),
    Claim(
        "in-domain-changes-more",
        PAPER,
        "Representations change more on the task's own kind of input than on running text or on another task's.",
        "section 6, Figure 5",
        ("merchant2020-figure-5-mnli", "merchant2020-figure-5-squad"),
        "similarity in the upper half of the layers on other input minus that on the task's own",
        (layers.THAN_TEXT, layers.THAN_OTHER),
        ("similarities", "similarities_by_input"),
        layers.in_domain_changes_more,
    ),
)
