"""The page in a real browser: a report from its file, and the live page from a small server."""

from __future__ import annotations

import json
import queue
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

import farthing as ft
from browsers import open_browser
from farthing.errors import NoTrial
from farthing.report.content import overview, trial_rows
from farthing.report.drawing import Drawing, label
from farthing.report.figures.listed import FIGURES, Figure
from farthing.report.page.page import asset, plotly_script
from farthing.report.saving import Reported, drawn_or_reason, report_of

SCRIPT = "<script>window.canary=1</script>"
IMAGE = "\"'><img src=x onerror=window.canary=1>"
CLOSING = "</script><script>window.canary=1</script>"
LINK = "<a href='javascript:window.canary=1'>click</a>"
BACKWARDS = "\u202eabc\u2066\u200f"
HOSTILE = [SCRIPT, IMAGE, CLOSING, LINK, BACKWARDS, "]]><!--", "漢字🙂\ud800", "x" * 100_000, "a\n\tb\x1b[2J"]


def slider(count: int = 4) -> Drawing:
    """A front at each of some iterations, of which a slider shows one; the last at first."""
    traces = [
        {"type": "scatter", "x": [0.0, 1.0], "y": [float(i), 2.0 * i], "visible": i == count - 1} for i in range(count)
    ]
    steps = [
        {"label": str(10 * i), "method": "restyle", "args": [{"visible": [j == i for j in range(count)]}]}
        for i in range(count)
    ]
    return Drawing("slider", "A slider", "Moves.", traces, {"sliders": [{"active": count - 1, "steps": steps}]})


def plain_figure(name: str, *traces: dict[str, Any]) -> Figure:
    return Figure(name, name, lambda session, _: Drawing(name, label(name), "A caption.", traces))


def nothing(session: Any, _: float) -> Drawing:
    raise NoTrial(f"there is nothing to draw: {SCRIPT}")


TEST_FIGURES = (
    *FIGURES,
    Figure("slider", "A slider", lambda session, _: slider()),
    plain_figure("lines", {"type": "parcoords", "dimensions": [{"values": [1, 2]}, {"values": [3, 1]}]}),
    plain_figure("heat", {"type": "heatmap", "z": [[1, 2], [3, 4]]}, {"type": "contour", "z": [[1, 2], [3, 4]]}),
    Figure("nothing", "Nothing", nothing),
)


def studied(trials: int = 60, **options: Any) -> ft.Study:
    space = ft.Space(lr=ft.Real(1e-4, 1, log=True), kind=ft.Choice(["a b", "c"]), depth=ft.Integer(1, 9))
    study = ft.Study(space, ft.Budget(cost=10 * trials), policy="random", seed=0, **options)
    grow(study, trials)
    return study


def grow(study: ft.Study, trials: int) -> None:
    for _ in range(trials):
        proposal = study.ask()
        x = proposal.config["lr"]
        if proposal.trial % 10 == 3:
            study.tell(proposal, failed=f"Traceback ...\nValueError: no {proposal.trial}", cost=1.0)
        else:
            study.tell(proposal, value=(x - 0.1) ** 2, cost=1.0 + proposal.config["depth"], epochs=proposal.trial)


def hostile() -> ft.Study:
    params: dict[str, Any] = {text: ft.Real(0, 1) for text in HOSTILE[:5]}
    space = ft.Space({**params, "x" * 100_000: ft.Real(0, 1), "kind": ft.Choice(HOSTILE), "one": ft.Choice([SCRIPT])})
    study = ft.Study(space, ft.Budget(cost=1000), policy="random", seed=1)
    for i in range(24):
        proposal = study.ask()
        if i % 3 == 0:
            study.tell(proposal, failed="\n".join(HOSTILE), cost=1.0, **{SCRIPT: IMAGE})
        else:
            study.tell(proposal, value=float(i), cost=1.0, **dict.fromkeys(HOSTILE[:5], CLOSING), big="y" * 100_000)
    return study


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_browser() as opened:
        yield opened


class Opened:
    """A page, with what it has complained of and asked for."""

    def __init__(self, browser: Any, url: str, **options: Any) -> None:
        self.page = browser.new_page(**options)
        self.problems, self.requests = list[str](), list[str]()
        self.page.on("console", lambda said: self.problems.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(url)
        self.page.wait_for_selector("#study:not([hidden])")
        self.page.wait_for_function("() => document.querySelector('#footer').textContent !== ''")

    def look_at_all(self) -> None:
        """Scroll from figure to figure, and wait until each is drawn."""
        for figure in self.page.query_selector_all(".figure:not([hidden])"):
            figure.evaluate("one => one.scrollIntoView()")  # it may be folded away meanwhile
            self.page.wait_for_function("found => !found.querySelector('.waiting') || found.hidden", arg=figure)

    def choose(self, number: int, name: str) -> None:
        """One of several studies."""
        self.page.select_option("#studies", str(number))
        self.page.wait_for_selector(f"#name:has-text('{name}')")

    def slide_to_the_beginning(self, figure: str = "slider") -> None:
        rail = self.page.query_selector(f"[data-figure={figure}] .slider-rail-touch-rect")
        rail.scroll_into_view_if_needed()
        box = rail.bounding_box()
        self.page.mouse.click(box["x"] + 3, box["y"] + box["height"] / 2)

    def tells(self, expression: str) -> Any:
        return self.page.evaluate(expression)

    def texts(self, selector: str) -> list[str]:
        return self.page.eval_on_selector_all(selector, "found => found.map(one => one.textContent)")  # type: ignore[no-any-return]

    def is_as_wide_as_its_screen(self) -> bool:
        return bool(self.tells("document.documentElement.scrollWidth <= innerWidth"))


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a report of two studies."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    studies = [Reported("first", studied()._session), Reported("second", studied(3)._session)]
    path.write_text(report_of(studies, TEST_FIGURES), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def opened(browser: Any, report: str) -> Iterator[Opened]:
    found = Opened(browser, report)
    yield found
    found.page.close()
    assert found.problems == []


class TestReport:
    def test_every_figure_is_drawn_and_nothing_is_loaded(self, opened: Opened):
        opened.look_at_all()
        drawn = opened.tells(
            "[...document.querySelectorAll('.figure:not([hidden])')].map(one => [one.dataset.figure,"
            "one.querySelectorAll('svg.main-svg').length > 0, one.querySelector('.plot').data.length])"
        )
        session = studied()._session
        drawable = {figure.name for figure in TEST_FIGURES if "data" in drawn_or_reason(figure, session, 1.0)}
        assert {name for name, svg, _ in drawn if svg} == drawable
        assert {"best_value", "parallel", "dependence", "importance"} < drawable
        assert [count for name, _, count in drawn if name in ("slider", "lines", "heat")] == [4, 1, 2]
        if opened.tells("Boolean(document.createElement('canvas').getContext('webgl'))"):
            assert "WebGL" not in opened.texts("[data-figure=lines]")[0]
        assert set(opened.texts("#folded dt")) == {f.title for f in TEST_FIGURES if f.name not in drawable}
        assert f"there is nothing to draw: {SCRIPT}" in opened.texts("#folded dd")
        assert [url for url in opened.requests if not url.startswith(("file:", "blob:", "data:"))] == []

    def test_the_policy_of_the_report_lets_nothing_else_run_or_be_sent(self, opened: Opened):
        ran = opened.tells(
            "(() => { const made = document.createElement('script'); made.textContent = 'window.canary = 1';"
            "document.body.append(made); return window.canary === undefined; })()"
        )
        assert ran
        assert opened.tells("fetch('https://example.org').then(() => false, () => true)")
        assert len(opened.problems) >= 2  # the browser says that it refused
        opened.problems.clear()

    def test_a_slider_changes_what_is_shown(self, opened: Opened):
        opened.look_at_all()
        shown = "document.querySelector('[data-figure=slider] .plot').data.map(one => one.visible)"
        assert opened.tells(shown) == [False, False, False, True]
        opened.slide_to_the_beginning()
        opened.page.wait_for_function(f"() => JSON.stringify({shown}) === '[true,false,false,false]'")

    def test_the_table_is_sorted_by_any_column_and_has_pages(self, opened: Opened):
        study = studied()
        best_first = [trial.number for trial in sorted(study.trials, key=lambda t: (t.value is None, t.value))]
        assert first_column(opened) == best_first[:25]
        opened.page.click("[data-key='sort cost']")
        opened.page.click("[data-key='sort cost']")
        costs = [float(text) for text in opened.texts("#table tbody td:nth-child(4)")]
        assert costs == sorted(costs, reverse=True)
        opened.page.click("[data-key='sort number']")
        opened.page.click("button:text-is('Next')")
        assert first_column(opened) == list(range(25, 50))
        assert "26–50 of 60" in opened.texts("#paging")[0]

    def test_a_row_opens_by_mouse_and_by_keyboard(self, opened: Opened):
        opened.page.click("[data-key='sort number']")
        opened.page.click("#table tbody tr:nth-child(4) td:nth-child(3)")
        assert "ValueError: no 3" in opened.texts("tr.details")[0]
        opened.page.focus("[data-key='trial 3']")
        opened.page.keyboard.press("Enter")
        assert opened.texts("tr.details") == []
        assert opened.tells("document.activeElement.dataset.key") == "trial 3"

    def test_copying_copies_what_is_shown(self, browser: Any, report: str):
        context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
        found = Opened(context, report)
        best = studied().best.config
        for name, read in {"JSON": json.loads, "Python": lambda text: eval(text.removeprefix("config = "))}.items():
            found.page.click(f"#best [role=tab]:has-text('{name}')")
            found.page.click("#best .copy")
            found.page.wait_for_selector("#best .copy:has-text('Copied')")
            assert read(found.tells("navigator.clipboard.readText()")) == best
            found.page.wait_for_selector("#best .copy:has-text('Copy')")
        context.close()
        assert found.problems == []

    def test_copying_works_without_a_clipboard_of_the_browser(self, opened: Opened):
        opened.tells("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
        opened.tells("document.addEventListener('copy', () => { window.kept = document.activeElement.value; })")
        opened.page.click("#again .copy")
        opened.page.wait_for_selector("#again .copy:has-text('Copied')")
        assert "from farthing import" in opened.tells("window.kept")

    def test_another_study_is_chosen(self, opened: Opened):
        opened.choose(1, "second")
        assert len(first_column(opened)) == 3

    def test_it_is_dark_where_dark_is_wanted_and_can_be_changed(self, browser: Any, report: str):
        found = Opened(browser, report, color_scheme="dark")
        found.look_at_all()
        ground = "getComputedStyle(document.body).backgroundColor"
        letters = "document.querySelector('.plot').layout.template.layout.font.color"
        dark = found.tells(f"[{ground}, {letters}]")
        assert max(int(part) for part in dark[0][4:-1].split(", ")) < 64
        found.page.click("#theme")
        light = found.tells(f"[{ground}, {letters}]")
        assert min(int(part) for part in light[0][4:-1].split(", ")) > 200
        assert light[1] != dark[1]
        found.page.close()
        assert found.problems == []

    def test_a_phone_does_not_scroll_sideways(self, browser: Any, report: str):
        found = Opened(browser, report, viewport={"width": 390, "height": 844}, has_touch=True)
        found.look_at_all()
        assert found.is_as_wide_as_its_screen()
        assert found.tells("(box => box.scrollWidth > box.clientWidth)(document.querySelector('#trials-box'))")
        found.page.close()
        assert found.problems == []


def searched() -> ft.Study:
    """A study with costs, by a policy that models them."""
    study = ft.Study(
        ft.Space(x=ft.Real(0, 1), units=ft.Integer(1, 64, log=True)), ft.Budget(cost=900), policy="carbo", seed=0
    )
    for _ in range(24):
        proposal = study.ask()
        config = proposal.config
        study.tell(proposal, value=(config["x"] - 0.6) ** 2 + 1 / config["units"], cost=1.0 + config["units"])
    return study


def trained() -> ft.Study:
    """A study of trainings that are paused and completed."""

    def train(config: dict[str, Any]) -> Iterator[float]:
        for step in range(1, 11):
            yield (config["x"] - 0.6) ** 2 + 0.7**step

    return ft.tune(
        train, ft.Space(x=ft.Real(0, 1), y=ft.Real(0, 1)), "24 evaluations", policy="bopt", max_steps=10, seed=0,
        isolate=False, progress=False,
    )  # fmt: skip


def test_all_figures_of_farthing_are_drawn_and_its_slider_moves_the_front(browser: Any, tmp_path: Any):
    path = tmp_path / "report.html"
    studies = [Reported("searched", searched()._session), Reported("trained", trained()._session)]
    path.write_text(report_of(studies, seconds=60.0), encoding="utf-8")
    found = Opened(browser, path.as_uri())
    drawn = set[str]()
    for number, name in enumerate(("searched", "trained")):
        found.choose(number, name)
        found.look_at_all()
        drawn |= set(
            found.tells(
                "[...document.querySelectorAll('.figure:not([hidden])')]"
                ".filter(one => one.querySelector('svg.main-svg') && one.querySelector('.plot').data.length)"
                ".map(one => one.dataset.figure)"
            )
        )
        assert not [text for text in found.texts("#folded dd") if "could not be drawn" in text]
    assert drawn == {figure.name for figure in FIGURES}
    found.choose(0, "searched")
    found.look_at_all()
    front = "JSON.stringify(document.querySelector('[data-figure=pareto] .plot').data.map(one => one.visible))"
    last = found.tells(front)
    found.slide_to_the_beginning("pareto")
    found.page.wait_for_function(f"last => {front} !== last", arg=last)
    found.page.close()
    assert found.problems == []


def first_column(opened: Opened) -> list[int]:
    return [int(text) for text in opened.texts("#table tbody tr.trial td:first-child")]


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_in_a_hostile_study_runs_or_breaks_the_page(browser: Any, tmp_path: Any, width: int):
    path = tmp_path / "report.html"
    path.write_text(report_of([Reported(name, hostile()._session) for name in (IMAGE, SCRIPT)]), "utf-8")
    found = Opened(browser, path.as_uri(), viewport={"width": width, "height": 900})
    found.look_at_all()
    assert found.texts("#name") == [IMAGE]
    for row in found.page.query_selector_all(".opener")[:4]:
        row.evaluate("one => one.click()")
    for tab in found.page.query_selector_all("[role=tab]"):
        tab.click()
    found.page.wait_for_timeout(50)
    assert found.tells("window.canary === undefined")
    assert found.tells("document.querySelectorAll('main img, main script, main iframe, main a[href]').length") == 0
    assert found.is_as_wide_as_its_screen()
    assert found.tells("Math.max(...[...document.querySelectorAll('tr.trial')].map(one => one.offsetHeight))") < 60
    assert BACKWARDS not in found.tells("document.body.innerText")
    found.page.close()
    assert found.problems == []


class LiveServer:
    """The API of the live page, answered from a study in this process."""

    def __init__(self, study: ft.Study, figures: Callable[[], tuple[Figure, ...]]) -> None:
        self.study, self.figures = study, figures
        self.streams, self.posted = list["queue.Queue[bytes]"](), list[tuple[str | None, Any]]()
        self.streaming = True

    def answer(self, path: str, query: dict[str, list[str]]) -> Any:
        session = self.study._session
        match path.removeprefix("/api/").split("/"):
            case ["studies"]:
                return [{"id": "0", "name": "live"}]
            case ["figures"]:
                return [{"name": one.name, "title": one.title, "models": one.models} for one in self.figures()]
            case ["control"]:
                return {"enabled": True}
            case ["studies", "0", "overview"]:
                return overview(session, "live", seconds=0.0)
            case ["studies", "0", "figures", name]:
                return drawn_or_reason(next(one for one in self.figures() if one.name == name), session, 1.0)
            case ["studies", "0", "trials"]:
                given = {name: values[0] for name, values in query.items()}
                offset, count = int(given["offset"]), int(given["count"])
                return trial_rows(session, given["sort"], given["descending"] == "1", offset, count)
        return None

    def say_that_it_changed(self) -> None:
        message = json.dumps({"id": "0", "events": self.study._session.record.events, "live": True})
        for stream in self.streams:
            stream.put(f"data: {message}\n\n".encode())


class Handler(BaseHTTPRequestHandler):
    live: LiveServer

    def do_GET(self) -> None:
        url = urllib.parse.urlsplit(self.path)
        assets = {"/": ("page.html", "text/html"), "/assets/page.css": ("page.css", "text/css")}
        assets["/assets/page.js"] = ("page.js", "text/javascript")
        if url.path in assets:
            name, kind = assets[url.path]
            return self.send(200, kind, asset(name).encode())
        if url.path == "/assets/plotly.min.js":
            return self.send(200, "text/javascript", plotly_script().encode())
        if url.path == "/api/stream" and self.live.streaming:
            return self.stream()
        found = self.live.answer(url.path, urllib.parse.parse_qs(url.query))
        return self.send(404 if found is None else 200, "application/json", json.dumps(found).encode())

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        token = self.headers["X-Farthing-Token"]
        self.live.posted.append((token, request))
        found = {"accepted": True, "said": "it will pause"} if token == "right" else {"error": "wrong token"}
        self.send(200 if token == "right" else 403, "application/json", json.dumps(found).encode())

    def stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        messages: queue.Queue[bytes] = queue.Queue()
        self.live.streams.append(messages)
        self.wfile.write(b": here\n\n")
        while message := messages.get():
            self.wfile.write(message)

    def send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *given: Any) -> None:
        """Nothing is said."""


@contextmanager
def served(live: LiveServer) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("OneHandler", (Handler,), {"live": live}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        for stream in live.streams:
            stream.put(b"")
        server.shutdown()
        thread.join()
        server.server_close()


class TestLive:
    def test_a_new_trial_appears_and_what_was_chosen_stays(self, browser: Any):
        study, steps = studied(60), [4]
        live = LiveServer(study, lambda: (*FIGURES, Figure("slider", "A slider", lambda session, _: slider(steps[0]))))
        with served(live) as url:
            found = Opened(browser, url)
            found.look_at_all()
            found.page.click("[data-key='sort number']")
            found.page.click("button:text-is('Next')")
            found.page.wait_for_function(
                "() => document.querySelector('#paging').textContent.startsWith('26–50 of 60')"
            )
            found.slide_to_the_beginning()
            found.page.wait_for_function("() => document.querySelector('[data-figure=slider] .plot').data[0].visible")
            steps[0] = 6
            grow(study, 1)
            live.say_that_it_changed()
            found.page.wait_for_function(
                "() => document.querySelector('#paging').textContent.startsWith('26–50 of 61')"
            )
            plot = "document.querySelector('[data-figure=slider] .plot')"
            found.page.wait_for_function(f"() => {plot}.data.length === 6")
            found.page.wait_for_function(f"() => {plot}.data[0].visible && !{plot}.data[5].visible")
            assert first_column(found) == list(range(25, 50))
            assert found.tells("[...document.querySelectorAll('.card .number')].map(one => one.textContent)")[2] == "61"
            found.page.close()
        assert found.problems == []

    def test_it_asks_from_time_to_time_where_there_is_no_stream(self, browser: Any):
        live = LiveServer(studied(5), lambda: FIGURES)
        live.streaming = False
        with served(live) as url:
            found = Opened(browser, url)
            grow(live.study, 1)
            found.page.wait_for_function("() => document.querySelectorAll('tr.trial').length === 6")
            found.page.close()
        assert [text for text in found.problems if "404" not in text] == []

    def test_control_shows_what_the_server_says_and_keeps_the_token_for_this_tab_only(self, browser: Any):
        live = LiveServer(studied(5), lambda: FIGURES)
        with served(live) as url:
            found = Opened(browser, url)
            found.page.wait_for_selector("#control:not([hidden])")
            found.page.fill("#token", "wrong")
            found.page.click("button:text-is('Pause')")
            found.page.wait_for_selector(".said:has-text('wrong token')")
            found.page.fill("#token", "right")
            found.page.fill("#config", '{"lr": 0.1}')
            found.page.click("button:text-is('Enqueue')")
            found.page.wait_for_selector(".said:has-text('it will pause')")
            assert live.posted == [
                ("wrong", {"action": "pause"}), ("right", {"action": "enqueue", "config": {"lr": 0.1}})
            ]  # fmt: skip
            assert found.tells(
                "[sessionStorage.getItem('farthing-token'), JSON.stringify(localStorage), document.cookie]"
            ) == ["right", "{}", ""]
            found.page.close()
        assert [text for text in found.problems if "403" not in text] == []
