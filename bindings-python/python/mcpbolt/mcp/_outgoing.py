"""Makes the messages to clients: results of the SDK, and errors for the exceptions of handlers."""

from __future__ import annotations

import logging
from typing import cast

from mcp.server.runner import modern_error_data
from mcp.shared.jsonrpc_dispatcher import handler_exception_to_error_data
from mcp_types import ErrorData
from mcp_types.methods import serialize_server_result
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from .._errors import ProtocolError

logger = logging.getLogger("mcpbolt.mcp._kernel")


class Unsendable(Exception):
    """The tool's return value is not a valid result in its revision."""


def sent(method: str, revision: str, result: BaseModel) -> bytes:
    """Serializes a result of the SDK, without members that the revision does not have."""
    made = result.model_dump(by_alias=True, mode="json", exclude_none=True)
    try:
        return to_json(serialize_server_result(method, revision, made))
    except ValidationError as error:
        raise Unsendable from error


def is_unexpected(error: Exception) -> bool:
    """Whether an exception of a handler is none that the SDK has an error for."""
    return not isinstance(error, ProtocolError) and handler_exception_to_error_data(error) is None


def refusal(error: Exception, method: str, is_alone: bool) -> ErrorData:
    """The error that a client gets for an exception of a handler."""
    if isinstance(error, ProtocolError):
        return ErrorData(code=cast(int, error.kind), message=str(error), data=error.data)
    if is_alone:
        return modern_error_data(error)
    told = handler_exception_to_error_data(error)
    if told is None:
        logger.error("handler for %r raised", method, exc_info=error)
        told = ErrorData(code=0, message=str(error))
    return told
