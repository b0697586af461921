"""What a process tree uses, seen on real processes; the format of the kernel's files on a fake tree."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from farthing.errors import MeterUnavailable
from farthing.runner.process_tree import require_process_usage, tree_usage, tree_usages

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads the files of Linux")

BURN = "import time\nend = time.process_time() + {seconds}\nwhile time.process_time() < end: pass\n"
WAIT = "print('ready', flush=True)\nimport sys\nsys.stdin.read()\n"


@pytest.fixture
def spawn() -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """Starts a script that prints when it is ready and then waits for its input to close."""
    started: list[subprocess.Popen[str]] = []

    def start(script: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        child = subprocess.Popen([sys.executable, "-c", script], stdin=pipe, stdout=pipe, text=True)
        started.append(child)
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        return child

    yield start
    for child in started:
        child.kill()
        child.communicate()


@linux
class TestRealProcesses:
    def test_what_this_process_does_is_what_its_own_clock_says(self):
        first, before = tree_usage(os.getpid()), time.process_time()
        while time.process_time() < before + 0.2:
            pass
        last, after = tree_usage(os.getpid()), time.process_time()
        assert last.cpu_seconds - first.cpu_seconds == pytest.approx(after - before, abs=0.02)
        assert last.started == first.started

    def test_time_shorter_than_a_tick_of_the_machine_is_seen(self, spawn):
        child = spawn(BURN.format(seconds=0.0) + WAIT)
        first = tree_usage(child.pid)
        assert first is not None
        assert first.cpu_seconds % 0.01 != pytest.approx(0.0, abs=1e-9)

    def test_a_busy_grandchild_counts_and_is_not_counted_twice_when_it_ends(self, spawn):
        """Alive it is a descendant; once waited for, its time is part of its parent's. It counts once either way."""
        grandchild = BURN.format(seconds=0.5) + WAIT
        script = (
            "import subprocess, sys\n"
            f"inner = subprocess.Popen([sys.executable, '-c', {grandchild!r}], stdin=subprocess.PIPE, "
            "stdout=subprocess.PIPE, text=True)\n"
            "inner.stdout.readline()\n"
            "print('ready', flush=True)\n"
            "sys.stdin.readline()\n"
            "inner.communicate()\n"
            "print('ready', flush=True)\n"
            "sys.stdin.read()\n"
        )
        child = spawn(script)
        alive = tree_usage(child.pid)
        child.stdin.write("\n")
        child.stdin.flush()
        assert child.stdout.readline() == "ready\n"
        waited_for = tree_usage(child.pid)
        assert alive.cpu_seconds >= 0.5
        assert waited_for.cpu_seconds == pytest.approx(alive.cpu_seconds, abs=0.3)
        assert waited_for.cpu_seconds >= 0.5

    def test_memory_of_children_is_in_that_of_the_tree(self, spawn):
        megabytes = 60
        holding = f"held = bytearray({megabytes} * 2**20)\nheld[::4096] = bytes([1]) * len(held[::4096])\n"
        script = (
            "import subprocess, sys\n"
            f"inner = subprocess.Popen([sys.executable, '-c', {holding + WAIT!r}], stdin=subprocess.PIPE, "
            "stdout=subprocess.PIPE, text=True)\n"
            "inner.stdout.readline()\n"
        )
        alone, together = spawn(WAIT), spawn(script + WAIT)
        small, large = tree_usage(alone.pid), tree_usage(together.pid)
        assert large.resident_bytes - small.resident_bytes > megabytes * 2**20
        assert small.resident_bytes < megabytes * 2**20

    def test_one_that_ended_and_was_not_waited_for_still_says_what_it_used(self, spawn):
        child = spawn(BURN.format(seconds=0.2) + "print('ready', flush=True)\n")
        for _ in range(200):
            if Path(f"/proc/{child.pid}/stat").read_text().split(") ")[1][0] == "Z":
                break
            time.sleep(0.05)
        found = tree_usage(child.pid)
        assert found is not None
        assert found.cpu_seconds >= 0.19
        assert found.resident_bytes == 0

    def test_a_process_that_is_gone_has_no_usage(self, spawn):
        child = spawn(WAIT)
        child.communicate()
        assert tree_usage(child.pid) is None

    def test_several_are_read_at_once(self, spawn):
        here, gone = spawn(WAIT), spawn(WAIT)
        gone.communicate()
        found = tree_usages([here.pid, gone.pid])
        assert found[gone.pid] is None
        assert found[here.pid] is not None


def fake(folder: Path, *processes: tuple[int, str, int, int]) -> Path:
    """A fake /proc with processes: number, name, parent, and ticks of each of the four kinds."""
    (folder / "stat").write_text("cpu  1 2 3 4 5 6 7 8\n")
    for pid, name, parent, ticks in processes:
        (folder / str(pid)).mkdir()
        fields = ["S", parent, *[0] * 9, ticks, ticks, ticks, ticks, 20, 0, 1, 0, 4242, 12345, 10, *[0] * 28]
        (folder / str(pid) / "stat").write_text(f"{pid} ({name}) {' '.join(map(str, fields))}\n")
    return folder


@linux
class TestFiles:
    def test_a_name_may_hold_anything(self, tmp_path):
        """A program chooses its name: a parser that splits at blanks or at the first bracket reads nonsense."""
        root = fake(tmp_path, (7, "a) R 1 (b", 1, 3), (8, "c", 7, 5), (9, "d", 8, 7), (10, "e", 1, 1000))
        found = tree_usage(7, root)
        ticks, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
        assert found.cpu_seconds == pytest.approx(4 * (3 + 5 + 7) / ticks)
        assert found.resident_bytes == 3 * 10 * page
        assert found.started == 4242 / ticks

    def test_a_process_that_ends_while_we_look_is_left_out(self, tmp_path):
        root = fake(tmp_path, (7, "a", 1, 3))
        (root / "8").mkdir()
        assert tree_usage(8, root) is None
        assert tree_usage(7, root) is not None


class TestElsewhere:
    """Without /proc, with a fake psutil."""

    def test_without_psutil_it_says_what_to_install(self, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "psutil", None)
        with pytest.raises(MeterUnavailable, match="pip install psutil"):
            require_process_usage(tmp_path)
        with pytest.raises(MeterUnavailable, match="pip install psutil"):
            tree_usage(os.getpid(), tmp_path)

    def test_with_psutil_the_tree_is_the_same_sum(self, tmp_path, monkeypatch):
        class Process:
            def __init__(self, pid, parent, seconds):
                self.pid, self._parent, self._seconds = pid, parent, seconds

            def oneshot(self):
                return self

            def __enter__(self):
                return self

            def __exit__(self, *_):
                return None

            def ppid(self):
                return self._parent

            def cpu_times(self):
                if self._seconds is None:
                    raise Error
                return SimpleNamespace(user=self._seconds, system=1.0, children_user=0.5, children_system=0.25)

            def memory_info(self):
                return SimpleNamespace(rss=100)

            def create_time(self):
                return 12.0

        class Error(Exception):
            pass

        everyone = [Process(1, 0, 50.0), Process(7, 1, 2.0), Process(8, 7, 3.0), Process(9, 7, None)]
        module = SimpleNamespace(process_iter=lambda: iter(everyone), Error=Error)
        monkeypatch.setitem(sys.modules, "psutil", module)
        require_process_usage(tmp_path)
        found = tree_usage(7, tmp_path)
        assert (found.cpu_seconds, found.resident_bytes, found.started) == (8.5, 200, 12.0)
        assert tree_usage(9, tmp_path) is None  # it may not be read
        assert tree_usage(4711, tmp_path) is None
