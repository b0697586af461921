"""A program on a terminal of its own, and what is to be seen there."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import termios
import time
from collections.abc import Callable

from called import PATIENCE
from warm_python import WarmPython

HIDDEN = ("NO_COLOR", "COLUMNS", "LINES", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
CODE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])")
FARTHING = "from farthing.cli import main\nsys.exit(main())"


class Screen:
    """`farthing` with some arguments in a folder, on a terminal `columns` wide; its standard output may be a pipe."""

    def __init__(
        self,
        python: WarmPython,
        folder: str,
        *arguments: str,
        columns: int = 100,
        piped: bool = False,
        encoding: str = "utf-8",
    ) -> None:
        self._terminal, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self._output, output = os.pipe() if piped else (-1, theirs)
        environment = {name: value for name, value in os.environ.items() if name not in HIDDEN}
        environment |= {"TERM": "xterm-256color"}
        script = f"import os, sys\nos.chdir({folder!r})\nsys.stdout.reconfigure(encoding={encoding!r})\n{FARTHING}"
        with open(os.devnull) as nothing:
            self.process = python.start(
                script, *arguments, stdin=nothing.fileno(), stdout=output, stderr=theirs, environment=environment,
            )  # fmt: skip
        for descriptor in {theirs, output}:
            os.close(descriptor)
        self.written = b""

    def read_until(self, true: Callable[[], bool]) -> None:
        """Read what is written until something is to be seen, or the program has ended."""
        deadline = time.monotonic() + PATIENCE
        while not true():
            assert time.monotonic() < deadline, self.shown
            if select.select([self._terminal], [], [], 0.05)[0]:
                try:
                    self.written += os.read(self._terminal, 65536)
                except OSError:  # how a closed pseudo-terminal reads on Linux
                    return

    def see(self, text: str) -> None:
        """Wait until a text is on the screen."""
        self.read_until(lambda: text in self.shown)
        assert text in self.shown, self.shown

    def end(self) -> int:
        """Its exit status."""
        self.read_until(lambda: False)
        os.close(self._terminal)
        return self.process.wait()

    @property
    def output(self) -> str:
        """What it has written to a pipe; once, at the end."""
        with open(self._output) as pipe:
            return pipe.read()

    @property
    def shown(self) -> str:
        """What is on the screen, as far as moving up, erasing lines and going to their beginning make it so."""
        lines, row, column, text = [""], 0, 0, self.written.decode(errors="replace")
        while text:
            if found := CODE.match(text):
                if found[2] == "A":
                    row = max(row - int(found[1] or 1), 0)
                elif found[2] == "K":
                    lines[row] = ""
                text = text[found.end() :]
                continue
            sign, text = text[0], text[1:]
            if sign == "\n":
                row, lines = row + 1, [*lines, ""] if row + 1 == len(lines) else lines
            elif sign == "\r":
                column = 0
            else:
                lines[row], column = f"{lines[row][:column]:<{column}}{sign}{lines[row][column + 1 :]}", column + 1
        return "\n".join(lines)
