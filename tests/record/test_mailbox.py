"""The mailbox beside a study's file: requests are there whole, in order, and nobody else's are believed."""

from __future__ import annotations

import json
import logging
import os
import stat
from pathlib import Path

import pytest

import farthing as ft
from farthing.errors import InvalidArgument, InvalidBudget, StorageError
from farthing.record.mailbox import (
    MOST_BYTES,
    MOST_LOOKED_AT,
    MOST_WAITING,
    Request,
    folder_of,
    post,
    posted_at,
    take,
    told,
    waiting,
)

PAUSE = Request("pause")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Of a study."""
    ft.Study(ft.Space(x=ft.Real(0, 1)), "3 evaluations", storage=tmp_path / "s.db").close()
    return tmp_path / "s.db"


def planted(path: Path, text: str | bytes, number: int = 1, name: str | None = None) -> Path:
    """A file in the folder, as if somebody had written it there."""
    folder = folder_of(path)
    folder.mkdir(mode=0o700, exist_ok=True)
    file = folder / (name or f"{number:020d}-{number:016x}.json")
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    file.chmod(0o600)
    return file


class TestRequests:
    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"action": "dance"}, "expected one of pause, resume, stop, budget, enqueue, got 'dance'"),
            ({"action": ["pause"]}, "expected one of"),
            ({"action": "budget"}, 'budget: expected text such as "20m", got None'),
            ({"action": "budget", "budget": "soon"}, "budget: expected text with a unit"),
            ({"action": "budget", "budget": 20}, 'budget: expected short text such as "20m", got 20'),
            ({"action": "budget", "budget": "1" * 300 + "m"}, "short text"),
            ({"action": "pause", "budget": "20m"}, "pause: a budget goes only with 'budget'"),
            ({"action": "stop", "config": {"x": 1}}, "stop: a config goes only with 'enqueue'"),
            ({"action": "enqueue"}, "enqueue: expected a configuration"),
            ({"action": "enqueue", "config": {}}, "enqueue: expected a configuration"),
            ({"action": "enqueue", "config": {1: 2}}, "enqueue: expected a configuration"),
            ({"action": "enqueue", "config": [1]}, "enqueue: expected a configuration"),
        ],
    )
    def test_nonsense_is_refused_with_what_would_be_accepted(self, given, message):
        with pytest.raises((InvalidArgument, InvalidBudget)) as refused:
            Request(**given)
        assert message in str(refused.value)

    def test_what_was_posted_is_read_in_order_until_it_is_taken(self, path):
        assert waiting(path) == []
        asked = [PAUSE, Request("budget", budget="20m"), Request("enqueue", config={"x": 0.5, "k": [1, None, "a"]})]
        ids = [post(path, request) for request in asked]
        assert waiting(path) == list(zip(ids, asked, strict=True))
        assert sorted(map(posted_at, ids)) == [posted_at(one) for one in ids]
        for one in (ids[1], ids[1]):  # again is fine
            take(path, one)
        assert [request for _, request in waiting(path)] == [asked[0], asked[2]]

    def test_folder_and_files_are_their_owners_alone(self, path):
        before = os.umask(0)
        try:
            post(path, PAUSE)
        finally:
            os.umask(before)
        (file,) = folder_of(path).iterdir()
        assert stat.S_IMODE(folder_of(path).stat().st_mode) == 0o700
        assert stat.S_IMODE(file.stat().st_mode) == 0o600

    def test_the_mailbox_of_a_link_is_beside_the_real_file(self, path, tmp_path):
        (tmp_path / "link.db").symlink_to(path)
        post(tmp_path / "link.db", PAUSE)
        assert len(waiting(path)) == 1

    @pytest.mark.parametrize(
        ("request_", "message"),
        [
            (Request("enqueue", config={"x": object()}), "cannot be written as JSON"),
            (Request("enqueue", config={"x": float("nan")}), "cannot be written as JSON"),
            (Request("enqueue", config={"x": "a" * MOST_BYTES}), "at most 64 KB"),
        ],
    )
    def test_what_nobody_would_read_is_not_posted(self, path, request_, message):
        with pytest.raises(InvalidArgument, match=message):
            post(path, request_)
        assert waiting(path) == []

    def test_a_full_mailbox_takes_no_more_and_keeps_what_it_has(self, path):
        for _ in range(MOST_WAITING):
            post(path, PAUSE)
        with pytest.raises(StorageError, match="100 requests wait"):
            post(path, PAUSE)
        assert len(waiting(path)) == MOST_WAITING

    def test_without_a_study_nothing_is_made(self, tmp_path):
        with pytest.raises(StorageError, match="no such study file"):
            post(tmp_path / "none.db", PAUSE)
        assert list(tmp_path.iterdir()) == []

    def test_beside_another_file_nothing_is_made(self, tmp_path):
        (tmp_path / "train.py").write_text("import farthing\n")
        with pytest.raises(StorageError, match="is not a Farthing study"):
            post(tmp_path / "train.py", PAUSE)
        assert [entry.name for entry in tmp_path.iterdir()] == ["train.py"]

    def test_only_the_owner_of_a_study_can_ask(self, path):
        if os.geteuid() != 0:
            pytest.skip("only root can give a file away")
        os.chown(path, 12345, -1)
        with pytest.raises(StorageError, match="only its owner can ask"):
            post(path, PAUSE)
        assert not folder_of(path).exists()

    @pytest.mark.parametrize("wrong", ["", "x", "../s.db", "01795054475319594260-24ff19f9943f13ca.json"])
    def test_only_a_request_can_be_taken(self, path, wrong):
        with pytest.raises(InvalidArgument, match="the id of a request"):
            take(path, wrong)
        assert path.exists()

    def test_whoever_posts_is_told_whether_anybody_reads_it(self):
        assert told(PAUSE, "process 7 on here") == "pause: process 7 on here runs this study; it was told"
        assert "waits for the next run" in told(Request("budget", budget="1m"), None)
        assert "will ignore it" in told(PAUSE, None)


JUNK = {
    "no JSON": b"pause",
    "half of it": b'{"action": "pau',
    "no text": b"\xff\xfe\x00",
    "a list": b"[]",
    "no action": b"{}",
    "another action": b'{"action": "delete"}',
    "an action that is no text": b'{"action": {"a": 1}}',
    "an unknown field": b'{"action": "pause", "shell": "rm"}',
    "NaN": b'{"action": "enqueue", "config": {"x": NaN}}',
    "deep": b'{"action": "enqueue", "config": ' + b"[" * 30_000,
    "a long number": b'{"action": "enqueue", "config": {"x": ' + b"9" * 10_000 + b"}}",
    "large": b'{"action": "enqueue", "config": {"x": "' + b"a" * MOST_BYTES + b'"}}',
    "empty": b"",
}


class TestAHostileMailbox:
    """Whatever lies there is left as it is, is said once, and hides no request of the owner's."""

    def left(self, path: Path, caplog: pytest.LogCaptureFixture, why: str = "") -> None:
        """Only a request posted afterwards is read, and one line says that something else was left."""
        before = {entry.name: entry.lstat() for entry in folder_of(path).iterdir()}
        posted = post(path, PAUSE)
        with caplog.at_level(logging.WARNING, logger="farthing"):
            for _ in range(2):
                assert waiting(path) == [(posted, PAUSE)]
        (line,) = [record.getMessage() for record in caplog.records]
        assert "is left" in line
        assert why in line
        assert "\n" not in line
        assert len(line) < 600
        take(path, posted)
        assert {entry.name: entry.lstat().st_ino for entry in folder_of(path).iterdir()} == {
            name: found.st_ino for name, found in before.items()
        }

    @pytest.mark.parametrize("kind", JUNK)
    def test_junk(self, path, caplog, kind):
        planted(path, JUNK[kind])
        self.left(path, caplog)

    def test_a_link_to_a_request_elsewhere(self, path, caplog, tmp_path):
        (tmp_path / "real").write_text('{"action": "stop"}')
        file = planted(path, "")
        file.unlink()
        file.symlink_to(tmp_path / "real")
        self.left(path, caplog, "symbolic link")

    def test_a_second_name_of_another_file(self, path, caplog, tmp_path):
        (tmp_path / "real").write_text('{"action": "stop"}')
        file = planted(path, "")
        file.unlink()
        file.hardlink_to(tmp_path / "real")
        self.left(path, caplog, "several names")

    @pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
    def test_a_file_that_others_can_write(self, path, caplog, mode):
        planted(path, '{"action": "stop"}').chmod(mode)
        self.left(path, caplog, "can be written by others")

    def test_a_file_of_another_user(self, path, caplog):
        if os.geteuid() != 0:
            pytest.skip("only root can give a file away")
        os.chown(planted(path, '{"action": "stop"}'), 12345, -1)
        self.left(path, caplog, "belongs to another user")

    @pytest.mark.parametrize("make", [os.mkdir, os.mkfifo], ids=["a folder", "a pipe that nobody writes to"])
    def test_no_file_at_all(self, path, caplog, make):
        file = planted(path, "")
        file.unlink()
        make(file)
        self.left(path, caplog)

    def test_a_name_with_control_codes_is_nobodys_business(self, path, caplog):
        planted(path, '{"action": "stop"}', name="\x1b[2J\n.json")
        planted(path, '{"action": "stop"}', name=".00000000000000000001-0000000000000001.part")
        with caplog.at_level(logging.WARNING, logger="farthing"):
            assert waiting(path) == []
        assert caplog.records == []

    def test_ten_thousand_files(self, path, caplog):
        """At most a thousand are opened, and a hundred requests are given."""
        for number in range(9_000):
            planted(path, "{", number)
        assert waiting(path) == []
        (line,) = [record.getMessage() for record in caplog.records]
        assert f"and {MOST_LOOKED_AT - 1} other files there" in line
        for number in range(1_000):
            planted(path, json.dumps(PAUSE.as_json()), number)
        assert len(waiting(path)) == MOST_WAITING

    @pytest.mark.parametrize("mode", [0o720, 0o777])
    def test_a_folder_that_others_can_write_to_is_neither_read_nor_written(self, path, caplog, mode):
        post(path, PAUSE)
        folder_of(path).chmod(mode)
        assert waiting(path) == []
        assert "can be written by others" in caplog.text
        with pytest.raises(StorageError, match="can be written by others"):
            post(path, PAUSE)

    def test_a_folder_that_is_a_link(self, path, caplog, tmp_path):
        (tmp_path / "real").mkdir(mode=0o700)
        folder_of(path).symlink_to(tmp_path / "real")
        with pytest.raises(StorageError, match="is a symbolic link and no folder"):
            post(path, PAUSE)
        assert waiting(path) == []
        assert "a symbolic link" in caplog.text
        assert list((tmp_path / "real").iterdir()) == []

    def test_a_folder_that_is_a_file(self, path):
        folder_of(path).write_text("")
        with pytest.raises(StorageError, match="is an ordinary file and no folder"):
            post(path, PAUSE)
        assert waiting(path) == []
