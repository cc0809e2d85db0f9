"""Answers requests for the resources and prompts of an `MCPServer` as the SDK's kernel does, without the kernel."""

from __future__ import annotations

import inspect
import logging
from base64 import b64encode
from collections.abc import Callable
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, UnexpectedResourceError
from mcp.server.mcpserver.prompts import Prompt
from mcp.server.mcpserver.resolve import returns_input_required
from mcp.server.mcpserver.resources import Resource
from mcp.server.runner import ServerRunner
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    BlobResourceContents,
    GetPromptResult,
    ReadResourceResult,
    TextResourceContents,
)
from pydantic_core import from_json, to_json, to_jsonable_python

from .._errors import HandBack, ProtocolError
from . import _private as private
from ._outgoing import refusal, sent

logger = logging.getLogger("mcp.server.mcpserver.server")

# Members that the engine adds itself.
_ENGINES = frozenset({"resultType", "_meta"})


def unsure(function: Any) -> bool:
    """Whether a function may return an `InputRequiredResult`, judging by its return hint."""
    returned = inspect.signature(function).return_annotation
    return returned in (inspect.Signature.empty, Any, object, "Any", "object") or returns_input_required(function)


def resource(server: MCPServer[Any], resource: Resource) -> Callable[..., Any]:
    """Reads a resource that is registered under its URI."""
    added = _added(server)

    async def read(uri: str, revision: str) -> bytes:
        try:
            content: object = await resource.read()
            if not isinstance(content, (str, bytes)):
                raise TypeError(f"Resource.read() must return str or bytes, not {type(content).__name__}")
        except Exception as error:
            raise _unread(uri, error) from None
        item: dict[str, Any] = {"uri": uri}
        if isinstance(content, bytes):
            item["mimeType"] = resource.mime_type or "application/octet-stream"
            item["blob"] = b64encode(content).decode()
        else:
            item["mimeType"] = resource.mime_type or "text/plain"
            item["text"] = content
        if resource.meta is not None:
            kind = BlobResourceContents if "blob" in item else TextResourceContents
            made = kind.model_validate({**item, "_meta": resource.meta})
            item = made.model_dump(by_alias=True, mode="json", exclude_none=True)
        return to_json({**added(revision), "contents": [item]})

    return read


def _added(server: MCPServer[Any]) -> Callable[[str], dict[str, Any]]:
    """Makes a function that returns the members of a result beside its contents, by revision."""
    made: dict[str, dict[str, Any]] = {}
    runner: ServerRunner[Any] = ServerRunner(private.lowlevel_of(server), None, None)  # type: ignore[arg-type]

    def added(revision: str) -> dict[str, Any]:
        if revision not in made:
            whole = private.serialized(runner, "resources/read", revision, ReadResourceResult(contents=[]))
            made[revision] = {key: value for key, value in whole.items() if key not in _ENGINES}
        return made[revision]

    return added


def _unread(uri: str, error: Exception) -> ProtocolError:
    """Makes and logs the error for an exception as `MCPServer.read_resource` and its handler do."""
    if isinstance(error, MCPError):
        return ProtocolError(error.error.code, error.error.message, error.error.data)
    text, is_meant = str(error), isinstance(error, ResourceError)
    if not is_meant:
        text = f"Error reading resource {uri}"
    if is_meant and not isinstance(error, UnexpectedResourceError):
        logger.info("Resource %r failed: %r", uri, text)
    else:
        logger.error("Resource %r raised an unexpected exception", uri, exc_info=error)
    code = INVALID_PARAMS if isinstance(error, ResourceNotFoundError) else INTERNAL_ERROR
    return ProtocolError(code, text, {"uri": uri})


def prompt(prompt: Prompt) -> Callable[..., Any]:
    """Renders a prompt that takes no context."""
    async def get(arguments: bytes, revision: str) -> bytes:
        given = from_json(arguments)
        if not all(isinstance(value, str) for value in given.values()):
            raise HandBack
        try:
            try:
                rendered = await prompt.render(given, None)  # type: ignore[arg-type]
                result = GetPromptResult(description=prompt.description, messages=to_jsonable_python(rendered))
            except MCPError:
                raise
            except Exception as error:
                raise ValueError(str(error)) from error
            return sent("prompts/get", revision, result)
        except Exception as error:
            told = refusal(error, "prompts/get", revision >= "2026-07-28")
            raise ProtocolError(told.code, told.message, told.data) from None

    return get
