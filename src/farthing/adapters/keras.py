"""Farthing in Keras: `model.fit(..., callbacks=[FarthingCallback()])`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keras.callbacks import Callback

from farthing.checks import one_of
from farthing.run_context import current_run
from farthing.trial import Decision


class FarthingCallback(Callback):
    """Reports to the current run after each epoch, and ends the training when the run says so.

    monitor  what to report: "val_loss", or another of the metrics that Keras logs
    """

    def __init__(self, monitor: str = "val_loss") -> None:
        super().__init__()
        self.monitor = monitor

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        logs = logs or {}
        value = logs[one_of("FarthingCallback: monitor", self.monitor, list(logs))]
        if current_run().report(value) is Decision.STOP:
            self.model.stop_training = True
