"""`Pool`: clients that are kept and used again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from os import PathLike
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _core
from ._client import Client
from ._core import to_json
from ._errors import ConnectionClosed, Overloaded, RequestTimeout
from ._event_loop import at_last, event_loop, pause
from ._failures import logged
from ._oauth import OAuth
from ._options import options as set_options
from ._server import Server
from ._watched import waiting

if TYPE_CHECKING:
    from ._event_loop import Cancellable, Future, Loop

Target = str | Sequence[str | PathLike[str]]


class PoolCounts(NamedTuple):
    """Counters of a pool: how many there are now, and how many there were.

    Attributes:
        idle: Connections that nobody has.
        in_use: Connections that somebody has.
        opening: Connections that are being opened.
        waiting: Callers that wait.
        opened: Connections that were opened.
        reused: Times that a connection was there already.
        failed: Connections that could not be opened.
        closed_idle: Connections closed because nobody had used them for long, or another target needed their place.
        dropped: Connections that broke, or were not fit for another caller.
        timed_out: Callers that waited in vain.
    """

    idle: int
    in_use: int
    opening: int
    waiting: int
    opened: int
    reused: int
    failed: int
    closed_idle: int
    dropped: int
    timed_out: int


class Pool:
    """Clients of servers, used again by later callers.

        async with Pool() as pool:
            async with pool.client("https://example.com/mcp") as client:
                await client.call_tool("echo")

    A caller gets a connection that nobody has, else a new one, else it waits for its turn. The connection is its own until
    the block ends. Connections are used again for the same server with the same options only: other credentials, headers or
    revisions make other connections. Each does its own handshake. One that has broken leaves the pool, and so does one that
    is given back with subscriptions or a log level. A pool belongs to one event loop.

    Args:
        max_connections: The most connections to one target; 10 by default.
        max_total: The most connections in all; 100 by default. Beyond it, the connection to another target that has been
            idle for longest is closed.
        sharing: How many callers may have the same connection at a time: 1 by default, so that what a server asks or
            notifies belongs to one caller. Raise it where servers only answer.
        wait_timeout: Seconds that a caller waits for a connection; 30 by default.
        max_waiting: The most callers that wait; 1,000 by default. Further ones are refused at once.
        idle_timeout: Seconds that a connection may be idle before it is closed; 60 by default.
        options: Options of every `Client`.
    """

    def __init__(
        self,
        *,
        max_connections: int | None = None,
        max_total: int | None = None,
        sharing: int | None = None,
        wait_timeout: float | None = None,
        max_waiting: int | None = None,
        idle_timeout: float | None = None,
        **options: Any,
    ) -> None:
        settings = set_options(
            max_connections=max_connections,
            max_total=max_total,
            sharing=sharing,
            wait_timeout=wait_timeout,
            max_waiting=max_waiting,
            idle_timeout=idle_timeout,
        )
        self._ledger = _core.Ledger(to_json(settings))
        self._options = options
        self._clients: dict[int, Client] = {}
        # The callers' own objects of connections that they have.
        self._leases: dict[Client, int] = {}
        self._waiting: dict[int, Future[tuple[str, int]]] = {}
        # What callers have got that have not run since.
        self._given: dict[int, tuple[str, int]] = {}
        self._ending: dict[Client, Future[None]] = {}
        self._loop: Loop
        self._watcher: tuple[Cancellable, float] | None = None
        self._is_closed = False

    @property
    def counts(self) -> PoolCounts:
        """The counters at this moment."""
        return PoolCounts(*self._ledger.counts())

    @asynccontextmanager
    async def client(self, server: Target, **options: Any) -> AsyncIterator[Client]:
        """Has a connected client while the block runs.

        Args:
            server: An address or a command line, as for a `Client`.
            options: Options of the `Client`, beside those of the pool.

        Raises:
            RequestTimeout: All connections were in use for `wait_timeout`.
            Overloaded: Too many callers wait already.
            ConnectionClosed: The pool is closed.
        """
        client = await self.acquire(server, **options)
        try:
            yield client
        finally:
            self.release(client)

    async def acquire(self, server: Target, **options: Any) -> Client:
        """Gets a connected client, to be given back by `release`. Raises as `client` does."""
        if isinstance(server, Server):
            raise TypeError("a pool connects to addresses and command lines; connect to a Server of this program by Client")
        self._loop = event_loop()
        options = {**self._options, **options}
        made = Client(server, **options)
        key = _key(made, options)
        while True:
            what, id = await self._granted(key)
            if what == "open":
                return await self._open(id, made)
            client = self._clients.get(id)
            if client is None or _has_ended(client):
                self._lose(id)  # It broke while nobody had it, or was discarded while the grant was on its way.
            elif not _is_fit(client):
                # Somebody else who has it subscribed, or set a log level.
                self._ledger.give_back(id, False)
            else:
                return self._lent(id, client)
            self._settle()

    def release(self, client: Client, *, discard: bool = False) -> None:
        """Gives a client back. A second time has no effect.

        Args:
            discard: Closes the connection instead, as one whose state is not known any more.
        """
        id = self._leases.pop(client, None)
        if id is None:
            return  # It was given back or discarded, or the pool is closed.
        if discard or _has_ended(client):
            self._lose(id)
        else:
            self._ledger.give_back(id, _is_fit(client))
        self._settle()

    async def close(self) -> None:
        """Closes all connections, also those in use. Callers that wait, or come later, are refused."""
        self._is_closed = True
        self._ledger.close_all()
        self._settle()
        for ended in list(self._ending.values()):
            await at_last(ended)

    async def __aenter__(self) -> Pool:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def _granted(self, key: str) -> tuple[str, int]:
        if self._is_closed:
            raise _closed()
        what, number = self._ledger.ask(key)
        if what == "refused":
            raise Overloaded("too many callers wait for a connection of the pool")
        if what != "wait":
            self._settle()
            return what, number
        future: Future[tuple[str, int]] = self._loop.create_future()
        self._waiting[number] = future
        self._settle()
        try:
            with waiting(future):
                return await future
        except BaseException:
            if self._waiting.pop(number, None) is not None:
                self._ledger.withdraw(number)
            elif number in self._given:
                self._decline(*self._given[number])
            self._settle()
            raise
        finally:
            self._given.pop(number, None)

    async def _open(self, id: int, client: Client) -> Client:
        try:
            await client.__aenter__()
        except BaseException:
            self._ledger.lost(id)
            self._settle()
            raise
        if self._is_closed:
            await self._end(client)
            raise _closed()
        self._clients[id] = client
        lent = self._lent(id, client)
        self._ledger.opened(id)
        self._settle()
        return lent

    def _lent(self, id: int, client: Client) -> Client:
        """An object of a caller's own for a connection, which tells its `release` from those of callers before and after."""
        lent = Client.__new__(Client)
        lent.__dict__ = client.__dict__
        self._leases[lent] = id
        return lent

    def _decline(self, what: str, id: int) -> None:
        """A caller does not use what it has got."""
        if what == "use":
            self._ledger.decline(id)
        else:
            self._ledger.lost(id)

    def _lose(self, id: int) -> None:
        """A connection is not used again."""
        self._ledger.lost(id)
        self._forget(id)

    def _forget(self, id: int) -> None:
        client = self._clients.pop(id, None)
        if client is not None:
            self._leases = {lent: of for lent, of in self._leases.items() if of != id}
            self._ending[client] = self._loop.create_future()
            self._loop.create_task(self._end(client))

    async def _end(self, client: Client) -> None:
        try:
            await client.__aexit__(None, None, None)
        except Exception as error:
            logged("mcpbolt.client", "a client of the pool did not close", error)
        finally:
            if ended := self._ending.pop(client, None):
                ended.set_result(None)

    def _settle(self) -> None:
        """Carries out what the ledger has decided."""
        while True:
            granted, expired, closing = self._ledger.changes()
            if not (granted or expired or closing):
                break
            for ticket, what, id in granted:
                future = self._waiting.pop(ticket)
                if future.done():  # Its task was cancelled meanwhile.
                    self._decline(what, id)
                else:
                    self._given[ticket] = what, id
                    future.set_result((what, id))
            for ticket in expired:
                future = self._waiting.pop(ticket)
                if not future.done():
                    why = "all connections of the pool were in use for as long as a caller waits"
                    future.set_exception(_closed() if self._is_closed else RequestTimeout(why))
            for id in closing:
                self._forget(id)
        self._watch()

    def _watch(self) -> None:
        """Sees to it that the time is looked at when the ledger has something to do."""
        due = self._ledger.due()
        at = None if due is None else monotonic() + due
        if self._watcher is not None:
            task, planned = self._watcher
            if at is not None and planned <= at:
                return  # It looks anew then.
            task.cancel()
            self._watcher = None
        if at is not None and due is not None:
            self._watcher = self._loop.create_task(self._look(due)), at

    async def _look(self, due: float) -> None:
        await pause(due)
        self._watcher = None
        self._ledger.advance()
        self._settle()


def _has_ended(client: Client) -> bool:
    return client._link is None or client._link.end() is not None


def _is_fit(client: Client) -> bool:
    """Whether nothing of a caller is left at the server: neither subscriptions nor a log level."""
    return client._link is not None and not client._link.has_subscriptions() and not client._has_log_level


def _closed() -> ConnectionClosed:
    return ConnectionClosed("the pool is closed")


def _key(client: Client, options: dict[str, Any]) -> str:
    """What tells connections apart: server, credentials, revision, and every other option."""
    server = client._server
    functions = [(name, id(value)) for name, value in sorted(options.items()) if callable(value) or isinstance(value, OAuth)]
    child = [client._cwd, sorted(client._env), sorted(client._inherit)]
    words = server if isinstance(server, str) else list(map(str, server))  # type: ignore[arg-type]
    return to_json([words, client._connect_options, client._setup.json, child, functions])
