"""What a killed process spent is charged once, at the next opening."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hostile_files import environment

import farthing as ft
from farthing.record.reader import read_study

pytestmark = pytest.mark.skipif(os.name != "posix", reason="SIGKILL")

SCRIPT = """
import os, signal, sys, threading
import farthing as ft

path, plan = sys.argv[1], sys.argv[2]
space = ft.Space(x=ft.Real(0, 1))
with ft.Study(space, "100s", policy="random", seed=0, storage=path) as study:
    record = study._session.record
    if not hasattr(record, "beat"):
        print("no heartbeat", flush=True)
        os._exit(1)
    for step in plan.split(","):
        if step == "ask":
            asked = study.ask()
        elif step == "tell":
            study.tell(asked, value=1.0, cost=2.0)
        else:
            due, running = map(float, step.split("+"))
            arguments = ({"optimiser": {"seconds": due}}, {asked.trial: {"seconds": running}} if running else {})
            thread = threading.Thread(target=record.beat, args=arguments)
            thread.start()
            thread.join()
    print("ready", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def killed_after(path: Path, plan: str) -> None:
    """A process that does these steps and is killed."""
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), str(path), plan]
    ended = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60)
    assert (ended.stdout, ended.returncode) == ("ready\n", -signal.SIGKILL), ended.stdout + ended.stderr


def spent(path: Path) -> dict[str, float]:
    """What a reader sees in seconds, by account, without zeros."""
    accounts = read_study(path).ledger.accounts
    return {name: amounts["seconds"] for name, amounts in accounts.items() if amounts.get("seconds")}


def test_the_last_beat_counts_once_however_often_the_file_is_opened(tmp_path):
    path = tmp_path / "study.db"
    killed_after(path, "ask,0.5+1,1+3")
    for _ in range(3):
        assert spent(path) == {"optimiser": 1.0, "interrupted": 3.0}
    with ft.Study.resume(path) as study:
        assert study.ledger.total("seconds") == 4.0
        study.tell(study.ask(), value=0.5, cost=1.0)
        assert study.ledger.total("seconds") == 5.0
    assert spent(path) == {"optimiser": 1.0, "interrupted": 3.0, "evaluation": 1.0}
    with ft.Study.resume(path) as study:
        assert study.ledger.total("seconds") == 5.0


def test_what_an_event_has_charged_is_not_charged_again(tmp_path):
    """A beat before the end of its trial, and before another event, is stale."""
    path = tmp_path / "study.db"
    killed_after(path, "ask,1+3,tell")
    assert spent(path) == {"evaluation": 2.0}
    killed_after(path, "ask,0.25+0.5,tell,ask,0.5+0")
    assert spent(path) == {"evaluation": 4.0, "optimiser": 0.5}


def test_killed_again_and_again_every_time_is_charged(tmp_path):
    """Also where a process is killed before it writes an event of its own."""
    path = tmp_path / "study.db"
    killed_after(path, "ask,0+2")
    for count in range(1, 3):
        killed_after(path, "1+0")
        assert spent(path) == {"interrupted": 2.0, "optimiser": 1.0 * count}
