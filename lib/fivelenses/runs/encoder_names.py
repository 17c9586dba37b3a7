"""Encoders refused by what lies on this machine, within a second: names that nothing bears, configurations that cannot
be read, architectures and depths that a chapter cannot take.

What an encoder's weights and tokeniser are is looked at later (`inputs`, `checkpoints.soundness`), for which libraries
are loaded.
"""

import json
import os
from pathlib import Path

from fivelenses import project
from fivelenses.checkpoints import architectures
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


def check_names(parameters: FineTuningParameters) -> None:
    """Refuse a run whose encoders cannot be had, or not addressed.

    Raises:
        ParameterError, ValueError: in one sentence, by name.
    """
    for name in dict.fromkeys(parameters.encoders_read()):
        check_name(name, parameters.fewest_layers)


def check_name(name: str, fewest_layers: int = 1) -> None:
    """Refuse an encoder by its name and, where that is on this machine, its configuration.

    Args:
        name: as `models.encoders` understands it; one of the hub is believed.
        fewest_layers: that it has to have.

    Raises:
        ParameterError: nothing bears the name, its configuration cannot be read, or it has too few layers.
        ValueError: an architecture that cannot be addressed.

    Example:
        >>> check_name("toy-bert/seed-0")
    """
    plain = name.removeprefix(RANDOM)
    file = next((file for file in _configurations(plain) if file.is_file()), None)
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
    try:
        read = json.loads(file.read_text(encoding="utf-8"))
        kind = read["model_type"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ParameterError(
            f"The configuration {file} is damaged ({type(error).__name__}: {error}): copy it from the encoder again."
        ) from error
    architectures.check_kind(name, kind, bool(read.get("is_encoder_decoder")))
    layers = next((read[field] for field in LAYERS if field in read), None)
    check_depth(name, layers if isinstance(layers, int) else None, fewest_layers)


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
            f"This chapter compares parts of an encoder that {name}, of {layers} {'layer' if layers == 1 else 'layers'}"
            f", does not have: give it one of at least {fewest}."
        )


def is_here(name: str) -> bool:
    """Whether an encoder's configuration lies in a folder of this machine, where no network is needed for it.

    Example:
        >>> is_here("random:toy-bert/seed-0"), is_here("google/electra-small-discriminator")
        (True, False)
    """
    return any(file.is_file() for file in _configurations(name.removeprefix(RANDOM)))


def _configurations(name: str) -> list[Path]:
    """Where an encoder's configuration would lie on this machine, in the order in which it is looked for."""
    named = os.environ.get("FIVELENSES_MIRROR")
    folders = [Path(name).expanduser(), project.root() / "models" / name]
    folders += [Path(named).expanduser() / "models" / name] if named else []
    return [folder / "config.json" for folder in folders]
