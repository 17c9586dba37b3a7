import io
import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from tokenizers.models import BPE, WordLevel, WordPiece
from tokenizers.pre_tokenizers import BertPreTokenizer, ByteLevel, Whitespace
from tokenizers.processors import BertProcessing
from transformers import AutoModelForSequenceClassification, AutoTokenizer, BertConfig

from fivelenses.models import encoders, heads
from fivelenses.tasks.sources import SourceError


def test_identity_is_content_not_place(tmp_path, toy_encoder):
    shutil.copytree(toy_encoder.place, tmp_path / "moved")
    assert encoders.locate(str(tmp_path / "moved")).identity == toy_encoder.identity


def test_random_names_have_the_shape_and_other_weights(toy_model):
    torch.manual_seed(0)
    blank = encoders.load_weights(encoders.locate("random:toy-bert/seed-0"))
    assert blank.config.hidden_size == toy_model.config.hidden_size
    assert not torch.equal(blank.encoder.layer[0].output.dense.weight, toy_model.encoder.layer[0].output.dense.weight)


def test_hub_encoders_have_pinned_revisions():
    assert encoders.locate("bert-large-uncased").identity.endswith(encoders.REVISIONS["bert-large-uncased"])


@pytest.mark.parametrize("name", ["./nowhere", "/no/such/folder", "toy-bert/seed-9", "two words"])
def test_a_name_that_is_nothing_says_what_to_give(name):
    encoders.locate.cache_clear()
    with pytest.raises(SourceError, match="There is no encoder at"):
        encoders.locate(name)


def test_a_mirror_serves_encoders(tmp_path, monkeypatch, toy_encoder):
    shutil.copytree(toy_encoder.place, tmp_path / "models" / "owner" / "mirrored")
    monkeypatch.setenv("FIVELENSES_MIRROR", str(tmp_path))
    encoders.locate.cache_clear()
    assert encoders.locate("owner/mirrored").identity == toy_encoder.identity


def test_weights_that_lack_a_layer_are_refused(tmp_path, toy_encoder):
    shutil.copytree(toy_encoder.place, tmp_path / "damaged")
    weights = load_file(tmp_path / "damaged" / "model.safetensors")
    kept = {name: tensor.clone() for name, tensor in weights.items() if "encoder.layer.3." not in name}
    save_file(kept, tmp_path / "damaged" / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(SourceError, match="lack .*layer.3"):
        encoders.load_weights(encoders.locate(str(tmp_path / "damaged")))


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


def copied(encoder, folder):
    """A copy of an encoder's folder that a test may change, and its configuration."""
    shutil.copytree(encoder.place, folder)
    return folder, json.loads((folder / "config.json").read_text())


def located(folder):
    encoders.locate.cache_clear()
    return encoders.locate(str(folder))


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
def test_each_file_that_makes_tokens_or_weights_is_part_of_an_identity(tmp_path, toy_encoder, file, content):
    folder, _ = copied(toy_encoder, tmp_path / "copy")
    before = located(folder).identity
    (folder / file).write_text(content)
    assert located(folder).identity != before


@pytest.mark.parametrize("labels", [2, 3])
def test_a_fine_tuned_checkpoint_gets_a_new_head_by_the_seed(tmp_path, toy_encoder, labels):
    torch.manual_seed(9)
    old = AutoModelForSequenceClassification.from_pretrained(toy_encoder.place, num_labels=labels)
    folder, _ = copied(toy_encoder, tmp_path / "fine-tuned")
    old.save_pretrained(folder)
    heads_drawn = []
    for seed in (0, 1, 0):
        torch.manual_seed(seed)
        model = heads.build(located(folder), "sequence", ("no", "yes"))
        heads_drawn.append(model.classifier.weight.detach().clone())
        assert torch.equal(
            model.bert.encoder.layer[5].output.dense.weight, old.bert.encoder.layer[5].output.dense.weight
        )
    assert heads_drawn[0].shape == (2, 64)
    assert torch.equal(heads_drawn[0], heads_drawn[2]) and not torch.equal(heads_drawn[0], heads_drawn[1])
    assert not torch.equal(heads_drawn[0], old.classifier.weight[:2])


def test_nothing_of_an_old_head_or_run_is_taken_from_a_configuration(tmp_path, toy_encoder):
    folder, config = copied(toy_encoder, tmp_path / "cross-encoder")
    old = {"problem_type": "regression", "output_attentions": True, "classifier_dropout": 0.5, "id2label": {"0": "x"}}
    (folder / "config.json").write_text(json.dumps(config | old))
    model = heads.build(located(folder), "sequence", ("no", "yes"))
    tokens = torch.tensor([[1, 2, 3]])
    output = model(tokens, labels=torch.tensor([1]))
    assert output.attentions is None and torch.isfinite(output.loss) and output.logits.shape == (1, 2)
    assert model.dropout.p == config.get("hidden_dropout_prob", 0.1)


@pytest.mark.parametrize("stored", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("head", ["sequence", "token", "span", ""])
def test_weights_are_single_precision_whatever_the_file_stores(tmp_path, toy_encoder, stored, head):
    folder, config = copied(toy_encoder, tmp_path / "half")
    values = {name: tensor.to(stored) for name, tensor in load_file(folder / "model.safetensors").items()}
    save_file(values, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config | {"dtype": str(stored).removeprefix("torch.")}))
    for name in (str(folder), f"random:{folder}"):
        encoder = located(folder) if name == str(folder) else encoders.locate(name)
        model = heads.build(encoder, head, ("a", "b")) if head else encoders.load_weights(encoder)
        assert {weights.dtype for weights in model.parameters()} == {torch.float32}


def test_a_named_revision_is_the_identity():
    commit = "0123456789abcdef0123456789abcdef01234567"
    encoder = encoders.locate(f"owner/name@{commit}")
    assert (encoder.place, encoder.revision, encoder.identity) == ("owner/name", commit, f"owner/name@{commit}")


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
    encoders.locate.cache_clear()
    yield tmp_path
    encoders.locate.cache_clear()


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
