"""`ft.Ray`: the workers of a run are actors on a Ray cluster."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farthing import checks
from farthing.adapters.ray.agent import SILENCE_SECONDS, Agent
from farthing.adapters.ray.connection import connected, imported_ray
from farthing.adapters.ray.messages import Job
from farthing.adapters.ray.pool import RayPool
from farthing.adapters.ray.rates import ClusterMeters, HeldActors, Rates, checked_rates
from farthing.budget import Budget
from farthing.errors import InvalidArgument
from farthing.runner.checkpoint_folders import checkpoint_root, keep_elsewhere
from farthing.runner.interrupts import Interrupts
from farthing.runner.meters import Meter, MeterLike, Meters, meters_for
from farthing.runner.options import SPAWN, RunOptions
from farthing.runner.surroundings import Surroundings
from farthing.runner.worker_process import import_path, pickle_objective
from farthing.session import Session
from farthing.trial import Objective

MEASURED_THERE = {"cpu": "compute_seconds", **dict.fromkeys(["energy", "rapl", "nvidia"], "joules")}
CALLS = 4  # of an actor at once: one hears, and others order
NOT_MEASURED = "on a cluster energy is measured only if you ask for it: meter='energy'"


@dataclass(frozen=True)
class Ray:
    """Workers on a Ray cluster: `ft.tune(..., workers=ft.Ray(address="auto", n=64, num_gpus=1))`.

    address       "auto" for the cluster that this machine belongs to, "ray://host:10001", "local" for a new one on this
                  machine; None as `ray.init()` has it. A program that is connected to Ray keeps its connection
    n             the most evaluations side by side
    num_cpus, num_gpus, resources  what one worker holds, as Ray's actors have it
    usd_per_hour  what one worker costs: a rate, or rates by kind of node. A name is a label of the node ("market"), a
                  label and its value ("market=spot"), a resource of it ("H100"), or "*"; the first one that the node
                  has counts
    checkpoints   a folder for checkpoints that all nodes see; None: next to the study's file
    runtime_env   Ray's: files, packages and variables that workers need

    >>> import farthing as ft
    >>> ft.Ray(n=0)
    Traceback (most recent call last):
    farthing.errors.InvalidArgument: Ray: n: expected a whole number of at least 1, got 0
    """

    address: str | None = None
    n: int = 1
    num_cpus: float = 1.0
    num_gpus: float = 0.0
    resources: Mapping[str, float] | None = None
    usd_per_hour: Rates = None
    checkpoints: str | os.PathLike[str] | None = None
    runtime_env: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.address is not None and (not isinstance(self.address, str) or not self.address):
            checks.refuse("Ray: address", '"auto", "local", "host:port", "ray://host:port" or None', self.address)
        if self.checkpoints is not None and not isinstance(self.checkpoints, str | os.PathLike):
            checks.refuse("Ray: checkpoints", "a folder that all nodes share, or None", self.checkpoints)
        for name, given in (("resources", self.resources), ("runtime_env", self.runtime_env)):
            if given is not None and not isinstance(given, Mapping):
                checks.refuse(f"Ray: {name}", "a dict, or None", given)
        checks.settle(
            self,
            n=checks.whole_number("Ray: n", self.n, least=1),
            num_cpus=checks.number("Ray: num_cpus", self.num_cpus, least=0.0),
            num_gpus=checks.number("Ray: num_gpus", self.num_gpus, least=0.0),
            resources=None if self.resources is None else _resources(self.resources),
            usd_per_hour=checked_rates(self.usd_per_hour),
        )

    def meters(self, budget: Budget, meter: MeterLike) -> Meters:
        """What measures evaluations: dollars by the rates, and on the nodes what `meter` names."""
        if self.usd_per_hour is not None and budget.usd_per_hour is not None:
            raise InvalidArgument(
                f"the rate is given twice, by the budget ({budget}) and by Ray(usd_per_hour=...): leave out one of them"
            )
        actors = None if self.usd_per_hour is None else HeldActors()
        if meter is None:
            missing = NOT_MEASURED if "joules" in budget.limits else ""
            return ClusterMeters(missing=missing, actors=actors)
        unit = _measured_there(meter)
        if unit is None:
            found = meters_for(budget, meter)
            return ClusterMeters(found.meter, found.missing, actors)
        if unit not in (*budget.limits, budget.unit):
            raise InvalidArgument(
                f"meter: expected a meter of what the budget ({budget}) limits, got one of {unit}: "
                f"set Budget({unit}=...)"
            )
        return ClusterMeters(actors=actors, remote=unit)

    def executor(
        self, options: RunOptions, session: Session, objective: Objective, interrupts: Interrupts, patience: float,
        meters: Meters,
    ) -> RayPool:  # fmt: skip
        """The actors of a run, of which one is ready."""
        assert isinstance(meters, ClusterMeters)
        if self.checkpoints is not None:
            folder = Path(os.path.abspath(self.checkpoints))
            folder.mkdir(parents=True, exist_ok=True)
            keep_elsewhere(session, folder)
        pickled = io.BytesIO()
        pickle_objective(objective, session.space, pickled)
        root, end = checkpoint_root(session), ExitStack()
        with end:
            connection, environment = connected(self.address, self.runtime_env)
            end.enter_context(connection)
            probe = end.enter_context(_probe(root))
            job = Job(
                Surroundings.here({}), tuple(import_path()), self.num_cpus, options.isolate != SPAWN, options.reuse,
                options.limits.bytes, _named_or_own(options.meter) if meters.remote else None, str(probe),
            )  # fmt: skip
            make = self._maker(job, pickled.getvalue(), environment)
            most = max(min(self.n, session.ledger.left("evaluations")), 1)
            pool = RayPool(
                make, end.pop_all(), session.space, int(most), interrupts, self.usd_per_hour, meters, str(root)
            )
        return pool.started(patience)

    def _maker(self, job: Job, objective: bytes, environment: Mapping[str, Any]) -> Any:
        """A function that asks Ray for an actor."""
        ray = imported_ray()
        kind = ray.remote(Agent).options(
            num_cpus=self.num_cpus, num_gpus=self.num_gpus, resources=self.resources, max_restarts=0,
            max_task_retries=0, max_concurrency=CALLS, **({"runtime_env": dict(environment)} if environment else {}),
        )  # fmt: skip
        sent = ray.put(objective)
        return lambda: kind.remote(job, sent, SILENCE_SECONDS)


def _resources(given: Mapping[str, float]) -> dict[str, float]:
    return {str(name): checks.number(f"Ray: resources[{name!r}]", amount, least=0.0) for name, amount in given.items()}


def _named_or_own(meter: MeterLike) -> Meter | str | None:
    return meter if isinstance(meter, Meter | str) else None


def _measured_there(meter: Any) -> str | None:
    """The unit of a meter that measures processes, which are on the nodes; None of a function of seconds."""
    if isinstance(meter, str):
        return MEASURED_THERE.get(meter)
    return meter.unit if isinstance(meter, Meter) and not isinstance(meter, type) else None


@contextmanager
def _probe(root: Path) -> Iterator[Path]:
    """A file in the folder of checkpoints while the run lasts: nodes that see it see checkpoints too."""
    made = not root.exists()
    root.mkdir(parents=True, exist_ok=True)
    path = root / f".run-{os.getpid()}"
    path.write_text("a run uses this folder\n")
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)
        if made and not any(root.iterdir()):
            root.rmdir()
