"""Questions of a handler to the client: the engine calls these functions for `Context.sample` and the like."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any, Generic, TypeVar

from . import _core
from ._content import Message, Wire
from ._questions import Elicited, Root, Sampled

_T = TypeVar("_T")


class Asked(Generic[_T]):
    """A question to the client. Await it in a coroutine function; in a plain one call `wait`."""

    __slots__ = ("_context", "_what", "_params", "_read")

    def __init__(self, context: _core.Context, what: str, params: Wire, read: Callable[[Any], _T]) -> None:
        self._context = context
        self._what = what
        self._params = params
        self._read = read

    def __await__(self) -> Generator[Any, None, _T]:
        from ._event_loop import event_loop

        future = event_loop().create_future()
        number = self._context._ask(self._what, self._params, future)
        try:
            answer = yield from future.__await__()
        finally:
            if future.cancelled():
                self._context._forget(number)
        return self._read(answer)

    def wait(self) -> _T:
        """Waits for the answer on this thread, which must not be the event loop's."""
        return self._read(self._context._wait(self._what, self._params))


def sample(
    context: _core.Context,
    messages: str | Message | Iterable[Message | Wire],
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
    if isinstance(messages, (str, Message)):
        messages = [messages if isinstance(messages, Message) else Message(messages)]
    params: Wire = {
        "messages": [one.wire() if isinstance(one, Message) else one for one in messages],
        "maxTokens": max_tokens,
    }
    for name, value in (
        ("systemPrompt", system_prompt),
        ("temperature", temperature),
        ("stopSequences", list(stop_sequences) or None),
        ("modelPreferences", model_preferences),
        ("tools", None if tools is None else list(tools)),
        ("toolChoice", tool_choice),
        ("metadata", metadata),
    ):
        if value is not None:
            params[name] = value
    return Asked(context, "sample", params, Sampled.parse)


def elicit(context: _core.Context, message: str, form: Any) -> Asked[Elicited]:
    schema, make = _form(form)
    return Asked(context, "elicit", {"message": message, "requestedSchema": schema}, lambda wire: Elicited.parse(wire, make))


def elicit_url(context: _core.Context, message: str, url: str, id: str | None = None) -> Asked[Elicited]:
    if id is None:
        from uuid import uuid4

        id = uuid4().hex
    return Asked(context, "elicit", {"mode": "url", "message": message, "url": url, "elicitationId": id}, Elicited.parse)


def roots(context: _core.Context) -> Asked[list[Root]]:
    return Asked(context, "roots", {}, lambda wires: [Root.parse(wire) for wire in wires])


def _form(form: Any) -> tuple[Wire, Callable[[Any], Any] | None]:
    """The schema of a form, and the conversion of a filled-in form to the program's class, if there is one."""
    if isinstance(form, dict):
        return form, None
    from ._types import adapter_of, schema_of

    adapter = adapter_of(form)
    schema = schema_of(adapter)
    if "properties" not in schema:
        raise TypeError(f"{form!r} is not a class with fields to fill in")
    kept: Wire = {name: part for name, part in schema.items() if name in ("type", "properties", "required")}
    definitions = schema.get("$defs", {})
    kept["properties"] = {name: _field(field, definitions) for name, field in schema["properties"].items()}
    return kept, adapter.validate_python


def _field(field: Wire, definitions: Wire) -> Wire:
    """The schema of a field as forms allow it: without `null`, since `required` says which fields are optional, and
    without references."""
    field = dict(field)
    options = [one for one in field.get("anyOf", ()) if one != {"type": "null"}]
    if len(options) == 1:
        del field["anyOf"]
        field = {**options[0], **field}
    if reference := field.pop("$ref", None):
        field = {**definitions[reference.removeprefix("#/$defs/")], **field}
    if field.get("default", "") is None:
        del field["default"]
    return field
