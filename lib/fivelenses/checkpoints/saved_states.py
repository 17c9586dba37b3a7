"""What a training saves on its way: states from which it goes on after a kill, and the weights that are studied."""

import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn
from transformers import TrainerCallback
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import get_last_checkpoint

from fivelenses.files import written_beside

ORDER = "order.pt"  # in a saved state, see `OrderSaver`


def last_whole_state(folder: Path) -> str | None:
    """The newest state that was saved whole; one that a kill cut short is removed, and the one before it taken.

    The Trainer writes `trainer_state.json` last, so a state whose file reads as JSON has all its others; ours follows.
    """
    while folder.is_dir() and (newest := get_last_checkpoint(folder)):
        try:
            json.loads((Path(newest) / TRAINER_STATE_NAME).read_text())
            (Path(newest) / ORDER).stat()
        except (FileNotFoundError, ValueError):
            shutil.rmtree(newest)
        else:
            return newest
    return None


class StepSaver(TrainerCallback):
    """Writes the weights (no optimiser state) at the steps that a specification names, in half precision."""

    def __init__(self, steps: tuple[int, ...], folder: Path):
        self.steps, self.folder = frozenset(steps), folder

    def on_train_begin(self, args, state, control, model, **_):
        if state.global_step == 0:
            self._keep(0, model)

    def on_step_end(self, args, state, control, model, **_):
        self._keep(state.global_step, model)

    def _keep(self, step: int, model: nn.Module) -> None:
        if step in self.steps:
            weights = {name: tensor.detach().to("cpu", torch.float16) for name, tensor in model.state_dict().items()}
            with written_beside(self.folder / f"{step}.safetensors") as place:
                save_file({name: tensor.clone() for name, tensor in weights.items()}, place)


class OrderSaver(TrainerCallback):
    """Keeps with each saved state what the order of its epoch's examples was drawn from.

    The Trainer draws an epoch's order from the global generator as the epoch begins, and a training that goes on within
    an epoch gives it the generator of the saved step: after the first epoch that would be another order.
    """

    def __init__(self, resumed: str | None):
        self.resumed = resumed

    def on_epoch_begin(self, args, state, control, **_):
        if self.resumed:
            torch.set_rng_state(torch.load(Path(self.resumed) / ORDER, weights_only=True))
            self.resumed = None
        self.drawn_from = torch.get_rng_state()

    def on_save(self, args, state, control, **_):
        next_begins = float(state.epoch).is_integer()
        with written_beside(Path(args.output_dir) / f"checkpoint-{state.global_step}" / ORDER) as place:
            torch.save(torch.get_rng_state() if next_begins else self.drawn_from, place)
