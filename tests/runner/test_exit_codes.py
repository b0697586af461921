"""What the supervisor knows of processes."""

from __future__ import annotations

import os
import signal
import subprocess

from farthing.runner.processes import exists, exit_code


def test_a_process_that_is_not_our_child_yet_has_not_ended():
    """A worker is named a moment before its supervisor adopts it. Taken for dead it would live on, with nobody's eye on
    it."""
    shell = subprocess.run(
        ["sh", "-c", "sleep 60 > /dev/null 2>&1 & echo $!"], capture_output=True, text=True, check=True
    )
    grandchild = int(shell.stdout)
    try:
        assert exit_code(grandchild) is None
    finally:
        os.kill(grandchild, signal.SIGKILL)


def test_how_a_child_ended_is_known_until_somebody_takes_note():
    with subprocess.Popen(["sh", "-c", "exit 3"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert [exit_code(child.pid), exit_code(child.pid)] == [3, 3]
        child.wait()
        assert (exists(child.pid), exit_code(child.pid)) == (False, 0)
