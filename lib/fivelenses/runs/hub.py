"""Whether the hub answers, asked once before work starts: its client would ask again and again, half a minute for each
file, on a machine without a network.
"""

import os
import socket
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from fivelenses.runs.encoder_names import is_here
from fivelenses.runs.parameters import FineTuningParameters, ParameterError

OFFLINE = "HF_HUB_OFFLINE"
BELIEVED = ("random:", "sentence-transformers/")
LONGEST_WAIT = 3.0  # seconds, where a firewall drops what it does not let through
PROXIES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy", "all_proxy")


def asked_by(parameters: FineTuningParameters) -> bool:
    """Whether a run may ask the hub for something.

    Example:
        >>> from fivelenses.runs.settings import settings
        >>> asked_by(settings(1, "tiny")), asked_by(settings(1, "paper"))
        (False, True)
    """
    tables = parameters.source == "hub" and "FIVELENSES_MIRROR" not in os.environ
    return tables or not all(map(is_here, parameters.encoders_read()))


def check_endpoint() -> None:
    """Refuse an address of the hub that is none, on which its client would stumble when it is loaded.

    Raises:
        ParameterError: in one sentence.
    """
    named = os.environ.get("HF_ENDPOINT")
    if not named:
        return
    try:
        address = urlsplit(named)
        whole = address.scheme in ("http", "https") and address.hostname and address.port != 0
    except ValueError:  # brackets that do not close, or a port that is none
        whole = False
    if not whole:
        raise ParameterError(f"HF_ENDPOINT is {named!r}, which is no address: write https://HOST, or unset it.")


def offline_where_silent(runs: Iterable[FineTuningParameters]) -> None:
    """Where these runs may ask the hub and it does not answer, have its client take what its cache holds and fail at
    once for the rest, in this process and those that it starts.

    Raises:
        ParameterError: HF_ENDPOINT is no address.
    """
    check_endpoint()
    if any(map(asked_by, runs)):
        offline_if_silent()


def offline_if_silent() -> None:
    """As `offline_where_silent`, for whoever will ask the hub."""
    check_endpoint()
    if os.environ.get(OFFLINE) or any(map(os.environ.get, PROXIES)):
        return
    from huggingface_hub import constants

    address = urlsplit(constants.ENDPOINT)
    try:
        port = address.port or (80 if address.scheme == "http" else 443)
        socket.create_connection((address.hostname, port), LONGEST_WAIT).close()
    except OSError:
        os.environ[OFFLINE] = "1"
        constants.HF_HUB_OFFLINE = True


def check_cached(runs: Iterable[FineTuningParameters]) -> None:
    """Refuse encoders of the hub of which its cache holds nothing, where the hub is not asked.

    Names without an owner are believed, and so are those that a package may carry or whose shape may be known.

    Raises:
        ParameterError: in one sentence.
    """
    named = dict.fromkeys(name for parameters in runs for name in parameters.encoders_read())
    asked_for = [name for name in named if name.count("/") == 1 and not name.startswith(BELIEVED) and not is_here(name)]
    if not asked_for:
        return
    from huggingface_hub import constants

    for name in asked_for if constants.HF_HUB_OFFLINE else ():
        if not (Path(constants.HF_HUB_CACHE) / f"models--{name.replace('/', '--')}").is_dir():
            raise ParameterError(
                f"The encoder {name!r} could not be read: it is neither on this machine nor in the hub's cache, and "
                f"the hub is not asked ({OFFLINE} is set, or it does not answer); check the name, connect to the "
                "network, or set FIVELENSES_MIRROR to a folder that holds it under models/."
            )
