"""Trainings for Ray Tune, which its workers import by value: whatever they need is in them."""

from __future__ import annotations

from typing import Any

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
