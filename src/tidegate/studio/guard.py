"""The guard: only this user's browser gets in.

Every request needs the token, as a cookie that the opened address sets or as a bearer token, and a
Host of this server; so a page of another site cannot reach it by a name that it controls. A request
that changes something must come from this server's own page.

    terminal   prints the address with the token, which is new for each server
    browser    is given the name of a private page, because everybody can read the arguments of a
               process; the page leads on with a pass, which opens the studio once
"""

from __future__ import annotations

import contextlib
import hmac
import html
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

HEADERS = {
    "content-security-policy": (
        "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
LOST = "tidegate studio: open the address that the command printed; it has the token\n"
OPENING = """<!doctype html>
<meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={0}">
<title>Tidegate Studio</title><a href="{0}">Tidegate Studio</a>
"""


@contextlib.contextmanager
def opening_page(address: str) -> Iterator[Path]:
    """Make a page that only this user can read, which leads to an address; it is gone at the end.

    Its folder has a random name, and mode 0700.
    """
    with tempfile.TemporaryDirectory(prefix="tidegate-studio-") as folder:
        page = Path(folder) / "open.html"
        page.write_text(OPENING.format(html.escape(address)), encoding="utf-8")
        page.chmod(0o600)
        yield page


# The way in leads over a page of this server: a browser that comes from elsewhere, also from the
# opening page, would not send the cookie along a redirection. What is behind # stays.
ENTRANCE = '<!doctype html><title>Tidegate Studio</title><script src="/enter.js"></script>'


class Guard:
    """An ASGI application around another: it lets in whoever has the token.

    ``once``: the pass, which is exchanged for the token once.
    """

    def __init__(self, app: ASGIApp, token: str, port: int):
        self._app, self._token, self.once = app, token, secrets.token_urlsafe(32)
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self._cookie = f"tidegate-studio-{port}"  # cookies are shared by all ports of a host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        answer = self._refuse(request) or self._let_in(request)
        if answer is not None:
            answer.headers.update(HEADERS)
            await answer(scope, receive, send)
            return
        await self._app(scope, receive, _with_headers(send))

    def _refuse(self, request: Request) -> Response | None:
        """Return an answer for a request from elsewhere, None for one of our own."""
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        if host not in self._hosts:
            return PlainTextResponse("tidegate studio: wrong Host\n", 403)
        if origin is not None and origin not in {f"http://{known}" for known in self._hosts}:
            return PlainTextResponse("tidegate studio: wrong Origin\n", 403)
        site = request.headers.get("sec-fetch-site", "none")
        given = request.query_params.get("token")
        if site not in ("none", "same-origin") and not (self._is(given) or self._is_pass(given)):
            return PlainTextResponse("tidegate studio: request of another site\n", 403)
        return None

    def _let_in(self, request: Request) -> Response | None:
        """Return None for a request with the token; set the cookie for an address that has it."""
        given = request.query_params.get("token")
        if request.method == "GET" and (self._is(given) or self._is_pass(given)):
            if self._is_pass(given):
                self.once = ""
            answer = HTMLResponse(ENTRANCE)
            answer.set_cookie(self._cookie, self._token, httponly=True, samesite="strict")
            return answer
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self._is(request.cookies.get(self._cookie)) or self._is(bearer):
            return None
        return PlainTextResponse(LOST, 401)

    def _is(self, given: str | None) -> bool:
        return hmac.compare_digest((given or "").encode(), self._token.encode())

    def _is_pass(self, given: str | None) -> bool:
        return bool(self.once) and hmac.compare_digest((given or "").encode(), self.once.encode())


def _with_headers(send: Send) -> Send:
    """Return ``send``, but answers carry the headers of the guard."""

    async def sent(message: Any) -> None:
        if message["type"] == "http.response.start":
            names = {name for name, _ in message.get("headers", [])}
            extra = [(k.encode(), v.encode()) for k, v in HEADERS.items()]
            message["headers"] = [
                *message.get("headers", []),
                *(pair for pair in extra if pair[0] not in names),
            ]
        await send(message)

    return sent
