"""The parameters of each chapter."""

from fivelenses.runs.chapters.attention_svcca import AttentionSvcca
from fivelenses.runs.chapters.five_lenses import FiveLenses
from fivelenses.runs.chapters.geometry import Geometry
from fivelenses.runs.chapters.landscapes import Landscapes
from fivelenses.runs.chapters.own_encoders import OwnEncoders
from fivelenses.runs.chapters.probing_rsa import ProbingRsa
from fivelenses.runs.chapters.reinitialisation import Reinitialisation
from fivelenses.runs.chapters.toy_world import ToyWorld

__all__ = [
    "AttentionSvcca",
    "FiveLenses",
    "Geometry",
    "Landscapes",
    "OwnEncoders",
    "ProbingRsa",
    "Reinitialisation",
    "ToyWorld",
]
