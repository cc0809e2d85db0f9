"""The protocol engine without threads, sockets or an event loop, for building frameworks and transports.

    from mcpbolt.engine import Answered, Closed, Connection, Request

    connection = Connection("server", "echo", "1.0.0", capabilities={"tools": {}})
    connection.feed(bytes_that_came)
    for event in connection.events():
        match event:
            case Request(message=message):
                event.respond({"content": [{"type": "text", "text": message.method}]})
    write(connection.output())

`decode` validates a whole message as JSON in UTF-8 and finds its parts in one pass; parts become Python objects when
they are accessed. `unpack` converts all parts at once. Integers are exact at any size, floats are exact, of several
members with one name the last wins, and a string with a lone surrogate is refused with a `ValueError`.
"""

from ._core import (
    Answered as Answered,
    Cancelled as Cancelled,
    Closed as Closed,
    Connection as Connection,
    Message as Message,
    Notification as Notification,
    Opened as Opened,
    Progress as Progress,
    Request as Request,
    Stray as Stray,
    decode as decode,
    dumps as dumps,
    encode_error as encode_error,
    encode_notification as encode_notification,
    encode_request as encode_request,
    encode_response as encode_response,
    loads as loads,
    unpack as unpack,
)
from ._errors import DecodeError as DecodeError

__all__ = [
    "Answered",
    "Cancelled",
    "Closed",
    "Connection",
    "DecodeError",
    "Message",
    "Notification",
    "Opened",
    "Progress",
    "Request",
    "Stray",
    "decode",
    "dumps",
    "encode_error",
    "encode_notification",
    "encode_request",
    "encode_response",
    "loads",
    "unpack",
]
