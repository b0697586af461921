"""Choices of very many options: fine, or refused quickly."""

from __future__ import annotations

from pathlib import Path

from benchmarks.attack.items.registry import Answer, error_of, item, program, said
from benchmarks.attack.processes import farthing, run

MOST_SECONDS, MOST_MEGABYTES = 3.0, 1000.0  # of one ask, and of the whole process

CODE = """
import resource
began, error, slowest = time.perf_counter(), "", 0.0
try:
    options = [f"option {number}" for number in range(int(sys.argv[1]))]
    space = ft.Space(kind=ft.Choice(options), x=ft.Real(0, 1))
    study = Study(space, ft.Budget(cost=100), policy=sys.argv[2], seed=0)
    for number in range(10):  # the first ones are a design; with costs there are two models after that
        begin = time.perf_counter()
        proposal = study.ask()
        slowest = max(slowest, time.perf_counter() - begin)
        x = proposal.config["x"]
        study.tell(proposal, value=x + len(proposal.config["kind"]), cost=1.0 + x)
except MemoryError:
    error = "MemoryError"
except Exception as raised:
    error = f"{type(raised).__name__}: {raised}"
megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
say(ask=slowest, error=error[:150], megabytes=megabytes, seconds=time.perf_counter() - began)
"""


def choice_of(options: int, policy: str, folder: Path) -> Answer:
    """With at most 8 GB, so that the machine survives."""
    found = said(ended := program(folder, "import resource\nresource.setrlimit(resource.RLIMIT_AS, (8 << 30,) * 2)\n"
                                  + CODE, options, policy, limit=200.0))  # fmt: skip
    if not found:
        return Answer(False, error_of(ended) or "not ended in 200 s")
    fine = found["ask"] <= MOST_SECONDS and found["megabytes"] <= MOST_MEGABYTES
    is_clear = not found["error"] or found["error"].startswith("InvalidSpace")
    numbers = {"slowest ask": found["ask"], "megabytes": found["megabytes"]}
    return Answer(fine and is_clear, found["error"], numbers)


def _add(options: int, policy: str) -> None:
    @item("choices", f"a choice of {options:,} options with `{policy}`: an ask takes at most 3 s and 1 GB", alone=True)
    def attack(folder: Path) -> Answer:
        return choice_of(options, policy, folder)


for _options in (5_000, 100_000):
    for _policy in ("ei", "auto"):
        _add(_options, _policy)


@item("choices", "a TOML file of 100,000 options answers within 5 s", alone=True)
def space_file(folder: Path) -> Answer:
    options = ", ".join(f'"option {number}"' for number in range(100_000))
    (folder / "space.toml").write_text(f'kind = {{type = "choice", options = [{options}]}}\n')
    (folder / "train.py").write_text("def objective(config):\n    return len(config['kind'])\n")
    command = ["train.py:objective", "--space", "space.toml", "--budget", "2 evaluations", "--policy", "random"]
    ended = run(farthing("run", *command, "--quiet"), cwd=folder, limit=120.0)
    holds = ended.status in (0, 2) and ended.seconds <= 5.0
    return Answer(holds, f"status {ended.status} {error_of(ended)}", {"seconds": ended.seconds})


@item("choices", "a wrong line in a TOML file of 100,000 options is named within 5 s", alone=True)
def wrong_space_file(folder: Path) -> Answer:
    lines = "\n".join(f'  "option {number}",' for number in range(100_000))
    text = f'kind = {{type = "choice", options = [\n{lines}\n]}}\nx = {{type = "real", low = 1.0, high = 0.0}}\n'
    (folder / "space.toml").write_text(text)
    (folder / "train.py").write_text("def objective(config):\n    return 1.0\n")
    command = ["train.py:objective", "--space", "space.toml", "--budget", "2 evaluations"]
    ended = run(farthing("run", *command, "--quiet"), cwd=folder, limit=120.0)
    holds = ended.status == 2 and ended.seconds <= 5.0
    return Answer(holds, f"status {ended.status} {error_of(ended)}", {"seconds": ended.seconds})
