"""Small random encoders of each architecture: all are addressed by layer and part, and trained."""

import pytest
import torch
import transformers
from tests.conftest import few_development_examples, short_schedule

from fivelenses.chapters import settings
from fivelenses.checkpoints.finetuning import prepare
from fivelenses.checkpoints.specification import specify
from fivelenses.checkpoints.store import Store
from fivelenses.inputs import check_inputs
from fivelenses.models import encoders
from fivelenses.models.layers import PARTS, layer_list, part, projections, truncate

DEPTH = 3
CONFIGURATIONS = {
    "bert": transformers.BertConfig,
    "distilbert": transformers.DistilBertConfig,
    "electra": transformers.ElectraConfig,
    "mpnet": transformers.MPNetConfig,
    "roberta": transformers.RobertaConfig,
    "xlm-roberta": transformers.XLMRobertaConfig,
}


@pytest.fixture
def encoder(request, tmp_path, toy_tokenizer):
    """The folder of a random encoder of three narrow layers, whose positions end at 64."""
    shape = {"hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 64, "num_hidden_layers": DEPTH}
    if request.param == "distilbert":
        shape = {"dim": 32, "n_heads": 4, "hidden_dim": 64, "n_layers": DEPTH}
    if request.param == "electra":
        shape["embedding_size"] = 16
    # These count positions from the one after the padding's number.
    late = {"mpnet": 2}.get(request.param, toy_tokenizer.pad_token_id + 1)
    late = late if request.param in encoders.LATE_POSITIONS else 0
    torch.manual_seed(0)
    config = CONFIGURATIONS[request.param](
        vocab_size=len(toy_tokenizer),
        pad_token_id=toy_tokenizer.pad_token_id,
        max_position_embeddings=64 + late,
        **shape,
    )
    transformers.AutoModel.from_config(config).save_pretrained(tmp_path / "encoder")
    toy_tokenizer.save_pretrained(tmp_path / "encoder")
    return str(tmp_path / "encoder")


@pytest.mark.parametrize("encoder", CONFIGURATIONS, indirect=True)
def test_an_addressed_architecture_is_trained_cut_and_re_initialised(encoder, tmp_path):
    assert encoders.positions(encoders.config(encoders.locate(encoder))) == 64
    assert encoders.check_encoder(encoder, projections=True).num_hidden_layers == DEPTH
    schedule = short_schedule(max_length=64)
    one = specify(encoder, "rte", "toyworld", 0, schedule, examples=32, truncated=2, reinitialised=(2,), frozen=(0, 1))
    with few_development_examples():
        model = prepare([one], Store(tmp_path / "store"), workers=1, log=lambda line: None)[0].model()
    assert len(layer_list(model)) == 2 and list(projections(model, 2)) == list(PARTS)
    before = encoders.load_weights(encoders.locate(encoder))
    for layer, kept in {0: True, 1: True, 2: False}.items():
        pairs = zip(part(model, layer).parameters(), part(before, layer).parameters(), strict=True)
        assert all(torch.equal(*pair) for pair in pairs) == kept


@pytest.mark.parametrize("encoder", ["bert"], indirect=True)
def test_an_encoder_of_two_layers_is_refused_where_layers_are_put_in_order(encoder, tmp_path):
    check_inputs(settings(3, "tiny", encoder=encoder))
    shallow = encoders.load_weights(encoders.locate(encoder))
    truncate(shallow, 2)
    shallow.save_pretrained(tmp_path / "shallow")
    encoders.tokenizer(encoders.locate(encoder)).save_pretrained(tmp_path / "shallow")
    for number in (3, 6):
        with pytest.raises(ValueError, match="of 2 layers, does not have: give it one of at least 3"):
            check_inputs(settings(number, "tiny", encoder=str(tmp_path / "shallow")))
    check_inputs(settings(1, "tiny", encoder=str(tmp_path / "shallow")))
