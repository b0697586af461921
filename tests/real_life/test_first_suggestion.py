"""The first suggestion of a study comes soon: what it does not need is not imported."""

from __future__ import annotations

import subprocess
import sys

ASK = """
import sys, time
import farthing as ft
study = ft.Study(ft.Space({f"x{i}": ft.Real(0, 1) for i in range(12)}), "10 evaluations", seed=0)
study.ask()
print("farthing", time.process_time(), sorted(name for name in sys.modules if name.partition(".")[0] == "scipy")[:3])
"""
IMPORT_SCIPY = "import scipy.linalg, scipy.optimize, scipy.special, time\nprint(time.process_time())"
RUNS = 5  # of each, in turn; the quickest counts


def output_of(script: str) -> str:
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


def test_the_first_suggestion_imports_nothing_of_scipy():
    assert output_of(ASK).endswith("[]")


def test_the_first_suggestion_takes_less_cpu_time_than_importing_scipy():
    """SciPy with what models need took most of the first suggestion's time."""
    runs = [(float(output_of(ASK).split()[1]), float(output_of(IMPORT_SCIPY))) for _ in range(RUNS)]
    ours, of_scipy = (min(seconds) for seconds in zip(*runs, strict=True))
    assert ours < 1.4 * of_scipy


def test_models_of_later_suggestions_still_keep_to_one_blas_thread():
    """SciPy brings a BLAS of its own, which is loaded inside the context that limits threads."""
    script = (
        "import threadpoolctl, farthing as ft\n"
        "from farthing.numerics.threads import one_blas_thread\n"
        "with one_blas_thread():\n"
        "    study = ft.Study(ft.Space(x=ft.Real(0, 1)), '20 evaluations', seed=0)\n"
        "    for _ in range(8):\n"
        "        proposal = study.ask()\n"
        "        study.tell(proposal, value=(proposal.config['x'] - 0.3) ** 2)\n"
        "    inside = [library['num_threads'] for library in threadpoolctl.threadpool_info()]\n"
        "import sys; print('scipy.linalg' in sys.modules, len(inside) > 1, set(inside))\n"
    )
    assert output_of(script) == "True True {1}"


RUN = """
import sys, time
import farthing as ft

def objective(config):
    time.sleep(0.1)
    return config["x"]

ft.tune(objective, {"x": (0.0, 1.0)}, "1m, 1 evaluations", policy=sys.argv[1], seed=0, progress=False)
"""
LOADED = "import threading\nfor t in threading.enumerate():\n    t is threading.main_thread() or t.daemon or t.join()\n"


def loaded_by(policy: str) -> bool:
    """Whether a run of one evaluation has imported what models need."""
    script = RUN + LOADED + "print('scipy.optimize' in sys.modules)"
    command = [sys.executable, "-c", script, policy]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip() == "True"


def test_a_run_under_a_budget_of_time_loads_what_models_need_while_its_worker_starts():
    """Although the only evaluation is a point of the design; and only where there will be models."""
    assert loaded_by("carbo")
    assert not loaded_by("random")
