"""Farthing in Lightning: `Trainer(callbacks=[FarthingCallback("val_loss")])`, of `lightning` or `pytorch_lightning`."""

from __future__ import annotations

import sys
from typing import Any

from farthing.checks import one_of
from farthing.errors import InvalidArgument
from farthing.run_context import current_run
from farthing.trial import Decision

# Both packages hold the same classes, and a Trainer of one takes callbacks of the other.
if "pytorch_lightning" in sys.modules and "lightning" not in sys.modules:
    from pytorch_lightning.callbacks import Callback
else:
    try:
        from lightning.pytorch.callbacks import Callback
    except ImportError:
        from pytorch_lightning.callbacks import Callback


class FarthingCallback(Callback):
    """Reports to the current run after each epoch, and ends the training when the run says so. Where the Trainer
    validates more or less often than once an epoch, it reports after each validation.

    monitor  what to report: the name of a metric that the module logs
    """

    def __init__(self, monitor: str) -> None:
        super().__init__()
        self.monitor = monitor

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """One process trains: the others would not know what the run has decided."""
        if trainer.world_size > 1:
            raise InvalidArgument(f"FarthingCallback: expected a Trainer of one process, got {trainer.world_size}")

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        if _once_an_epoch(trainer):
            self._report(trainer)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Also called by the check before the training, and by `trainer.validate`."""
        if trainer.state.fn == "fit" and not (trainer.sanity_checking or _once_an_epoch(trainer)):
            self._report(trainer)

    def _report(self, trainer: Any) -> None:
        metrics = trainer.callback_metrics
        value = metrics[one_of("FarthingCallback: monitor", self.monitor, list(metrics))]
        if current_run().report(value) is Decision.STOP:
            trainer.should_stop = True


def _once_an_epoch(trainer: Any) -> bool:
    """Then metrics of training and of validation are all there when the epoch ends."""
    validates_often = trainer.val_check_interval != 1.0 or trainer.check_val_every_n_epoch != 1
    return not (trainer.enable_validation and validates_often)
