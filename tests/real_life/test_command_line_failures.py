"""A run whose first trials all fail alike, at the command line."""

from __future__ import annotations

import json

SCRIPT = "def objective(config):\n    raise ValueError(f'no data for {config[\"x\"]}')\n"
ARGUMENTS = ["run", "train.py:objective", "--space", "space.toml", "--policy", "random", "--seed", "1", "-q", "--json"]


def failed_trials(shown: str) -> int:
    failed: int = json.loads(shown)["trials"]["failed"]
    return failed


def test_first_trials_that_all_fail_end_the_run_with_their_error_and_status_three(folder):
    folder.write("train.py", SCRIPT)
    ended = folder.call(*ARGUMENTS, "--budget", "8 evaluations", status=3)
    assert failed_trials(ended.stdout) == 5
    assert "the first 5 trials all failed with ValueError: no data for" in ended.stderr.splitlines()[-1]
    assert "max_failures" not in ended.stderr + ended.stdout, "it is --max-failures here"


def test_how_many_is_the_users_choice_and_is_remembered(folder):
    folder.write("train.py", SCRIPT)
    ended = folder.call(*ARGUMENTS, "--budget", "8 evaluations", "--max-failures", "3", status=3)
    assert failed_trials(ended.stdout) == 3
    ended = folder.call(
        *ARGUMENTS, "--budget", "8 evaluations", "--max-failures", "none", "--storage", "s.db", status=3
    )
    assert failed_trials(ended.stdout) == 8
    ended = folder.call("resume", "s.db", "--budget", "15 evaluations", "-q", "--json", status=3)
    assert failed_trials(ended.stdout) == 15
