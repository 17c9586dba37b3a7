"""The hub is asked once whether it answers."""

import os
import socket

import pytest
from huggingface_hub import constants

from fivelenses.runs import hub
from fivelenses.runs.parameters import ParameterError
from fivelenses.runs.settings import settings


@pytest.fixture
def online(monkeypatch):
    """A process to which nobody has said that it has no network."""
    for name in (hub.OFFLINE, "FIVELENSES_MIRROR", *hub.PROXIES):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)


@pytest.fixture
def listening():
    """The address of a server that takes a connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def closed() -> str:
    """An address at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}"


def test_a_hub_that_does_not_answer_is_not_asked_again_by_this_process_or_its_children(online, monkeypatch):
    monkeypatch.setattr(constants, "ENDPOINT", closed())
    hub.offline_where_silent([settings(1, "paper")])
    assert constants.HF_HUB_OFFLINE and os.environ[hub.OFFLINE] == "1"


def test_a_hub_that_answers_stays_in_use(online, listening, monkeypatch):
    monkeypatch.setattr(constants, "ENDPOINT", listening)
    hub.offline_where_silent([settings(1, "paper")])
    assert not constants.HF_HUB_OFFLINE and hub.OFFLINE not in os.environ


def test_a_run_that_needs_no_hub_asks_none(online, monkeypatch):
    monkeypatch.setattr(constants, "ENDPOINT", closed())
    hub.offline_where_silent([settings(1, "tiny")])
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:3128")
    hub.offline_where_silent([settings(1, "paper")])
    assert not constants.HF_HUB_OFFLINE and hub.OFFLINE not in os.environ


def test_an_encoder_is_refused_offline_where_the_cache_holds_nothing_of_it(tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    asked = [settings(1, "tiny", encoder="somebody/encoder")]
    with pytest.raises(ParameterError, match="'somebody/encoder' could not be read: it is neither on this machine"):
        hub.check_cached(asked)
    (tmp_path / "models--somebody--encoder").mkdir()
    hub.check_cached(asked)
    hub.check_cached([settings(1, "tiny"), settings(1, "paper")])
