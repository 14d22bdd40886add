"""Requires a token for everything that the service serves: as a bearer, or as the password of any
user.

Browsers ask their user for a password and send it with every request of the page. A token in an
address is refused like a missing one: addresses are kept in histories and logs.
"""

from __future__ import annotations

import binascii
import hmac
from base64 import b64decode
from collections.abc import Iterable, Mapping
from http import HTTPStatus

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

UNTRUSTED = "lakesplice.untrusted"
"""Set in the scope of a request that is served without its required token."""
_ERROR = "give the token (metrics.token) as a bearer, or as the password of any user"
_ASKS = {
    "WWW-Authenticate": 'Basic realm="lakesplice", charset="UTF-8"',
    "Cache-Control": "no-store",
}


class TokenGuard:
    """Serves `app` to requests with the token. Requests of the paths `probes` are served without
    it, too, and then marked by `UNTRUSTED`.
    """

    def __init__(self, app: ASGIApp, token: str, probes: Iterable[str]) -> None:
        self._app = app
        self._token = token.encode()
        self._probes = frozenset(probes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it."""
        if scope["type"] != "http" or self._has_token(dict(scope["headers"])):
            await self._app(scope, receive, send)
        elif scope["path"] in self._probes:
            await self._app({**scope, UNTRUSTED: True}, receive, send)
        else:
            refused = JSONResponse({"error": _ERROR}, HTTPStatus.UNAUTHORIZED, _ASKS)
            await refused(scope, receive, send)

    def _has_token(self, headers: Mapping[bytes, bytes]) -> bool:
        kind, _, given = headers.get(b"authorization", b"").strip().partition(b" ")
        match kind.lower():
            case b"bearer":
                token = given.strip()
            case b"basic":
                token = _password(given.strip())
            case _:
                return False
        # Compared in constant time, which doesn't show how much of it is right.
        return hmac.compare_digest(token, self._token)


def _password(given: bytes) -> bytes:
    try:
        return b64decode(given, validate=True).partition(b":")[2]
    except binascii.Error:
        return b""
