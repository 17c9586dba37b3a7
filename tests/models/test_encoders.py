import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from tokenizers.models import BPE, WordLevel, WordPiece
from tokenizers.pre_tokenizers import BertPreTokenizer, ByteLevel, Whitespace
from tokenizers.processors import BertProcessing
from transformers import AutoTokenizer, BertConfig

from fivelenses import project
from fivelenses.models import encoders, heads
from fivelenses.tasks.sources import SourceError


def test_the_shipped_encoders_differ_in_identity():
    identities = {encoders.locate(f"toy-bert/seed-{seed}").identity for seed in (0, 1, 2)}
    assert len(identities) == 3


def test_identity_is_content_not_place(tmp_path, toy_encoder):
    shutil.copytree(toy_encoder.place, tmp_path / "moved")
    assert encoders.locate(str(tmp_path / "moved")).identity == toy_encoder.identity


def test_random_names_have_the_shape_and_other_weights(toy_model):
    torch.manual_seed(0)
    blank = encoders.load_weights(encoders.locate("random:toy-bert/seed-0"))
    assert blank.config.hidden_size == toy_model.config.hidden_size
    assert not torch.equal(blank.encoder.layer[0].output.dense.weight, toy_model.encoder.layer[0].output.dense.weight)


def test_the_papers_shape_is_known_without_the_hub():
    shape = encoders.config(encoders.locate("random:bert-large-uncased"))
    assert (shape.num_hidden_layers, shape.hidden_size, shape.num_attention_heads) == (24, 1024, 16)


def test_hub_encoders_have_pinned_revisions():
    assert encoders.locate("bert-large-uncased").identity.endswith(encoders.REVISIONS["bert-large-uncased"])


@pytest.mark.parametrize("name", ["./nowhere", "/no/such/folder", "toy-bert/seed-9", "two words"])
def test_a_name_that_is_nothing_says_what_to_give(name):
    encoders.locate.cache_clear()
    with pytest.raises(SourceError, match="There is no encoder at"):
        encoders.locate(name)


def test_without_a_network_a_hub_encoder_says_what_to_do():
    with pytest.raises(SourceError, match="connect to the network, or set FIVELENSES_MIRROR"):
        encoders.config(encoders.locate("owner/name"))


def test_a_mirror_serves_encoders(tmp_path, monkeypatch, toy_encoder):
    shutil.copytree(toy_encoder.place, tmp_path / "models" / "owner" / "mirrored")
    monkeypatch.setenv("FIVELENSES_MIRROR", str(tmp_path))
    encoders.locate.cache_clear()
    assert encoders.locate("owner/mirrored").identity == toy_encoder.identity


def test_a_head_of_an_unknown_kind_is_refused(toy_encoder):
    with pytest.raises(ValueError, match="no 'parser' head"):
        heads.build(toy_encoder, "parser", ("a", "b"))


def test_shipped_encoders_are_small():
    for folder in (project.root() / "models" / "toy-bert").iterdir():
        size = sum(file.stat().st_size for file in folder.rglob("*"))
        assert size < 2_000_000, f"{folder.name} has {size} bytes"


def test_weights_that_lack_a_layer_are_refused(tmp_path, toy_encoder):
    shutil.copytree(toy_encoder.place, tmp_path / "damaged")
    weights = load_file(tmp_path / "damaged" / "model.safetensors")
    kept = {name: tensor.clone() for name, tensor in weights.items() if "encoder.layer.3." not in name}
    save_file(kept, tmp_path / "damaged" / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(SourceError, match="lack .*layer.3"):
        encoders.load_weights(encoders.locate(str(tmp_path / "damaged")))


def test_loading_an_encoder_says_nothing(toy_encoder, capfd):
    encoders.load_weights(toy_encoder)
    heads.build(toy_encoder, "sequence", ("a", "b"))
    assert capfd.readouterr() == ("", "")


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
