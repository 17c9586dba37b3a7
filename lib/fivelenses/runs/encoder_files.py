"""The files of an encoder in a folder of this machine, looked at without torch: whether its weights and its tokeniser
are there, whole, and fit its configuration. `checkpoints.soundness` says the same of what no file tells.
"""

import functools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from fivelenses.runs.parameters import ParameterError

# In the order in which transformers looks for them; of torch's own format only that it is there.
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
OF_TORCH = ("pytorch_model.bin", "pytorch_model.bin.index.json")
# One of them is enough; the later ones are made into the first by transformers.
TOKENIZER = "tokenizer.json"
VOCABULARIES = ("vocab.txt", "vocab.json", "bpe.codes", "sentencepiece.bpe.model", "spm.model", "spiece.model")
HEADS, WIDTH = ("num_attention_heads", "n_heads"), ("hidden_size", "dim")
EMBEDDED = ("embedding_size", *WIDTH)  # ELECTRA's embeddings are narrower than its layers
# How a weight's name ends, and which fields of the configuration its shape is.
SHAPES = {
    ".word_embeddings.weight": (("vocab_size",), EMBEDDED),
    ".embeddings.position_embeddings.weight": (("max_position_embeddings",), EMBEDDED),
    ".attention.self.query.weight": (WIDTH, WIDTH),
    ".attention.q_lin.weight": (WIDTH, WIDTH),
    ".intermediate.dense.weight": (("intermediate_size",), WIDTH),
}
FLOATING = ("F16", "F32", "F64")  # numpy has no bfloat16, whose values are looked at later


def check(folder: Path, config: Mapping, random: bool = False) -> None:
    """Refuse an encoder whose files are missing, damaged, or do not fit each other.

    Args:
        folder: that holds its config.json.
        config: what that says.
        random: whether its weights are not read.

    Raises:
        ParameterError: in one sentence that names the file.

    Example:
        >>> from fivelenses import project
        >>> folder = project.root() / "models" / "toy-bert" / "seed-0"
        >>> check(folder, json.loads((folder / "config.json").read_text(encoding="utf-8")))
    """
    _check_heads(folder, config)
    _check_tokenizer(folder, config)
    if not random:
        _check_weights(folder, config)


def _check_weights(folder: Path, config: Mapping) -> None:
    for file in _weights(folder):
        _check_shapes(file, config)
        bad = _first_not_finite(file, file.stat().st_mtime_ns)
        if bad:
            raise ParameterError(
                f"The weights {file} are not finite ({bad}): their training diverged or the file is damaged, so take "
                "another copy."
            )


def _field(config: Mapping, names: tuple[str, ...]) -> int | None:
    """The first of these fields that a configuration has, where it is a number."""
    value = next((config[name] for name in names if name in config), None)
    return value if isinstance(value, int) else None


def _check_heads(folder: Path, config: Mapping) -> None:
    width, heads = _field(config, WIDTH), _field(config, HEADS)
    if width is None or heads is None:
        return
    if width < 1 or heads < 1 or width % heads:
        raise ParameterError(
            f"The configuration {folder / 'config.json'} has a hidden size of {width}, which cannot be divided among "
            f"{heads} attention heads: copy it from the encoder again."
        )


def _weights(folder: Path) -> Iterator[Path]:
    """The files of an encoder's weights, but for those of torch's own format."""
    there = next((folder / name for name in (WEIGHTS, INDEX, *OF_TORCH) if (folder / name).exists()), None)
    if there is None:
        raise ParameterError(
            f"There are no weights in {folder}: put {WEIGHTS} there, or use its shape alone as random:{folder}."
        )
    if not there.is_file():
        raise ParameterError(f"The weights {there} are a folder: put the encoder's file of that name in its place.")
    if there.name == WEIGHTS:
        yield there
    elif there.name == INDEX:
        for name in sorted(_parts(there)):
            if not (folder / name).is_file():
                raise ParameterError(f"The weights {folder / name} are missing, which {INDEX} names: copy the file.")
            yield folder / name


def _parts(index: Path) -> set[str]:
    try:
        return set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ParameterError(f"{index} is damaged ({_words(error)}): copy it from the encoder again.") from error


def _check_tokenizer(folder: Path, config: Mapping) -> None:
    file = folder / TOKENIZER
    if not file.exists():
        if not any((folder / name).is_file() for name in VOCABULARIES):
            raise ParameterError(
                f"There is no tokeniser in {folder}: put the encoder's own {TOKENIZER}, or its vocabulary, beside its "
                "configuration."
            )
        return
    from tokenizers import Tokenizer

    try:
        tokens = Tokenizer.from_str(file.read_text(encoding="utf-8")).get_vocab()
    except Exception as error:  # the library has no class of its own for a file that is none
        raise ParameterError(f"The tokeniser {file} is damaged ({_words(error)}): copy it again.") from error
    rows, largest = _field(config, ("vocab_size",)), max(tokens.values(), default=-1)
    if rows is not None and not (rows / 2 <= len(tokens) <= rows and largest < rows):
        raise ParameterError(
            f"The tokeniser {file} has {len(tokens):,} tokens, the last of number {largest:,}, and config.json a "
            f"vocabulary of {rows:,}: take both files from the same encoder."
        )


def _check_shapes(file: Path, config: Mapping) -> None:
    for name, shape in _shapes(file).items():
        fields = next((fields for end, fields in SHAPES.items() if f".{name}".endswith(end)), ())
        wanted = [_field(config, names) for names in fields]
        if fields and (
            len(shape) != len(wanted) or any(one not in (None, size) for one, size in zip(wanted, shape, strict=True))
        ):
            is_wanted = " × ".join("?" if one is None else f"{one:,}" for one in wanted)
            raise ParameterError(
                f"The weights {file} do not fit config.json ({name} is {' × '.join(f'{size:,}' for size in shape)} "
                f"and should be {is_wanted}): take both files from the same encoder."
            )


def _shapes(file: Path) -> dict[str, tuple[int, ...]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="np") as weights:
            names = weights.keys()
            return {name: tuple(weights.get_slice(name).get_shape()) for name in names}
    except (SafetensorError, OSError) as error:
        raise ParameterError(
            f"The weights {file} are damaged or cut short ({_words(error)}): copy the file again."
        ) from error


@functools.lru_cache
def _first_not_finite(file: Path, changed: int) -> str:
    """The first weight that holds NaN or infinity, and how many; empty where there is none.

    Args:
        changed: the time of the file's last change, so that each state of it is read once.
    """
    import numpy as np
    from safetensors import safe_open

    with safe_open(file, framework="np") as weights:
        names = weights.keys()
        for name in names:
            if weights.get_slice(name).get_dtype() in FLOATING:
                values = weights.get_tensor(name)
                bad = values.size - int(np.isfinite(values).sum())
                if bad:
                    return f"{name} has {bad:,} bad values of {values.size:,}"
    return ""


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
