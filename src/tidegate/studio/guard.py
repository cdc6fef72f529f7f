"""The guard: only this user's browser gets in.

Every request needs the token, as a cookie that the opened address sets or as a bearer token, and a
Host of this server; so a page of another site cannot reach it by a name that it controls. A request
that changes something must come from this server's own page.
"""

from __future__ import annotations

import hmac
import os
import secrets
from contextlib import suppress
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from tidegate.files import cache_folder

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
A_YEAR = 365 * 24 * 3600


def user_token() -> str:
    """Return this user's token: the same for every server, so that a copied link stays good."""
    file = cache_folder() / "studio-token"
    with suppress(OSError):
        if len(kept := file.read_text().strip()) >= 32:
            return kept
    token = secrets.token_urlsafe(32)
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(opened, "w") as to:
            to.write(token)
    return token


class Guard:
    """An ASGI application around another: it lets in whoever has the token."""

    def __init__(self, app: ASGIApp, token: str, port: int):
        self._app, self._token = app, token
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
        if site not in ("none", "same-origin") and not self._is(request.query_params.get("token")):
            return PlainTextResponse("tidegate studio: request of another site\n", 403)
        return None

    def _let_in(self, request: Request) -> Response | None:
        """Return None for a request with the token; set the cookie for an address that has it."""
        if request.method == "GET" and self._is(request.query_params.get("token")):
            answer = RedirectResponse("/", 303)  # the view is behind #, which browsers keep
            answer.set_cookie(
                self._cookie, self._token, max_age=A_YEAR, httponly=True, samesite="strict"
            )
            return answer
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self._is(request.cookies.get(self._cookie)) or self._is(bearer):
            return None
        return PlainTextResponse(LOST, 401)

    def _is(self, given: str | None) -> bool:
        return hmac.compare_digest((given or "").encode(), self._token.encode())


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
