"""Faults of disks, clocks and other processes: no whole event is lost, none counts twice, and the error says why."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import threading
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from io import BytesIO
from pathlib import Path

import pytest

import farthing as ft
from farthing.errors import StorageError
from farthing.record.lock import exclusive
from farthing.record.storage import SQLiteLog, salvage
from farthing.record.wal import HEADER, log_state

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals, mounts and permissions as POSIX knows them")

PAGE, FRAME = 4096, 4096 + 24


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory where possible: thousands of openings would wear out a disk, and test nothing more there."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as made:
        yield Path(made)


def body(number: int) -> str:
    """About a quarter of a page."""
    return json.dumps({"number": number, "text": "x" * 1000})


def events(first: int, last: int) -> list[tuple[str, str]]:
    return [("kind", body(number)) for number in range(first, last + 1)]


def closed_file(path: Path, count: int) -> None:
    with closing(SQLiteLog(path)) as log:
        log.append(*events(1, count))


def left_behind(folder: Path, before: int, after: int, suffixes: tuple[str, ...] = ("", "-wal")) -> Path:
    """What a process leaves when it is killed after `before` events in the file and `after` in its log."""
    live, left = folder / "live.db", folder / "left.db"
    closed_file(live, before)
    with closing(SQLiteLog(live)) as log:
        log.read()
        for number in range(before + 1, before + after + 1):
            log.append(*events(number, number))
        copy(live, left, suffixes)
    log = Path(f"{left}-wal")
    os.truncate(log, log_state(BytesIO(log.read_bytes())).length)  # frames of an earlier round are no part of it
    return left


def copy(source: Path, target: Path, suffixes: tuple[str, ...] = ("", "-wal")) -> None:
    for suffix in suffixes:
        shutil.copyfile(f"{source}{suffix}", f"{target}{suffix}")


def read(path: Path) -> list[tuple[str, str]]:
    with closing(SQLiteLog(path)) as log:
        return list(log.read())


def cuts(length: int) -> list[int]:
    """Where to cut `length` bytes, the last place first: every byte near both ends, every eighth between them."""
    return [place for place in range(length, -1, -1) if place % 8 == 0 or min(place, length - place) < 64]


class TestCutOff:
    """A file or log that ends too early, at any byte."""

    def test_the_file_anywhere_in_its_last_page(self, folder):
        """Either every event is there, or the error counts what can be read and that much can be saved."""
        whole, path = folder / "whole.db", folder / "cut.db"
        closed_file(whole, 30)
        content, counts = whole.read_bytes(), set()
        assert len(content) % PAGE == 0
        path.write_bytes(content)
        for kept in cuts(PAGE - 1):
            os.truncate(path, len(content) - PAGE + kept)
            with pytest.raises(StorageError) as refused:
                read(path)
            counts.add(counted(refused.value))
        assert path.stat().st_size == len(content) - PAGE, "no opening has changed the file"
        assert max(counts) < 30
        assert min(counts) > 20, "what is on the pages before can be read"

    @pytest.mark.parametrize("pages", [0, 1, 2, 5, 8])
    def test_what_is_left_of_a_file_can_be_saved(self, folder, pages):
        whole, path, new = folder / "whole.db", folder / "cut.db", folder / "new.db"
        closed_file(whole, 30)
        size = len(whole.read_bytes()) - pages * PAGE - 1500
        path.write_bytes(whole.read_bytes()[:size])
        with pytest.raises(StorageError, match=r"cut\.db") as refused:
            read(path)
        count = counted(refused.value)
        assert salvage(path, new) == count
        assert read(new) == events(1, count)
        assert path.stat().st_size == size

    def test_the_log_anywhere_in_its_last_frame(self, folder):
        """The last event is there if its frame is whole, the others always; and writing goes on after them. A log that
        ends inside a frame is warned of; one that ends between two is like that of a process killed earlier."""
        left, path = left_behind(folder, 5, 3), folder / "cut.db"
        database, log = left.read_bytes(), Path(f"{left}-wal").read_bytes()
        assert len(log) >= HEADER + FRAME
        for kept in cuts(FRAME):
            size = len(log) - FRAME + kept
            path.write_bytes(database)
            Path(f"{path}-wal").write_bytes(log[:size])
            with says("ends in the middle of what was being written" if 0 < kept < FRAME else None):
                found = read(path)
                assert found == events(1, 8 if size == len(log) else 7), size
                if kept % 100 == 0:
                    with closing(SQLiteLog(path)) as again:
                        again.read()
                        again.append(*events(8, 8))
                    assert read(path) == events(1, 8)

    @pytest.mark.parametrize("after", [3, 40])
    def test_the_log_at_its_header_and_at_every_frame(self, folder, after):
        left, path = left_behind(folder, 5, after), folder / "cut.db"
        database, log = left.read_bytes(), Path(f"{left}-wal").read_bytes()
        cuts = [0, 1, 31, 32, *range(HEADER, len(log) + 1, FRAME), *range(HEADER + 10, len(log), FRAME)]
        lengths, said = [], 0
        for size in sorted(cuts):
            path.write_bytes(database)
            Path(f"{path}-wal").write_bytes(log[:size])
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                found = read(path)
            assert found == events(1, len(found))
            assert caught or size > HEADER, "the mark in the file says that there was a log"
            assert caught or (size - HEADER) % FRAME == 0, "a log that ends inside a frame was cut off"
            lengths.append(len(found))
            said += bool(caught)
        assert lengths == sorted(lengths)
        assert (lengths[0], lengths[-1]) == (5, 5 + after)
        assert said >= len(cuts) // 2

    @pytest.mark.parametrize("after", [3, 40])
    def test_the_log_anywhere_with_its_index_next_to_it_is_always_said(self, folder, after):
        """The index knows how many frames there were: of a process that was killed nothing is said, of a log that was
        cut off everything."""
        left, path = left_behind(folder, 5, after, ("", "-wal", "-shm")), folder / "cut.db"
        log = Path(f"{left}-wal").read_bytes()
        for size in range(HEADER, len(log) + 1, FRAME):
            copy(left, path, ("", "-shm"))
            Path(f"{path}-wal").write_bytes(log[:size])
            before = contents(folder)
            with says(None if size == len(log) else "missing|more were in it: events are lost"):
                assert read(path) == events(1, len(read(path)))
            assert contents(folder) == before, "looking changes nothing, so the next one who looks is told too"

    def test_the_file_while_a_log_is_left_behind(self, folder):
        """The log holds some pages anew: cut ones among them do no harm, and any other is noticed."""
        left, path, refused = left_behind(folder, 30, 3), folder / "cut.db", 0
        database, log = left.read_bytes(), Path(f"{left}-wal").read_bytes()
        for lost in range(1, 4 * PAGE, 61):
            path.write_bytes(database[:-lost])
            Path(f"{path}-wal").write_bytes(log)
            try:
                found = read(path)
            except StorageError:
                refused += 1
                assert Path(f"{path}-wal").read_bytes() == log
            else:
                assert found == events(1, 33), lost
        assert refused > 100

    def test_an_empty_file_next_to_its_log_is_not_treated_as_a_new_one(self, folder):
        left = left_behind(folder, 0, 10)
        log = Path(f"{left}-wal").read_bytes()
        os.truncate(left, 0)
        with pytest.raises(StorageError, match=r"left\.db: is empty, but its write-ahead log left\.db-wal is not"):
            ft.Study(ft.Space(x=ft.Real(0, 1)), "1 trial", storage=left)
        assert left.stat().st_size == 0
        assert Path(f"{left}-wal").read_bytes() == log


def contents(folder: Path) -> dict[str, bytes]:
    return {entry.name: entry.read_bytes() for entry in folder.iterdir()}


def says(text: str | None) -> AbstractContextManager[object]:
    """Within, a RuntimeWarning with that text is expected, or none at all."""
    return nullcontext() if text is None else pytest.warns(RuntimeWarning, match=text)


def counted(error: StorageError) -> int:
    """How many events the error says can be read."""
    text = str(error)
    return 0 if "none of its events" in text else int(text.split("its first ")[1].split(" events can be read")[0])


class TestOverwritten:
    """Garbage in the middle is noticed, named, and left as it was."""

    def test_a_damaged_page_is_found_after_an_unclean_end_before_anything_is_written(self, folder):
        left = left_behind(folder, 30, 3)
        content = bytearray(left.read_bytes())
        content[3 * PAGE : 3 * PAGE + 100] = os.urandom(100)
        left.write_bytes(content)
        log = Path(f"{left}-wal").read_bytes()
        with pytest.raises(StorageError, match=r"left\.db: is damaged \(.*can be read"):
            SQLiteLog(left)
        assert left.read_bytes() == content
        assert Path(f"{left}-wal").read_bytes() == log

    def test_a_log_whose_header_is_damaged_is_not_passed_over(self, folder):
        left = left_behind(folder, 5, 3)
        log = bytearray(Path(f"{left}-wal").read_bytes())
        log[17] ^= 1
        Path(f"{left}-wal").write_bytes(log)
        with pytest.raises(StorageError, match=r"left\.db-wal is damaged at its beginning.*first 5 events can be read"):
            SQLiteLog(left)
        assert salvage(left, folder / "new.db") == 5

    def test_a_log_that_is_damaged_in_its_middle_opens_to_the_last_whole_event_and_warns(self, folder):
        left = left_behind(folder, 5, 12)
        log = bytearray(Path(f"{left}-wal").read_bytes())
        log[HEADER + 9 * FRAME + 500] ^= 1
        Path(f"{left}-wal").write_bytes(log)
        with pytest.warns(RuntimeWarning, match=r"left\.db: its write-ahead log is damaged after page 9"):
            found = read(left)
        assert 5 < len(found) < 17
        assert found == events(1, len(found))

    def test_a_whole_log_opens_without_a_warning(self, folder):
        left = left_behind(folder, 5, 12)
        content = Path(f"{left}-wal").read_bytes()
        state = log_state(BytesIO(content))
        assert (state.readable, state.whole, state.beyond) == (True, (len(content) - HEADER) // FRAME, 0)
        assert len(read(left)) == 17

    def test_frames_of_an_earlier_round_of_the_log_are_not_damage(self, folder):
        """Once all of a log is in the file, SQLite begins it anew, over the old frames."""
        live, left = folder / "live.db", folder / "left.db"
        with closing(SQLiteLog(live)) as log:
            log.append(*events(1, 50))
            log._writer._connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
            log.append(*events(51, 51))
            copy(live, left)
        state = log_state(BytesIO(Path(f"{left}-wal").read_bytes()))
        assert (state.readable, state.beyond) == (True, 0)
        assert 0 < state.whole < 5
        assert read(left) == events(1, 51)


SCRIPT_HEAD = """
    import os, sys
    import farthing as ft
    from farthing.errors import StorageError
    from farthing.record.storage import SQLiteLog

    SPACE = ft.Space(x=ft.Real(0, 1))

    def told(path, most, size=20_000):
        '''How many trials could be told before the disk was full, and what was said then.'''
        with ft.Study(SPACE, "1000 evaluations", policy="random", seed=0, storage=path) as study:
            try:
                while len(study.trials) < most:
                    study.tell(study.ask(), value=1.0, note="x" * size)
            except StorageError as error:
                return sum(trial.status == "complete" for trial in study.trials), str(error)
        return most, "never full"
"""


def python(script: str, *arguments: object, wrap: tuple[str, ...] = (), **options: object) -> str:
    """What a script prints, run by a new Python."""
    whole = textwrap.dedent(SCRIPT_HEAD) + textwrap.dedent(script)
    ended = subprocess.run(
        [*wrap, sys.executable, "-c", whole, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        **options,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def can_mount() -> bool:
    """Whether we may make a name space of our own with a small file system in it."""
    if shutil.which("unshare") is None or shutil.which("mount") is None:
        return False
    attempt = "mount -t tmpfs -o size=1m tmpfs /tmp && mount -o remount,ro /tmp"
    return subprocess.run(["unshare", "-rm", "sh", "-c", attempt], capture_output=True).returncode == 0


needs_mount = pytest.mark.skipif(not can_mount(), reason="this system lets no user mount a file system (unshare -rm)")


class TestFullDisk:
    """What was told is on disk, what could not be written did not happen, and the study goes on once there is room."""

    @needs_mount
    def test_a_small_disk(self, tmp_path):
        mount = ("unshare", "-rm", "sh", "-c", f'mount -t tmpfs -o size=600k tmpfs {tmp_path} && exec "$@"', "sh")
        script = """
            path = sys.argv[1] + "/study.db"
            filler = sys.argv[1] + "/filler"
            open(filler, "wb").write(b"x" * 100_000)
            count, text = told(path, 1000)
            assert "could not be written (database or disk is full)" in text and path in text, text
            assert "events before it are whole" in text, text
            assert 3 < count < 100, count
            os.remove(filler)
            with ft.Study.resume(path) as study:
                done = [trial for trial in study.trials if trial.status == "complete"]
                assert len(done) == count and study.ledger.total("evaluations") == count, (len(done), count)
                study.tell(study.ask(), value=0.5)
            with ft.Study.resume(path) as study:
                assert study.best.value == 0.5 and study.ledger.total("evaluations") == count + 1
            print("ok", count)
        """
        assert python(script, tmp_path, wrap=mount).startswith("ok")

    @needs_mount
    def test_a_disk_too_full_for_a_new_study(self, tmp_path):
        mount = ("unshare", "-rm", "sh", "-c", f'mount -t tmpfs -o size=8k tmpfs {tmp_path} && exec "$@"', "sh")
        script = """
            try:
                told(sys.argv[1] + "/study.db", 1)
            except StorageError as error:
                print(error)
        """
        printed = python(script, tmp_path, wrap=mount)
        assert "study.db" in printed
        assert "full" in printed

    def test_a_file_that_may_not_grow(self, tmp_path):
        """As a quota does; no privilege is needed for this one."""
        path = tmp_path / "study.db"
        script = """
            import resource

            resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
            print(*told(sys.argv[1], 1000), sep="|")
        """
        count, text = python(script, path).strip().split("|")
        assert f"{path}: the event could not be written" in text
        with ft.Study.resume(path) as study:
            assert study.count(ft.Status.COMPLETE) == study.ledger.total("evaluations") == int(count) > 3
            study.tell(study.ask(), value=0.0)
            assert study.ledger.total("evaluations") == int(count) + 1


class TestReadOnlyMount:
    @needs_mount
    @pytest.mark.parametrize("unclean", [False, True], ids=["closed", "with a log left behind"])
    def test_looking_works_and_recording_says_why_it_cannot(self, tmp_path, unclean):
        mount = ("unshare", "-rm", "sh", "-c", f'mount -t tmpfs -o size=2m tmpfs {tmp_path} && exec "$@"', "sh")
        script = """
            import shutil, subprocess

            path, unclean = sys.argv[1] + "/study.db", sys.argv[2] == "True"
            with ft.Study(SPACE, "10 evaluations", policy="sobol", seed=0, storage=path + ".live") as study:
                for value in (1.0, 2.0):
                    study.tell(study.ask(), value=value)
                if unclean:
                    shutil.copy(path + ".live-wal", path + "-wal")
                    shutil.copy(path + ".live", path)
            if not unclean:
                shutil.copy(path + ".live", path)
            before = sorted(os.listdir(sys.argv[1]))
            subprocess.run(["mount", "-o", "remount,ro", sys.argv[1]], check=True)
            with ft.Study.resume(path) as study:
                assert [trial.value for trial in study.trials] == [1.0, 2.0]
                assert study.storage == path
                try:
                    study.ask()
                except StorageError as error:
                    print(error)
                assert len(study.trials) == 2
            for attempt in (
                lambda: ft.Study.resume(path, budget="20 evaluations"),
                lambda: ft.Study(SPACE, "1 trial", storage=sys.argv[1] + "/new.db"),
            ):
                try:
                    attempt()
                except StorageError as error:
                    print(error)
            assert sorted(os.listdir(sys.argv[1])) == before
        """
        asked, rebudgeted, created = python(script, tmp_path, unclean, wrap=mount).splitlines()
        assert "study.db: is open for reading only" in asked
        assert "study.db" in rebudgeted
        assert "new.db" in created


@pytest.fixture(scope="module")
def compiler() -> str:
    found = shutil.which("cc")
    if found is None:
        pytest.skip("needs a C compiler to make a clock that jumps, and a file system without locks")
    return found


def shim(compiler: str, folder: Path, source: str) -> dict[str, str]:
    """The environment of a process in which some functions of the C library are these."""
    (folder / "shim.c").write_text(source)
    library = folder / "shim.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, folder / "shim.c", "-ldl"], check=True)
    return {**os.environ, "LD_PRELOAD": str(library)}


JUMPING_CLOCK = """
#define _GNU_SOURCE
#include <time.h>
#include <sys/syscall.h>
#include <unistd.h>
static long hours;
int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_REALTIME) now->tv_sec -= 3600 * hours++;  /* every look is an hour earlier than the last */
    return failed;
}
"""

LOCKS = """
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>
static int changed(int file, int command, long argument) {
    if (command == F_SETLK || command == F_SETLKW) { INSTEAD }
    return syscall(SYS_fcntl, file, command, argument);
}
#define FORWARD va_list list; va_start(list, command); long argument = va_arg(list, long); va_end(list)
int fcntl(int file, int command, ...) { FORWARD; return changed(file, command, argument); }
int fcntl64(int file, int command, ...) { FORWARD; return changed(file, command, argument); }
"""
NO_LOCKS = LOCKS.replace("INSTEAD", "errno = ENOLCK; return -1;")
SLOW_LOCKS = LOCKS.replace("INSTEAD", "usleep(500 + getpid() % 7 * 300);")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="functions of the C library are replaced as on Linux")
class TestClock:
    def test_a_wall_clock_that_jumps_backwards_changes_only_the_times_in_the_file(self, tmp_path, compiler):
        script = """
            def objective(config):
                return config["x"]

            study = ft.Study(SPACE, "1h, 12 evaluations", policy="sobol", seed=3, storage=sys.argv[1])
            study.run(objective, progress=False)
            assert study.ended is not None
            assert all(amount >= 0 for amounts in study.ledger.accounts.values() for amount in amounts.values())
            assert 0 < study.ledger.total("seconds") < 60, study.ledger
            assert all(0 <= trial.cost < 60 for trial in study.trials)
            print([trial.config["x"] for trial in study.trials])
        """
        jumping, environment = tmp_path / "jumping.db", shim(compiler, tmp_path, JUMPING_CLOCK)
        steady = ft.Study(ft.Space(x=ft.Real(0, 1)), "1h, 12 evaluations", policy="sobol", seed=3)
        steady.run(lambda config: config["x"], isolate=False, progress=False)
        assert json.loads(python(script, jumping, env=environment)) == [trial.config["x"] for trial in steady.trials]
        with closing(sqlite3.connect(jumping)) as connection:
            times = [time for (time,) in connection.execute("SELECT time FROM events ORDER BY number")]
        assert times == sorted(times, reverse=True), "the clock did jump"
        assert times[0] - times[-1] > 3600
        with ft.Study.resume(jumping) as study:
            assert study.ledger.total("evaluations") == 12


class TestRunners:
    """One process may run a study. Others are told which, and once it has ended in any way, the next one may."""

    HOLDER = """
        def objective(config):
            print("inside", flush=True)
            sys.stdin.readline()
            return config["x"]

        study = ft.Study(SPACE, "3 evaluations", policy="random", seed=0, storage=sys.argv[1])
        study.run(objective, progress=False)
        print("ended", flush=True)
        """

    def holder(self, path: Path) -> subprocess.Popen[str]:
        script = textwrap.dedent(SCRIPT_HEAD) + textwrap.dedent(self.HOLDER)
        process = subprocess.Popen(
            [sys.executable, "-c", script, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout.readline() == "inside\n"
        return process

    def test_a_second_runner_is_told_which_process_runs_the_study_and_readers_are_let_in(self, tmp_path):
        path = tmp_path / "study.db"
        with self.holder(path) as process:
            with ft.Study.resume(path) as second:
                assert len(second.trials) == 1
                with pytest.raises(StorageError, match=rf"study\.db: is being run by process {process.pid} on "):
                    second.run(lambda config: 0.0, progress=False)
            with pytest.raises(StorageError, match=rf"process {process.pid}"):
                ft.Study.resume(path, budget="9 evaluations")
            assert process.communicate("\n\n\n", timeout=30)[0].splitlines()[-1] == "ended"
        with ft.Study.resume(path, budget="4 evaluations") as study:
            study.run(lambda config: 0.0, progress=False)
            assert study.ledger.total("evaluations") == 4
        assert [entry.name for entry in tmp_path.iterdir() if entry.suffix == ".lock"] == []

    def test_a_killed_runner_does_not_stand_in_the_way(self, tmp_path):
        path = tmp_path / "study.db"
        with self.holder(path) as process:
            process.kill()
            process.communicate(timeout=30)
        assert process.returncode == -signal.SIGKILL
        assert Path(f"{path}.lock").exists(), "it had no time to clean up"
        with ft.Study.resume(path) as study:
            study.run(lambda config: 0.0, progress=False)
            assert study.ledger.total("evaluations") == 3
        assert not Path(f"{path}.lock").exists()

    def test_a_fork_does_not_keep_the_lock_of_a_runner_that_ended(self, tmp_path):
        script = """
            from farthing.record.lock import exclusive

            with exclusive(sys.argv[1]):
                if os.fork() == 0:
                    sys.stdin.readline()  # outlives its parent
                    os._exit(0)
                print("forked", flush=True)
                os._exit(0)
        """
        whole = textwrap.dedent(SCRIPT_HEAD) + textwrap.dedent(script)
        process = subprocess.Popen(
            [sys.executable, "-c", whole, str(tmp_path / "study.db")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        with process:
            assert process.stdout.readline() == "forked\n"
            process.wait(timeout=30)
            with exclusive(tmp_path / "study.db"):
                pass
            process.stdin.close()

    def test_threads_of_one_process_exclude_each_other_and_links_lead_to_the_same_lock(self, tmp_path):
        path, link = tmp_path / "study.db", tmp_path / "link.db"
        path.touch()
        link.symlink_to(path)
        refusals = []

        def attempt() -> None:
            try:
                with exclusive(link):
                    pass
            except StorageError as error:
                refusals.append(str(error))

        with exclusive(path):
            thread = threading.Thread(target=attempt)
            thread.start()
            thread.join()
        attempt()
        assert len(refusals) == 1
        assert f"process {os.getpid()}, this one" in refusals[0]

    @pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the C library is replaced as on Linux")
    def test_many_processes_that_take_turns_never_hold_it_together(self, tmp_path, compiler):
        """Each writes when it comes and goes; the lock file is removed and made again all the time. Locks are slow, so
        that the file is often gone between its opening and its locking.
        """
        script = """
            import time
            from farthing.record.lock import exclusive

            done = 0
            while done < 60:
                try:
                    with exclusive(sys.argv[1]):
                        os.write(3, b"+")
                        time.sleep(0.0003)
                        os.write(3, b"-")
                    time.sleep(0.001)
                    done += 1
                except StorageError:
                    pass
        """
        whole = textwrap.dedent(SCRIPT_HEAD) + textwrap.dedent(script)
        diary, slow = tmp_path / "diary", shim(compiler, tmp_path, SLOW_LOCKS)
        with diary.open("ab") as out:
            redirect = ["sh", "-c", f'exec "$@" 3>>{diary}', "sh"]
            rivals = [
                subprocess.Popen(
                    [*redirect, sys.executable, "-c", whole, str(tmp_path / "study.db")], stdout=out, env=slow
                )
                for _ in range(3)
            ]
            assert [rival.wait(timeout=60) for rival in rivals] == [0, 0, 0]
        assert diary.read_text() == "+-" * 180

    @pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the C library is replaced as on Linux")
    def test_without_locks_it_says_so_once_and_goes_on(self, tmp_path, compiler):
        script = """
            from farthing.record.lock import exclusive

            for _ in range(2):
                with exclusive(sys.argv[1]):
                    print("inside")
        """
        environment = shim(compiler, tmp_path, NO_LOCKS)
        whole = textwrap.dedent(SCRIPT_HEAD) + textwrap.dedent(script)
        ended = subprocess.run(
            [sys.executable, "-c", whole, str(tmp_path / "study.db")],
            capture_output=True, text=True, timeout=60, env=environment,
        )  # fmt: skip
        assert ended.stdout == "inside\ninside\n", ended.stderr
        assert ended.stderr.count("nothing keeps a second process from running this study") == 1
