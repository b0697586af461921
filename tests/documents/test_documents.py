"""What a user reads runs: the Python of README and guide, block after block, in an empty folder."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = ["README.md", "docs/guide.md", "docs/meters.md", "docs/runner.md", "docs/sklearn.md", "docs/spaces.md"]


def python_blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_the_python_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    blocks = python_blocks(page)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), names)


def test_the_first_example_is_fifteen_lines_or_fewer():
    lines = [line for line in python_blocks("README.md")[0].splitlines() if line.strip()]
    assert len(lines) <= 15


@pytest.mark.parametrize("home", ["In scikit-learn", "From the command line", "Spaces you already have"])
def test_each_home_is_shown_in_eight_lines_or_fewer(home):
    section = (ROOT / "README.md").read_text().partition(f"## {home}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"```(?:python|bash)\n(.*?)```", section, flags=re.DOTALL)
    assert blocks
    assert all(len([line for line in block.splitlines() if line.strip()]) <= 8 for block in blocks)


def test_links_between_pages_lead_somewhere():
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
