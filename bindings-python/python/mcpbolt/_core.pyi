"""The engine. Private: what it offers may change with every release."""

from asyncio import Future
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, final

from ._ask import Asked
from ._auth import Credentials
from ._content import Message
from ._errors import ConnectionClosed
from ._interpreter import Interpreter
from ._questions import Elicited, Root, Sampled
from ._results import ClientInfo
from ._serve_options import ServeOptions

__all__ = [
    "__version__",
    "Answer",
    "Catalog",
    "Connecting",
    "Context",
    "Endpoint",
    "Exchange",
    "Job",
    "Link",
    "Pages",
    "RemoteTask",
    "Serving",
    "Stream",
    "Termination",
    "command_of",
    "connect_child",
    "connect_pair",
    "connect_to",
    "get_skill",
    "list_skills",
    "list_tasks",
    "mount",
    "read_directory",
    "read_skill",
    "to_json",
    "whole_list",
]

__version__: str

def to_json(value: object) -> str:
    """A value as the JSON text that goes on the wire."""

def connect_child(
    setup: _Setup,
    command: Sequence[str],
    cwd: str | None,
    env: Sequence[tuple[str, str]],
    inherit: Sequence[str],
) -> Link: ...
def command_of(address: str) -> list[str] | None: ...
def connect_to(setup: _Setup, address: str, credentials: Credentials) -> Connecting: ...
def connect_pair(
    setup: _Setup,
    catalog: Catalog,
    interpreter: Interpreter,
) -> tuple[Link, Serving]: ...
def mount(
    catalog: Catalog,
    interpreter: Interpreter,
    grace: float,
    options: ServeOptions,
) -> tuple[Serving, Endpoint]: ...
def whole_list(link: Link, kind: str, future: Future[list[dict[str, Any]]]) -> int: ...
def list_tasks(link: Link, future: Future[list[dict[str, Any]]]) -> int: ...
def list_skills(link: Link, future: Future[list[dict[str, Any]]]) -> int: ...
def get_skill(link: Link, uri: str, future: Future[dict[str, Any]]) -> int: ...
def read_skill(link: Link, skill: str, uri: str | None, future: Future[Any]) -> int: ...
def read_directory(link: Link, uri: str, future: Future[list[dict[str, Any]]]) -> int: ...

class _Options(Protocol):
    """How a request is made."""

class _Definition(Protocol):
    """One tool, resource, template or prompt."""

class _SkillFolder(Protocol):
    """A skill and its files."""

class _ServerSetup(Protocol):
    """How a server is set up."""

class _Setup(Protocol):
    """How a client is set up."""

@final
class Answer:
    """The result of a client's request."""

    def parse(self) -> dict[str, Any]:
        """The result as Python objects, made anew each time."""

    def json(self) -> str:
        """The result as it stands on the wire."""

@final
class Catalog:
    def __new__(
        cls,
        setup: _ServerSetup,
        entries: Sequence[_Definition],
    ) -> Catalog: ...
    def add(self, entry: _Definition) -> None: ...
    def add_skill(self, skill: _SkillFolder) -> None: ...
    def remove(self, kind: str, name: str) -> bool: ...
    def resource_updated(self, uri: str) -> None: ...
    @property
    def in_use(self) -> bool: ...
    @property
    def needs_loop(self) -> bool: ...

@final
class Connecting:
    def fileno(self) -> int: ...
    def link(self) -> Link: ...

@final
class Context:
    """A call under way. A handler gets one by a parameter with this hint."""

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Reports progress, if the client asked for it. It must increase from call to call."""

    def log(self, level: str, data: object, logger: str | None = None) -> None:
        """Sends a log message, if the client wants messages of that level."""

    def sample(
        self,
        messages: str | Message | Iterable[Message | dict[str, Any]],
        *,
        max_tokens: int,
        system_prompt: str | None = None,
        temperature: float | None = None,
        stop_sequences: Iterable[str] = (),
        model_preferences: Mapping[str, Any] | None = None,
        tools: Iterable[Mapping[str, Any]] | None = None,
        tool_choice: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Asked[Sampled]:
        """Has the client's model go on with a conversation.

        Await it in a coroutine function; in a plain one call its `wait()`. From 2026-07-28 on the
        call ends with what is asked and comes again with the answers: the handler then runs from
        its beginning, and gets at once what it asked before.

        Raises:
            Unsupported: The client has no model to offer.
        """

    def elicit(self, message: str, form: type | dict[str, Any]) -> Asked[Elicited]:
        """Asks the user to fill in a form: a class of plain fields (a dataclass, a `TypedDict` or a
        pydantic model), or a flat JSON Schema. Otherwise like `sample`.
        """

    def elicit_url(self, message: str, url: str, id: str | None = None) -> Asked[Elicited]:
        """Asks the user to do something at a web page. Otherwise like `sample`."""

    def roots(self) -> Asked[list[Root]]:
        """The folders and files that the client wants servers to keep to. Otherwise like `sample`."""

    def named(self, question: str) -> Context:
        """This context, with a name for the next question that is asked through it: what clients see
        it as from 2026-07-28 on. Questions of one call have different names; without one they are
        numbered."""

    def release_stream(self, retry: float) -> None:
        """Ends the stream of events on which this call is answered, where it has one in a session over
        HTTP (2025-11-25): the client comes back after `retry` seconds for what is said from now on, and
        meanwhile costs no connection. Elsewhere nothing happens."""

    def elicitation_complete(self, id: str) -> None:
        """Tells the client that the user has done what `elicit_url` with that `id` asked for, where
        the revision has a word for it (2025-11-25). May be called after the call is over."""

    def begin_task(self) -> bool:
        """Has the call of a tool with `task="optional"` or `"required"` go on as a task: the client
        is answered that it is one, and finds the result there.

        Whether it is one; `False` when the client cannot follow it, or there is no room: the call
        goes on as before. What is asked of the client before takes rounds, what is asked after
        waits in the task. In 2025-11-25, where clients ask for tasks, nothing is left to do here.
        """

    def task_message(self, message: str) -> None:
        """Says in a sentence how far the task is, to who looks. Does nothing where there is none."""

    def extension(self, id: str) -> dict[str, Any] | None:
        """The settings that the client declared with this call for an extension; `None` when it
        did not. Before 2026-07-28 there are none."""

    def require(self, *capability: str) -> None:
        """Refuses the call unless its client declared a capability, as `"elicitation", "url"`: with
        the error that says which.

        Raises:
            ProtocolError: The client did not.
        """

    def _ask(self, what: str, params: object, future: Future[Any]) -> int: ...
    def _forget(self, number: int) -> None: ...
    def _wait(self, what: str, params: object) -> Any: ...
    @property
    def is_task(self) -> bool:
        """Whether the call has become a task."""

    @property
    def meta(self) -> dict[str, Any]:
        """The `_meta` of the request: trace context, and whatever else the client sends along."""

    @property
    def client(self) -> ClientInfo:
        """What the client said of itself."""

    @property
    def cancelled(self) -> bool:
        """Whether the client gave up, or went away."""

    @property
    def cancel_reason(self) -> str | None:
        """Why it gave up, if it said so."""

    @property
    def revision(self) -> str:
        """The protocol revision that the call is served in."""

    @property
    def state(self) -> Any:
        """What the server's lifespan gave."""

@final
class Endpoint:
    def begin(
        self, method: str, target: bytes, headers: Iterable[tuple[bytes, bytes]], body: bytes, more: bool
    ) -> Exchange: ...

@final
class Exchange:
    def feed(self, body: bytes, more: bool) -> None: ...
    def answer(self) -> tuple[int, list[tuple[bytes, bytes]]] | None: ...
    def read(self) -> tuple[bytes, bool] | None: ...
    def wait(self, future: Future[None]) -> bool: ...
    def close(self) -> None: ...

@final
class Job:
    def settle(self, value: object) -> None: ...
    def fail(self, error: BaseException) -> None: ...

@final
class Link:
    def request(
        self,
        method: str,
        params: object,
        future: Future[Answer],
        options: _Options | None,
    ) -> int: ...
    def call_tool(
        self,
        name: str,
        arguments: object,
        future: Future[Answer | RemoteTask],
        options: _Options | None,
        start: bool,
        ttl: float | None,
    ) -> int: ...
    def cancel(self, number: int, reason: str | None) -> None: ...
    def subscribe(self, uri: str, wanted: bool, future: Future[None]) -> int: ...
    def listen(
        self, tools: bool, prompts: bool, resources: bool, uris: Sequence[str], future: Future[Stream]
    ) -> int: ...
    def set_log_level(self, level: str, future: Future[bool]) -> int: ...
    def set_roots(self, roots: Sequence[tuple[str, str | None]]) -> None: ...
    def answer(self, number: int, answer: object) -> None: ...
    def refuse(self, number: int, why: str) -> None: ...
    def knows(self, rule: str) -> bool: ...
    def fileno(self) -> int: ...
    def drain(self) -> None: ...
    def peer(self) -> tuple[dict[str, Any], dict[str, Any], str | None, str | None]: ...
    def offers(self, capability: str) -> bool: ...
    def ping_method(self) -> str: ...
    def stray_count(self) -> int: ...
    def end(self) -> ConnectionClosed | None: ...
    def close(self) -> None: ...

@final
class Pages:
    def __new__(cls, link: Link, kind: str) -> Pages: ...
    def next(self, link: Link, future: Future[list[dict[str, Any]] | None]) -> int: ...

@final
class RemoteTask:
    def __new__(cls, link: Link, id: str) -> RemoteTask: ...
    @property
    def id(self) -> str: ...
    def info(self, link: Link, future: Future[dict[str, Any]]) -> int: ...
    def answer(
        self, link: Link, future: Future[Answer], seen: Callable[[dict[str, Any]], object] | None = None
    ) -> int: ...
    def cancel(self, link: Link, future: Future[None]) -> int: ...

@final
class Stream:
    def attend(self, link: Link, future: Future[None]) -> int: ...

@final
class Serving:
    @staticmethod
    def stdio(
        catalog: Catalog,
        interpreter: Interpreter,
        grace: float,
        own: bool,
    ) -> Serving: ...
    @staticmethod
    def network(
        catalog: Catalog,
        interpreter: Interpreter,
        address: str,
        grace: float,
        own: Termination | None,
        options: ServeOptions,
    ) -> Serving: ...
    @property
    def address(self) -> str: ...
    def fileno(self) -> int: ...
    def drain(self) -> bool: ...
    @property
    def has_tasks(self) -> bool: ...
    def wait(self) -> None: ...
    def stop(self) -> None: ...
    def close(self) -> None: ...

@final
class Termination:
    def __new__(cls) -> Termination: ...
    def fileno(self) -> int: ...
    def note(self, number: int) -> None: ...
