"""`farthing control` asks the process that runs a study; the study's file is the run's alone to write."""

from __future__ import annotations

import json

import pytest

import farthing as ft
from called import until
from farthing.record.mailbox import Request, folder_of, waiting
from farthing.record.reader import read_study

SCRIPT = """
import time
import farthing as ft

space = ft.Space(x=ft.Integer(0, 100), kind=ft.Choice(["a", "b"]))


def objective(config):
    time.sleep(0.1)
    return config["x"]
"""
SPACE = ft.Space(x=ft.Integer(0, 100), kind=ft.Choice(["a", "b"]))


def made(folder) -> None:
    with ft.Study(SPACE, "9 evaluations", policy="random", seed=0, storage=folder.path / "s.db") as study:
        study.tell(study.ask(), value=1.0)


def test_a_run_is_paused_given_more_and_stopped_from_another_shell(folder):
    folder.write("train.py", SCRIPT)
    path = folder.path / "s.db"
    run = folder.start(
        "run", "train.py:objective", "--budget", "5m, 2000 evaluations", "--policy", "random", "--storage", "s.db"
    )
    until(lambda: path.exists() and len(read_study(path).trials) >= 2)
    assert "runs this study; it was told" in folder.answer("control", "s.db", "pause")
    until(lambda: read_study(path).is_paused)
    assert run.poll() is None
    folder.answer("control", "s.db", "budget", "6m, 3000 evaluations")
    found = json.loads(folder.answer("control", "s.db", "enqueue", "x=50, kind=b", "--json"))
    assert found["action"] == "enqueue"
    assert found["config"] == {"x": 50, "kind": "b"}
    assert found["runner"].startswith(f"process {run.pid} on ")
    folder.answer("control", "s.db", "resume")
    until(lambda: any(trial.reason == "asked for by request" for trial in read_study(path).trials))
    folder.answer("control", "s.db", "stop")
    out, err = run.communicate(timeout=60)
    assert run.returncode == 0
    assert "stopped by request after" in err
    assert "by request: paused; nothing new begins until the study is resumed" in err
    study = read_study(path)
    assert [(one.action, one.refused) for one in study.requests] == [
        (action, None) for action in ("pause", "budget", "enqueue", "resume", "stop")
    ]
    assert study.ledger.budget == ft.Budget(seconds=360, evaluations=3000)
    assert next(one.id for one in study.requests if one.action == "enqueue") == found["id"]
    assert waiting(path) == []
    assert out


def test_with_nobody_running_it_the_request_waits_and_that_is_said(folder):
    made(folder)
    before = (folder.path / "s.db").read_bytes()
    said = folder.answer("control", "s.db", "budget", "20 evaluations")
    assert said == "budget: nobody runs this study now; the request waits for the next run\n"
    said = folder.answer("control", "s.db", "enqueue", '{"x": 5, "kind": "a"}')
    assert said == "enqueue: nobody runs this study now; the request waits for the next run\n"
    assert "a run that begins later will ignore it" in folder.answer("control", "s.db", "stop")
    assert [request for _, request in waiting(folder.path / "s.db")] == [
        Request("budget", budget="20 evaluations"), Request("enqueue", config={"x": 5, "kind": "a"}), Request("stop"),
    ]  # fmt: skip
    assert (folder.path / "s.db").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dance"], "'dance' is not one of 'pause', 'resume', 'stop', 'budget', 'enqueue'"),
        ([], "control: expected one of pause, resume, stop, budget, enqueue, as in"),
        (["pause", "20m"], "pause: expected nothing more, got '20m'"),
        (["budget"], "budget: expected a value, as in: farthing control s.db budget 20m"),
        (["enqueue"], "enqueue: expected a value"),
        (["budget", "soon"], "budget: expected text with a unit"),
        (["budget", "1 evaluation"], None),
        (["budget", "0.5 evaluations"], "evaluations: expected a whole number"),
        (["enqueue", "x=5"], "enqueue x=5: "),
        (["enqueue", "x=500,kind=a"], "enqueue x=500,kind=a: parameter 'x': expected"),
        (["enqueue", '[{"x": 5, "kind": "a"}, {"x": 6, "kind": "a"}]'], "expected one configuration, got 2"),
        (["enqueue", "{"], "enqueue: cannot be read as JSON"),
    ],
)
def test_what_makes_no_sense_is_refused_before_it_is_posted(folder, arguments, message):
    made(folder)
    if message is None:
        folder.answer("control", "s.db", *arguments)
        return
    assert message in folder.error("control", "s.db", *arguments)
    assert not folder_of(folder.path / "s.db").exists()


def test_a_file_that_is_not_there_gets_no_mailbox(folder):
    assert "there is no such study file" in folder.error("control", "none.db", "pause", status=1)
    assert not folder_of(folder.path / "none.db").exists()
