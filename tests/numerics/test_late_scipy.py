"""SciPy is imported when it is first needed, by whichever thread needs it."""

from __future__ import annotations

import subprocess
import sys

TWO_THREADS = """
import sys, threading, time
import numpy as np
from farthing.numerics import lapack, late_scipy

lapack.LARGE, errors = 0.0, []

def need(action, package):
    while package not in sys.modules:  # it is being imported by the other
        time.sleep(1e-4)
    try:
        action()
    except BaseException as error:
        errors.append(repr(error))

threads = [
    threading.Thread(target=need, args=(lambda: late_scipy.dsymm(1.0, np.eye(2), np.eye(2)), "numpy")),
    threading.Thread(target=need, args=(lambda: lapack.dpotrf(np.eye(3), clean=True), "scipy")),
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(errors)
"""


def test_threads_that_begin_at_different_modules_do_not_wait_for_each_other():
    """Python raises _DeadlockError, or gives half a module, where two threads import each other's packages."""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", TWO_THREADS], capture_output=True, text=True, timeout=60)
        assert (done.stdout.strip(), done.stderr) == ("[]", "")
