"""The engine. Private: what it offers may change with every release."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, final

from ._actions import ActionAnswer, ActionOptions
from ._ask import Asked
from ._auth import Credentials
from ._content import Message as Spoken
from ._errors import ConnectionClosed, McpError
from ._event_loop import Future
from ._interpreter import Interpreter
from ._questions import Elicited, Root, Sampled
from ._results import ClientInfo
from ._serve_options import ServeOptions

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
    "Endpoint",
    "Exchange",
    "Finished",
    "Job",
    "KeptCall",
    "Line",
    "Link",
    "Message",
    "Notification",
    "Opened",
    "Owed",
    "Pages",
    "Pending",
    "Progress",
    "Relay",
    "RemoteTask",
    "Request",
    "Results",
    "Serving",
    "Stray",
    "Stream",
    "Termination",
    "Wire",
    "action_results",
    "action_schemas",
    "call_action",
    "command_of",
    "connect_child",
    "connect_pair",
    "connect_to",
    "decode",
    "dumps",
    "encode_error",
    "encode_notification",
    "encode_request",
    "encode_response",
    "get_skill",
    "list_skills",
    "list_tasks",
    "loads",
    "mount",
    "read_directory",
    "read_skill",
    "to_json",
    "unpack",
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
def call_action(
    link: Link, name: str, params: str, options: ActionOptions, future: Future[ActionAnswer]
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
    """One message: the whole is validated, its parts become objects when they are looked at.

    Bytes are kept as they are, not copied; anything else is copied once. What is JSON and no message has the kind
    "invalid" and says why.

    Raises:
        DecodeError: It is no JSON, no UTF-8, or nested deeper than `max_depth` (512 by default, 1024 at most).
    """

def unpack(
    data: _Bytes, /, max_depth: int | None = None
) -> tuple[_Kind, int | str | None, str | None, Any]:
    """One message with all that is in it, quicker than to look at each part of `decode`: its kind, its id, its
    method, and its params, result, error or messages.

    Raises:
        DecodeError: As `decode`; also for what is no message.
        ValueError: A string holds a lone surrogate, or an integer more digits than the interpreter allows.
    """

def loads(data: _Bytes, /, max_depth: int | None = None) -> Any:
    """Any JSON text as Python objects. Raises as `unpack`."""

def dumps(value: object, /) -> bytes:
    """Python objects as JSON text, as short as it can be: what JSON knows, and dataclasses, pydantic models, dates
    and the like.

    Raises:
        ValueError: A number is infinite or none, a string holds a lone surrogate, or something is nested deeper than
            256 or into itself.
        TypeError: Something cannot be said in JSON.
    """

def encode_request(id: int | str, method: str, params: _Object | None = None) -> bytes:
    """A request without a line end. Params are a dict, or the bytes of a JSON object, which are proved to be one."""

def encode_notification(method: str, params: _Object | None = None) -> bytes:
    """A notification."""

def encode_response(id: int | str, result: _Object) -> bytes:
    """The result that answers a request."""

def encode_error(id: int | str | None, code: int, message: str, data: object | None = None) -> bytes:
    """The error that answers a request; the id is `null` where it could not be read."""

class _Options(Protocol):
    """How a request is made."""

class _Definition(Protocol):
    """One tool, resource, template or prompt."""

class _Straight(Protocol):
    """What carries out calls that need no validator."""

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
    def fileno(self) -> int: ...
    def link(self) -> Link: ...

@final
class Context:
    """A call under way. A handler gets one by a parameter with this hint."""

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Reports progress, if the client asked for it. It must increase from call to call."""

    def partial(self, data: object) -> None:
        """Hands on a part of the result that is there already, anything that JSON can say, to a client of
        the action dialect that reads the answer as a stream; nothing happens for others, who get the
        whole. Delivered in order and before the answer."""

    def log(self, level: str, data: object, logger: str | None = None) -> None:
        """Sends a log message, if the client wants messages of that level."""

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
    def action_context(self) -> str | None:
        """The process or state that an action belongs to, as its client names it."""

    @property
    def principal(self) -> str | None:
        """Who calls, as the policy has verified; `None` where nobody knows."""

    def has_scope(self, scope: str) -> bool:
        """Whether that was granted to who calls: to filter what it may see."""

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
class Message:
    """A message whose parts become Python objects when they are looked at, and only then; they are made once."""

    @property
    def kind(self) -> _Kind:
        """What it is."""

    @property
    def id(self) -> int | str | None: ...
    @property
    def raw_id(self) -> str | None:
        """The id as it stands on the wire: `"7"` with its quotes is another than `7`."""

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
        """`params.arguments`: what a schema's own validator may read without a dict between."""

    @property
    def name(self) -> str | None:
        """`params.name`, if it is a string; nothing else of the params is looked at."""

    @property
    def uri(self) -> str | None:
        """`params.uri`, likewise."""

    @property
    def progress_token(self) -> int | str | None:
        """`params._meta.progressToken` of a request."""

    @property
    def fault(self) -> str | None:
        """Why it is invalid."""

    @property
    def code(self) -> int | None:
        """The number to answer with where it is invalid."""

    @property
    def invites_answer(self) -> bool:
        """Whether a server answers it, with an error at least: not what looks like a notification or an answer."""

    def messages(self, max_depth: int | None = None) -> list[Message]:
        """Those of a batch; none of any other message."""

    def with_id(self, id: int | str) -> bytes:
        """The same message with another id, byte for byte otherwise."""

@final
class Connection:
    """The state of one connection, one stream, and nothing else: no thread, no socket, no clock.

    Bytes that came go in by `feed`, bytes that are to be written come out of `output`, and `events` says what
    happened. The engine answers pings, handshakes, discovery, bad frames and duplicates by itself, cancels, counts and
    limits. Call `output` after anything that may have something to say, and `handle_timeout` when `timeout` has
    passed. Belongs to one thread at a time.

    Args:
        side: "server" or "client". A client's first `output` opens the connection.
        capabilities: What is announced, in every revision.
        revisions: Those that are spoken; all by default.
        opening: As that of `Client`.
        framing: "line", "length" (four bytes before each message) or "detect", for servers.
        max_message_bytes: The longest message that is taken; 128 MiB by default.
        timeout: Seconds that a request waits unless it says otherwise.
        now: What the program's clock says, for programs that have one: then every `now` below is of that clock. What
            is not told the time reads the machine's.
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
        """Takes bytes that came, however they are cut."""

    def feed_end(self, now: float | None = None) -> None:
        """Nothing more comes."""

    def events(
        self,
    ) -> list[Opened | Request | Cancelled | Notification | Progress | Answered | Stray | Closed]:
        """What happened since the last time, in order."""

    def output(self, now: float | None = None) -> bytes:
        """What is to be written now, which is taken for written."""

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
        """Sends a request. What comes of it is an `Answered` with this number; with `progress`, `Progress` before.

        Raises:
            Misuse: The connection is not open yet.
            ConnectionClosed: It has ended.
            Overloaded: Too many requests wait.
        """

    def cancel(self, number: int, reason: str | None = None) -> None:
        """Gives up on a request: the other side is told, a late answer is a stray."""

    def notify(self, method: str, params: _Object | None = None) -> None:
        """Sends a notification."""

    def timeout(self, now: float | None = None) -> float | None:
        """Seconds until `handle_timeout` is to be called; `None` when time changes nothing."""

    def handle_timeout(self, now: float | None = None) -> None:
        """Lets time pass: deadlines, keepalive, grace."""

    def drain(self, grace: float) -> None:
        """Begins nothing new, finishes what is in flight for so many seconds at most, then closes."""

    def close(self) -> None:
        """Ends it."""

    @property
    def revision(self) -> str | None:
        """The revision in force; on a server, that of a handshake."""

    @property
    def is_closed(self) -> bool: ...
    @property
    def wants_read(self) -> bool:
        """Whether more is to be fed: not while the other side reads nothing of what waits for it."""

    @property
    def in_flight(self) -> int:
        """Requests of the other side's that are not answered."""

    @property
    def stray_count(self) -> int:
        """Frames that were no messages, and answers nobody waited for."""

@final
class Opened:
    """The connection is open, in that revision."""

    @property
    def revision(self) -> str: ...

@final
class Request:
    """A request of the other side's, to be answered once, from any thread."""

    @property
    def message(self) -> Message: ...
    @property
    def revision(self) -> str:
        """The revision that it is served in."""

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits any more: an answer is discarded."""

    def respond(self, result: _Object) -> None:
        """Answers with a result; what the revision wants beside it is added."""

    def fail(self, kind: str | int, message: str, data: object | None = None) -> None:
        """Answers with an error: a number of the program's own, or a kind whose number the revision knows:
        "invalid_request", "method_not_found", "invalid_params", "tool_not_found", "prompt_not_found", "not_found" (a
        resource), "missing_capability", "rejected" or "internal"."""

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Reports progress, if it was asked for."""

    def log(self, level: str, data: object, logger: str | None = None) -> None:
        """Sends a log message, if it is wanted."""

@final
class Cancelled:
    """Nobody waits for the answer to a request any more."""

    @property
    def request(self) -> Request: ...
    @property
    def reason(self) -> str | None: ...

@final
class Notification:
    """A notification that the engine does not deal with itself."""

    @property
    def message(self) -> Message: ...

@final
class Progress:
    """A request of this side's goes on."""

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
    """A request of this side's is over: a message with its result, or an error (`PeerError`, `RequestTimeout`,
    `ConnectionClosed`, …)."""

    @property
    def number(self) -> int: ...
    @property
    def message(self) -> Message | None: ...
    @property
    def error(self) -> McpError | None: ...

@final
class Stray:
    """Something that concerned nobody: "answer", "bad_frame", "oversize", "cancel" or "unexpected"; its bytes, perhaps
    cut short."""

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
    def arguments(self) -> dict[str, Any]: ...
    def cleaned(self, arguments: dict[str, Any]) -> Pending: ...
    def taken(self) -> dict[str, Any]: ...
    def ask(self, results: Results) -> KeptCall | None: ...
    def finished(self, value: object) -> Finished: ...

@final
class KeptCall:
    def found(self) -> Finished | None: ...
    def keep(self, finished: Finished) -> None: ...

@final
class Finished:
    @property
    def is_good(self) -> bool: ...

@final
class Results:
    """Results of tools that are kept for so many seconds: see `Server.tool`. Those of the scope "private" are for who
    asked alone, and not kept where nobody knows who that is; "public" ones are for everybody. At most 1024 are held, of
    16 MiB together; the oldest gives way.
    """

    def __new__(cls, ttl: float, *, scope: Literal["public", "private"] = "private") -> Results: ...
    def forget(self, tool: str) -> None:
        """Forgets those of a tool. What a function that is under way meanwhile comes to is not kept."""

    def forget_all(self) -> None:
        """The same for those of all tools."""

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
class Owed:
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
    def wire(self) -> Line: ...
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
    def counts(self) -> tuple[int, int, int, int, int, int, int, int, int, int, int]: ...
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

class _Ears(Protocol):
    """Who is told of a child's messages."""

@final
class Wire:
    def __new__(
        cls,
        command: Sequence[str],
        cwd: str | None,
        env: Sequence[tuple[str, str]],
        ears: _Ears,
    ) -> Wire: ...
    def fileno(self) -> int: ...
    def drain(self) -> None: ...
    def send(self, message: bytes) -> bool: ...
    def close(self) -> None: ...

class _Hearing(Protocol):
    """Who is told of a server's messages over HTTP."""

@final
class Relay:
    def __new__(
        cls,
        url: str,
        credentials: Credentials,
        max_event_bytes: int | None,
        ends_session: bool,
        ears: _Hearing,
    ) -> Relay: ...
    def fileno(self) -> int: ...
    def drain(self) -> None: ...
    def send(self, message: bytes, headers: Sequence[tuple[str, str]], resume: str | None) -> int: ...
    def is_full(self) -> bool: ...
    def close(self) -> None: ...

@final
class Line:
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
