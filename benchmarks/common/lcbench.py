"""Validation-error curves of random configurations from the surrogate of LCBench (YAHPO Gym), as one .npz file.

    python -m benchmarks.common.lcbench FOLDER TARGET.npz COUNT SEED TASK ...

FOLDER holds model.onnx with its config_space.json, encoding.json and schema.json (the first three from
slds-lmu/yahpo_data on GitHub; docs/extrapolation.md says what the last one holds). The file has, per task,
X_<task> (count, 7) in the unit cube and Y_<task> (count, 52): 1 - accuracy.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

Array = NDArray[np.float64]
EPOCHS = 52


def decoded(U: Array, space: list[dict[str, Any]]) -> dict[str, Array]:
    """The values of each parameter from columns of the unit cube."""
    values = {}
    for u, one in zip(U.T, space, strict=True):
        low, high = float(one["lower"]), float(one["upper"])
        value = low * (high / low) ** u if one["log"] else low + (high - low) * u
        values[one["name"]] = value.round() if one["type"] == "uniform_int" else value
    return values


def encoded(values: dict[str, Array], space: list[dict[str, Any]]) -> Array:
    """Back to the unit cube, so that rounded integers are where they are."""
    columns = []
    for one in space:
        low, high, value = float(one["lower"]), float(one["upper"]), values[one["name"]]
        logs = one["log"]
        columns.append(np.log(value / low) / np.log(high / low) if logs else (value - low) / (high - low))
    return np.column_stack(columns)


class Surrogate:
    """The network, asked for whole curves at once."""

    def __init__(self, folder: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options)
        self.schema = json.loads((folder / "schema.json").read_text())
        self.encoding = json.loads((folder / "encoding.json").read_text())
        space = json.loads((folder / "config_space.json").read_text())["hyperparameters"]
        self.space = [one for one in space if one["name"] not in ("OpenML_task_id", "epoch")]

    def curves(self, task: str, U: Array) -> tuple[Array, Array]:
        """Inputs (count, 7) and validation errors (count, 52)."""
        values = decoded(U, self.space)
        rows = {name: np.repeat(column, EPOCHS) for name, column in values.items()}
        rows["epoch"] = np.tile(np.arange(1.0, EPOCHS + 1.0), len(U))
        numbers = np.column_stack([rows[name] for name in self.schema["cont_names"]]).astype(np.float32)
        code = np.full((len(numbers), 1), self.encoding["OpenML_task_id"][task], dtype=np.int32)
        given = {one.name: (code if "int" in one.type else numbers) for one in self.session.get_inputs()}
        found = self.session.run(None, given)[0]
        accuracy = found[:, self.schema["y_names"].index("val_accuracy")]
        return encoded(values, self.space), 1.0 - accuracy.reshape(len(U), EPOCHS) / 100.0


def main() -> None:
    folder, target, count, seed, *tasks = sys.argv[1:]
    surrogate = Surrogate(Path(folder))
    drawn = {}
    for task in tasks:
        U = np.random.default_rng([int(seed), int(task)]).random((int(count), len(surrogate.space)))
        drawn[f"X_{task}"], drawn[f"Y_{task}"] = surrogate.curves(task, U)
    np.savez(target, **drawn)


if __name__ == "__main__":
    main()
