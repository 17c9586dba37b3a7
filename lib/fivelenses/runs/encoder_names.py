"""Encoders refused by what lies on this machine, within a second: names that nothing bears, configurations that cannot
be read, architectures and depths that a chapter cannot take, files that do not fit each other.

Whether its tokeniser knows a task's text is looked at later (`checkpoints.soundness`), for which libraries are loaded.
"""

import json
import os
from collections.abc import Collection, Mapping
from pathlib import Path

from fivelenses import project
from fivelenses.checkpoints import architectures
from fivelenses.runs import encoder_files
from fivelenses.runs.parameters import FineTuningParameters, ParameterError

RANDOM = "random:"
LAYERS = ("num_hidden_layers", "n_layers")
# The parameters whose values name encoders.
NAMING = ("encoder", "encoders", "epochs_by_encoder", "independent", "learning_rate_by_encoder", "pretrained")


def in_full(name: str) -> str:
    """An encoder's name; of a folder its whole path, since a notebook runs in another folder than its caller.

    Example:
        >>> in_full("toy-bert/seed-0"), in_full("random:bert-base-uncased")
        ('toy-bert/seed-0', 'random:bert-base-uncased')
    """
    kind, plain = (RANDOM, name.removeprefix(RANDOM)) if name.startswith(RANDOM) else ("", name)
    folder = Path(plain).expanduser()
    return f"{kind}{folder.resolve()}" if plain and (folder / "config.json").is_file() else name


def check_names(parameters: FineTuningParameters, given: Collection[str] = ()) -> None:
    """Refuse a run whose encoders cannot be had, or not addressed.

    Args:
        parameters: of the run.
        given: the names of those that a caller set, whose numbers of layers every encoder has to have; a profile's are
            for encoders of several depths.

    Raises:
        ParameterError, ValueError: in one sentence, by name.
    """
    for name in dict.fromkeys(parameters.encoders_read()):
        check_name(name, parameters.fewest_layers, parameters.six_projections)
    for name in dict.fromkeys(parameters.encoders_used()):
        layers = _layers_here(name)
        for field in (field for field in parameters.counting_layers if field in given and layers is not None):
            value = getattr(parameters, field)
            beyond = [one for one in (value if isinstance(value, tuple) else (value,)) if one and one > layers]
            if beyond:
                raise ParameterError(
                    f"{field} names {beyond[0]} and {name} has {layers} {_layers_word(layers)}: name at most {layers}."
                )


def check_name(name: str, fewest_layers: int = 1, projections: bool = False) -> None:
    """Refuse an encoder by its name and, where they are on this machine, its files.

    Args:
        name: as `models.encoders` understands it; one of the hub is believed.
        fewest_layers: that it has to have.
        projections: whether the six projections of each layer are needed.

    Raises:
        ParameterError: nothing bears the name, it has too few layers, or its files cannot be read or do not fit each
            other.
        ValueError: an architecture that cannot be addressed.

    Example:
        >>> check_name("toy-bert/seed-0")
    """
    plain = name.removeprefix(RANDOM)
    if plain.startswith(RANDOM):
        raise ParameterError(f"{name!r} is random twice: write {RANDOM}{plain.split(':')[-1]}.")
    file = _configuration_here(name)
    if file is None:
        if plain.startswith((".", "/", "~", "toy-bert", "english-bert")) or set(" \n\t") & set(plain) or not plain:
            known = ", ".join(
                sorted("/".join(one.parts[-3:-1]) for one in (project.root() / "models").glob("*/*/config.json"))
            )
            raise ParameterError(
                f"There is no encoder at {name!r}: give a folder that holds a config.json, a folder under models/"
                f"{f' ({known})' if known else ''}, a name on the hub, or random:NAME."
            )
        if plain.count("/") > 1:
            raise ParameterError(f"There is no encoder at {name!r}: a name on the hub is owner/name.")
        return
    read = _read(file)
    kind = read["model_type"]
    architectures.check_kind(name, kind, bool(read.get("is_encoder_decoder")), projections)
    _check_direction(name, read)
    check_depth(name, _layers_of(read), fewest_layers)
    encoder_files.check(file.parent, read, random=name.startswith(RANDOM))


def _check_direction(name: str, read: Mapping) -> None:
    """Refuse a decoder, of whatever architecture.

    Args:
        name: the encoder's.
        read: its configuration.

    Raises:
        ValueError: in one sentence.
    """
    kind, decoder = read["model_type"], bool(read.get("is_decoder"))
    addressed = kind in (*architectures.ADDRESSED, *architectures.WITHOUT_SIX_PROJECTIONS)
    if not decoder and not addressed:
        decoder = _continues_texts(read)
    if not decoder and not addressed:
        # Which of all architectures only continue texts is the library's to say; it takes seconds to load.
        from transformers.models.auto.modeling_auto import (
            MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
            MODEL_FOR_MASKED_LM_MAPPING_NAMES,
        )

        decoder = kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and kind not in MODEL_FOR_MASKED_LM_MAPPING_NAMES
    if decoder:
        raise ValueError(
            f"The encoder {name!r} is of the architecture {kind!r}, which cannot be studied layer by layer: "
            f"{architectures.NOT_ADDRESSED['gpt2']}. Take one of {', '.join(sorted(architectures.ADDRESSED.values()))}."
        )


def _continues_texts(read: Mapping) -> bool:
    """Whether a configuration names the models that it was written for, and all of them continue texts."""
    written_for = read.get("architectures")
    if not isinstance(written_for, list) or not written_for:
        return False
    return all(isinstance(one, str) and one.endswith(("ForCausalLM", "LMHeadModel")) for one in written_for)


def check_depth(name: str, layers: int | None, fewest: int) -> None:
    """Refuse an encoder with too few layers for a chapter.

    Args:
        name: the encoder's.
        layers: how many it has, None where that is not known yet.
        fewest: that the chapter needs.

    Raises:
        ParameterError: in one sentence.

    Example:
        >>> check_depth("toy-bert/seed-0", 6, 3)
    """
    if layers is not None and layers < fewest:
        raise ParameterError(
            f"This chapter compares parts of an encoder that {name}, of {layers} {_layers_word(layers)}"
            f", does not have: give it one of at least {fewest}."
        )


def is_here(name: str) -> bool:
    """Whether an encoder's configuration lies in a folder of this machine, where no network is needed for it.

    Example:
        >>> is_here("random:toy-bert/seed-0"), is_here("google/electra-small-discriminator")
        (True, False)
    """
    return _configuration_here(name) is not None


def _configuration_here(name: str) -> Path | None:
    """The configuration of an encoder in a folder of this machine, None where it is in none."""
    return next((file for file in _configurations(name.removeprefix(RANDOM)) if file.is_file()), None)


def _read(file: Path) -> Mapping:
    """What a configuration says, the name of the architecture among it.

    Raises:
        ParameterError: it is damaged.
    """
    try:
        read = json.loads(file.read_text(encoding="utf-8"))
        hash(read["model_type"])  # a name, not a list or a mapping
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ParameterError(
            f"The configuration {file} is damaged ({type(error).__name__}: {error}): copy it from the encoder again."
        ) from error
    return read


def _layers_of(read: Mapping) -> int | None:
    layers = next((read[field] for field in LAYERS if field in read), None)
    return layers if isinstance(layers, int) else None


def _layers_here(name: str) -> int | None:
    """How many layers an encoder has, None where no folder of this machine says so."""
    file = _configuration_here(name)
    return None if file is None else _layers_of(_read(file))


def _layers_word(count: int) -> str:
    return "layer" if count == 1 else "layers"


def _configurations(name: str) -> list[Path]:
    """Where an encoder's configuration would lie on this machine, in the order in which it is looked for."""
    named = os.environ.get("FIVELENSES_MIRROR")
    folders = [Path(name).expanduser(), project.root() / "models" / name]
    folders += [Path(named).expanduser() / "models" / name] if named else []
    return [folder / "config.json" for folder in folders]
