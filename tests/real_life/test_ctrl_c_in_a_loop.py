"""Ctrl-C in a script that tunes in a loop ends the script, and nothing that was found is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import pytest

import farthing as ft

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals as POSIX knows them")

SCRIPT = """
    import os, signal, sys, time
    import farthing as ft

    def objective(config):
        if ft.current_run().trial == 3 and seed == 0:
            print("now", flush=True)
            time.sleep({last_seconds})
        return (config["x"] - 0.3) ** 2

    for seed in range(3):
        print("seed", seed, flush=True)
        study = ft.tune(
            objective, ft.Space(x=ft.Real(0, 1)), {budget!r}, policy="random", seed=seed,
            storage=f"{{sys.argv[1]}}/{{seed}}.db",
        )
    print("done")
    """


def interrupted(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A script that gets SIGINT when it says "now"."""
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    assert child.stdout is not None
    said = ""
    for line in child.stdout:
        said += line
        if line == "now\n":
            child.send_signal(signal.SIGINT)
            break
    rest, errors = child.communicate(timeout=120)
    return subprocess.CompletedProcess(child.args, child.returncode, said + rest, errors)


@pytest.mark.parametrize(("budget", "last_seconds"), [("9 evaluations", 60.0), ("1h, 9 evaluations", 0.3)])
def test_no_other_seed_begins_and_the_status_is_that_of_an_interrupted_program(tmp_path, budget, last_seconds):
    """In this process at once; with worker processes when what is running has ended."""
    ended = interrupted(SCRIPT.format(budget=budget, last_seconds=last_seconds), str(tmp_path))
    assert ended.stdout == "seed 0\nnow\n"
    assert ended.returncode in (-signal.SIGINT, 130), "a shell shows both as 130"
    (said,) = [line for line in ended.stderr.splitlines() if line.startswith("interrupted after 4 trials")]
    with ft.Study.resume(tmp_path / "0.db") as study:
        assert len(study.trials) == 4
        assert f"the best is trial {study.best.number}, value {study.best.value:.6g}, {study.best.config}" in said
        assert f"Study.resume('{tmp_path / '0.db'}') goes on" in said


def test_a_script_that_wants_to_go_on_can(tmp_path):
    script = """
    import sys, time
    import farthing as ft

    def objective(config):
        if ft.current_run().trial == 2 and seed == 0:
            print("now", flush=True)
            time.sleep(60)
        return config["x"]

    for seed in range(2):
        try:
            study = ft.tune(objective, ft.Space(x=ft.Real(0, 1)), "4 evaluations", policy="random", seed=seed)
        except KeyboardInterrupt as stop:
            study = stop.study
            print("kept")
        print(seed, study.interrupted, len(study.trials))
    """
    ended = interrupted(script)
    assert ended.stdout.splitlines() == ["now", "kept", "0 True 3", "1 False 4"], ended.stderr
    assert ended.returncode == 0


def test_at_a_prompt_the_study_is_returned(tmp_path):
    """`python -i` and notebooks set sys.ps1: a cell keeps what it found, and its variable."""
    script = """
    import sys, time
    sys.ps1 = ">>> "
    import farthing as ft

    def objective(config):
        if ft.current_run().trial == 2:
            print("now", flush=True)
            time.sleep(60)
        return config["x"]

    study = ft.tune(objective, ft.Space(x=ft.Real(0, 1)), "4 evaluations", policy="random", seed=0)
    print(study.interrupted, getattr(study, "why_ended", None))
    """
    ended = interrupted(script)
    assert ended.stdout.splitlines() == ["now", "True interrupted after 3 trials"], ended.stderr
