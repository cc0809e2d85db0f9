"""`Signature`: the parameters, argument schema and converters of a handler function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _core, _schema
from ._errors import ToolError

Function = Callable[..., Any]
_NONE = object()
_COROUTINE = 0x80  # inspect.CO_COROUTINE
_VARIADIC = 0x04 | 0x08


class Signature:
    """A function's parameters (without the context), its hints, and whether it is a coroutine function."""

    __slots__ = ("function", "parameters", "hints", "context", "is_async")

    def __init__(self, function: Function) -> None:
        self.function = function
        self.parameters, self.is_async = _parameters(function)
        home = function if hasattr(function, "__code__") or hasattr(function, "__func__") else type(function).__call__
        self.hints: dict[str, Any] = _schema.hints_of(getattr(home, "func", home))
        self.context = self.takes(_core.Context)

    def takes(self, hint: type) -> str | None:
        """Removes the parameter with that hint, which is not an argument, and returns its name."""
        name = next((name for name in self.parameters if self.hints.get(name) is hint), None)
        if name is not None:
            del self.parameters[name]
        return name

    def schema(self) -> tuple[str, Function | None]:
        """The JSON Schema of the arguments, and a function that converts them if any needs it."""
        properties: dict[str, _schema.Schema] = {}
        converts: dict[str, _schema.Convert] = {}
        definitions: dict[str, Any] = {}
        for name, default in self.parameters.items():
            try:
                schema, convert = _schema.describe(self.hints.get(name, Any))
            except TypeError as error:
                raise TypeError(f"parameter {name!r} of {_name(self.function)}: {error}") from None
            _hoist(schema, definitions)
            if default is not _NONE and default is not None:
                schema = _with_default(schema, default)
            properties[name] = schema
            if convert:
                converts[name] = convert
        schema = {"type": "object", "properties": properties}
        if required := [name for name, default in self.parameters.items() if default is _NONE]:
            schema["required"] = required
        if definitions:
            schema["$defs"] = definitions
        return _core.to_json(schema), _preparing(converts) if converts else None

    def integers(self) -> list[str]:
        """The names of the parameters with the hint `int`."""
        return [name for name in self.parameters if self.hints.get(name) is int]

    def strings(self) -> list[tuple[str, str | None, str | None, bool]]:
        """The parameters as a prompt's arguments: name, title, description, and whether it is required."""
        out = []
        for name, default in self.parameters.items():
            schema, _ = _schema.describe(self.hints.get(name, str))
            out.append((name, schema.get("title"), schema.get("description"), default is _NONE))
        return out


def _hoist(schema: Any, definitions: dict[str, Any]) -> None:
    """Moves all `$defs` to the root, which references are relative to."""
    if isinstance(schema, dict):
        definitions.update(schema.pop("$defs", {}))
    for part in schema.values() if isinstance(schema, dict) else schema:
        if isinstance(part, (dict, list)):
            _hoist(part, definitions)


def _with_default(schema: _schema.Schema, default: Any) -> _schema.Schema:
    from json import loads

    try:
        return {**schema, "default": loads(_core.to_json(default))}
    except (TypeError, ValueError):
        return schema


def _preparing(converts: dict[str, _schema.Convert]) -> Function:
    def prepare(arguments: dict[str, Any]) -> dict[str, Any]:
        for name, convert in converts.items():
            if name in arguments:
                try:
                    arguments[name] = convert(arguments[name])
                except Exception as error:
                    raise ToolError(f"invalid arguments: {name}: {error}") from error
        return arguments

    return prepare


def _name(function: Function) -> str:
    return getattr(function, "__qualname__", repr(function))


def _parameters(function: Function) -> tuple[dict[str, Any], bool]:
    """Names and defaults of the parameters, and whether it is a coroutine function. Read from the code object, since
    importing `inspect` takes longer than all the rest."""
    bound = getattr(function, "__func__", None)
    plain: Any = bound or function
    code = getattr(plain, "__code__", None)
    if code is None or hasattr(plain, "__wrapped__"):
        return _inspected(function)
    if code.co_flags & _VARIADIC or code.co_posonlyargcount:
        raise TypeError(f"{_name(function)}: every parameter must have a name that a caller can give")
    count = code.co_argcount
    names = code.co_varnames[: count + code.co_kwonlyargcount]
    parameters = dict.fromkeys(names, _NONE)
    defaults = plain.__defaults__ or ()
    parameters.update(zip(names[count - len(defaults) : count], defaults))
    parameters.update(plain.__kwdefaults__ or {})
    if bound is not None:
        del parameters[names[0]]
    return parameters, bool(code.co_flags & _COROUTINE)


def _inspected(function: Function) -> tuple[dict[str, Any], bool]:
    import inspect

    parameters = inspect.signature(function).parameters.values()
    for parameter in parameters:
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"{_name(function)}: every parameter must have a name that a caller can give")
    empty = inspect.Parameter.empty
    made = {parameter.name: _NONE if parameter.default is empty else parameter.default for parameter in parameters}
    return made, is_coroutine_function(function)


def is_coroutine_function(function: Function) -> bool:
    """Whether calling it returns a coroutine. For a wrapper, the wrapped function decides."""
    import inspect

    called = inspect.unwrap(function)
    call = getattr(type(called), "__call__", None)
    return inspect.iscoroutinefunction(called) or inspect.iscoroutinefunction(call)


def description(function: Function) -> str | None:
    """The docstring without its indentation."""
    text = getattr(function, "__doc__", None)
    if not text:
        return None
    first, *rest = text.strip("\n").splitlines()
    margin = min((len(line) - len(line.lstrip()) for line in rest if line.strip()), default=0)
    return "\n".join([first.strip(), *(line[margin:].rstrip() for line in rest)]).strip() or None
