"""The meter "nvidia": joules of NVIDIA GPUs, from the driver (NVML)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any

from farthing.errors import MeterUnavailable


@dataclass(frozen=True)
class Nvidia:
    """Joules of NVIDIA GPUs, Volta and later, by `pynvml`.

    All energy of a device counts, its idle power included. It is divided evenly among the processes that compute on the
    device, because the driver does not say how much each of them used.

    devices   indices or UUIDs; by default those in CUDA_VISIBLE_DEVICES, or all where that is not set
    """

    devices: Sequence[int | str] | None = None
    unit: str = field(default="joules", init=False)

    def __post_init__(self) -> None:
        if not self.handles:
            raise MeterUnavailable("NVIDIA: no GPU is visible; see CUDA_VISIBLE_DEVICES")
        for handle in self.handles:
            self.millijoules(handle)

    @cached_property
    def handles(self) -> tuple[Any, ...]:
        """The driver's handles of the devices."""
        nvml, wanted = self._nvml, _visible_devices() if self.devices is None else self.devices
        try:
            if wanted is None:
                wanted = range(nvml.nvmlDeviceGetCount())
            return tuple(
                nvml.nvmlDeviceGetHandleByUUID(device)
                if isinstance(device, str)
                else nvml.nvmlDeviceGetHandleByIndex(device)
                for device in wanted
            )
        except nvml.NVMLError as error:
            raise MeterUnavailable(f"NVIDIA: {error}; the devices asked for are {wanted}") from None

    @cached_property
    def _nvml(self) -> Any:
        try:
            nvml = import_module("pynvml")
        except ImportError:
            raise MeterUnavailable("NVIDIA: pynvml is not installed: pip install nvidia-ml-py") from None
        try:
            nvml.nvmlInit()
        except nvml.NVMLError as error:
            raise MeterUnavailable(f"NVIDIA: {error}") from None
        return nvml

    def millijoules(self, handle: Any) -> int:
        """The energy that a device has used since its driver was loaded."""
        try:
            return int(self._nvml.nvmlDeviceGetTotalEnergyConsumption(handle))
        except self._nvml.NVMLError as error:
            raise MeterUnavailable(f"NVIDIA: cannot read the energy of a GPU: {error}") from None

    def process_count(self, handle: Any) -> int:
        """How many processes compute on a device, at least 1."""
        try:
            return max(len(self._nvml.nvmlDeviceGetComputeRunningProcesses(handle)), 1)
        except self._nvml.NVMLError:  # some drivers do not tell
            return 1

    def begin(self, pid: int) -> NvidiaGauge:
        return NvidiaGauge(self)


class NvidiaGauge:
    """Adds up the growth of each device's energy, divided by the processes on it: the larger of two readings."""

    def __init__(self, meter: Nvidia) -> None:
        self._meter, self._joules = meter, 0.0
        self._last = self._read()

    def _read(self) -> list[tuple[int, int]]:
        """Millijoules and number of processes, device by device."""
        return [(self._meter.millijoules(handle), self._meter.process_count(handle)) for handle in self._meter.handles]

    def spent(self) -> float:
        now = self._read()
        for (before, processes_before), (after, processes) in zip(self._last, now, strict=True):
            self._joules += 1e-3 * max(after - before, 0) / max(processes_before, processes)
        self._last = now
        return self._joules


def _visible_devices() -> list[int | str] | None:
    """The devices in CUDA_VISIBLE_DEVICES; None if it is not set. Like CUDA, stop at the first invalid entry."""
    text = os.environ.get("CUDA_VISIBLE_DEVICES")
    if text is None:
        return None
    found: list[int | str] = []
    for name in (part.strip() for part in text.split(",")):
        if name.isdecimal():
            found.append(int(name))
        elif name.startswith(("GPU-", "MIG-")):
            found.append(name)
        else:
            break
    return found
