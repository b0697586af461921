"""Paths: links, other kinds of files, other folders; and looking changes nothing."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

from benchmarks.attack.items.registry import Answer, error_of, item, program, said
from benchmarks.attack.processes import farthing, run
from benchmarks.attack.specimens import Specimen
from farthing.record.reader import read_study

QUICKLY = 2.0  # seconds in which something is refused
TIMED = """
import resource
from farthing.errors import FarthingError
from farthing.record.reader import read_study
def timed(call):
    began, error = time.perf_counter(), "accepted"
    try:
        call()
    except FarthingError as raised:
        error = f"refused: {raised}"
    except Exception as raised:
        error = f"internal error {type(raised).__name__}"
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    say(error=error, seconds=time.perf_counter() - began, megabytes=megabytes)
"""

OBJECTIVE = """
def objective(config):
    return config["x"]
"""
TRAINING = """
def objective(config):
    run = ft.current_run()
    for step in range(run.step + 1, 4):
        (run.checkpoint_dir / "state").write_text(str(step))
        yield config["x"]
"""


def timed(folder: Path, call: str) -> dict[str, Any]:
    """What came of a call, in how many seconds, with how much memory."""
    found = said(ended := program(folder, TIMED + f"timed(lambda: {call})", limit=20.0))
    return found or {"error": "not ended in 20 s", "seconds": ended.seconds, "megabytes": 0.0}


def is_refused(found: dict[str, Any]) -> bool:
    """With an error of farthing.errors, quickly."""
    return str(found["error"]).startswith("refused") and found["seconds"] < QUICKLY


def killed_study(folder: Path) -> Path:
    """A file whose process was killed, so that most of it is in its log."""
    home = folder / "killed"
    home.mkdir()
    Specimen.made("killed", home)
    return home / "study.db"


def _content(path: Path) -> list[bytes]:
    """The bytes of a file and of its log."""
    return [file.read_bytes() for file in (path, Path(f"{path}-wal")) if file.exists()]


@item("paths", "a study is whole through a symbolic link: log, checks and all")
def through_a_link(folder: Path) -> Answer:
    path = killed_study(folder)
    expected = _content(path)
    link = folder / "link.db"
    link.symlink_to(path)
    found = len(read_study(link).trials)
    unchanged = _content(path) == expected
    return Answer(found == 14 and unchanged, f"{found} of 14 trials; {'unchanged' if unchanged else 'changed'}")


@item("paths", "an emptied file does not lose its log when it is opened through a symbolic link")
def emptied_through_a_link(folder: Path) -> Answer:
    path = killed_study(folder)
    size = Path(f"{path}-wal").stat().st_size
    path.write_bytes(b"")
    (folder / "link.db").symlink_to(path)
    ended = program(folder, 'Study.resume("link.db")')
    log = Path(f"{path}-wal")
    kept = log.exists() and log.stat().st_size == size
    return Answer(kept and ended.status != 0, f"log {'kept' if kept else 'gone'}, {error_of(ended)}")


@item("paths", "checkpoints are found through a symbolic link")
def checkpoints_through_a_link(folder: Path) -> Answer:
    code = (
        TRAINING
        + """
if sys.argv[1] == "make":
    study = Study(space, "1 evaluation", policy="random", seed=0, storage="real.db", max_steps=3)
    def stop_in_the_middle(config):
        for step, value in enumerate(objective(config), 1):
            yield value
            if step == 2:
                os.kill(os.getpid(), signal.SIGKILL)
    study.run(stop_in_the_middle, isolate=False, progress=False)
else:
    study = Study.resume("link.db")
    steps = []
    def watched(config):
        steps.append(ft.current_run().step)
        yield from objective(config)
    study.run(watched, isolate=False, progress=False)
    say(step=steps[0])
"""
    )
    program(folder, code, "make")
    (folder / "link.db").symlink_to(folder / "real.db")
    found = said(program(folder, code, "resume")).get("step")
    return Answer(found == 2, f"continued after step {found} of 2")


@item("paths", "a lock that is a symbolic link does not truncate its target")
def linked_lock(folder: Path) -> Answer:
    precious = folder / "precious"
    precious.write_text("the only copy")
    (folder / "study.db.lock").symlink_to(precious)
    ended = program(
        folder, OBJECTIVE + 'tune(objective, space, "3 evaluations", policy="random", storage="study.db", '
        "progress=False)",
    )  # fmt: skip
    kept = precious.read_text() == "the only copy"
    return Answer(kept, f"{'kept' if kept else 'overwritten'}, {error_of(ended)}")


@item("paths", "a linked folder of checkpoints keeps what is in its target")
def linked_checkpoints(folder: Path) -> Answer:
    target = folder / "target" / "trial-0"
    target.mkdir(parents=True)
    (target / "precious").write_text("the only copy")
    (folder / "study.db.checkpoints").symlink_to(folder / "target")
    ended = program(
        folder, TRAINING + 'tune(objective, space, "3 evaluations", policy="random", storage="study.db", max_steps=3, '
        "isolate=False, progress=False)",
    )  # fmt: skip
    kept = (target / "precious").exists()
    return Answer(kept, f"{'kept' if kept else 'removed'}, {error_of(ended)}")


@item("paths", "a change of folder after opening puts nothing elsewhere")
def changed_folder(folder: Path) -> Answer:
    code = """
found = set()
def objective(config):
    found.update(os.listdir("."))
    return config["x"]
os.mkdir("elsewhere")
study = Study(space, "5 evaluations", policy="random", seed=0, storage="study.db")
os.chdir("elsewhere")
study.run(objective, isolate=False, progress=False)
say(trials=len(study.trials), left=sorted(found | set(os.listdir("."))))
"""
    found = said(ended := program(folder, code))
    return Answer(found.get("trials") == 5 and found.get("left") == [], f"left {found.get('left')} {error_of(ended)}")


@item("paths", "a file with several hard links is refused for writing")
def hard_link(folder: Path) -> Answer:
    program(folder, 'Study(space, "5 evaluations", policy="random", storage="study.db").close()')
    os.link(folder / "study.db", folder / "other.db")
    found = timed(folder, 'Study.resume("other.db").run(lambda config: 1.0, progress=False)')
    return Answer(is_refused(found), found["error"][:80])


@item("paths", "a FIFO is refused quickly")
def fifo(folder: Path) -> Answer:
    os.mkfifo(folder / "study.db")
    calls = ['Study(space, "5 evaluations", storage="study.db")', 'Study.resume("study.db")', 'read_study("study.db")']
    found = [timed(folder, call) for call in calls]
    slowest = max(found, key=lambda one: one["seconds"])
    return Answer(all(map(is_refused, found)), slowest["error"][:80], {"seconds": slowest["seconds"]})


@item("paths", "a log of two gigabytes of zeros is refused quickly, and kept")
def gigantic_log(folder: Path) -> Answer:
    program(folder, 'Study(space, "5 evaluations", policy="random", storage="study.db").close()')
    log = folder / "study.db-wal"
    with open(log, "wb") as file:
        file.truncate(2 << 30)
    found = timed(folder, 'Study.resume("study.db")')
    kept = log.exists() and log.stat().st_size == 2 << 30
    holds = is_refused(found) and kept and found["megabytes"] < 500
    numbers = {"seconds": found["seconds"], "megabytes": found["megabytes"]}
    return Answer(holds, f"{found['error'][:60]}, log {'kept' if kept else 'gone'}", numbers)


@item("paths", "a file that is deleted during a run is noticed and said")
def deleted(folder: Path) -> Answer:
    code = """
    def objective(config):
        if ft.current_run().trial == 3:
            os.unlink("study.db")
        return config["x"]
    tune(objective, space, "8 evaluations", policy="random", storage="study.db", progress=False)
    """
    ended = program(folder, code)
    words = ("delet", "remov", "gone", "no longer", "not there", "missing", "replaced")
    noticed = "study.db" in ended.errors and any(word in ended.errors.lower() for word in words)
    return Answer(noticed, f"status {ended.status} {error_of(ended)}")


@item("paths", "looking at a damaged log changes nothing")
def damaged_log(folder: Path) -> Answer:
    path = killed_study(folder)
    log = Path(f"{path}-wal")
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 0xFF
    log.write_bytes(content)
    before = path.read_bytes(), bytes(content)
    found = {}
    for command in (["status"], ["best"], ["export", "--json"], ["pareto"]):
        run(farthing(command[0], path, *command[1:]))
        found[command[0]] = log.exists() and (path.read_bytes(), log.read_bytes()) == before
    changed = [command for command, same in found.items() if not same]
    return Answer(not changed, f"changed by {changed[0]}" if changed else "")


@item("paths", '`storage=":memory:"` and `storage="file:x.db"` mean what they say or are refused')
def special_names(folder: Path) -> Answer:
    """In memory nothing is left on the disk, and whatever is a file can be found by the same name."""
    code = """
    wrong = []
    for name in (":memory:", "file:x.db", "file:y.db?mode=memory"):
        try:
            with Study(space, "5 evaluations", policy="random", storage=name) as study:
                study.tell(study.ask(), value=1.0)
        except Exception:
            continue
        try:
            kept = len(Study.resume(name).trials)
        except Exception:
            kept = 0
        if bool(kept) != name.startswith("file:x"):
            wrong.append(name)
    say(wrong=wrong)
    """
    wrong = said(ended := program(folder, code)).get("wrong")
    return Answer(wrong == [], f"{', '.join(wrong or [])} {error_of(ended)}".strip())


@item("paths", "a file that is being run is not disturbed by a reader, which sees every trial that was told")
def read_while_running(folder: Path) -> Answer:
    code = """
    from farthing.record.reader import read_study
    wrong = []
    def objective(config):
        return config["x"]
    def look(study, trial):
        found = [one for one in read_study("study.db").trials if one.status is ft.Status.COMPLETE]
        if len(found) != trial.number + 1:
            wrong.append(trial.number)
    tune(objective, space, "40 evaluations", policy="random", storage="study.db", progress=False, callbacks=[look])
    say(wrong=len(wrong))
    """
    found = said(ended := program(folder, code))
    return Answer(found.get("wrong") == 0, error_of(ended), {"looks": 40})


@item("paths", "a read-only copy of a killed study is whole")
def read_only(folder: Path) -> Answer:
    """By a user who may not write there, through a link: needs the rights to become another user."""
    path = killed_study(folder)
    place = Path("/tmp") / f"attack-{os.getpid()}-{time.time_ns()}"
    place.mkdir(mode=0o755)
    try:
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", place / f"study.db{suffix}")
            os.chmod(place / f"study.db{suffix}", 0o644)
        (place / "link.db").symlink_to(place / "study.db")
        code = """
        from farthing.record.reader import read_study
        read_study  # loaded while everything may be read
        if os.getuid() == 0:
            os.setgroups([]), os.setgid(65534), os.setuid(65534)
        say(trials=len(read_study(sys.argv[1]).trials))
        """
        found = said(ended := program(folder, code, place / "link.db"))
        return Answer(found.get("trials") == 14, f"{found.get('trials')} of 14 trials {error_of(ended)}")
    finally:
        shutil.rmtree(place)
