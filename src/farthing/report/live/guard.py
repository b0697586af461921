"""Who may ask the live page for what.

Pages of others, open in the same browser, can send requests to this server. They may not read an answer (there are no
CORS headers), nor get around that by a name of their own that leads here (DNS rebinding: only known hosts are
answered), nor change anything (a change needs a header that they may not send, with a token that they do not know).

Other users of the machine, and of the network if the server listens there, can open the port. What they may not see is
behind a token too: sent once in the link, kept in a cookie that no script can read.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from urllib.parse import parse_qs

from farthing.report.live.answers import Answer, error_answer

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
TOKEN_HEADER = "x-farthing-token"
MOST_BODY = 64 * 1024  # bytes of a request
MOST_WRONG, WITHIN = 10, 60.0  # wrong tokens from one address in so many seconds
MOST_ADDRESSES = 1_000  # that are remembered

SECURITY_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
        "connect-src 'self'; font-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),  # Plotly sets styles and makes images
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


@dataclass(frozen=True)
class Visit:
    """What is known of a request before it is answered; names of headers are in lower case."""

    method: str
    path: str
    headers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    query: str = ""
    address: str = ""  # of whoever asks

    def header(self, name: str) -> str | None:
        """The value of a header, None unless there is exactly one."""
        values = self.headers.get(name, ())
        return values[0] if len(values) == 1 else None

    @property
    def cookies(self) -> dict[str, str]:
        pairs = (part.partition("=") for line in self.headers.get("cookie", ()) for part in line.split(";"))
        return {name.strip(): value.strip() for name, _, value in pairs}


def new_token() -> str:
    """One that nobody guesses."""
    return secrets.token_urlsafe(32)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host.

    >>> is_loopback("127.0.0.1"), is_loopback("0.0.0.0"), is_loopback("::1"), is_loopback("example.org")
    (True, False, True, False)
    """
    address = _address(host)
    return host == "localhost" if address is None else address.is_loopback


def in_address(host: str) -> str:
    """A host as it stands in an address.

    >>> in_address("::1")
    '[::1]'
    """
    return f"[{host}]" if ":" in host else host


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None


class WrongTokens:
    """How many wrong tokens came from which address of late."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._times: dict[str, list[float]] = {}

    def too_many(self, address: str) -> bool:
        since = self._clock() - WITHIN
        recent = [at for at in self._times.get(address, []) if at > since]
        return len(recent) >= MOST_WRONG

    def note(self, address: str) -> None:
        times = self._times.pop(address, [])
        self._times[address] = [*times, self._clock()][-MOST_WRONG:]
        while len(self._times) > MOST_ADDRESSES:
            del self._times[next(iter(self._times))]


class Guard:
    """Decides on each request. `reading_needs_token` also for what changes nothing; `changes` whether anything may be
    changed at all."""

    def __init__(
        self, host: str, port: int, token: str | None = None, *, reading_needs_token: bool = False,
        changes: bool = False, clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        if token is None and (reading_needs_token or changes or not is_loopback(host)):
            raise ValueError("a token is needed")
        self.changes, self._token = changes, token
        self._reading_needs_token = reading_needs_token or not is_loopback(host)
        self._port, self._hosts = port, _names(host)
        self._any_address = (address := _address(host)) is not None and address.is_unspecified
        self._wrong = WrongTokens(clock)

    def instead(self, visit: Visit) -> Answer | None:
        """What is answered in the place of what is asked for; None if nothing stands in the way."""
        checks = (self._unknown_host, self._method_or_body, self._another_page, self._entry, self._without_token)
        return next((answer for check in checks if (answer := check(visit)) is not None), None)

    def _entry(self, visit: Visit) -> Answer | None:
        """For a link with a token: the way to the page, with the cookie that opens it from then on. None if it is no
        such link."""
        if visit.path != "/" or visit.method != "GET" or self._token is None:
            return None
        given = ""
        with suppress(ValueError):  # too many of them
            given = parse_qs(visit.query, max_num_fields=10).get("token", [""])[0]
        if not given:
            return None
        if wrong := self._wrong_token(visit, given):
            return wrong
        cookie = f"{self._cookie}={self._pass}; Path=/; HttpOnly; SameSite=Strict"
        to = f"/#token={self._token}" if self.changes else "/"  # a fragment is not sent, and the page's script takes it
        return Answer(b"", 303, "text/plain", {"Location": to, "Set-Cookie": cookie, "Cache-Control": "no-store"})

    @property
    def _cookie(self) -> str:
        return f"farthing-{self._port}"  # cookies are for all ports of a host

    @property
    def _pass(self) -> str:
        """What the cookie holds: whoever sees it cannot make a change with it."""
        return hmac.new((self._token or "").encode(), b"reading", sha256).hexdigest()

    def _unknown_host(self, visit: Visit) -> Answer | None:
        name, port = _split_host(visit.header("host") or "")
        known = name in self._hosts or (self._any_address and _address(name) is not None)
        if known and port == self._port:
            return None
        return error_answer(421, "this address is not one of this server; use the link that was printed")

    def _method_or_body(self, visit: Visit) -> Answer | None:
        if visit.method not in ("GET", "HEAD", "POST"):
            return error_answer(405, "expected GET, HEAD or POST", Allow="GET, HEAD, POST")
        length = visit.header("content-length") or "0"
        if "content-length" in visit.headers and not (length.isascii() and length.isdecimal() and len(length) < 16):
            return error_answer(400, "content-length: expected one whole number")
        if int(length) > MOST_BODY:
            return error_answer(413, f"expected at most {MOST_BODY} bytes")
        if visit.method == "POST":
            kind = (visit.header("content-type") or "").partition(";")[0].strip().lower()
            if kind != "application/json":
                return error_answer(415, "expected content-type: application/json")
        return None

    def _another_page(self, visit: Visit) -> Answer | None:
        """Browsers say which page a request comes from. Following a link to this page is no harm."""
        origins, sites = visit.headers.get("origin", ()), visit.headers.get("sec-fetch-site", ())
        own_origin = all(origin == f"http://{visit.header('host')}" for origin in origins)
        own_site = all(site in ("same-origin", "none") for site in sites)
        is_link = visit.path == "/" and visit.method == "GET" and visit.header("sec-fetch-mode") == "navigate"
        if own_origin and (own_site or is_link):
            return None
        return error_answer(403, "requests of other pages are not answered")

    def _without_token(self, visit: Visit) -> Answer | None:
        is_change = visit.method == "POST"
        if is_change and not self.changes:
            return error_answer(403, "this page only shows; farthing dashboard --control lets it change something")
        if not is_change and not self._reading_needs_token:
            return None
        given = visit.headers.get(TOKEN_HEADER)
        if given is not None:
            return self._wrong_token(visit, visit.header(TOKEN_HEADER) or "")
        if not is_change and _same(visit.cookies.get(self._cookie, ""), self._pass):
            return None
        return error_answer(401, "a token is needed: open the link that farthing dashboard printed")

    def _wrong_token(self, visit: Visit, given: str) -> Answer | None:
        if self._wrong.too_many(visit.address):
            return error_answer(429, "too many wrong tokens; wait a minute", Retry_After=f"{WITHIN:.0f}")
        if _same(given, self._token or ""):
            return None
        self._wrong.note(visit.address)
        return error_answer(401, "the token is not the one that farthing dashboard printed")


def _same(given: str, wanted: str) -> bool:
    """Compared in a time that says nothing of where they differ."""
    return bool(wanted) and hmac.compare_digest(given.encode(), wanted.encode())


def _names(host: str) -> frozenset[str]:
    """By which names a browser may call this server."""
    address = _address(host)
    if address is not None and address.is_unspecified:
        own = (socket.gethostname(), socket.getfqdn())
        return frozenset((*LOOPBACK, *(name.lower() for name in own)))
    return frozenset((*(LOOPBACK if is_loopback(host) else ()), in_address(host).lower()))


def _split_host(host: str) -> tuple[str, int]:
    """The name and the port of a Host header; ("", 0) if it makes no sense.

    >>> _split_host("LocalHost:8765"), _split_host("[::1]:80"), _split_host("a"), _split_host("a:b")
    (('localhost', 8765), ('[::1]', 80), ('a', 80), ('', 0))
    """
    name, colon, port = host.rpartition(":")
    if not colon or host.endswith("]"):
        return host.lower(), 80
    return (name.lower(), int(port)) if port.isascii() and port.isdecimal() and len(port) < 6 else ("", 0)
