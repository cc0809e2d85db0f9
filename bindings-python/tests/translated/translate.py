"""What the plugins share: values, hints and functions of other packages as those of this package."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, Any, TypeVar, Union

import mcp_types
from pydantic import TypeAdapter

import mcpbolt
from mcpbolt._content import parse
from mcpbolt._hints import UNIONS, hints_of

Types = dict[Any, Any]

CONTENT = tuple(typing.get_args(mcp_types.ContentBlock))
TYPES: Types = {
    mcp_types.CallToolResult: mcpbolt.ToolResult,
    mcp_types.TextContent: mcpbolt.Text,
    mcp_types.ImageContent: mcpbolt.Image,
    mcp_types.AudioContent: mcpbolt.Audio,
    mcp_types.ResourceLink: mcpbolt.ResourceLink,
    mcp_types.EmbeddedResource: mcpbolt.EmbeddedResource,
}
_BLOCKS: TypeAdapter[Any] = TypeAdapter(list[mcp_types.ContentBlock])


def blocks(content: list[dict[str, Any]]) -> list[mcp_types.ContentBlock]:
    made: list[mcp_types.ContentBlock] = _BLOCKS.validate_python(content)
    return made


def meta(result: mcpbolt.CallToolResult) -> dict[str, Any] | None:
    """The `_meta` of a result, without what the protocol adds."""
    return {key: one for key, one in result.meta.items() if "modelcontextprotocol" not in key} or None


def own(value: Any, results: tuple[type, ...] = (mcp_types.CallToolResult,)) -> Any:
    """Content and results of another package as those of this one."""
    for name in ("to_image_content", "to_audio_content", "to_resource_content"):
        if hasattr(value, name):
            value = getattr(value, name)()
    if isinstance(value, results):
        content = [own(one, results) for one in value.content]
        data = value.structured_content
        if isinstance(value, mcp_types.CallToolResult):
            data = value.model_dump(by_alias=True, exclude_none=True).get("structuredContent")
        return mcpbolt.ToolResult(content, data, bool(value.is_error), meta=value.meta)
    if isinstance(value, CONTENT):
        return parse(value.model_dump(mode="json", by_alias=True, exclude_none=True))
    if isinstance(value, (list, tuple)):
        items = [own(one, results) for one in value]
        return items if any(one is not other for one, other in zip(items, value)) else value
    return value


def hint_of(hint: Any, types: Types) -> Any:
    """The hint with types of another package replaced."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if isinstance(hint, type) and not args:
        return next((one for theirs, one in types.items() if issubclass(hint, theirs)), hint)
    if origin in types:
        return types[origin]
    new = tuple(hint_of(one, types) for one in args)
    if all(one is other for one, other in zip(new, args)) or origin is dict:
        return hint  # content as a value of a dict is data
    if origin is Annotated:
        return Annotated[new]
    return Union[new] if origin in UNIONS else origin[new]


def function_of(
    function: Any,
    types: Types,
    given: Callable[[Any], Any],
    made: Callable[[Any], Any],
    hint: Callable[[inspect.Parameter, Any], Any] = lambda _, hint: hint,
    around: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Any:
    """The function with the hints of this package. `given` converts its arguments, `made` its results; `around` its
    exceptions."""
    is_routine = inspect.isroutine(function) or isinstance(function, functools.partial)
    home = function if is_routine else type(function).__call__
    hints = hints_of(getattr(home, "func", home))

    def arguments(named: dict[str, Any]) -> dict[str, Any]:
        return {name: given(one) for name, one in named.items()}

    if inspect.iscoroutinefunction(inspect.unwrap(home)):

        async def call(*args: Any, **named: Any) -> Any:
            with around():
                return made(await function(*args, **arguments(named)))
    else:

        def call(*args: Any, **named: Any) -> Any:  # type: ignore[misc]
            with around():
                return made(function(*args, **arguments(named)))

    plain = function.func if isinstance(function, functools.partial) else function
    call.__name__ = getattr(function, "__name__", getattr(plain, "__name__", type(plain).__name__))
    call.__doc__ = inspect.getdoc(function if "__doc__" in getattr(function, "__dict__", {}) else plain)
    call.__wrapped__ = home  # type: ignore[attr-defined]
    signature = inspect.signature(function)
    call.__signature__ = signature  # type: ignore[attr-defined]
    found = {name: hint(one, hints.get(name)) for name, one in signature.parameters.items()}
    if "return" in hints:
        found["return"] = hints["return"]
    call.__annotations__ = {name: hint_of(one, types) for name, one in found.items() if one is not None}
    return call


Client = TypeVar("Client", bound="InProcess")


class InProcess:
    """A client that calls its server directly, as the tests open it."""

    def __init__(self, server: Any, **_: Any) -> None:
        self.server = server

    async def __aenter__(self: Client) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass
