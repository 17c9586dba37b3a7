"""The parameters of each chapter."""

from fivelenses.runs.chapters.five_lenses import FiveLenses
from fivelenses.runs.chapters.hao2019 import Hao2019
from fivelenses.runs.chapters.hao2020 import Hao2020
from fivelenses.runs.chapters.merchant2020 import Merchant2020
from fivelenses.runs.chapters.own_encoders import OwnEncoders
from fivelenses.runs.chapters.singh2020 import Singh2020
from fivelenses.runs.chapters.toy_world import ToyWorld
from fivelenses.runs.chapters.zhou2022 import Zhou2022

__all__ = [
    "Hao2020",
    "FiveLenses",
    "Zhou2022",
    "Hao2019",
    "OwnEncoders",
    "Merchant2020",
    "Singh2020",
    "ToyWorld",
]
