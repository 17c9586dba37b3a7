"""Which architectures the library addresses by layer and part, told from a configuration alone.

A layer has to be a module of its own, so that it can be frozen, rolled back or re-initialised without the others. The
chapters that re-initialise layers, or say how far their weights moved, also need six projections per layer.
"""

from typing import TYPE_CHECKING

# A refusal does not wait for the library.
if TYPE_CHECKING:
    from transformers import PretrainedConfig

# By transformers' name of the architecture.
ADDRESSED = {
    "bert": "BERT",
    "distilbert": "DistilBERT",
    "electra": "ELECTRA",
    "mpnet": "MPNet",
    "roberta": "RoBERTa",
    "xlm-roberta": "XLM-R",
}
_POSITIONS = "beside the six projections its layers have two of relative positions"
WITHOUT_SIX_PROJECTIONS = {
    "deberta": _POSITIONS,
    "deberta-v2": _POSITIONS,
    "modernbert": "its layers compute query, key and value by one projection",
}
NOT_ADDRESSED = {
    "albert": "all its layers share one set of weights, so no layer can be changed alone",
    "bart": "it has an encoder and a decoder",
    "gpt2": "it is a decoder, whose tokens do not read those after them",
    "t5": "it has an encoder and a decoder",
}
# These count positions from the one after the padding token's number, MPNet's being always 1.
LATE_POSITIONS = ("camembert", "mpnet", "roberta", "xlm-roberta")


def positions(config: "PretrainedConfig") -> int | None:
    """The tokens that an encoder reads at most, None where its configuration sets no limit.

    Example:
        >>> from transformers import BertConfig, RobertaConfig
        >>> positions(BertConfig()), positions(RobertaConfig(max_position_embeddings=514))
        (512, 512)
    """
    most = getattr(config, "max_position_embeddings", None)
    if most is None or config.model_type not in LATE_POSITIONS:
        return most
    return most - 1 - (1 if config.model_type == "mpnet" else config.pad_token_id)


def check(name: str, config: "PretrainedConfig", projections: bool = False) -> None:
    """Refuse an architecture by name, before any weights are read; one that is not named here is tried.

    Args:
        name: the encoder's.
        config: its configuration.
        projections: whether the six projections of each layer are needed.

    Raises:
        ValueError: layers or projections cannot be addressed, and why.

    Example:
        >>> from transformers import AlbertConfig
        >>> check("an encoder", AlbertConfig())
        Traceback (most recent call last):
        ...
        ValueError: The encoder 'an encoder' is of the architecture 'albert', which cannot be studied layer by layer:
        all its layers share one set of weights, so no layer can be changed alone. Take one of BERT, DistilBERT,
        ELECTRA, MPNet, RoBERTa, XLM-R.
    """
    check_kind(name, config.model_type, config.is_encoder_decoder, projections)


def check_kind(name: str, kind: str, encoder_decoder: bool = False, projections: bool = False) -> None:
    """As `check`, of an architecture by its name.

    Args:
        name: the encoder's.
        kind: transformers' name of the architecture.
        encoder_decoder: whether its configuration says that it has a decoder, too.
        projections: whether the six projections of each layer are needed.

    Raises:
        ValueError: layers or projections cannot be addressed, and why.
    """
    reason = NOT_ADDRESSED.get(kind)
    if reason is None and encoder_decoder:
        reason = NOT_ADDRESSED["t5"]
    if reason is None and projections:
        reason = WITHOUT_SIX_PROJECTIONS.get(kind)
    if reason is not None:
        raise ValueError(
            f"The encoder {name!r} is of the architecture {kind!r}, which cannot be studied layer by layer: {reason}. "
            f"Take one of {', '.join(sorted(ADDRESSED.values()))}."
        )
