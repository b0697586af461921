"""The live page with a real server in a thread, and what a browser or an attacker sends it."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any, Protocol

import farthing as ft
from called import PATIENCE, until
from farthing.report.live.server import LivePage


def study_file(path: Path, values: tuple[float, ...] = (0.5, 0.25, 0.75)) -> Path:
    """A study with these values, each at a cost of 1."""
    with open_study(path) as study:
        for value in values:
            tell(study, value)
    return path


def open_study(path: Path) -> ft.Study:
    space = ft.Space(x=ft.Real(0, 1), kind=ft.Choice(["a", "b"]))
    return ft.Study(space, ft.Budget(cost=100.0), policy="sobol", seed=0, storage=path)


def tell(study: ft.Study, value: float) -> None:
    study.tell(study.ask(), value=value, cost=1.0)


@contextmanager
def shown(*paths: Path | str, wait: bool = True, **options: Any) -> Iterator[LivePage]:
    """A page that runs, on a free port; with all its studies read unless it is not to `wait` for that."""
    page = LivePage([str(path) for path in paths], **{"port": 0, **options})
    thread = Thread(target=page.run)
    thread.start()
    try:
        until(lambda: not wait or not any(study.file.condition.reading for study in page.studies.by_id.values()))
        yield page
    finally:
        page.end()
        thread.join(PATIENCE)


class Reached(Protocol):
    """A page here or in another process."""

    port: int


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def ask(
    page: Reached, path: str, method: str = "GET", body: bytes | None = None, host: str | None = None, **headers: str
) -> Reply:
    """One request; `content_type="..."` is the header Content-Type. Without `host` it is the right one."""
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=PATIENCE)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        connection.putheader("Host", f"127.0.0.1:{page.port}" if host is None else host)
        if body is not None and "content_length" not in headers:
            connection.putheader("Content-Length", str(len(body)))
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders(body)
        return reply_of(connection.getresponse())
    finally:
        connection.close()


def reply_of(response: http.client.HTTPResponse) -> Reply:
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Reply(response.status, headers, response.read())


def change(page: LivePage, asked: Any, path: str = "/api/studies/0/control", **headers: str) -> Reply:
    """A change as the page itself asks for it; headers replace those that it sends."""
    own = {
        "origin": page.address.rstrip("/"), "content_type": "application/json", "sec_fetch_site": "same-origin",
        "x_farthing_token": page.token or "",
    }  # fmt: skip
    sent = {name: value for name, value in {**own, **headers}.items() if value}
    return ask(page, path, "POST", asked if isinstance(asked, bytes) else json.dumps(asked).encode(), **sent)


@contextmanager
def listening(page: Reached) -> Iterator[Iterator[Any]]:
    """The messages of an open stream."""
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=PATIENCE)
    connection.request("GET", "/api/stream")
    response = connection.getresponse()
    assert response.getheader("content-type", "").startswith("text/event-stream")
    try:
        yield (json.loads(line.removeprefix(b"data: ")) for line in response if line.startswith(b"data: "))
    finally:
        connection.close()
        response.close()
