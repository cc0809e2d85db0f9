"""Keeps track of what the engine answers for a server, while the server changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

import anyio.to_thread
from pydantic_core import to_json

from .. import _core
from . import _private as private
from ._handled import Handled, Handler, Result
from ._observed import answers_pings, observer, tracer_listeners
from ._plan import Direct, Key, Native, Planned
from ._server import Known, is_fastmcp


# The revisions with structured content. In older ones the kernel leaves members out of results.
_REVISIONS = frozenset(_core.revisions("structured_content"))
_HANDSHAKES = _core.revisions("handshake")
_MEMBERS = frozenset({"name", "uri", "arguments", "_meta"})
_LISTS = frozenset({"tools/list", "resources/list", "resources/templates/list", "prompts/list"})


def plan(server: Any) -> dict[str, Native | Direct | str]:
    """How the engine answers each registered part of a server, or why it does not."""
    known = Known(server)
    parts = _parts(known)
    if parts is None:
        return {"handlers": "the server has functions for whole methods, and nothing is known of them"}
    return {one.title: observer(known, one.method) or one.how() for one in parts.plan(server)}


def _parts(known: Known) -> Any:
    if is_fastmcp(known.server):
        from . import _fastmcp

        return _fastmcp
    if known.server is known.lowlevel:
        return None
    from . import _mcpserver

    return _mcpserver


class Natives:
    """The parts of one running server that the engine answers. Changes may come from any thread."""

    def __init__(self, known: Known, catalog: _core.Catalog, has_contexts: bool = False) -> None:
        self._known = known
        # Whether requests have contexts of their own, which the engine's threads do not have.
        self._has_contexts = has_contexts
        self._catalog = catalog
        self._parts = _parts(known)
        self._offered: dict[Key, object] = {}
        self._direct: dict[Key, Handler] = {}
        self._shown: set[tuple[str, str]] = set()
        self._changing = Lock()
        # Counts the changes: a list made before a change is not used after it.
        self.version = 0
        self._watched = private.containers(known.lowlevel)
        if self._parts is not None:
            self._watched += self._parts.registries(known.server)
        for owner, name in self._watched:
            watch(owner, name, self.changed)
        tracer_listeners().append(self.changed)
        self.changed()

    def close(self) -> None:
        """Called when the server has ended: gives the containers of its parts back as they were."""
        for owner, name in self._watched:
            unwatch(owner, name, self.changed)
        self._watched.clear()
        listeners = tracer_listeners()
        if self.changed in listeners:
            listeners.remove(self.changed)

    def doubt(self) -> None:
        """Called when a client is told that a list has changed. With FastMCP the change may apply to that session
        only, so from now on the kernel answers everything."""
        if is_fastmcp(self._known.server) and self._parts is not None:
            self._parts = None
            self.changed()

    def changed(self) -> None:
        """Called after something was added or removed: plans all parts again."""
        with self._changing:
            self.version += 1
            for method, revision in self._shown:
                self._catalog.show(method, revision, None)
            self._shown.clear()
            before, self._offered = self._offered, {}
            handlers, self._direct = self._direct, {}
            if answers_pings(self._known):
                for revision in _HANDSHAKES:
                    self._show("ping", revision, {})
            if self._parts is not None:
                for one in self._parts.plan(self._known.server):
                    if observer(self._known, one.method) is None:
                        self._offer(one, before, handlers)
            for method, name in before.keys() - self._offered.keys():
                self._withdraw(method, name)

    def _offer(self, one: Planned, before: dict[Key, object], handlers: dict[Key, Handler]) -> None:
        key = one.method, one.name
        if one.part is None or before.get(key) is not one.part:
            how = one.how()
            if isinstance(how, str):
                return
            if isinstance(how, Native) and self._has_contexts:
                how = Direct(in_context(how))
            if isinstance(how, Direct):
                self._withdraw(*key)
                self._direct[key] = how.handler
            else:
                assert one.name is not None
                self._catalog.offer(one.method, one.name, *how)
        elif key in handlers:
            self._direct[key] = handlers[key]
        self._offered[key] = one.part

    def _withdraw(self, method: str, name: str | None) -> None:
        if name is not None:
            self._catalog.offer(method, name, None)

    def handler(self, revision: str, method: str, params: Mapping[str, Any] | None) -> Handler | None:
        """The handler that answers a request in place of the kernel, if the params have no unusual members."""
        direct = self._direct
        if not direct or not params or revision not in _REVISIONS or params.keys() - _MEMBERS:
            return None
        name = params.get("uri" if method == "resources/read" else "name")
        arguments, meta = params.get("arguments", {}), params.get("_meta", {})
        if not (isinstance(name, str) and isinstance(arguments, dict) and isinstance(meta, dict)):
            return None
        # The version of a component, and the trace that a function continues.
        if "fastmcp" in meta or "traceparent" in meta:
            return None
        return direct.get((method, name)) or direct.get((method, None))

    def listed(self, version: int, method: str, params: Mapping[str, Any] | None, revision: str, result: object) -> None:
        """Called with an answer of the kernel. If it is a whole list, the engine answers with it from now on."""
        if method not in _LISTS or (params and params.keys() - {"_meta"}):
            return
        with self._changing:
            fits = version == self.version and self._parts is not None and observer(self._known, method) is None
            if fits and self._parts.lists(self._known.server, method):
                self._show(method, revision, result)

    def _show(self, method: str, revision: str, result: object) -> None:
        self._catalog.show(method, revision, to_json(result).decode())
        self._shown.add((method, revision))


def in_context(native: Native) -> Handler:
    """Makes a handler that calls the function in the task of its request, and so in its context."""
    function, lane = native.function, native.lane

    async def call(handled: Handled) -> Result:
        params = handled.params
        given = params["uri"] if handled.method == "resources/read" else to_json(params.get("arguments") or {})
        if lane == "worker":
            return await anyio.to_thread.run_sync(function, given, handled.revision)
        made = function(given, handled.revision)
        result: bytes = await made if lane == "task" else made
        return result

    return call


def _watching(kind: type[Any], changes: str) -> type[Any]:
    """Makes a container class that calls each function in its `listeners` after a change."""

    def telling(name: str) -> Any:
        change = getattr(kind, name)

        def method(self: Any, *arguments: Any, **named: Any) -> Any:
            try:
                return change(self, *arguments, **named)
            finally:
                for listener in [*self.listeners]:
                    listener()

        return method

    return type(f"Watched{kind.__name__}", (kind,), {name: telling(name) for name in changes.split()})


_WATCHED = {
    dict: _watching(dict, "__setitem__ __delitem__ __ior__ pop popitem clear update setdefault"),
    list: _watching(list, "__setitem__ __delitem__ __iadd__ append extend insert remove pop clear sort reverse"),
}


def watch(owner: Any, name: str, listener: Callable[[], None]) -> None:
    """Has a function called after each change of a dict or list of `owner`. While there is any, the container is
    replaced by one that knows of them."""
    with _watching_now:
        plain = getattr(owner, name)
        if type(plain) in _WATCHED.values():
            plain.listeners.append(listener)
            return
        watched = next(made for kind, made in _WATCHED.items() if isinstance(plain, kind))(plain)
        watched.listeners, watched.plain = [listener], plain
        setattr(owner, name, watched)


def unwatch(owner: Any, name: str, listener: Callable[[], None]) -> None:
    """Undoes `watch`. The last one puts the container that was there before back, with what has changed meanwhile."""
    with _watching_now:
        watched = getattr(owner, name)
        if type(watched) not in _WATCHED.values() or listener not in watched.listeners:
            return
        watched.listeners.remove(listener)
        if watched.listeners:
            return
        plain = watched.plain
        plain.clear()
        (plain.update if isinstance(plain, dict) else plain.extend)(watched)
        setattr(owner, name, plain)


_watching_now = Lock()
