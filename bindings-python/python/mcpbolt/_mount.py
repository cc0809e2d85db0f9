"""`Mount`: a server within another one, which offers all that it offers under a prefix."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any
from weakref import ref

from . import _core, _lower
from ._entry import Entry
from ._errors import Misuse
from ._failures import Within
from ._lanes import Layer, Rest, Run
from ._layers import call_of, layered, layers_around
from ._offer import Offer
from ._settings import Settings
from ._signature import Signature
from ._skills import SkillFolder


def mount(outer: Offer, prefix: str, server: Offer) -> None:
    """Mounts a server: see `Server.mount`."""
    if prefix and not prefix.replace("-", "_").isidentifier():
        raise ValueError(f"mount: the prefix {prefix!r} is not a name; use letters, digits, _ and -")
    if outer is server or any(inner is outer for inner in within_it(server)):
        raise ValueError("mount: one server is within the other already")
    if server._settings.has_policy:
        raise ValueError(
            f"mount: {_called(server)} has a policy, which would not count here; give it to {_called(outer)}, whose clients"
            " call the tools"
        )
    if server._front is not None:
        raise ValueError(
            f"mount: {_called(server)} has external servers mounted, which would not be offered here; mount them in {_called(outer)}"
        )
    made = Mount(outer, prefix, server)
    is_running = outer._list_changes and outer._made
    if is_running and (_completes(server) or any(one._lifespan for one in lifespans(server))):
        raise Misuse(
            f"mount: {_called(server)} has a lifespan or a completion, and {_called(outer)} has been served already: mount it"
            " before"
        )
    offered = list(made.offered())
    for entry, _ in offered:
        check_free(outer, entry)
    if outer._front is not None:
        for entry, _ in offered:
            check_apart(outer, entry)
    outer._mounts.append(made)
    server._mounted_in.append(ref(made))
    if is_running:
        for entry, inner in offered:
            outer._added(entry, inner)
        for skill in server._skills():
            outer._add_skill(made.skill(skill))
    else:
        outer._grow_stale()


def within_it(server: Offer) -> Iterator[Offer]:
    """The servers that a server mounts, and those that they mount."""
    for one in server._mounts:
        yield one.server
        yield from within_it(one.server)


def lifespans(server: Offer) -> list[Any]:
    """A server and those within it that have a lifespan, each once."""
    all_of_them: list[Any] = [server, *within_it(server)]
    return [*{id(one): one for one in all_of_them if one._lifespan is not None}.values()]


def check_free(server: Offer, entry: Entry) -> None:
    """Checks that the name of a new entry is free on its server and wherever that is mounted.

    Raises:
        ValueError: It is taken.
    """
    _check(server, entry)
    for one in server._outer():
        check_free(one.outer, one.renamed(entry))


def check_apart(server: Offer, entry: Entry) -> None:
    """Checks that a new entry of a server does not have a name of the external servers that are mounted in it.

    Raises:
        ValueError: Its name begins with the prefix of one of them.
    """
    for external in server._front._externals if server._front is not None else []:
        if external._prefix is not None:
            check_prefix(external._prefix, entry)


def check_prefix(prefix: str, entry: Entry) -> None:
    """Checks that an entry of a server does not have a name of an external server that is mounted under a prefix."""
    _, colon, rest = entry.key.partition("://")
    if rest.lower().startswith(f"{prefix.lower()}/") if colon else entry.key.startswith(f"{prefix}_"):
        raise ValueError(
            f"mount: the {entry.kind} {entry.key!r} has a name of the external server that is mounted under"
            f" {prefix!r}; rename it, or mount under another prefix"
        )


def _check(server: Offer, entry: Entry) -> None:
    for other, _ in server._offered():
        if other.kind == entry.kind and other.key == entry.key:
            raise ValueError(
                f"{_called(server)} would offer the {entry.kind} {entry.key!r} twice: {_origin(other)} and {_origin(entry)};"
                " rename one, or mount under another prefix"
            )


def _origin(entry: Entry) -> str:
    return entry.origin or "its own"


def _called(server: Any) -> str:
    return f"server {server.name!r}"


class Mount:
    """A server at a prefix of another one."""

    def __init__(self, outer: Offer, prefix: str, server: Offer) -> None:
        self.outer = outer
        self.prefix = prefix
        self.server = server

    def name(self, name: str) -> str:
        """The name of a tool or prompt as the outer server has it."""
        return f"{self.prefix}_{name}" if self.prefix else name

    def uri(self, uri: str) -> str:
        """A URI as the outer server has it."""
        scheme, colon, rest = uri.partition("://")
        return f"{scheme}://{self.prefix}/{rest}" if self.prefix and colon else uri

    def key(self, kind: str, key: str) -> str:
        return self.uri(key) if kind in ("resource", "template") else self.name(key)

    def local(self, key: str) -> str | None:
        """The name or URI that the mounted server has; `None` if it is not of that server."""
        if not self.prefix:
            return key
        scheme, colon, rest = key.partition("://")
        if colon:
            return f"{scheme}://{rest[len(self.prefix) + 1 :]}" if rest.startswith(f"{self.prefix}/") else None
        return key[len(self.prefix) + 1 :] if key.startswith(f"{self.prefix}_") else None

    def renamed(self, entry: Entry) -> Entry:
        """The entry as the outer server offers it."""
        made = copy(entry)
        made.name = entry.name if entry.uri else self.name(entry.name)
        made.definition = entry.definition | {"name": made.name}
        if entry.uri:
            made.uri = self.uri(entry.uri)
            made.definition["uri"] = made.uri
        made.owner = entry.owner if entry.owner is not None else id(self.server)
        made.failed = Within(entry.failed, self.outer._settings.failed)
        made.origin = entry.origin or f"{entry.key!r} of {_called(self.server)}"
        return made

    def offered(self) -> Iterator[tuple[Entry, list[Layer]]]:
        """All that the mounted server offers, as the outer server has it, with the layers around it."""
        for entry, inner in self.server._offered():
            yield self.renamed(entry), self.entered(entry, inner)

    def entered(self, entry: Entry, inner: list[Layer]) -> list[Layer]:
        """The layers of an entry of the mounted server, which see its own URIs."""
        if not (inner and entry.uri and self.prefix):
            return inner

        async def around(run: Run, pending: _core.Pending, rest: Rest) -> Any:
            uri = pending.local_uri or ""
            return await rest(run, pending.at(self.local(uri) or uri))

        return [Layer(around, False), *inner]

    def skill(self, skill: SkillFolder) -> SkillFolder:
        """A skill within a folder with the name of the prefix."""
        made = copy(skill)
        made.within = "/".join(filter(None, (self.prefix, skill.within)))
        return made


def settings(server: Offer) -> Settings:
    """The settings of a server, with the skills of those that it mounts."""
    made = copy(server._settings)
    made.is_behind_front = server._front is not None
    made.skills = [*server._skills()]
    return made


def completion(server: Offer) -> Entry | None:
    """The completion of a server and of those that it mounts."""
    made = _completes(server)
    if made is None:
        return None
    rest, is_async = made
    entry = Entry("completion", Signature(_no_function), name="completion")
    entry.wrapped, entry.lane = rest, "task" if is_async else "worker"
    entry.lower = _lower.completions
    entry.failed = server._settings.failed
    return layered(entry, [])


def _no_function() -> None:
    """Stands for the functions of several servers."""


def _offers(server: Offer, member: str, key: str) -> bool:
    """Whether a server has the prompt of that name, or the resource or template of that URI."""
    kinds = ("prompt",) if member == "name" else ("resource", "template")
    return any(entry.kind in kinds and entry.key == key for entry, _ in server._offered())


def _completes(server: Offer) -> tuple[Rest, bool] | None:
    """Completes with the function of the server that has the prompt or template, within its layers; and whether any of
    them waits."""
    own = server._completion
    inner = [(one, made) for one in server._mounts if (made := _completes(one.server)) is not None]
    if own is None and not inner:
        return None
    call = None if own is None else call_of(own)

    async def rest(run: Run, pending: _core.Pending) -> Any:
        params = pending.arguments()
        member = "name" if "name" in params["ref"] else "uri"
        key = params["ref"][member]
        for one, (complete, _) in inner:
            local = one.local(key)
            if local is not None and _offers(one.server, member, local):
                ref = params["ref"] | {member: local}
                return await complete(run, pending.cleaned(params | {"ref": ref}))
        if own is None or call is None or own.prepare is None:
            return []
        named = own.prepare({"request": params})
        if own.context is not None:
            named[own.context] = pending.context
        return await call(run, pending, named)

    is_async = own is not None and own.is_async or any(is_one for _, (_, is_one) in inner)
    around = server._around(own or Entry("completion", Signature(_no_function)))
    return layers_around(rest, around), is_async or any(layer.is_async for layer in around)
