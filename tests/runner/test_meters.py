"""Meters: CPU time on real processes, energy on a fake powercap tree, GPUs with a fake driver."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import farthing as ft
from farthing.errors import FarthingError, InvalidArgument, MeterUnavailable
from farthing.runner.meters import Meter, energy, meters_for
from farthing.runner.meters.cpu import Cpu
from farthing.runner.meters.energy import Sum, energy_meter
from farthing.runner.meters.nvidia import Nvidia
from farthing.runner.meters.rapl import Rapl, busy_seconds
from farthing.runner.meters.timed import Timed

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads the files of Linux")
TICK = 1.0 / os.sysconf("SC_CLK_TCK")
TURN = 262_143_328_850  # microjoules: as processors of Intel have it


def burn(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


class Machine:
    """Files as the kernel shows them: two packages, their parts, the platform, a second view, one process."""

    PID = 77

    def __init__(self, folder: Path) -> None:
        self.powercap, self.proc = folder / "powercap", folder / "proc"
        names = {
            "intel-rapl": None, "intel-rapl:0": "package-0", "intel-rapl:0:0": "core", "intel-rapl:0:1": "dram",
            "intel-rapl:1": "package-1", "intel-rapl:2": "psys", "intel-rapl-mmio:0": "package-0", "dtpm": None,
        }  # fmt: skip
        for name, kind in names.items():
            (self.powercap / name).mkdir(parents=True)
            if kind is not None:
                (self.powercap / name / "name").write_text(f"{kind}\n")
                (self.powercap / name / "max_energy_range_uj").write_text(f"{TURN}\n")
                self.energy(name, 500)
        (self.proc / str(self.PID)).mkdir(parents=True)
        self.cpu(own=100, machine=1000)

    def energy(self, name: str, joules: float) -> None:
        (self.powercap / name / "energy_uj").write_text(f"{round(joules * 1e6)}\n")

    def cpu(self, own: int, machine: int, started: int = 5) -> None:
        """Ticks of the process and of the whole machine: half of them user time, the rest of four other kinds."""
        parts = [machine // 2, machine // 8, machine // 8, 123_456, 7_890, machine // 8, machine // 8, 999, 0, 0]
        (self.proc / "stat").write_text(f"cpu  {' '.join(map(str, parts))}\ncpu0 1 1 1 1 1 1 1 1 0 0\n")
        fields = ["R", 1, *[0] * 9, own, 0, 0, 0, 20, 0, 1, 0, started, 0, 10, *[0] * 28]
        (self.proc / str(self.PID) / "stat").write_text(f"77 (python) {' '.join(map(str, fields))}\n")

    def rapl(self) -> Rapl:
        return Rapl(self.powercap, self.proc)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@linux
class TestCpu:
    def test_it_measures_what_the_process_does_and_nothing_before(self):
        burn(0.1)
        gauge = Cpu().begin(os.getpid())
        burn(0.2)
        assert 0.2 <= gauge.spent() < 0.35
        time.sleep(0.2)
        assert gauge.spent() < 0.35
        burn(0.2)
        assert gauge.spent() >= 0.4

    def test_a_killed_process_keeps_what_was_read_last(self):
        child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        gauge = Cpu().begin(child.pid)
        while (read := gauge.spent()) < 0.2:
            time.sleep(0.02)
        child.kill()
        child.wait()
        assert gauge.spent() == read
        assert gauge.spent() == read

    def test_a_process_that_does_not_exist_spends_nothing(self):
        child = subprocess.Popen([sys.executable, "-c", ""])
        child.wait()
        assert Cpu().begin(child.pid).spent() == 0.0

    def test_a_new_process_with_the_same_number_does_not_count(self, machine):
        gauge = Cpu(machine.proc).begin(Machine.PID)
        machine.cpu(own=150, machine=1000)
        assert gauge.spent() == pytest.approx(50 * TICK)
        machine.cpu(own=900, machine=1000, started=6)
        assert gauge.spent() == pytest.approx(50 * TICK)

    def test_when_a_descendant_vanishes_nothing_is_subtracted(self, machine):
        gauge = Cpu(machine.proc).begin(Machine.PID)
        for own, total in ((150, 50), (120, 50), (130, 60)):
            machine.cpu(own=own, machine=1000)
            assert gauge.spent() == pytest.approx(total * TICK)

    def test_it_is_unavailable_where_processes_cannot_be_read(self, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "psutil", None)
        with pytest.raises(MeterUnavailable, match="psutil"):
            Cpu(tmp_path)


@linux
class TestRapl:
    def test_only_packages_are_counted_and_each_once(self, machine):
        assert [package.folder.name for package in machine.rapl().packages] == ["intel-rapl:0", "intel-rapl:1"]

    def test_energy_is_split_by_cpu_time(self, machine):
        """30 J and 10 J of two packages; a quarter of the machine's busy ticks is ours. The other counters rise too."""
        gauge = machine.rapl().begin(Machine.PID)
        for name in ("intel-rapl:0", "intel-rapl:0:0", "intel-rapl:0:1", "intel-rapl:2", "intel-rapl-mmio:0"):
            machine.energy(name, 530)
        machine.energy("intel-rapl:1", 510)
        machine.cpu(own=300, machine=1800)
        assert gauge.spent() == pytest.approx(40.0 * 200 / 800)

    def test_reading_in_between_changes_nothing_where_the_split_is_even(self, machine):
        gauge = machine.rapl().begin(Machine.PID)
        for i in range(1, 6):
            machine.energy("intel-rapl:0", 500 + 8 * i)
            machine.cpu(own=100 + 40 * i, machine=1000 + 160 * i)
            assert gauge.spent() == pytest.approx(8.0 * i / 4)

    def test_two_runs_at_once_share_what_there_is(self, machine):
        other = machine.proc / "78"
        other.mkdir()
        text = (machine.proc / "77" / "stat").read_text()
        (other / "stat").write_text(text)
        rapl = machine.rapl()
        gauges = [rapl.begin(77), rapl.begin(78)]
        machine.cpu(own=340, machine=1320)
        (other / "stat").write_text(text.replace(" 100 ", " 180 "))
        machine.energy("intel-rapl:0", 564)
        spent = [gauge.spent() for gauge in gauges]
        assert spent == pytest.approx([48.0, 16.0])

    def test_a_counter_that_wraps_around_goes_on(self, machine):
        top = TURN / 1e6
        machine.energy("intel-rapl:0", top - 10.0)
        gauge = machine.rapl().begin(Machine.PID)
        machine.energy("intel-rapl:0", 20.0)
        machine.cpu(own=900, machine=1800)
        assert gauge.spent() == pytest.approx(30.0)
        for _ in range(3):  # and again, as long as it is read once a turn
            machine.energy("intel-rapl:0", top - 1.0)
            gauge.spent()
            machine.energy("intel-rapl:0", 20.0)
            last = gauge.spent()
        assert last == pytest.approx(30.0 + 3 * top, rel=1e-9)

    def test_a_process_that_did_nothing_is_charged_nothing(self, machine):
        gauge = machine.rapl().begin(Machine.PID)
        assert gauge.spent() == 0.0
        machine.energy("intel-rapl:0", 900)
        assert gauge.spent() == 0.0
        machine.cpu(own=100, machine=8000)
        assert gauge.spent() == 0.0

    def test_the_share_is_never_more_than_all(self, machine):
        """The process's clock is finer than the machine's, and may be ahead of it for a moment."""
        gauge = machine.rapl().begin(Machine.PID)
        machine.energy("intel-rapl:0", 501)
        machine.cpu(own=109, machine=1000)
        assert gauge.spent() == pytest.approx(1.0)

    def test_a_process_that_ended_keeps_its_share(self, machine):
        gauge = machine.rapl().begin(Machine.PID)
        machine.energy("intel-rapl:0", 580)
        machine.cpu(own=500, machine=1800)
        assert gauge.spent() == pytest.approx(40.0)
        (machine.proc / "77" / "stat").unlink()
        assert gauge.spent() == pytest.approx(40.0)

    @pytest.mark.parametrize("left", [[], ["intel-rapl", "dtpm"], ["intel-rapl:2", "intel-rapl-mmio:0"]])
    def test_a_machine_without_packages_says_so_at_once(self, machine, left):
        for folder in machine.powercap.iterdir():
            if folder.name not in left:
                folder.rename(machine.proc / folder.name)
        with pytest.raises(MeterUnavailable, match=r"found no processor package under .*powercap.*Report 'cost'"):
            machine.rapl()

    def test_a_machine_without_powercap_has_no_packages(self, tmp_path):
        with pytest.raises(MeterUnavailable, match="no processor package"):
            Rapl(tmp_path / "nothing")

    def test_counters_that_only_root_may_read_are_refused_with_what_to_do(self):
        with tempfile.TemporaryDirectory() as folder:  # pytest's own folders are closed to others
            Path(folder).chmod(0o755)
            machine = Machine(Path(folder))
            (machine.powercap / "intel-rapl:1" / "energy_uj").chmod(stat.S_IWUSR)
            with as_a_plain_user(), pytest.raises(MeterUnavailable, match=r"only root .*sudo chmod a\+r .*/energy_uj"):
                machine.rapl()
            (machine.powercap / "intel-rapl:1" / "energy_uj").chmod(0o644)
            with as_a_plain_user():
                machine.rapl()

    def test_a_counter_that_is_not_a_number_is_refused(self, machine):
        (machine.powercap / "intel-rapl:0" / "energy_uj").write_text("\n")
        with pytest.raises(MeterUnavailable, match=r"cannot read .*energy_uj"):
            machine.rapl()

    def test_busy_seconds_grow_with_work_on_this_machine(self):
        before = busy_seconds()
        burn(0.3)
        assert busy_seconds() - before >= 0.25


class as_a_plain_user:
    """Root may read everything, so this process becomes the user `nobody` for a moment."""

    def __enter__(self) -> None:
        self._root = os.geteuid() == 0
        if self._root:
            os.seteuid(65534)

    def __exit__(self, *_: object) -> None:
        if self._root:
            os.seteuid(0)


class Driver(SimpleNamespace):
    """A fake pynvml with two GPUs."""

    class NVMLError(Exception):
        pass

    def __init__(self) -> None:
        super().__init__(energy=[1000, 2000], on=[[], []], broken=None, started=0)

    def _check(self, where: str) -> None:
        if self.broken == where:
            raise self.NVMLError("Not Supported")

    def nvmlInit(self) -> None:
        self._check("init")
        self.started += 1

    def nvmlDeviceGetCount(self) -> int:
        return len(self.energy)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        if index >= len(self.energy):
            raise self.NVMLError("Invalid Argument")
        return index

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> int:
        return {"GPU-a": 0, "GPU-b": 1}[uuid]

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: int) -> int:
        self._check("energy")
        return self.energy[handle]

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[Any]:
        self._check("processes")
        return self.on[handle]


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    module = Driver()
    monkeypatch.setitem(sys.modules, "pynvml", module)
    return module


class TestNvidia:
    def test_the_energy_of_all_devices_counts_in_joules(self, driver):
        gauge = Nvidia().begin(os.getpid())
        driver.energy = [4000, 2500]
        assert gauge.spent() == pytest.approx(3.5)
        assert gauge.spent() == pytest.approx(3.5)
        driver.energy = [5000, 2500]
        assert gauge.spent() == pytest.approx(4.5)

    @pytest.mark.parametrize(("on", "joules"), [([[], [1]], 9.0), ([[1, 2, 3], [1]], 5.0), ([[1, 2], [1, 2]], 4.5)])
    def test_a_device_is_shared_evenly_by_the_processes_on_it(self, driver, on, joules):
        driver.on = on
        gauge = Nvidia().begin(os.getpid())
        driver.energy = [7000, 5000]
        assert gauge.spent() == pytest.approx(joules)

    def test_if_the_driver_does_not_list_processes_one_is_assumed(self, driver):
        driver.on, driver.broken = [[1, 2], [1, 2]], "processes"
        gauge = Nvidia().begin(os.getpid())
        driver.energy = [2000, 2000]
        assert gauge.spent() == pytest.approx(1.0)

    @pytest.mark.parametrize(
        ("text", "handles"),
        [("0", (0,)), ("1, 0", (1, 0)), ("GPU-b", (1,)), ("0,-1,1", (0,)), ("GPU-a,1", (0, 1))],
    )
    def test_only_devices_visible_to_cuda_count(self, driver, monkeypatch, text, handles):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", text)
        assert Nvidia().handles == handles

    def test_devices_can_be_named(self, driver, monkeypatch):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
        assert Nvidia(devices=[1]).handles == (1,)

    @pytest.mark.parametrize("text", ["", "-1", "nothing"])
    def test_nothing_visible_is_refused(self, driver, monkeypatch, text):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", text)
        with pytest.raises(MeterUnavailable, match="CUDA_VISIBLE_DEVICES"):
            Nvidia()

    @pytest.mark.parametrize("where", ["init", "energy"])
    def test_a_driver_without_support_is_reported_at_once(self, driver, where):
        driver.broken = where
        with pytest.raises(MeterUnavailable, match="Not Supported"):
            Nvidia()

    def test_a_device_that_is_not_there_is_refused(self, driver):
        with pytest.raises(MeterUnavailable, match=r"Invalid Argument.*\[2\]"):
            Nvidia(devices=[2])

    def test_without_the_package_it_says_what_to_install(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "pynvml", None)
        with pytest.raises(MeterUnavailable, match="pip install nvidia-ml-py"):
            Nvidia()


class TestTogether:
    def test_a_sum_adds_up(self, driver):
        both = Sum((Nvidia(devices=[0]), Nvidia(devices=[1])))
        gauge = both.begin(os.getpid())
        driver.energy = [2000, 4000]
        assert both.unit == "joules"
        assert gauge.spent() == pytest.approx(3.0)

    def test_of_one_unit_only(self, driver):
        with pytest.raises(InvalidArgument, match="one unit"):
            Sum((Nvidia(), Timed(float, "usd")))

    @linux
    def test_energy_is_the_sum_of_what_the_machine_measures(self, driver, machine, monkeypatch):
        monkeypatch.setattr(energy, "Rapl", machine.rapl)
        meter = energy_meter()
        gauge = meter.begin(Machine.PID)
        machine.energy("intel-rapl:0", 540)
        machine.cpu(own=500, machine=1800)
        driver.energy = [8000, 2000]
        assert gauge.spent() == pytest.approx(20.0 + 7.0)
        monkeypatch.setitem(sys.modules, "pynvml", None)
        assert isinstance(energy_meter(), Rapl)

    def test_without_any_both_reasons_are_given(self, tmp_path, monkeypatch):
        monkeypatch.setattr(energy, "Rapl", lambda: Rapl(tmp_path))
        monkeypatch.setitem(sys.modules, "pynvml", None)
        with pytest.raises(MeterUnavailable, match=r"nothing on this machine measures energy.*RAPL.*NVIDIA"):
            energy_meter()


class Litres:
    """A user's own meter."""

    unit = "cost"

    def __init__(self, amount: Any = 2.5) -> None:
        self.amount = amount

    def begin(self, pid: int) -> SimpleNamespace:
        return SimpleNamespace(spent=lambda: self.amount)


class TestChoosing:
    @pytest.fixture
    def nothing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A machine that measures no energy."""
        monkeypatch.setattr(energy, "Rapl", lambda: Rapl(tmp_path))
        monkeypatch.setitem(sys.modules, "pynvml", None)

    @pytest.mark.parametrize("limits", [{"seconds": 1}, {"usd": 1}, {"compute_seconds": 1}, {"cost": 1}])
    def test_by_default_the_clock_measures_time(self, limits):
        chosen = meters_for(ft.Budget(**limits))
        assert (chosen.units, chosen.missing) == ((), "")
        assert chosen.begin(os.getpid()).spent() == {}

    def test_by_default_energy_is_measured_where_it_can_be(self, driver):
        chosen = meters_for(ft.Budget(joules=100, seconds=5))
        gauges = chosen.begin(os.getpid())
        driver.energy = [3000, 2000]
        assert chosen.units == ("joules",)
        assert gauges.spent()["joules"] >= 2.0

    def test_by_default_the_reason_is_kept_where_energy_cannot_be_measured(self, nothing):
        """It is not an error yet: the objective may report its cost."""
        chosen = meters_for(ft.Budget(joules=100))
        assert chosen.units == ()
        assert "nothing on this machine measures energy" in chosen.missing

    def test_a_given_meter_that_is_unavailable_is_an_error_at_once(self, nothing):
        with pytest.raises(MeterUnavailable) as refused:
            meters_for(ft.Budget(joules=100), "energy")
        assert isinstance(refused.value, FarthingError)

    @linux
    def test_cpu_time_by_name(self):
        gauges = meters_for(ft.Budget(compute_seconds=10), "cpu").begin(os.getpid())
        burn(0.1)
        assert 0.1 <= gauges.spent()["compute_seconds"] < 0.3

    def test_a_function_of_seconds_is_in_the_unit_of_the_budget(self):
        gauges = meters_for(ft.Budget(joules=10), lambda seconds: 100.0 * seconds).begin(os.getpid())
        time.sleep(0.05)
        assert 5.0 <= gauges.spent()["joules"] < 500.0

    def test_a_meter_of_the_users_own(self):
        litres = Litres()
        assert isinstance(litres, Meter)
        assert meters_for(ft.Budget(cost=10), litres).begin(os.getpid()).spent() == {"cost": 2.5}

    @pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf"), "much", None])
    def test_what_it_measures_must_be_an_amount(self, bad):
        gauges = meters_for(ft.Budget(cost=10), Litres(bad)).begin(os.getpid())
        with pytest.raises(InvalidArgument, match="meter: expected a finite amount of cost"):
            gauges.spent()

    @pytest.mark.parametrize("bad", ["watt", 3, object(), Litres, ["cpu"]])
    def test_anything_else_is_refused_with_what_is_accepted(self, bad):
        with pytest.raises(InvalidArgument, match=r"meter: expected one of cpu, energy, rapl, nvidia, .*, got "):
            meters_for(ft.Budget(cost=1), bad)

    def test_an_unknown_unit_is_refused(self):
        litres = Litres()
        litres.unit = "litres"
        with pytest.raises(InvalidArgument, match=r"expected a meter of one of cost, usd, .*'litres'"):
            meters_for(ft.Budget(cost=1), litres)

    @linux
    def test_a_meter_of_a_unit_without_limit_is_refused(self):
        """'10m' means wall-clock minutes; a user who means CPU time must say so in the budget."""
        with pytest.raises(InvalidArgument, match=r"got one of compute_seconds: set Budget\(compute_seconds"):
            meters_for(ft.Budget.of("10m"), "cpu")
