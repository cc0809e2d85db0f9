"""The native engine. Private: its interface may change with every release."""

# Written by hand, because the engine takes many arguments as any object, and their types are written here only:
# generated from the signatures in Rust, a third of all parameters would be `Any`. The stage `python` of `cargo xtask
# test` compares every name, parameter and default with the built module (`mypy.stubtest`).

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextvars import Context as ContextVars
from typing import Any, Literal, Protocol, TypeAlias, final

from ._actions import ActionAnswer
from ._ask import Asked
from ._content import Message as Spoken
from ._errors import ConnectionClosed, McpError
from ._event_loop import Future
from ._interpreter import Interpreter
from ._questions import Elicited, Root, Sampled
from ._results import ClientInfo
from ._settings import Settings

__all__ = [
    "__version__",
    "Answer",
    "Answered",
    "Cancelled",
    "Catalog",
    "Closed",
    "Connecting",
    "Connection",
    "Context",
    "Counter",
    "Endpoint",
    "Exchange",
    "External",
    "Finished",
    "Front",
    "Handoffs",
    "Job",
    "CachedCall",
    "KernelConnection",
    "Ledger",
    "Link",
    "Login",
    "Message",
    "Notification",
    "Opened",
    "KernelRequest",
    "Pages",
    "Pending",
    "Permissions",
    "Prefix",
    "Progress",
    "Relay",
    "RemoteTask",
    "ServedFront",
    "Request",
    "Results",
    "Rule",
    "Serving",
    "Stray",
    "Stream",
    "Telemetry",
    "Termination",
    "Wake",
    "Wire",
    "action_results",
    "call_tool",
    "listen",
    "action_schemas",
    "call_action",
    "check_joined",
    "check_options",
    "command_of",
    "connect_child",
    "connect_front",
    "connect_pair",
    "connect_to",
    "decode",
    "dumps",
    "encode_error",
    "encode_notification",
    "encode_request",
    "encode_response",
    "get_skill",
    "is_worker",
    "list_skills",
    "list_tasks",
    "loads",
    "mount",
    "mount_front",
    "read_directory",
    "read_skill",
    "revisions",
    "supervise",
    "to_json",
    "tool_pin",
    "unpack",
    "whole_list",
    "command",
]

__version__: str

def command(arguments: Sequence[str]) -> int: ...
def is_worker() -> bool: ...
def supervise(
    command: Sequence[str],
    address: str,
    terms: tuple[int, float, Sequence[int]],
    health: str | None,
    ready: Callable[[str], object],
) -> None: ...
def revisions(feature: str) -> list[str]: ...
def to_json(value: object) -> str:
    """Serializes a value to the JSON text that goes on the wire."""

def connect_child(
    setup: _Setup,
    command: Sequence[str],
    cwd: str | None,
    env: Sequence[tuple[str, str]],
    inherit: Sequence[str],
) -> Link: ...
def command_of(address: str) -> list[str] | None: ...
def connect_to(setup: _Setup, address: str, options: str, login: Login | None = None) -> Connecting: ...
def check_joined(servers: Sequence[tuple[str, str | None]]) -> None: ...
def connect_front(setup: _Setup, front: Front) -> Connecting: ...
def connect_pair(
    setup: _Setup,
    catalog: Catalog,
    interpreter: Interpreter,
) -> tuple[Link, Serving]: ...
def mount(
    catalog: Catalog,
    interpreter: Interpreter,
    options: str,
) -> tuple[Serving, Endpoint]: ...
def check_options(address: str, options: str) -> None: ...
def mount_front(front: Front, serving: Serving, options: str) -> Endpoint: ...
def call_tool(
    link: Link,
    name: str,
    arguments: object,
    future: Future[Answer | RemoteTask],
    options: _Options | None,
    start: bool,
    ttl: float | None,
) -> int: ...
def listen(
    link: Link, tools: bool, prompts: bool, resources: bool, uris: Sequence[str], future: Future[Stream]
) -> int: ...
def whole_list(link: Link, kind: str, future: Future[list[dict[str, Any]]]) -> int: ...
def call_action(
    link: Link,
    name: str,
    params: str,
    options: str,
    on_partial: Callable[[Any], object] | None,
    future: Future[ActionAnswer],
) -> int: ...
def action_schemas(link: Link, future: Future[dict[str, Any]]) -> int: ...
def action_results(data: object) -> list[Any]: ...
def list_tasks(link: Link, future: Future[list[dict[str, Any]]]) -> int: ...
def list_skills(link: Link, future: Future[list[dict[str, Any]]]) -> int: ...
def get_skill(link: Link, uri: str, future: Future[dict[str, Any]]) -> int: ...
def read_skill(link: Link, skill: str, uri: str | None, future: Future[Any]) -> int: ...
def read_directory(link: Link, uri: str, future: Future[list[dict[str, Any]]]) -> int: ...

_Bytes: TypeAlias = bytes | bytearray | memoryview | str
_Object: TypeAlias = Mapping[str, Any] | bytes
_Kind: TypeAlias = Literal["request", "notification", "response", "error", "batch", "invalid"]

def decode(data: _Bytes, /, max_depth: int | None = None) -> Message:
    """Decodes one message: validates all of it; its parts become Python objects when they are accessed.

    Bytes are referenced, not copied; any other input is copied once. Valid JSON that is not a message has the kind
    "invalid", and `fault` says why.

    Raises:
        DecodeError: The data is not JSON, not UTF-8, or nested deeper than `max_depth` (512 by default, 1024 at most).
    """

def unpack(
    data: _Bytes, /, max_depth: int | None = None
) -> tuple[_Kind, int | str | None, str | None, Any]:
    """Decodes one message completely, faster than accessing each part after `decode`. Returns its kind, its id, its
    method, and its params, result, error or messages.

    Raises:
        DecodeError: As for `decode`; also for valid JSON that is not a message.
        ValueError: A string contains a lone surrogate, or an integer has more digits than the interpreter allows.
    """

def loads(data: _Bytes, /, max_depth: int | None = None) -> Any:
    """Parses any JSON text into Python objects. Raises the same errors as `unpack`."""

def dumps(value: object, /) -> bytes:
    """Serializes Python objects to JSON text without whitespace: JSON's own types, dataclasses, pydantic models, dates
    and the like.

    Raises:
        ValueError: A number is infinite or NaN, a string contains a lone surrogate, or a value is nested deeper than
            256 or contains itself.
        TypeError: A value is not JSON serializable.
    """

def encode_request(id: int | str, method: str, params: _Object | None = None) -> bytes:
    """Encodes a request, without a line end. Params are a dict, or the bytes of a JSON object, which are validated."""

def encode_notification(method: str, params: _Object | None = None) -> bytes:
    """Encodes a notification."""

def encode_response(id: int | str, result: _Object) -> bytes:
    """Encodes the response to a request."""

def encode_error(id: int | str | None, code: int, message: str, data: object | None = None) -> bytes:
    """Encodes the error response to a request; `None` as the id, if it could not be read, becomes `null`."""

class _Options(Protocol):
    """Options of a request."""

class _Definition(Protocol):
    """One tool, resource, template or prompt."""

_Parts: TypeAlias = tuple[list[dict[str, Any]] | None, Any, dict[str, Any] | None, bool]

class _Straight(Protocol):
    """A handler for calls whose arguments need no validator."""

class _SkillFolder(Protocol):
    """A skill and its files."""

class _Setup(Protocol):
    """The setup of a client."""

@final
class Answer:
    """The result of a client's request."""

    def parse(self) -> dict[str, Any]:
        """Parses the result into Python objects, anew on each call."""

    def json(self) -> str:
        """Returns the result as JSON text, as it came."""

@final
class Catalog:
    def __new__(
        cls,
        settings: Settings,
        entries: Sequence[_Definition],
    ) -> Catalog: ...
    def replace_jwt_keys(self, keys: str) -> None: ...
    def add(self, entry: _Definition) -> None: ...
    def add_skill(self, skill: _SkillFolder) -> None: ...
    def remove(self, kind: str, name: str) -> bool: ...
    def offer(
        self,
        method: str,
        name: str,
        function: Callable[..., Any] | None,
        lane: str = "worker",
        straight: _Straight | None = None,
    ) -> None: ...
    def show(self, method: str, revision: str, result: str | None) -> None: ...
    def resource_updated(self, uri: str) -> None: ...
    @property
    def in_use(self) -> bool: ...
    @property
    def needs_loop(self) -> bool: ...

@final
class Connecting:
    def wake(self) -> Wake: ...
    def cancel(self) -> None: ...
    def link(self) -> Link: ...

@final
class Context:
    """The context of a call in progress. A handler gets it by declaring a parameter with this type hint."""

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Reports progress, if the client asked for it. It must increase from call to call."""

    def partial(self, data: object) -> None:
        """Sends a part of the result, any JSON-serializable value, to a client of the action dialect that
        reads the answer as a stream. Does nothing for other clients, which get the whole result. Parts are
        delivered in order and before the answer."""

    def log(self, level: str, data: object, logger: str | None = None) -> None:
        """Sends a log message, if the client wants messages of that level. `data` is any JSON-serializable value. The
        levels are `debug`, `info`, `notice`, `warning`, `error`, `critical`, `alert` and `emergency`."""

    def debug(self, data: object, logger: str | None = None) -> None:
        """Logs at the level `debug`: see `log`."""

    def info(self, data: object, logger: str | None = None) -> None:
        """Logs at the level `info`: see `log`."""

    def warning(self, data: object, logger: str | None = None) -> None:
        """Logs at the level `warning`: see `log`."""

    def error(self, data: object, logger: str | None = None) -> None:
        """Logs at the level `error`: see `log`."""

    def sample(
        self,
        messages: str | Spoken | Iterable[Spoken | dict[str, Any]],
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
        """Asks the client's model to continue a conversation.

        Await the result in a coroutine function; in a plain one call its `wait()`. From 2026-07-28 on the
        question is sent as the answer to the call, and the client repeats the call with the reply: the
        handler then runs again from its beginning, and earlier questions are answered at once.

        Raises:
            Unsupported: The client does not offer a model.
        """

    def elicit(self, message: str, form: type | dict[str, Any]) -> Asked[Elicited]:
        """Asks the user to fill in a form. The form is a class of plain fields (a dataclass, a `TypedDict` or
        a pydantic model), or a flat JSON Schema. Otherwise like `sample`.
        """

    def elicit_url(self, message: str, url: str, id: str | None = None) -> Asked[Elicited]:
        """Asks the user to do something on a web page. Otherwise like `sample`."""

    def roots(self) -> Asked[list[Root]]:
        """Asks for the folders and files that the client wants servers to keep to. Otherwise like `sample`."""

    def named(self, question: str) -> Context:
        """Returns this context with a name for the next question that is asked through it. Clients see the
        name from 2026-07-28 on. Questions of one call must have different names; unnamed ones are
        numbered."""

    def release_stream(self, retry: float) -> None:
        """Ends the event stream of this call, if it has one in an HTTP session (2025-11-25). The client
        reconnects after `retry` seconds for later messages and the answer, and uses no connection until
        then. Does nothing elsewhere."""

    def elicitation_complete(self, id: str) -> None:
        """Notifies the client that the user has done what `elicit_url` with that `id` asked for, if the
        revision has this notification (2025-11-25). May be called after the call is over."""

    def begin_task(self) -> bool:
        """Continues the call of a tool with `task="optional"` or `"required"` as a task. The client is
        told so in the answer to the call, and fetches the result from the task.

        Returns whether the call is a task now; `False` if the client does not support tasks or there is no
        room for another: the call then goes on as before. Questions to the client take rounds before this
        call and go through the task after it. In 2025-11-25 clients ask for tasks, and this changes nothing.
        """

    def task_message(self, message: str) -> None:
        """Sets the status message of the task: a sentence on its progress. Does nothing if there is no task."""

    def extension(self, id: str) -> dict[str, Any] | None:
        """Returns the settings that the client declared for an extension with this call, or `None` if it
        declared none. Before 2026-07-28 it is always `None`."""

    def require(self, *capability: str) -> None:
        """Refuses the call unless its client declared a capability, such as `"elicitation", "url"`. The
        error names the capability.

        Raises:
            ProtocolError: The client did not declare it.
        """

    def _ask(self, what: str, params: object, future: Future[Any]) -> int: ...
    def _forget(self, number: int) -> None: ...
    def _wait(self, what: str, params: object) -> Any: ...
    @property
    def is_task(self) -> bool:
        """Whether the call runs as a task."""

    @property
    def meta(self) -> dict[str, Any]:
        """The `_meta` of the request: trace context, and any other metadata from the client."""

    @property
    def client(self) -> ClientInfo:
        """The client's self-description. For display: it is not verified."""

    @property
    def cancelled(self) -> bool:
        """Whether the client cancelled the call or disconnected."""

    @property
    def cancel_reason(self) -> str | None:
        """The reason for the cancellation, if the client gave one."""

    @property
    def action_context(self) -> str | None:
        """The process or state that the action belongs to, as named by the client."""

    @property
    def principal(self) -> str | None:
        """The caller, as verified by the policy: `key:alice` for the owner of an API key,
        `jwt:https://issuer#alice` for the subject of a token; `None` for an unauthenticated caller."""

    def has_scope(self, scope: str) -> bool:
        """Whether the caller was granted a scope, for instance to filter results."""

    @property
    def revision(self) -> str:
        """The protocol revision of the call."""

    @property
    def state(self) -> Any:
        """The value that the server's lifespan yielded."""

@final
class Endpoint:
    def begin(
        self,
        method: str,
        target: bytes,
        headers: Iterable[tuple[bytes, bytes]],
        peer: str | None,
        body: bytes,
        more: bool,
    ) -> Exchange: ...
    def stop(self) -> None: ...

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
class Wake:
    def fileno(self) -> int | None: ...
    def after(self, count: int) -> int | None: ...
    def end(self) -> None: ...

@final
class Login:
    def __new__(
        cls, settings: str, redirect_uri: str | None, has: Sequence[str], ask: Callable[[int, str, str], object]
    ) -> Login: ...
    def answer(self, number: int, answer: str | None, refusal: str | None = None) -> bool: ...

@final
class Link:
    def request(
        self,
        method: str,
        params: object,
        future: Future[Answer],
        options: _Options | None,
    ) -> int: ...
    def cancel(self, number: int, reason: str | None) -> None: ...
    def subscribe(self, uri: str, wanted: bool, future: Future[None]) -> int: ...
    def set_log_level(self, level: str, future: Future[bool]) -> int: ...
    def set_roots(self, roots: str) -> None: ...
    def answer(self, number: int, answer: object) -> None: ...
    def refuse(self, number: int, why: str) -> None: ...
    def knows(self, rule: str) -> bool: ...
    def wake(self) -> Wake: ...
    def drain(self) -> None: ...
    def check(self) -> None: ...
    def peer(self) -> tuple[dict[str, Any], dict[str, Any], str | None, str | None]: ...
    def offers(self, capability: str) -> bool: ...
    def ping_method(self) -> str: ...
    def stray_count(self) -> int: ...
    def has_subscriptions(self) -> bool: ...
    def end(self) -> ConnectionClosed | None: ...
    def close(self) -> None: ...

@final
class Message:
    """A message whose parts become Python objects when they are first accessed."""

    @property
    def kind(self) -> _Kind:
        """The kind of message."""

    @property
    def id(self) -> int | str | None: ...
    @property
    def raw_id(self) -> str | None:
        """The id as it is on the wire: `"7"`, with its quotes, differs from `7`."""

    @property
    def method(self) -> str | None: ...
    @property
    def params(self) -> dict[str, Any] | None: ...
    @property
    def result(self) -> dict[str, Any] | None: ...
    @property
    def error(self) -> dict[str, Any] | None: ...
    @property
    def raw(self) -> bytes:
        """The whole message, as it came."""

    @property
    def raw_params(self) -> bytes | None: ...
    @property
    def raw_result(self) -> bytes | None: ...
    @property
    def raw_arguments(self) -> bytes | None:
        """`params.arguments` as JSON text, for validators that parse JSON themselves."""

    @property
    def name(self) -> str | None:
        """`params.name`, if it is a string; the rest of the params is not parsed."""

    @property
    def uri(self) -> str | None:
        """`params.uri`, if it is a string; the rest of the params is not parsed."""

    @property
    def progress_token(self) -> int | str | None:
        """`params._meta.progressToken` of a request."""

    @property
    def fault(self) -> str | None:
        """Why the message is invalid."""

    @property
    def code(self) -> int | None:
        """The error code to answer an invalid message with."""

    @property
    def invites_answer(self) -> bool:
        """Whether a server must answer it, if only with an error; `False` if it looks like a notification or a
        response."""

    def messages(self, max_depth: int | None = None) -> list[Message]:
        """The messages of a batch; an empty list for any other message."""

    def with_id(self, id: int | str) -> bytes:
        """Returns the message with another id, otherwise byte for byte the same."""

@final
class Connection:
    """The protocol state of one connection over one stream, without I/O: no thread, no socket, no clock.

    Pass received bytes to `feed`, write the bytes that `output` returns, and handle `events`. The engine answers
    pings, handshakes, discovery, bad frames and duplicates itself, and handles cancellation, counts and limits. Call
    `output` after every call that may produce output, and `handle_timeout` when `timeout` seconds have passed. Use it
    from one thread at a time.

    Args:
        side: "server" or "client". A client's first `output` opens the connection.
        capabilities: The announced capabilities, in every revision.
        revisions: The supported revisions; all by default.
        opening: As for `Client`.
        framing: "line", "length" (four bytes before each message) or, for servers, "detect".
        max_message_bytes: The longest message that is accepted; 128 MiB by default.
        timeout: Seconds that a request waits unless it says otherwise.
        now: The current time in seconds on the program's own clock, if it has one: every `now` below is then on that
            clock. Calls without `now` read the machine's clock.
    """

    def __new__(
        cls,
        side: Literal["server", "client"],
        name: str,
        version: str = "0.0.0",
        *,
        capabilities: _Object | None = None,
        instructions: str | None = None,
        revisions: Sequence[str] | None = None,
        opening: Literal["probe", "handshake", "stateless"] = "probe",
        framing: Literal["line", "length", "detect"] = "line",
        max_message_bytes: int | None = None,
        max_depth: int | None = None,
        timeout: float | None = None,
        now: float | None = None,
    ) -> Connection: ...
    def feed(self, data: _Bytes, /, now: float | None = None) -> None:
        """Processes received bytes, in chunks of any size."""

    def feed_end(self, now: float | None = None) -> None:
        """Signals the end of the input."""

    def events(
        self,
    ) -> list[Opened | Request | Cancelled | Notification | Progress | Answered | Stray | Closed]:
        """Returns the events since the last call, in order."""

    def output(self, now: float | None = None) -> bytes:
        """Returns all bytes to write now, and considers them written."""

    def request(
        self,
        method: str,
        params: _Object | None = None,
        *,
        timeout: float | None = None,
        max_timeout: float | None = None,
        progress: bool = False,
        meta: _Object | None = None,
    ) -> int:
        """Sends a request and returns its number, which its `Answered` event has; with `progress`, `Progress` events
        come before that.

        Raises:
            Misuse: The connection is not open yet.
            ConnectionClosed: The connection has ended.
            Overloaded: Too many requests are waiting.
        """

    def cancel(self, number: int, reason: str | None = None) -> None:
        """Cancels a request of this side and notifies the other side; a late answer becomes a `Stray`."""

    def notify(self, method: str, params: _Object | None = None) -> None:
        """Sends a notification."""

    def timeout(self, now: float | None = None) -> float | None:
        """Returns the seconds until `handle_timeout` must be called; `None` if no timer runs."""

    def handle_timeout(self, now: float | None = None) -> None:
        """Runs the timers that are due: deadlines, keepalive, grace period."""

    def drain(self, grace: float) -> None:
        """Accepts nothing new, finishes requests in flight for at most `grace` seconds, then closes."""

    def close(self) -> None:
        """Closes the connection once all output is written."""

    @property
    def revision(self) -> str | None:
        """The revision in force; on a server, the revision of the handshake."""

    @property
    def is_closed(self) -> bool: ...
    @property
    def wants_read(self) -> bool:
        """Whether more input is wanted; `False` while too much output waits for the other side to read it."""

    @property
    def in_flight(self) -> int:
        """The number of the other side's requests that are not answered yet."""

    @property
    def stray_count(self) -> int:
        """The number of frames that were not messages, and of answers without a waiting request."""

@final
class Opened:
    """The connection is open, in the given revision."""

    @property
    def revision(self) -> str: ...

@final
class Request:
    """A request of the other side. Answer it once, from any thread."""

    @property
    def message(self) -> Message: ...
    @property
    def revision(self) -> str:
        """The protocol revision of the request."""

    @property
    def cancelled(self) -> bool:
        """Whether the request was cancelled; an answer is then discarded."""

    def respond(self, result: _Object) -> None:
        """Answers with a result object; members that the revision requires are added."""

    def fail(self, kind: str | int, message: str, data: object | None = None) -> None:
        """Answers with an error. `kind` is an error code of your own, or a kind whose code the revision defines:
        "invalid_request", "method_not_found", "invalid_params", "tool_not_found", "prompt_not_found", "not_found" (a
        resource), "missing_capability", "rejected" or "internal"."""

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Reports progress, if the other side asked for it."""

    def log(self, level: str, data: object, logger: str | None = None) -> None:
        """Sends a log message, if the other side wants messages of that level."""

@final
class Cancelled:
    """A request of the other side was cancelled: nobody waits for its answer any more."""

    @property
    def request(self) -> Request: ...
    @property
    def reason(self) -> str | None: ...

@final
class Notification:
    """A notification that the engine does not handle itself."""

    @property
    def message(self) -> Message: ...

@final
class Progress:
    """Progress of a request of this side."""

    @property
    def number(self) -> int: ...
    @property
    def progress(self) -> float: ...
    @property
    def total(self) -> float | None: ...
    @property
    def message(self) -> str | None: ...

@final
class Answered:
    """A request of this side is over: a message with its result, or an error (`PeerError`, `RequestTimeout`,
    `ConnectionClosed`, …)."""

    @property
    def number(self) -> int: ...
    @property
    def message(self) -> Message | None: ...
    @property
    def error(self) -> McpError | None: ...

@final
class Stray:
    """Input that belongs to no request and is not a valid message: "answer", "bad_frame", "oversize", "cancel" or
    "unexpected", with its bytes, which may be truncated."""

    @property
    def what(self) -> str: ...
    @property
    def frame(self) -> bytes: ...

@final
class Closed:
    """The connection has ended."""

    @property
    def error(self) -> ConnectionClosed: ...

@final
class Pages:
    def __new__(cls, link: Link, kind: str) -> Pages: ...
    def next(self, link: Link, future: Future[list[dict[str, Any]] | None]) -> int: ...

@final
class Pending:
    @property
    def context(self) -> Context: ...
    @property
    def method(self) -> str: ...
    @property
    def name(self) -> str | None: ...
    @property
    def uri(self) -> str | None: ...
    @property
    def local_uri(self) -> str | None: ...
    def at(self, uri: str) -> Pending: ...
    def arguments(self) -> dict[str, Any]: ...
    def cleaned(self, arguments: dict[str, Any]) -> Pending: ...
    def taken(self) -> dict[str, Any]: ...
    def parts(self, value: object) -> _Parts: ...
    def page(self) -> dict[str, Any]: ...
    def session(self, make: Callable[[], Any]) -> Any: ...
    def failed(self, error: BaseException, what: str) -> None: ...
    def beside(
        self, function: Callable[..., object], arguments: dict[str, Any], context: ContextVars, future: Future[Any]
    ) -> None: ...
    def aside(self, wait: Callable[[], object]) -> None: ...
    def ask(self, results: Results) -> CachedCall | None: ...
    def finished(self, value: object) -> Finished: ...

@final
class CachedCall:
    def found(self) -> Finished | None: ...
    def keep(self, finished: Finished) -> None: ...

@final
class Finished:
    @property
    def is_good(self) -> bool: ...
    def parts(self) -> _Parts: ...

@final
class Permissions:
    def __new__(cls, json: str) -> Permissions: ...
    def may_call(self, tool: str) -> bool: ...
    def may_read(self, uri: str) -> bool: ...

@final
class Results:
    """A cache of tool results, each kept for `ttl` seconds: see `Server.tool`. "private" results are cached per
    caller, and not at all for unauthenticated callers; "public" ones are shared by all callers. At most 1024 results,
    16 MiB together, are held; the oldest is dropped first.
    """

    def __new__(cls, ttl: float, *, scope: Literal["public", "private"] = "private") -> Results: ...
    @property
    def ttl(self) -> float:
        """The seconds that a result is kept."""

    def forget(self, tool: str) -> None:
        """Forgets the results of a tool. Results of calls in progress are not cached either."""

    def forget_all(self) -> None:
        """Forgets the results of all tools. Results of calls in progress are not cached either."""

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
class KernelRequest:
    @property
    def id(self) -> int | str: ...
    @property
    def method(self) -> str: ...
    def params(self) -> dict[str, Any] | None: ...
    @property
    def revision(self) -> str: ...
    @property
    def wants_progress(self) -> bool: ...
    @property
    def wire(self) -> KernelConnection: ...
    @property
    def has_head(self) -> bool: ...
    def head(self) -> tuple[str, str, list[tuple[bytes, bytes]], tuple[str, int] | None] | None: ...
    def answer_native(self, result: bytes) -> None: ...
    def answer(self, result: object) -> None: ...
    def refuse(self, code: int, message: str, data: object = None) -> None: ...
    def give_up(self) -> None: ...
    def notify(self, method: str, params: object) -> None: ...
    def progress(self, progress: float, total: float | None, message: str | None) -> None: ...
    def ask(
        self,
        method: str,
        params: object,
        future: Future[dict[str, Any]],
        on_progress: Callable[[float, float | None, str | None], object] | None,
    ) -> int: ...

@final
class Stream:
    def attend(self, link: Link, future: Future[None]) -> int: ...

@final
class Counter:
    def counts(self) -> tuple[int, int, int, int, int, int, int, int, int, int, int]: ...

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
        options: str,
        own: Termination | None,
        worker: bool,
    ) -> Serving: ...
    @property
    def address(self) -> str: ...
    def counter(self) -> Counter: ...
    @staticmethod
    def within(catalog: Catalog, interpreter: Interpreter) -> Serving: ...
    def wake(self) -> Wake: ...
    def drain(self) -> bool: ...
    @property
    def has_tasks(self) -> bool: ...
    @property
    def keeps_some(self) -> bool: ...
    def wait(self) -> None: ...
    def stop(self) -> None: ...
    def close(self) -> None: ...

@final
class Prefix:
    """Middleware of the engine that gives the names of a server a prefix: `find` becomes `library_find`, and
    `book://list` becomes `book://library/list`."""

    def __new__(cls, prefix: str) -> Prefix: ...

@final
class External:
    @staticmethod
    def command(
        name: str | None,
        command: Sequence[str],
        cwd: str | None,
        env: Sequence[tuple[str, str]],
        inherit: Sequence[str],
        settings: str,
    ) -> External: ...
    @staticmethod
    def at(name: str | None, address: str, options: str, login: Login | None, settings: str) -> External: ...
    @staticmethod
    def server(name: str, serving: Serving, settings: str, is_own: bool) -> External: ...
    @staticmethod
    def chain(name: str, front: Front, settings: str) -> External: ...
    def ruled(self, rules: Sequence[Rule]) -> External: ...
    @property
    def name(self) -> str: ...

@final
class Rule:
    @staticmethod
    def pins(
        server: str, pins: Mapping[str, str], on_drift: Callable[..., object] | None, failed: Callable[..., object]
    ) -> Rule: ...
    @staticmethod
    def approval(tools: Sequence[str], by: tuple[Handoffs, int] | None) -> Rule: ...
    @staticmethod
    def masking(settings: str) -> Rule: ...
    @staticmethod
    def breaker(settings: str) -> Rule: ...
    @staticmethod
    def retry(settings: str) -> Rule: ...
    @staticmethod
    def reports(server: str, to: Callable[..., object], failed: Callable[..., object]) -> Rule: ...
    @property
    def is_open(self) -> bool: ...

def tool_pin(tool: Mapping[str, Any]) -> str: ...
@final
class Front:
    def __new__(
        cls,
        externals: Sequence[External],
        middleware: Sequence[Prefix | Rule | tuple[bool, bool]],
        handoffs: Handoffs,
        settings: str,
        audit: Callable[[dict[str, Any]], object] | None,
        failed: Callable[..., object],
        max_hops: int,
        patience: float | None,
        server: Serving | None,
        telemetry: Telemetry | None,
    ) -> Front: ...
    @property
    def numbers(self) -> list[int]: ...

@final
class ServedFront:
    def __new__(cls, front: Front, address: str, options: str, own: Termination | None, worker: bool) -> ServedFront: ...
    @property
    def address(self) -> str: ...
    def counter(self) -> Counter: ...
    def wake(self) -> Wake: ...
    def is_over(self) -> bool: ...
    def wait(self) -> None: ...
    def stop(self) -> None: ...
    def close(self) -> None: ...

class _Hooks(Protocol):
    """Callbacks for messages that middleware of chains sees."""

@final
class Handoffs:
    def __new__(cls) -> Handoffs: ...
    def wake(self) -> Wake: ...
    def drain(self, callbacks: _Hooks) -> None: ...
    def pass_on(self, middleware: int, number: int, message: dict[str, Any]) -> None: ...
    def settle(self, middleware: int, number: int, message: object) -> None: ...
    def fail(self, middleware: int, number: int, error: BaseException, text: str | None) -> None: ...
    def refuse(self, middleware: int, number: int, why: str) -> None: ...
    def let_go(self, middleware: int, number: int, message: dict[str, Any] | None) -> None: ...
    def reached(self, middleware: int, number: int) -> None: ...
    def decide(self, number: int, why: str | None) -> None: ...
    def close(self) -> None: ...

@final
class Ledger:
    def __new__(cls, settings: str) -> Ledger: ...
    def ask(self, key: str) -> tuple[str, int]: ...
    def withdraw(self, ticket: int) -> None: ...
    def opened(self, id: int) -> None: ...
    def lost(self, id: int) -> None: ...
    def give_back(self, id: int, is_fit: bool) -> None: ...
    def decline(self, id: int) -> None: ...
    def advance(self) -> None: ...
    def due(self) -> float | None: ...
    def close_all(self) -> None: ...
    def changes(self) -> tuple[list[tuple[int, str, int]], list[int], list[int]]: ...
    def counts(self) -> tuple[int, int, int, int, int, int, int, int, int, int]: ...

@final
class Telemetry:
    def __new__(
        cls,
        begin: Callable[[str], tuple[str, str | None] | None],
        called: Callable[[str, Callable[..., Any], dict[str, Any]], Any],
        awaited: Callable[[str, Callable[..., Any], dict[str, Any]], Coroutine[Any, Any, Any]],
    ) -> Telemetry: ...
    @staticmethod
    def instruments() -> str: ...
    def wait(self) -> None: ...
    def series(self, number: int) -> str | None: ...
    def take(self) -> str | None: ...
    def passed(self, key: int, own: tuple[str, str | None] | None, sent: tuple[str, str | None] | None) -> bool: ...

@final
class Termination:
    def __new__(cls) -> Termination: ...
    def fileno(self) -> int: ...
    def note(self, number: int) -> None: ...

class _Ears(Protocol):
    """Callbacks for the messages of a child process."""

@final
class Wire:
    def __new__(
        cls,
        command: Sequence[str],
        cwd: str | None,
        env: Sequence[tuple[str, str]],
        ears: _Ears,
    ) -> Wire: ...
    def wake(self) -> Wake: ...
    def drain(self) -> None: ...
    def send(self, message: bytes) -> bool: ...
    def close(self) -> None: ...

class _Hearing(Protocol):
    """Callbacks for the messages of a server over HTTP."""

@final
class Relay:
    def __new__(
        cls,
        url: str,
        options: str,
        max_event_bytes: int | None,
        ends_session: bool,
        ears: _Hearing,
    ) -> Relay: ...
    def wake(self) -> Wake: ...
    def drain(self) -> None: ...
    def send(self, message: bytes, headers: Sequence[tuple[str, str]], resume: str | None) -> int: ...
    def is_full(self) -> bool: ...
    def close(self) -> None: ...

@final
class KernelConnection:
    @property
    def session_id(self) -> str | None: ...
    def notify(self, method: str, params: object) -> None: ...
    def ask(
        self,
        method: str,
        params: object,
        future: Future[dict[str, Any]],
        on_progress: Callable[[float, float | None, str | None], object] | None,
    ) -> int: ...
    def forget(self, number: int) -> None: ...
