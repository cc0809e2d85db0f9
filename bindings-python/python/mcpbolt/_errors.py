"""All errors of the package. Each derives from `McpError`, and from a built-in exception where one fits.

Each has a `scope` (what it affects: "message", "request" or "connection"), an `origin` (who is at
fault: "caller", "engine", "peer" or "io") and a `code` (the number on the wire, if the other side
sent one).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    Kind = Literal["internal", "invalid_params", "not_found", "missing_capability"]


class McpError(Exception):
    """Base of all errors that this package raises on purpose."""

    scope: str = "request"
    origin: str = "engine"
    code: int | None = None

    for_people: str = "Something went wrong."
    """A sentence for people who do not know protocols; it is specific for failed actions only."""
    is_transient: bool = False
    """Whether retrying an action may help."""
    retry_after: float | None = None
    """How many seconds the server asks to wait before a retry."""


class ToolError(McpError):
    """Raised by a handler to fail with a text that the client sees. The text of any other exception is not sent, unless the
    server has `mask_error_details=False`.

    Args:
        log_level: The level at which the log of the server mentions the failed call, as `logging` has it: `logging.INFO`
            by default.
    """

    origin = "caller"
    log_level: int = 20

    def __init__(self, *args: object, log_level: int | None = None) -> None:
        super().__init__(*args)
        if log_level is not None:
            self.log_level = log_level


class InvalidArguments(ToolError):
    """The arguments of a call are not valid for the function. Raised before the function runs; a function may raise it,
    too. The text says where and why, without the values. It is logged as a warning."""

    log_level = 30


class ProtocolError(McpError):
    """Raised by a handler to answer with a protocol error and its text, rather than with a failed
    result for the model to read, as `ToolError` does.

    Args:
        kind: "internal", "invalid_params", "not_found" or "missing_capability", whose numbers differ
            from revision to revision, or a number of your own.
        data: Any JSON-serializable value.
    """

    origin = "caller"

    def __init__(self, kind: Kind | int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.data = data


class ActionError(McpError):
    """An error of the action dialect. When a handler raises it, clients of the dialect get it unchanged; MCP clients
    get its message, and the whole error as structured content. When `Client.action` raises it, it is the server's
    answer.

    Args:
        type: A type that the dialect defines, such as `RESOURCE_NOT_FOUND`, or your own.
        details: An object with further information.
        code: A number, usually an HTTP status; by default the code of the type.
        help_url: Where to read more.

    Attributes:
        kind: In a server's answer, the type under the dialect's own name: `AUTHORIZATION_FAILED` for
            `PERMISSION_DENIED`; `None` for a type of the server's own.
        metadata: The metadata of a server's answer: `request_id`, `server_id`, `execution_time_ms` and so on.
    """

    origin = "peer"
    kind: str | None = None
    metadata: dict[str, Any]

    def __init__(
        self,
        type: str,
        message: str = "",
        details: dict[str, Any] | None = None,
        code: int | None = None,
        help_url: str | None = None,
    ) -> None:
        super().__init__(f"{type}: {message}")
        self.type = type
        self.message = message
        self.details = details
        self.code = code
        self.help_url = help_url
        self.metadata = {}


class InvalidParams(McpError, ValueError):
    """The params are not valid against the schema of the action; nothing was sent."""

    origin = "caller"


class BreakerOpen(McpError, ConnectionError):
    """The circuit breaker is open because the server has failed too often; nothing was sent."""


class RoundOver(BaseException):
    """Unwinds a plain function that asked the client something (from 2026-07-28 on): the question is sent as the
    answer to the call, and the client repeats the call with the reply. Do not catch it; `finally` blocks run."""


class HandBack(BaseException):
    """Raised by a handler that answers in place of a kernel, before it has had any effect, so that the kernel answers
    the request. It is not an error; do not catch it."""


class ResourceNotFound(McpError, LookupError):
    """Raised by a resource's handler when there is no such resource."""

    origin = "caller"


class DecodeError(McpError, ValueError):
    """Bytes are not a valid message, or not valid JSON.

    Attributes:
        offset: The byte at which the fault was found; `None` if all of it is valid JSON.
        code: The error code to answer with: -32700 for invalid JSON, -32600 for an exceeded limit or an invalid
            message, -32602 for invalid params.
        raw_id: The value of a complete `id` member that precedes the fault, as it is on the wire.
    """

    scope = "message"
    origin = "peer"
    code: int

    def __init__(self, why: str, offset: int | None = None, code: int = -32700, raw_id: str | None = None) -> None:
        super().__init__(why, offset, code, raw_id)
        self.offset = offset
        self.code = code
        self.raw_id = raw_id

    def __str__(self) -> str:
        return str(self.args[0])


class PeerError(McpError):
    """The other side answered with an error."""

    origin = "peer"

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message
        self.data = data


class RequestTimeout(McpError, TimeoutError):
    """No answer came in time; the other side was sent a cancellation."""


class RequestCancelled(McpError):
    """The request was cancelled on this side, although its task was not."""

    origin = "caller"


class ConnectionClosed(McpError, ConnectionError):
    """The connection ended before an answer came, or had ended already.

    Attributes:
        reason: Why, in one word: `closed_locally`, `shutting_down`, `closed_by_peer`, `peer_exited`,
            `stalled`, `unresponsive`, `idle`, `no_common_revision`, `handshake`, `io` or `carrier`.
    """

    scope = "connection"
    origin = "peer"
    reason = "closed_by_peer"


class CarrierError(McpError, ConnectionError):
    """The transport failed: HTTP refused a message, or the server could not be reached. If the failure ends
    the connection, it is the `__cause__` of a `ConnectionClosed`.

    Attributes:
        fault: The kind of failure: `unreachable`, `tls`, `timed_out`, `refused`, `redirected`, `no_answer`,
            `too_long`, `broken` or `session_lost`.
        status: The HTTP status, if there was one.
        authenticate: The `WWW-Authenticate` header as it came: how the server wants requests authenticated.
    """

    origin = "io"
    fault = "broken"
    status: int | None = None
    authenticate: str | None = None


class Overloaded(McpError):
    """Too many requests are waiting on this connection; nothing was sent."""


class Unsupported(McpError, NotImplementedError):
    """The other side does not offer this; nothing was sent."""

    origin = "peer"


class BadAnswer(McpError, ValueError):
    """The answer is not valid in the protocol revision in force."""

    origin = "peer"


class Misuse(McpError, RuntimeError):
    """The API was used wrongly: the call itself is the mistake."""

    origin = "caller"


def ordinary(error: BaseException) -> BaseException:
    """Turns a panic of the engine, which is not an `Exception`, into an `McpError`; other errors are returned as is."""
    is_panic = type(error).__name__ == "PanicException" and not isinstance(error, Exception)
    return McpError(f"the engine panicked: {error}") if is_panic else error
