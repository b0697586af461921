"""A hard budget is hard or says no; thinking is inside it; what a killed process spent is charged."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

from benchmarks.attack.items.registry import Answer, error_of, item, program, said, script
from benchmarks.attack.processes import end_marked, environment, new_mark, python
from farthing.record.reader import read_study

BUDGET, SLACK = 2.0, 0.5

MEASURED = """
began, error, here, trials = time.perf_counter(), "", 0, 0
try:
    study = tune(objective, space, "2s", policy="random", progress=False)
    here = sum(trial.attributes.get("pid") == os.getpid() for trial in study.trials)
    trials = len(study.trials)
except Exception as raised:
    error = f"{type(raised).__name__}: {raised}"
say(seconds=time.perf_counter() - began, error=error, here=here, trials=trials)
"""


def judged(found: dict[str, object], text: str) -> Answer:
    """Hard: ended in time and in other processes. Or it says no, at once."""
    seconds, error = float(found.get("seconds", 99.0)), str(found.get("error", text))  # type: ignore[arg-type]
    in_time = seconds <= BUDGET + SLACK and not found.get("here")
    return Answer(in_time and (not error or error.startswith("InvalidArgument")), error[:100], {"seconds": seconds})


@item("hard budgets", "an objective that cannot be shipped is refused, or ends in time", alone=True)
def unpicklable(folder: Path) -> Answer:
    code = """
    lock = threading.Lock()
    def objective(config):
        with lock:
            time.sleep(5)
        return {"value": config["x"], "pid": os.getpid()}
    """
    ended = program(folder, code + MEASURED.replace("\n", "\n    "))
    return judged(said(ended), error_of(ended))


UNSTARTABLE = """
import errno, subprocess
failing = int(sys.argv[1])
def refuse(real):
    def call(*arguments, **options):
        global failing
        failing -= 1
        if failing >= 0:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        return real(*arguments, **options)
    return call
subprocess._fork_exec = refuse(subprocess._fork_exec)
os.fork, os.posix_spawn = refuse(os.fork), refuse(os.posix_spawn)
def objective(config):
    time.sleep(0.3)
    return {"value": config["x"], "pid": os.getpid()}
"""


@item("hard budgets", "processes that cannot be started for a moment (EAGAIN, 3 times) are tried again", alone=True)
def start_fails_for_a_moment(folder: Path) -> Answer:
    found = said(ended := program(folder, UNSTARTABLE + MEASURED, 3))
    answer = judged(found, error_of(ended))
    return Answer(answer.holds and bool(found.get("trials")), answer.seen, answer.numbers)


@item("hard budgets", "processes that can never be started: it is said in time, nothing runs in process", alone=True)
def start_fails_for_ever(folder: Path) -> Answer:
    found = said(ended := program(folder, UNSTARTABLE + MEASURED, 10**6))
    seconds = float(found.get("seconds", 99.0))
    is_said = "Resource temporarily unavailable" in str(found.get("error")) + ended.errors
    holds = is_said and not found.get("here") and seconds <= BUDGET + SLACK
    return Answer(holds, str(found.get("error") or error_of(ended))[:100], {"seconds": seconds})


CHILD = """
import multiprocessing
def objective(config):
    time.sleep(0.3)
    return {"value": config["x"], "pid": os.getpid()}
def work():
    MEASURED
if __name__ == "__main__":
    process = multiprocessing.get_context(sys.argv[1]).Process(target=work)
    process.start()
    process.join()
"""


@item("hard budgets", "objectives of a `spawn` child run in worker processes", alone=True)
def spawn_child(folder: Path) -> Answer:
    return started_by("spawn", folder)


@item("hard budgets", "objectives of a `forkserver` child run in worker processes", alone=True)
def forkserver_child(folder: Path) -> Answer:
    return started_by("forkserver", folder)


def started_by(method: str, folder: Path) -> Answer:
    found = said(ended := program(folder, CHILD.replace("MEASURED", MEASURED.replace("\n", "\n    ")), method))
    answer = judged(found, error_of(ended))
    return Answer(answer.holds and bool(found.get("trials")), answer.seen, answer.numbers)


# -- thinking ----------------------------------------------------------------------------------------------------------

TRIALS, LEFT_SECONDS = 2000, 5.0
LONG = """
import numpy
space = ft.Space(**{f"x{i}": ft.Real(0, 1) for i in range(5)})
drawn = numpy.random.default_rng(0).random((TRIALS, 5))
start = [{f"x{i}": float(row[i]) for i in range(5)} for row in drawn]
def value(config):
    return sum((config[f"x{i}"] - 0.3) ** 2 for i in range(5))
if sys.argv[2] == "make":
    with Study(space, "100000s", policy=sys.argv[1], seed=0, start=start, storage="study.db") as study:
        for _ in start:
            proposal = study.ask()
            study.tell(proposal, value=value(proposal.config), cost=1.0)
else:
    def objective(config):
        time.sleep(0.1)
        return value(config)
    began = time.perf_counter()
    study = Study.resume("study.db", budget=f"{TRIALS + 5}s")
    study.run(objective, progress=False)
    say(seconds=time.perf_counter() - began, trials=len(study.trials) - TRIALS)
"""


def thinking(policy: str, folder: Path) -> Answer:
    code = LONG.replace("TRIALS", str(TRIALS))
    program(folder, code, policy, "make", limit=200.0)
    found = said(ended := program(folder, code, policy, "resume", limit=100.0))
    seconds = found.get("seconds", ended.seconds)
    numbers = {"seconds": seconds, "trials": found.get("trials", 0)}
    return Answer(bool(found) and seconds <= LEFT_SECONDS + SLACK, error_of(ended), numbers)


@item("thinking", "`ei` with 2,000 trials and 5 s left ends in time", alone=True)
def thinking_ei(folder: Path) -> Answer:
    return thinking("ei", folder)


@item("thinking", "`carbo` with 2,000 trials and 5 s left ends in time", alone=True)
def thinking_carbo(folder: Path) -> Answer:
    return thinking("carbo", folder)


# -- preempted ---------------------------------------------------------------------------------------------------------

KILLS, LIFE_SECONDS, UNSAVED_SECONDS = 8, 3.6, 1.3
LONG_TRIALS = """
def objective(config):
    time.sleep(float(sys.argv[1]))
    return config["x"]
print("began", flush=True)
tune(objective, space, "1000s", policy="random", seed=0, storage="study.db", progress=False)
"""


def preempted(trial_seconds: float, folder: Path) -> Answer:
    """Killed again and again: what was really spent, and what the ledger says."""
    path, spent = script(folder, LONG_TRIALS), 0.0
    for _ in range(KILLS):
        mark = new_mark()
        process = subprocess.Popen(
            list(map(str, python(path, trial_seconds))), cwd=folder, env=environment(mark), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        process.stdout.readline()  # type: ignore[union-attr]
        began = time.monotonic()
        time.sleep(LIFE_SECONDS)
        os.kill(process.pid, signal.SIGKILL)
        spent += time.monotonic() - began
        process.wait()
        end_marked(mark)
    charged = read_study(folder / "study.db").ledger.total("seconds")
    holds = spent - KILLS * UNSAVED_SECONDS <= charged <= spent + 0.2
    return Answer(holds, "", {"spent": spent, "charged": charged})


@item("preempted", "killed 8 times after 3.6 s in one long trial: charged within about a second per kill", alone=True)
def preempted_in_a_long_trial(folder: Path) -> Answer:
    return preempted(100.0, folder)


@item("preempted", "killed 8 times after 3.6 s among short trials: charged within about a second per kill", alone=True)
def preempted_among_short_trials(folder: Path) -> Answer:
    return preempted(0.5, folder)
