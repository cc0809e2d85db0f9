"""`Arrived`: the HTTP request that brought a message, as the SDK's transport shows it to handlers."""

from __future__ import annotations

from functools import cached_property
from typing import Any
from urllib.parse import unquote

from starlette.datastructures import Headers
from starlette.requests import Request

from .. import _core


class Arrived(Request):
    """A request whose parts are made when they are accessed. Its body, the message, has been read already."""

    def __init__(self, owed: _core.KernelRequest) -> None:
        self._owed = owed
        self._receive = _gone
        self._send = _unsendable
        self._stream_consumed = True
        self._is_disconnected = False
        self._form = None

    @cached_property
    def scope(self) -> dict[str, Any]:  # type: ignore[override]
        """The scope as an ASGI server would make it."""
        head = self._owed.head()
        assert head is not None
        method, target, headers, peer = head
        path, _, query = target.partition("?")
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "scheme": "http",
            "method": method,
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": headers,
            "client": peer,
            "server": None,
            "state": {},
        }

    @property
    def headers(self) -> Headers:
        if not hasattr(self, "_headers"):
            self._headers = Headers(scope=self.scope)
        return self._headers


async def _gone() -> Any:
    return {"type": "http.disconnect"}


async def _unsendable(message: Any) -> None:
    raise RuntimeError("the engine answers")
