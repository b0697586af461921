"""How `tell` and opening a file grow with the number of trials."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

import farthing as ft

DIMENSIONS = 20
LAST = 1_000  # tells whose median counts


def file_times(trials: int) -> dict[str, float]:
    """Processor seconds of a tell at the end of a study and of opening its file, and the file's size in MB."""
    space = ft.Space({f"x{i}": ft.Real(0, 1) for i in range(DIMENSIONS)})
    rng, tells = np.random.default_rng(0), []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study.db"
        with ft.Study(space, ft.Budget(evaluations=trials), policy="random", seed=0, storage=path) as study:
            for _ in range(trials):
                proposal = study.ask()
                began = time.process_time()
                study.tell(proposal, value=float(rng.random()), cost=1.0)
                tells.append(time.process_time() - began)
        began = time.process_time()
        ft.Study.open(path)
        opened = time.process_time() - began
        size = path.stat().st_size / 1e6
    return {"tell": statistics.median(tells[-LAST:]), "open": opened, "size_mb": size}
