"""Scripts that run in a process of their own without waiting a second for its imports.

A `WarmPython` starts one Python process, which imports Farthing and then forks a child for each script. The child is an
ordinary process: it has the streams and the environment it is given, and ends as any interpreter does.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass

LIMIT = 60.0  # seconds after which a script that says nothing is taken to hang


@dataclass(frozen=True)
class Script:
    """One that is running."""

    pid: int
    connection: socket.socket

    def wait(self) -> int:
        """Its exit code, or the negative number of the signal that ended it."""
        return int(self.connection.recv(64))


class WarmPython:
    """Starts with the first script; runs one script at a time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def start(
        self, script: str, *arguments: str, stdin: int, stdout: int, stderr: int, environment: dict[str, str]
    ) -> Script:
        if self._process is None:
            self._connection, theirs = socket.socketpair()
            self._connection.settimeout(LIMIT)
            command = [sys.executable, __file__, str(theirs.fileno())]
            self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()])
            theirs.close()
        request = json.dumps({"script": script, "arguments": arguments, "environment": environment}).encode()
        socket.send_fds(self._connection, [len(request).to_bytes(4) + request], [stdin, stdout, stderr])
        return Script(int(self._connection.recv(64)), self._connection)

    def close(self) -> None:
        if self._process is not None:
            self._connection.close()
            assert self._process.wait(timeout=LIMIT) == 0
            self._process = None


def serve(connection: socket.socket) -> str | None:
    """Fork for every request. Returns the script in a child, and None in the parent at the end of the requests."""
    while True:
        head, streams, _, _ = socket.recv_fds(connection, 4, 3)
        if not head:
            return None
        request = b""
        while len(request) < int.from_bytes(head):
            request += connection.recv(65536)
        child = os.fork()
        if child == 0:
            connection.close()
            return prepared(json.loads(request), streams)
        for stream in streams:
            os.close(stream)
        connection.send(b"%d" % child)
        connection.send(b"%d" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def prepared(request: dict, streams: list[int]) -> str:
    """Give this process the streams, arguments and environment of the request; returns its script."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", buffering=1)  # noqa: SIM115 - open to the end
    sys.argv = ["-c", *request["arguments"]]
    os.environ.clear()
    os.environ.update(request["environment"])
    return request["script"]


def warm_up() -> None:
    """Import what is imported late, too."""
    import rich.console
    import rich.live  # noqa: F401

    import farthing as ft

    ft.tune(lambda config: config["x"], ft.Space(x=ft.Real(0, 1)), "2 evaluations", policy="random", progress=False)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    warm_up()
    if script := serve(socket.socket(fileno=int(sys.argv[1]))):
        exec(script)
