"""An outlet writes everything in order to a stream that takes it, and waits for no other."""

from __future__ import annotations

import fcntl
import io
import os
import sys
import threading
import time
from typing import TextIO

import pytest

from farthing.runner import outlet
from farthing.runner.outlet import Outlet


def pipe(capacity: int = 4096) -> tuple[int, TextIO]:
    """A reader's descriptor, and a writer as standard error is one."""
    reader, writer = os.pipe()
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, capacity)
    return reader, open(writer, "w", buffering=1)


def read(reader: int) -> list[str]:
    with open(reader) as text:
        return text.read().splitlines()


class Slow(io.StringIO):
    def write(self, text: str) -> int:
        time.sleep(0.2)
        return super().write(text)


class TestOrder:
    def test_what_is_written_is_there_when_write_returns(self):
        stream = io.StringIO()
        with Outlet(stream) as out:
            for number in range(200):
                out.write(f"{number}\n")
                assert stream.getvalue().endswith(f"\n{number}\n" if number else "0\n")

    def test_it_comes_after_what_the_program_has_written_itself(self):
        reader, stream = pipe()
        with stream, Outlet(stream) as out:
            stream.write("mine, ")
            out.write("yours\n")
            stream.write("mine again\n")
        assert read(reader) == ["mine, yours", "mine again"]

    def test_a_slow_stream_gets_everything_that_there_is_time_for(self):
        stream = Slow()
        with Outlet(stream) as out:
            for number in range(3):
                out.write(f"{number}\n")
        time.sleep(1.0)
        assert stream.getvalue() == "0\n1\n2\n", "the thread goes on after the end"

    def test_a_fork_writes_for_itself(self):
        reader, stream = pipe()
        with stream, Outlet(stream) as out:
            out.write("parent\n")
            if (child := os.fork()) == 0:
                out.write("child\n")
                os._exit(0)
            os.waitpid(child, 0)
        assert read(reader) == ["parent", "child"]


class TestNobodyReads:
    def test_a_thousand_lines_take_no_longer_than_all_waits(self):
        reader, stream = pipe()
        began = time.perf_counter()
        out = Outlet(stream)
        for number in range(1000):
            out.write(f"line {number} of many\n")
        out.close()
        assert time.perf_counter() - began < outlet.ALL_WAITS + outlet.LAST_WAIT + 0.5
        assert len(os.read(reader, 2**20)) > 1000, "what there was room for"
        os.close(reader)
        stream.close()

    def test_when_it_is_read_at_last_it_says_how_much_is_missing(self, monkeypatch):
        monkeypatch.setattr(outlet, "LARGEST_BACKLOG", 1000)
        reader, stream = pipe()
        out = Outlet(stream)
        for number in range(1000):
            out.write(f"line {number}\n")
        lines: list[str] = []
        reading = threading.Thread(target=lambda: lines.extend(read(reader)))
        reading.start()
        while out._backlog:
            time.sleep(0.01)
        out.write("the last\n")
        out.close()
        stream.close()
        reading.join()
        shown = [line for line in lines if line.startswith("line ")]
        (note,) = [line for line in lines if "could not be written" in line]
        assert shown == [f"line {number}" for number in range(len(shown))], "in order, without gaps"
        assert note == f"({1000 - len(shown)} lines could not be written here)"
        assert lines[-1] == "the last"


class TestBroken:
    @pytest.mark.parametrize("stream", [None, object(), open(os.devnull), io.BytesIO()], ids=lambda s: type(s).__name__)  # noqa: SIM115
    def test_whatever_the_stream_is_nothing_is_raised(self, stream):
        with Outlet(stream) as out:
            assert out.write("text\n") == 5
            assert not out.isatty()

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux has it")
    def test_what_a_full_device_refused_is_not_tried_again_when_python_exits(self):
        with open("/dev/full", "w") as full:
            with Outlet(full) as out:
                out.write("text\n")
            full.flush()

    def test_a_stream_that_was_closed_is_not_written_even_if_its_number_is_used_again(self, tmp_path):
        reader, stream = pipe()
        number = stream.fileno()
        with Outlet(stream) as out:
            out.write("before\n")
            stream.close()
            data = os.open(tmp_path / "data", os.O_WRONLY | os.O_CREAT)
            if data != number:
                os.dup2(data, number)
            out.write("after\n")
        for descriptor in {data, number}:
            os.close(descriptor)
        assert (tmp_path / "data").read_text() == ""
        assert read(reader) == ["before"]

    def test_letters_that_its_encoding_does_not_have_are_replaced(self):
        reader, writer = os.pipe()
        with open(writer, "w", encoding="ascii", errors="backslashreplace") as stream, Outlet(stream) as out:
            out.write("━ 4%\n")
        assert read(reader) == ["\\u2501 4%"]


def test_standard_error_of_these_tests_is_written_as_an_object(capsys):
    """As in a notebook, where `sys.stderr` has no descriptor."""
    with Outlet(sys.stderr) as out:
        out.write("text\n")
    assert capsys.readouterr().err == "text\n"
