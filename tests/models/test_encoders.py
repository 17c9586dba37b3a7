"""Encoders: found by name, known by what they are made of, read as they are meant, refused where they are broken."""

import io
import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from tests.conftest import equal_weights
from tokenizers import Tokenizer
from tokenizers.models import BPE, WordLevel, WordPiece
from tokenizers.pre_tokenizers import BertPreTokenizer, ByteLevel, Whitespace
from tokenizers.processors import BertProcessing
from transformers import AutoModelForSequenceClassification, AutoTokenizer, BertConfig

from fivelenses.models import encoders, heads
from fivelenses.tasks.sources import SourceError


@pytest.fixture(autouse=True)
def nothing_is_remembered():
    encoders.locate.cache_clear()
    yield
    encoders.locate.cache_clear()


@pytest.fixture
def folder(tmp_path, toy_encoder):
    """A copy of the toy BERT, to be changed."""
    return shutil.copytree(toy_encoder.place, tmp_path / "encoder")


def located(folder):
    encoders.locate.cache_clear()
    return encoders.locate(str(folder))


def change_json(file, change) -> None:
    content = json.loads(file.read_text(encoding="utf-8"))
    change(content)
    file.write_text(json.dumps(content), encoding="utf-8")


def change_weights(folder, change) -> None:
    weights = change({name: tensor.clone() for name, tensor in load_file(folder / "model.safetensors").items()})
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


@pytest.mark.parametrize("name", ["./nowhere", "/no/such/folder", "toy-bert/seed-9", "two words"])
def test_a_name_that_is_nothing_says_what_to_give(name):
    with pytest.raises(SourceError, match="There is no encoder at"):
        encoders.locate(name)


def test_a_mirror_serves_encoders_whose_identity_is_their_content(tmp_path, monkeypatch, toy_encoder):
    shutil.copytree(toy_encoder.place, tmp_path / "models" / "owner" / "mirrored")
    monkeypatch.setenv("FIVELENSES_MIRROR", str(tmp_path))
    assert encoders.locate("owner/mirrored").identity == toy_encoder.identity


def test_a_commit_of_the_hub_is_the_identity():
    commit = "0123456789abcdef0123456789abcdef01234567"
    encoder = encoders.locate(f"owner/name@{commit}")
    assert (encoder.place, encoder.revision, encoder.identity) == ("owner/name", commit, f"owner/name@{commit}")
    assert encoders.locate("bert-large-uncased").revision == encoders.REVISIONS["bert-large-uncased"]


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("tokenizer_config.json", '{"do_lower_case": false}'),
        ("vocab.json", '{"a": 1}'),
        ("merges.txt", "a b"),
        ("special_tokens_map.json", "{}"),
        ("added_tokens.json", "{}"),
        ("spiece.model", "x"),
        ("model-00001-of-00002.safetensors", "x"),
        ("pytorch_model-00001-of-00002.bin", "x"),
    ],
)
def test_each_file_that_makes_tokens_or_weights_is_part_of_an_identity(folder, file, content):
    before = located(folder).identity
    (folder / file).write_text(content)
    assert located(folder).identity != before


@pytest.fixture
def packages(tmp_path, monkeypatch, toy_encoder):
    """Five packages that hold the parts of an encoder's zip file, and what is known of it."""
    zipped, weights = io.BytesIO(), Path(toy_encoder.place) / "model.safetensors"
    with zipfile.ZipFile(zipped, "w") as archive:
        for file in Path(toy_encoder.place).iterdir():
            archive.write(file, f"name/{file.name}")
    for place, part in enumerate(np.array_split(np.frombuffer(zipped.getvalue(), dtype=np.uint8), 5)):
        file = tmp_path / encoders.MPNET_PACKAGES[place][1]
        file.parent.mkdir(parents=True)
        file.write_bytes(part.tobytes())
    monkeypatch.setitem(encoders.PACKAGED, encoders.MPNET, encoders.sha256(weights))
    monkeypatch.setattr(encoders, "_package_file", lambda package, file: tmp_path / file)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def test_the_parts_of_an_encoder_are_joined_once_and_known_by_the_hubs_commit(packages, toy_encoder):
    encoder = encoders.locate(encoders.MPNET)
    assert encoder.identity == f"{encoders.MPNET}@{encoders.REVISIONS[encoders.MPNET]}"
    assert encoders._folder_identity(Path(encoder.place)) == toy_encoder.identity
    (packages / encoders.MPNET_PACKAGES[0][1]).unlink()
    encoders.locate.cache_clear()
    assert encoders.locate(encoders.MPNET) == encoder


def test_unpacked_weights_that_changed_are_refused(packages):
    folder = Path(encoders.locate(encoders.MPNET).place)
    (folder / "model.safetensors").write_bytes(b"x")
    encoders.locate.cache_clear()
    with pytest.raises(SourceError, match="are damaged: remove this folder"):
        encoders.locate(encoders.MPNET)


SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY = {token: number for number, token in enumerate([*SPECIAL, "The", "the", "teach", "##er", "teacher", "saw"])}


@pytest.mark.parametrize(
    "model, pre_tokenizer",
    [
        (WordLevel(VOCABULARY, unk_token="[UNK]"), Whitespace()),
        (WordPiece(VOCABULARY, unk_token="[UNK]"), BertPreTokenizer()),
        (BPE(VOCABULARY | {"Ġ": 11, "t": 12, "Ġt": 13}, [("Ġ", "t")], unk_token="[UNK]"), ByteLevel()),
    ],
    ids=["words", "cased WordPieces", "byte pairs"],
)
def test_ids_are_those_of_the_file_whatever_class_the_configuration_names(model, pre_tokenizer, tmp_path):
    own, text = Tokenizer(model), "The teacher saw the teacher"
    own.pre_tokenizer = pre_tokenizer
    own.post_processor = BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    BertConfig(vocab_size=own.get_vocab_size()).save_pretrained(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer", "do_lower_case": true}')
    own.save(str(tmp_path / "tokenizer.json"))
    read = encoders.tokenizer(encoders.locate(str(tmp_path)))
    read.save_pretrained(tmp_path / "checkpoint")
    for tokenizer in (read, AutoTokenizer.from_pretrained(tmp_path / "checkpoint")):
        assert tokenizer(text)["input_ids"] == own.encode(text).ids
        assert tokenizer.pad_token_id == 0 and "token_type_ids" in tokenizer.model_input_names


@pytest.mark.parametrize("labels", [2, 3])
def test_a_fine_tuned_checkpoint_gets_a_new_head_by_the_seed(folder, toy_encoder, labels):
    torch.manual_seed(9)
    old = AutoModelForSequenceClassification.from_pretrained(toy_encoder.place, num_labels=labels)
    old.save_pretrained(folder)
    heads_drawn = []
    for seed in (0, 1, 0):
        torch.manual_seed(seed)
        model = heads.build(located(folder), "sequence", ("no", "yes"))
        heads_drawn.append(model.classifier.weight.detach().clone())
        assert equal_weights(model.bert.encoder, old.bert.encoder)
    assert heads_drawn[0].shape == (2, 64)
    assert torch.equal(heads_drawn[0], heads_drawn[2]) and not torch.equal(heads_drawn[0], heads_drawn[1])
    assert not torch.equal(heads_drawn[0], old.classifier.weight[:2])


def test_nothing_of_an_old_head_or_run_is_taken_from_a_configuration(folder):
    old = {"problem_type": "regression", "output_attentions": True, "classifier_dropout": 0.5, "id2label": {"0": "x"}}
    change_json(folder / "config.json", lambda content: content.update(old))
    model = heads.build(located(folder), "sequence", ("no", "yes"))
    tokens = torch.tensor([[1, 2, 3]])
    output = model(tokens, labels=torch.tensor([1]))
    assert output.attentions is None and torch.isfinite(output.loss) and output.logits.shape == (1, 2)
    assert model.dropout.p == model.config.hidden_dropout_prob


@pytest.mark.parametrize("stored", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("head", ["sequence", "token", "span", ""])
def test_weights_are_single_precision_whatever_the_file_stores(folder, stored, head):
    change_weights(folder, lambda weights: {name: tensor.to(stored) for name, tensor in weights.items()})
    dtype = str(stored).removeprefix("torch.")
    change_json(folder / "config.json", lambda content: content.update(dtype=dtype))
    for encoder in (located(folder), located(f"random:{folder}")):
        model = heads.build(encoder, head, ("a", "b")) if head else encoders.load_weights(encoder)
        assert {weights.dtype for weights in model.parameters()} == {torch.float32}


def test_prefixes_of_exports_are_taken_off_and_flash_attention_is_replaced(folder, toy_model):
    def prefixed(weights):
        return {f"0.auto_model.{name.removeprefix('bert.')}": tensor for name, tensor in weights.items()}

    change_weights(folder, prefixed)
    configured(_attn_implementation="flash_attention_2")(folder)
    encoders.check_encoder(str(folder))
    read = encoders.load_weights(encoders.locate(str(folder)))
    assert read.config._attn_implementation == "eager"
    assert equal_weights(read, toy_model)


def with_nan(folder):
    def change(weights):
        next(tensor for name, tensor in weights.items() if "layer.2" in name)[..., 0] = torch.nan
        return weights

    change_weights(folder, change)


def without_a_layer(folder):
    change_weights(folder, lambda weights: {name: weights[name] for name in weights if "encoder.layer.3." not in name})


def without_tokenizer(folder):
    for file in folder.glob("tokenizer*"):
        file.unlink()


def with_a_late_token(folder):
    def change(content):
        vocabulary = content["model"]["vocab"]
        vocabulary[max(vocabulary, key=vocabulary.get)] = 5_000

    change_json(folder / "tokenizer.json", change)


def cut_short(folder):
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[: len(content) // 2])


def configured(**values):
    return lambda folder: change_json(folder / "config.json", lambda content: content.update(values))


BROKEN = {
    "no tokeniser": (without_tokenizer, "cannot be read|is not its own"),
    "a damaged configuration": (lambda folder: (folder / "config.json").write_text("{"), "cannot be read"),
    "a token without an embedding": (with_a_late_token, "is not its own: .* the last of number 5,000"),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), "cannot be read .*model.safetensors"),
    "weights of five layers": (without_a_layer, "lack .*layer.3"),
    "weights cut short": (cut_short, "cannot be read .*: its files are damaged"),
    "a larger vocabulary": (configured(vocab_size=9999), "is not its own: it has 1,000 tokens.* have 9,999 rows"),
    "another width": (configured(intermediate_size=96), "cannot be read .*: its files are .*of different encoders"),
    "NaN": (with_nan, "are not finite .*layer.2"),
}


@pytest.mark.parametrize(("damage", "sentence"), BROKEN.values(), ids=list(BROKEN))
def test_a_broken_encoder_is_refused_in_one_sentence(damage, sentence, folder):
    damage(folder)
    with pytest.raises((SourceError, ValueError), match=sentence) as refusal:
        encoders.check_encoder(str(folder))
    assert str(folder) in str(refusal.value) and "\n" not in str(refusal.value)


def test_of_a_random_encoder_no_weights_are_read(folder):
    (folder / "model.safetensors").unlink()
    assert encoders.check_encoder(f"random:{folder}").num_hidden_layers == 6


REFUSED = {
    "albert": (transformers.AlbertConfig, {}, "in one list"),
    "modernbert": (transformers.ModernBertConfig, {}, "projections of .* not known"),
    "t5": (transformers.T5Config, {}, "a decoder"),
    "gpt2": (transformers.GPT2Config, {}, "a decoder"),
    "a decoder of BERT": (transformers.BertConfig, {"is_decoder": True}, "a decoder"),
}


@pytest.mark.parametrize(("config", "values", "reason"), REFUSED.values(), ids=list(REFUSED))
def test_an_architecture_is_refused_by_name_before_its_weights_are_read(config, values, reason, tmp_path):
    # A configuration is all that there is.
    config(**values).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=f"architecture {config.model_type!r}.*{reason}.*BERT, DistilBERT"):
        encoders.check_encoder(str(tmp_path), projections=True)
