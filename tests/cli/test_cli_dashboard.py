"""`farthing dashboard` as a process: what it prints, how it ends, and what it refuses."""

from __future__ import annotations

import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import dataclass

import pytest

from live_pages import ask, listening, study_file


@dataclass
class Page:
    """One that a process shows."""

    process: subprocess.Popen[str]
    host: str
    port: int
    rest: str  # of its address
    said: str


def started(folder, *arguments: str) -> Page:
    process = folder.start("dashboard", *arguments)
    assert process.stdout is not None
    said = ""
    while not said.endswith("Ctrl-C\n"):
        said += (line := process.stdout.readline())
        assert line, process.communicate()
    link = re.match(r"page +http://([\w.:\[\]]+):(\d+)/(.*)\n", said)
    assert link is not None, said
    return Page(process, link[1], int(link[2]), link[3], said)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 143)])
def test_it_shows_studies_until_a_signal_ends_it_also_with_a_stream_open(folder, number, status):
    """As other commands end: 130 for a shell after Ctrl-C, 143 after SIGTERM."""
    study_file(folder.path / "s.db")
    page = started(folder, "s.db", "later.db", "--port", "0")
    assert (page.host, page.rest) == ("127.0.0.1", "")
    assert [study["name"] for study in ask(page, "/api/studies").json] == ["s.db", "later.db"]
    with listening(page) as messages:
        next(messages)
        began = time.monotonic()
        page.process.send_signal(number)
        err = page.process.communicate(timeout=60)[1]
    assert page.process.returncode == status, err
    assert time.monotonic() - began < 5.0  # a stream that nobody ends would take 15
    assert "only show" in page.said
    assert "later.db: there is no such file yet" in err
    assert "Traceback" not in err


def test_the_token_that_is_printed_is_the_one_that_is_asked_for(folder):
    study_file(folder.path / "s.db")
    page = started(folder, "s.db", "--port", "0", "--control", "--token")
    token = page.said.splitlines()[1].split()[1]
    assert page.rest == f"?token={token}"
    assert ask(page, "/api/studies").status == 401
    assert ask(page, "/api/studies", x_farthing_token=token).status == 200
    assert ask(page, f"/?token={token}").status == 303


class TestRefusals:
    def test_a_port_that_is_taken(self, folder):
        study_file(folder.path / "s.db")
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = str(taken.getsockname()[1])
            message = folder.error("dashboard", "s.db", "--port", port, status=1)
        assert message == f"cannot listen at 127.0.0.1:{port} is taken: --port 0 finds a free one"

    def test_a_file_that_is_no_study(self, folder):
        (folder.path / "notes.txt").write_text("no study")
        assert "notes.txt: is no study file" in folder.error("dashboard", "notes.txt", status=1)
        with closing(sqlite3.connect(folder.path / "other.db")) as other:
            other.execute("CREATE TABLE t (x)")
        assert "not a Farthing study" in folder.error("dashboard", "other.db", status=1)
        (folder.path / "folder.db").mkdir()
        assert "folder.db" in folder.error("dashboard", "folder.db")
        assert "does not exist" in folder.error("dashboard", "nowhere/s.db", status=1)

    def test_a_host_that_others_reach_without_a_token(self, folder):
        study_file(folder.path / "s.db")
        assert "--token" in folder.error("dashboard", "s.db", "--host", "0.0.0.0")

    def test_a_host_that_is_not_here(self, folder):
        study_file(folder.path / "s.db")
        assert "192.0.2.1" in folder.error("dashboard", "s.db", "--host", "192.0.2.1", "--token", status=1)

    def test_no_study_at_all(self, folder):
        assert "STUDY" in folder.error("dashboard")


def test_without_the_extra_it_says_what_to_install(folder):
    study_file(folder.path / "s.db")
    without = "import sys; sys.modules['uvicorn'] = None; from farthing.cli import main; sys.exit(main(sys.argv[1:]))"
    call = [sys.executable, "-c", without, "dashboard", "s.db"]
    ended = subprocess.run(call, cwd=folder.path, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert ended.stderr.strip().endswith("pip install 'farthing[dashboard]'")
