"""The live page in a real browser, with the real server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browsers import open_browser
from farthing.record.mailbox import waiting
from farthing.report.live import watching
from live_pages import open_study, shown, study_file, tell


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_browser() as opened:
        yield opened


@pytest.fixture
def tab(browser: Any) -> Iterator[Any]:
    """A page that complains of nothing: no error in the console, nothing that the policy of the server refuses."""
    problems: list[str] = []
    page = browser.new_page()
    page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    yield page
    page.close()
    assert problems == []


DRAWN = "document.querySelector('[data-figure=best_value] .plot.js-plotly-plot')?.data?.[0].y"
LAST_DRAWN = f"(() => {{ const y = {DRAWN}; return y && y[y.length - 1]; }})()"


def test_a_new_trial_appears_without_a_reload(tab, tmp_path):
    with open_study(tmp_path / "s.db") as study:
        tell(study, 0.5)
        with shown(tmp_path / "s.db") as page:
            tab.goto(page.link)
            tab.wait_for_function(f"() => {LAST_DRAWN} === 0.5")
            assert tab.locator("#table tbody tr").count() == 1
            tell(study, 0.125)
            tab.wait_for_function(f"() => {LAST_DRAWN} === 0.125")
            tab.wait_for_function("() => document.querySelectorAll('#table tbody tr').length === 2")
            tab.wait_for_function("() => document.querySelector('#headline').textContent.includes('0.125')")
            tab.close()


def test_a_study_is_shown_when_its_file_is_there_and_stays_when_it_is_gone(tab, tmp_path):
    with shown(tmp_path / "s.db") as page:
        tab.goto(page.link)
        tab.wait_for_function("() => document.querySelector('#problem').textContent.includes('no such study file')")
        study_file(tmp_path / "s.db")
        tab.wait_for_function(f"() => {LAST_DRAWN} === 0.25 && document.querySelector('#problem').hidden")
        (tmp_path / "s.db").unlink()
        tab.wait_for_function("() => document.querySelector('#problem').textContent.includes('no such study file')")
        assert tab.evaluate(LAST_DRAWN) == 0.25
        tab.close()


def test_a_page_that_is_opened_while_the_file_is_read_shows_it_then(tab, tmp_path, monkeypatch):
    study_file(tmp_path / "s.db")
    go_on, read = threading.Event(), watching.read_study

    def slow(path: str) -> Any:
        go_on.wait(60)
        return read(path)

    monkeypatch.setattr(watching, "read_study", slow)
    with shown(tmp_path / "s.db", wait=False) as page:
        tab.goto(page.link)
        tab.wait_for_function("() => document.querySelector('#problem').textContent.startsWith('Reading the file')")
        go_on.set()
        tab.wait_for_function(f"() => {LAST_DRAWN} === 0.25 && document.querySelector('#problem').hidden")
        tab.close()


@pytest.mark.parametrize("private", [False, True])
def test_the_printed_link_lets_the_page_change_the_study_and_leaves_no_token_in_the_address(tab, tmp_path, private):
    study = study_file(tmp_path / "s.db")
    with shown(study, control=True, private=private) as page:
        tab.goto(page.link)
        tab.click("button:text-is('Pause')")
        tab.wait_for_function("() => document.querySelector('#control .said').textContent.startsWith('pause: ')")
        assert [request.action for _, request in waiting(study)] == ["pause"]
        assert page.token not in tab.url
        tab.close()


def test_studies_are_chosen_from_a_menu(tab, tmp_path: Path):
    files = [study_file(tmp_path / f"{name}.db", (value,)) for name, value in (("one", 1.0), ("two", 2.0))]
    with shown(*files) as page:
        tab.goto(page.link)
        tab.wait_for_function(f"() => {LAST_DRAWN} === 1")
        tab.select_option("#studies", label="two.db")
        tab.wait_for_function(f"() => {LAST_DRAWN} === 2")
        tab.close()
