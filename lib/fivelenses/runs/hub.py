"""Whether the hub answers, asked once before work starts: its client would ask again and again, half a minute for each
file, on a machine without a network.
"""

import os
import socket
from collections.abc import Iterable
from urllib.parse import urlsplit

from fivelenses.runs.encoder_names import is_here
from fivelenses.runs.parameters import FineTuningParameters

OFFLINE = "HF_HUB_OFFLINE"
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


def offline_where_silent(runs: Iterable[FineTuningParameters]) -> None:
    """Where these runs may ask the hub and it does not answer, have its client take what its cache holds and fail at
    once for the rest, in this process and those that it starts.
    """
    if os.environ.get(OFFLINE) or not any(map(asked_by, runs)) or any(map(os.environ.get, PROXIES)):
        return
    from huggingface_hub import constants

    address = urlsplit(constants.ENDPOINT)
    try:
        port = address.port or (80 if address.scheme == "http" else 443)
        socket.create_connection((address.hostname, port), LONGEST_WAIT).close()
    except OSError:
        os.environ[OFFLINE] = "1"
        constants.HF_HUB_OFFLINE = True
