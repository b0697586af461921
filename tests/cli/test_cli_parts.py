"""Parts of the command line by themselves: whole files, the start of a process, what is in the current folder."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest

from farthing.cli.consent import Wanted
from farthing.cli.process_start import STARTING_SECONDS, process_start
from farthing.cli.run_note import RunNote
from farthing.record.whole_file import write_whole


class TestWholeFiles:
    def test_a_link_stays_a_link_and_a_mode_stays(self, tmp_path):
        target, link = tmp_path / "target", tmp_path / "link"
        target.write_text("before")
        target.chmod(0o640)
        link.symlink_to(target)
        write_whole(str(link), "after")
        assert link.is_symlink()
        assert (target.read_text(), target.stat().st_mode & 0o777) == ("after", 0o640)

    def test_a_pipe_is_written_to_and_not_replaced(self, tmp_path):
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        seen = []
        reader = threading.Thread(target=lambda: seen.append(pipe.read_text()))
        reader.start()
        write_whole(str(pipe), "text")
        reader.join()
        assert (seen, pipe.is_fifo()) == (["text"], True)

    def test_an_error_names_the_file_that_was_asked_for(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"nowhere/t.csv'$"):
            write_whole(str(tmp_path / "nowhere" / "t.csv"), "text")


class TestTheStartOfAProcess:
    def test_it_is_before_the_first_import_and_not_long_before(self):
        code = (
            "import time\nimported = time.perf_counter()\n"
            "from farthing.cli.process_start import process_start\nprint(imported - process_start(imported))"
        )
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert 0.0 <= float(ended.stdout) <= STARTING_SECONDS, ended.stderr

    @pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc/self/stat")
    def test_a_shell_that_becomes_the_program_much_later_does_not_count(self, tmp_path):
        fields = ["0"] * 50
        (tmp_path / "stat").write_text(f"7 (a) b) {' '.join(fields)}")  # began when the machine did
        imported = time.perf_counter()
        assert process_start(imported, tmp_path / "stat") == imported


class TestTheCurrentFolder:
    @pytest.mark.parametrize(
        ("note", "outside"),
        [
            (RunNote(command="./train.sh {x}"), []),
            (RunNote(command="python train.py {x}"), []),
            (RunNote(command="{x} train.py"), []),
            (RunNote(command="/bin/sh train.sh"), ["/bin/sh"]),
            (RunNote("train.py:f"), []),
            (RunNote("package.train:f"), []),
            (RunNote("../train.py:f"), ["../train.py"]),
            (RunNote("json:loads"), ["an installed module"]),
        ],
    )
    def test_what_is_outside(self, tmp_path, note, outside):
        place = (tmp_path / "place").resolve()
        (place / "package").mkdir(parents=True)
        found = Wanted.by(note, str(place), objective=True, space=False).outside(str(place))
        expected = [name if name.startswith("an ") else os.path.realpath(place / name) for name in outside]
        assert found == expected

    def test_a_neighbour_with_a_longer_name_is_outside(self, tmp_path):
        neighbour = tmp_path.resolve() / "place2"
        wanted = Wanted.by(RunNote(command="true"), str(neighbour), objective=True, space=False)
        assert wanted.outside(str(tmp_path / "place")) == [str(neighbour)]
