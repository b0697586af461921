"""What a user reads about the command line runs: files as the pages show them, commands one after another."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from farthing.cli import main

ROOT = Path(__file__).parent.parent.parent
FILE = r"^`(?P<name>[\w./-]+)`[^\n]*:\n\n```\w+\n(?P<text>.*?)^```$"
CONSOLE = r"^```console\n(?P<session>.*?)^```$"
BASH = r"^```bash\n(.*?)^```$"


def run(script: str, folder: Path) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    ended = subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert ended.returncode == 0, f"{script}\n{ended.stdout}\n{ended.stderr}"


@pytest.mark.parametrize("page", ["docs/cli.md", "docs/space-file.md"])
def test_the_commands_of_a_page_run_from_top_to_bottom(page, tmp_path):
    count = 0
    for found in re.finditer(f"{FILE}|{CONSOLE}", (ROOT / page).read_text(), flags=re.DOTALL | re.MULTILINE):
        if found["name"]:
            path = tmp_path / found["name"]
            path.write_text(found["text"])
            path.chmod(0o755 if found["text"].startswith("#!") else 0o644)
            continue
        for line in found["session"].splitlines():
            if line.startswith("$ "):
                run(line.removeprefix("$ "), tmp_path)
                count += 1
    assert count


def test_the_commands_of_the_readme_run(tmp_path):
    blocks = re.findall(BASH, (ROOT / "README.md").read_text(), flags=re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2, "a function, and a program"
    for block in blocks:
        run(block, tmp_path)


def test_the_errors_that_the_page_shows_are_those_there_are(tmp_path, monkeypatch, capsys):
    """Each is brought about by one change of the page's own file."""
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/space-file.md").read_text()
    whole = re.search(FILE, page, flags=re.DOTALL | re.MULTILINE)["text"]
    shown = page.partition("## Errors")[2].split("```")[1].strip().splitlines()
    changes = [
        ("low = 1e-5", 'low = "abc"'), ("high = 0.1", "hihg = 0.1"), ('"integer"', '"int"'),
        ("{booster =", "{boster ="), ("batch = 16", "batch = 17"), ("low = 2", "low = "),
    ]  # fmt: skip
    arguments = ["run", "--command", "true", "--space", "space.toml", "--budget", "1s"]
    for (before, after), error in zip(changes, shown, strict=True):
        assert whole.count(before) >= 1
        (tmp_path / "space.toml").write_text(whole.replace(before, after, 1))
        assert (main(arguments), capsys.readouterr().err) == (2, f"farthing: error: {error}\n")
