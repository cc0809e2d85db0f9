"""Every error of the package: one base, and the host's natural class where there is one.

Each says its `scope` ("message", "request" or "connection": how far it reaches), its `origin`
("caller", "engine", "peer" or "io": who is at fault) and its `code` (the number on the wire, when
the other side sent one).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    Kind = Literal["internal", "invalid_params", "not_found", "missing_capability"]


class McpError(Exception):
    """Base of everything that this package raises on purpose."""

    scope: str = "request"
    origin: str = "engine"
    code: int | None = None

    for_people: str = "Something went wrong."
    """A sentence for people who know nothing of protocols; of failures of actions, what went wrong."""
    is_transient: bool = False
    """Whether to try an action again may help."""
    retry_after: float | None = None
    """How many seconds the server asks to wait before."""


class ToolError(McpError):
    """Raised by a handler: the client is shown its text. Of any other exception it is not."""

    origin = "caller"


class ProtocolError(McpError):
    """Raised by a handler: told as an error of the protocol, with its text, rather than as something
    for the model to read, as a `ToolError` is.

    Args:
        kind: "internal", "invalid_params", "not_found" or "missing_capability", whose numbers differ
            from revision to revision, or a number of your own.
        data: Anything that JSON can say.
    """

    origin = "caller"

    def __init__(self, kind: Kind | int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.data = data


class ActionError(McpError):
    """An error of the action dialect: raised by a handler, its clients get it as it is, and those of MCP its message, and
    the same as structured content. Raised by `Client.action`, it is what the server answered.

    Args:
        type: One that the dialect names, as `RESOURCE_NOT_FOUND`, or your own.
        details: An object of what else there is to know.
        code: A number, most often a status of HTTP; that of the type by default.
        help_url: Where to read more.

    Attributes:
        kind: Of what a server answered, its type as the dialect names it: for `PERMISSION_DENIED`, `AUTHORIZATION_FAILED`;
            `None` for the server's own.
        metadata: What the server says of such an answer: `request_id`, `server_id`, `execution_time_ms` and so on.
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
    """The params do not fit the schema of the action; nothing was sent."""

    origin = "caller"


class BreakerOpen(McpError, ConnectionError):
    """The server has failed too often, and is left alone for a while; nothing was sent."""


class RoundOver(BaseException):
    """Unwinds a plain function whose question goes out with the answer to its call: the call
    comes again with what the user said. Nothing to catch; `finally` blocks run."""


class HandBack(BaseException):
    """Raised by what answers instead of a kernel, before it has done anything: the kernel is to answer. No error, and
    nothing to catch."""


class ResourceNotFound(McpError, LookupError):
    """Raised by a resource's handler: there is no such resource."""

    origin = "caller"


class DecodeError(McpError, ValueError):
    """Bytes are no message, or no JSON.

    Attributes:
        offset: The byte at which that was noticed; `None` where all of it is JSON.
        code: The number to answer with: -32700 for what is no JSON, -32600 for a limit or what is no message, -32602
            for params that are none.
        raw_id: The id that a whole `id` member before the fault named, as it stands on the wire.
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
    """No answer in time; the other side was told that nobody waits any more."""


class RequestCancelled(McpError):
    """The request was cancelled on this side without its task being so."""

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
    """What carries the messages failed: HTTP refused one, or nobody answered. Where it ends the connection,
    it is the `__cause__` of a `ConnectionClosed`.

    Attributes:
        fault: In one word: `unreachable`, `tls`, `timed_out`, `refused`, `redirected`, `no_answer`,
            `too_long`, `broken` or `session_lost`.
        status: That of HTTP, if there was one.
        authenticate: How the server wants to be shown who asks: `WWW-Authenticate`, as it came.
    """

    origin = "io"
    fault = "broken"
    status: int | None = None
    authenticate: str | None = None


class Overloaded(McpError):
    """Too many requests wait on this connection; nothing was sent."""


class Unsupported(McpError, NotImplementedError):
    """The other side does not offer this; nothing was sent."""

    origin = "peer"


class BadAnswer(McpError, ValueError):
    """The answer is not what its revision allows."""

    origin = "peer"


class Misuse(McpError, RuntimeError):
    """The call itself is wrong."""

    origin = "caller"
