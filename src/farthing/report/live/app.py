"""The routes of the live page. Each is a function of the site and of a request; what it returns is sent by `_sent`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from farthing.errors import InvalidArgument
from farthing.report.figures.listed import FIGURES
from farthing.report.live import control
from farthing.report.live.answers import Answer, error_answer, json_answer
from farthing.report.live.assets import PATHS, assets
from farthing.report.live.guard import MOST_BODY, SECURITY_HEADERS, Guard, Visit
from farthing.report.live.lane import Lane
from farthing.report.live.studies import LiveStudy, Rows, Studies
from farthing.text.escaping import on_one_line
from farthing.text.plain import logger

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

NEVER_KEPT = {"Cache-Control": "no-store"}
NOT_BUFFERED = {"X-Accel-Buffering": "no"}  # by a proxy in between
FIGURE = {figure.name: figure for figure in FIGURES}
WITHOUT_TOKEN = b"""<!doctype html><html lang="en"><meta charset="utf-8"><title>Farthing</title>
<p>This page needs a token: open the link that <code>farthing dashboard</code> printed.</p>
<p>You have done that? <a href="/">Go on to the page.</a></p></html>"""


@dataclass
class Site:
    """The studies, who may see them, and what the page is made of."""

    studies: Studies
    guard: Guard
    lane: Lane = field(default_factory=lambda: Lane("site"))

    def __post_init__(self) -> None:
        self.assets = self.lane.do(assets)  # Plotly has some megabytes: not in the way of the first figure


def app_of(site: Site) -> App:
    """The application, with nothing in front of the guard."""
    from starlette.applications import Starlette
    from starlette.routing import Route

    def route(path: str, answer: Callable[[Site, Request], Awaitable[Answer | Response]], method: str = "GET") -> Route:
        async def endpoint(request: Request) -> Response:
            try:
                given = await answer(site, request)
            except InvalidArgument as error:
                given = error_answer(400, str(error))
            except Unknown as error:
                given = error_answer(404, str(error))
            except Exception as error:
                logger.warning("%s: %s", path, on_one_line(repr(error)[:500]))
                given = error_answer(500, f"unexpected {type(error).__name__}")
            return _sent(given, request) if isinstance(given, Answer) else given

        return Route(path, endpoint, methods=[method])

    async def no_such_page(request: Request, error: Exception) -> Response:
        status = getattr(error, "status_code", 500)
        return _sent(error_answer(status, {404: "there is nothing here", 405: "not in this way"}[status]), request)

    routes = [
        *(route(path, asset) for path in PATHS),
        route("/api/studies", listed),
        route("/api/figures", figures),
        route("/api/studies/{id}/overview", overview),
        route("/api/studies/{id}/figures/{name}", figure),
        route("/api/studies/{id}/trials", trials),
        route("/api/stream", stream),
        route("/api/control", whether_to_control),
        route("/api/studies/{id}/control", to_control, "POST"),
    ]
    handlers: dict[Any, Any] = {404: no_such_page, 405: no_such_page}
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.router.redirect_slashes = False
    return _guarded(app, site.guard)


class Unknown(Exception):
    """There is no such study or figure."""


def _study(site: Site, request: Request) -> LiveStudy:
    study = site.studies.by_id.get(request.path_params["id"])
    if study is None:
        raise Unknown("there is no such study")
    return study


async def asset(site: Site, request: Request) -> Answer:
    return (await asyncio.wrap_future(site.assets))[request.scope["path"]]


async def listed(site: Site, request: Request) -> Answer:
    return json_answer(site.studies.listed)


async def figures(site: Site, request: Request) -> Answer:
    return json_answer([{"name": one.name, "title": one.title, "models": one.models} for one in FIGURES])


async def overview(site: Site, request: Request) -> Answer:
    return await asyncio.wrap_future(_study(site, request).overview())


async def figure(site: Site, request: Request) -> Answer:
    study, named = _study(site, request), FIGURE.get(request.path_params["name"])
    if named is None:
        raise Unknown("there is no such figure")
    return await asyncio.wrap_future(study.figure(named))


async def trials(site: Site, request: Request) -> Answer:
    return await asyncio.wrap_future(_study(site, request).rows(Rows.of(request.query_params)))


async def whether_to_control(site: Site, request: Request) -> Answer:
    return json_answer(control.state(site.guard.changes))


async def to_control(site: Site, request: Request) -> Answer:
    study, body = _study(site, request), b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_BODY:  # whatever was said of its length
            return error_answer(413, f"expected at most {MOST_BODY} bytes")
    return await asyncio.wrap_future(site.lane.do(lambda: control.posted(study, body)))


async def stream(site: Site, request: Request) -> Answer | Response:
    from starlette.responses import StreamingResponse

    streams = site.studies.streams
    if request.method == "HEAD":
        return Answer(b"", kind="text/event-stream")
    if streams.full:
        return error_answer(503, "too many pages are open")
    events = streams.events(site.studies.messages)
    return StreamingResponse(events, media_type="text/event-stream", headers={**NEVER_KEPT, **NOT_BUFFERED})


def _sent(answer: Answer, request: Request) -> Response:
    from starlette.responses import Response

    headers, body = {**NEVER_KEPT, **answer.headers}, answer.body
    if "ETag" in headers and headers["ETag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if answer.zipped is not None:
        headers["Vary"] = "Accept-Encoding"
        if "gzip" in request.headers.get("accept-encoding", ""):
            headers["Content-Encoding"], body = "gzip", answer.zipped
    return Response(body, answer.status, {**headers, "Content-Type": answer.kind})


def _guarded(app: App, guard: Guard) -> App:
    """The application behind the guard; every answer has the headers that keep browsers careful."""

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        from starlette.requests import Request

        if scope["type"] != "http":
            return
        visit = _visit(scope)

        async def with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                more = [(name.lower().encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]
                message["headers"] = [*message.get("headers", ()), *more]
            await send(message)

        if (wrong := guard.instead(visit)) is None:
            await app(scope, receive, with_headers)
            return
        if visit.path == "/" and wrong.status == 401:
            wrong = Answer(WITHOUT_TOKEN, 401, "text/html; charset=utf-8")
        await _sent(wrong, Request(scope))(scope, receive, with_headers)

    return guarded


def _visit(scope: Mapping[str, Any]) -> Visit:
    headers: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    address = (scope.get("client") or ("",))[0]
    return Visit(scope["method"], scope["path"], headers, scope["query_string"].decode("latin-1"), address)
