"""Trainings for Ray Tune, which its workers import by value: whatever they need is in them."""

from __future__ import annotations

import time
from typing import Any

from ray import tune

STEPS = 6


def train(config: dict[str, Any]) -> None:
    """Learns for STEPS steps, and goes on from its checkpoint. What it reports says which steps the model has seen:
    `seen` is 1 + 2 + ... of them, so that a step that is left out or done twice shows."""
    import json
    import tempfile
    import time
    from pathlib import Path

    from ray import tune

    seen: list[int] = []
    checkpoint = tune.get_checkpoint()
    if checkpoint is not None:
        with checkpoint.as_directory() as folder:
            seen = json.loads(Path(folder, "model.json").read_text())
    while len(seen) < config.get("steps", 6):
        if config["optimizer"]["rate"] == 0.5:
            raise ValueError("a broken rate")
        if len(seen) == 1 and config.get("once") and not Path(config["once"]).exists():
            Path(config["once"]).touch()
            raise RuntimeError("it happens once")
        time.sleep(config["seconds"])
        seen.append(len(seen) + 1)
        metrics = {
            "loss": abs(config["optimizer"]["rate"] - 0.1) + 1 / len(seen),
            "energy": 2.0 * len(seen),
            "seen": sum(seen),
        }
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "model.json").write_text(json.dumps(seen))
            tune.report(metrics, checkpoint=tune.Checkpoint.from_directory(folder))


class Steps(tune.Trainable):
    """A class that writes its model when it is asked to."""

    def setup(self, config: dict[str, Any]) -> None:
        self.seen = 0

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        self.setup(new_config)
        return True

    def step(self) -> dict[str, Any]:
        time.sleep(self.config["seconds"])
        self.seen += 1
        return {"loss": self.config["optimizer"]["rate"] + 1 / self.seen, "seen": self.seen}

    def save_checkpoint(self, checkpoint_dir: str) -> dict[str, Any]:
        return {"seen": self.seen}

    def load_checkpoint(self, checkpoint: dict[str, Any] | None) -> None:
        self.seen = checkpoint["seen"]


class Forgetful(Steps):
    """A class that cannot write its model."""

    save_checkpoint = tune.Trainable.save_checkpoint
