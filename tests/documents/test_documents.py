"""What a user reads runs: the Python of each page, block after block, in an empty folder."""

import re
import runpy
from pathlib import Path

import pytest

from farthing.budget import Budget
from farthing.space import Real, Space
from farthing.study import Study

ROOT = Path(__file__).parent.parent.parent
PAGES = [
    "README.md", "CONTRIBUTING.md", "docs/cei.md", "docs/cluster.md", "docs/control.md", "docs/cost.md",
    "docs/curve-network.md", "docs/figures.md", "docs/figures-models.md", "docs/guide.md", "docs/meters.md",
    "docs/notebooks.md", "docs/optuna.md",
    "docs/optuna-storage.md", "docs/ray-tune.md", "docs/report.md", "docs/runner.md", "docs/sklearn.md",
    "docs/spaces.md", "docs/storage.md",
]  # fmt: skip
MORE_PROSE = ["docs/index.md", "docs/dashboard.md", "docs/architecture.md", "docs/cli.md", "docs/recipes.md"]
AT_THE_ROOT = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]


def python_blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_the_python_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    if page == "docs/storage.md":  # which speaks of a study that the reader has
        Study(Space(x=Real(0, 1)), "3 evaluations", storage="study.db").close()
    names: dict[str, object] = {}
    blocks = python_blocks(page)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), names)


@pytest.mark.parametrize("page", PAGES)
def test_the_time_limits_of_a_page_leave_room_for_a_busy_machine(page):
    """What a page shows ends by its number of evaluations: seconds would be too few where others use the machine."""
    budgets = re.findall(r'"((?:\d+(?:\.\d+)?[smh])+[^"\n]*)"', "".join(python_blocks(page)))
    for budget in (text for text in budgets if "evaluations" in text):
        assert Budget.of(budget).seconds >= 60, budget


def test_the_first_example_is_fifteen_lines_or_fewer():
    lines = [line for line in python_blocks("README.md")[0].splitlines() if line.strip()]
    assert len(lines) <= 15


@pytest.mark.parametrize(
    "home",
    ["In scikit-learn", "In Optuna", "In Ray Tune", "From the command line", "On a cluster", "Spaces you already have"],
)
def test_each_home_is_shown_in_eight_lines_or_fewer(home):
    section = (ROOT / "README.md").read_text().partition(f"## {home}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"```(?:python|bash)\n(.*?)```", section, flags=re.DOTALL)
    assert blocks
    assert all(len([line for line in block.splitlines() if line.strip()]) <= 8 for block in blocks)


def test_links_between_pages_lead_somewhere():
    """To a file that is there and, where a section is named, to a heading of that name."""
    for page in [*(ROOT / name for name in AT_THE_ROOT), *(ROOT / "docs").glob("*.md")]:
        for target, section in re.findall(r"\]\((?!http)([^)#]*)(?:#([^)]+))?\)", page.read_text()):
            linked = page.parent / target if target else page
            assert linked.exists(), f"{page.name} links to {target}"
            if section:
                assert section in anchors(linked), f"{page.name} links to {target}#{section}"


def anchors(page: Path) -> set[str]:
    """The names that headings can be linked by, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_page_is_in_the_index():
    index = (ROOT / "docs/index.md").read_text()
    assert [page.name for page in (ROOT / "docs").glob("*.md") if f"({page.name})" not in index] == ["index.md"]


def test_the_modules_that_pages_name_are_there():
    for page in [*(ROOT / name for name in AT_THE_ROOT), *(ROOT / "docs").glob("*.md")]:
        for name in re.findall(r"(?<![\w{.])farthing((?:\.(?!toml)[a-z_]+)+)", page.read_text()):
            first, *rest = name.removeprefix(".").split(".")
            path = ROOT / "src" / "farthing" / first
            for part in rest if path.is_dir() else ():
                path = path / part
            assert path.is_dir() or path.with_suffix(".py").is_file(), f"{page.name} names farthing{name}"


@pytest.mark.parametrize("page", [*AT_THE_ROOT, *PAGES[2:], *MORE_PROSE])
def test_prose_wraps_at_a_hundred_characters(page):
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(), flags=re.DOTALL)
    prose = [line for line in text.splitlines() if not line.startswith(("|", "!"))]
    assert [line for line in prose if len(line) > 100] == []


def test_the_picture_of_imports_is_that_of_the_code():
    """Made anew by `python docs/figures/imports.py`."""
    drawn = runpy.run_path(str(ROOT / "docs/figures/imports.py"))["picture"]()
    assert (ROOT / "docs/imports.svg").read_text() == drawn


def test_the_picture_of_regret_is_that_of_the_results():
    """Made anew by `python docs/figures/regret.py`."""
    drawn = runpy.run_path(str(ROOT / "docs/figures/regret.py"))["picture"]()
    assert (ROOT / "docs/regret.svg").read_text() == drawn
