"""`Signature`: the parameters of a handler function, and the schema and conversion of its arguments."""

from __future__ import annotations

from collections.abc import Callable
from sys import modules
from typing import Any

from . import _core, _plain
from ._docstring import of_parameters
from ._hints import bare, hints_of, names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._types import Adapter

Function = Callable[..., Any]
_NONE = object()
_COROUTINE = 0x80  # inspect.CO_COROUTINE
_VARIADIC = 0x04 | 0x08
_TEXT = (str, str | None)
# The keywords of JSON Schema that validate.
_ASSERTIONS = frozenset(
    "type enum const multipleOf maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern maxItems"
    " minItems uniqueItems maxProperties minProperties required items prefixItems contains minContains maxContains"
    " unevaluatedItems properties patternProperties additionalProperties propertyNames unevaluatedProperties"
    " dependentRequired dependentSchemas anyOf oneOf allOf not if then else $ref $dynamicRef".split()
)


class Signature:
    """A function's parameters (without the context and what `Depends` supplies), its hints, and whether it is a
    coroutine function."""

    __slots__ = ("function", "parameters", "hints", "context", "dependencies", "is_async", "_home")

    def __init__(self, function: Function) -> None:
        self.function = function
        self.parameters, self.is_async = _parameters(function)
        home = function if hasattr(function, "__code__") or hasattr(function, "__func__") else type(function).__call__
        self._home = getattr(home, "func", home)
        self.hints: dict[str, Any] = hints_of(self._home)
        self.context = self.takes(_core.Context)
        # Without `Depends` there is no need to look for it.
        depends = modules.get("mcpbolt._depends")
        self.dependencies: dict[str, Any] = depends.taken(self) if depends is not None else {}

    @staticmethod
    def has_default(default: object) -> bool:
        """Whether the value of a parameter in `parameters` is a default."""
        return default is not _NONE

    def takes(self, kind: type) -> str | None:
        """Removes the parameter with that class in its hint, which is not an argument, and returns its name."""
        name = next((name for name in self.parameters if names(self.hints.get(name), kind)), None)
        if name is not None:
            del self.parameters[name]
        return name

    def arguments(self, title: str, strict: bool = False, json_strings: bool = False) -> Arguments:
        """The arguments of the function. `title` names the entry in errors: `tool "add"`. With `json_strings`, strings are
        read as JSON first."""
        for name in self.parameters:
            for note in bare(self.hints.get(name))[1]:
                if wrong := sorted(_ASSERTIONS.intersection(note if isinstance(note, dict) else ())):
                    told = "is not checked when it stands in a dict; use pydantic.Field"
                    raise TypeError(f"parameter {name!r} of {name_of(self.function)}: {wrong[0]!r} {told}")
        return Arguments(self, title, of_parameters(self._home), strict, json_strings)

    def takes_only_text(self) -> bool:
        """Whether each parameter takes any string as it is."""
        schemas = [_plain.schema_of(bare(self.hints.get(name, Any))[0]) for name in self.parameters]
        return all(schema in ({}, {"type": "string"}) for schema in schemas)


class Arguments:
    """The schema of a function's arguments, and their conversion to what the function is called with.

    Attributes:
        are_told: Whether the docstring describes parameters, and all of these are in the schema or supplied by the server.
        is_plain: Whether all parameters have plain types, which need pydantic only for arguments of other types.
    """

    def __init__(
        self, signature: Signature, title: str, texts: dict[str, str], strict: bool, json_strings: bool
    ) -> None:
        self._signature = signature
        self._title = title
        self._strict = strict
        # The parameters that take more than text.
        self._read: list[str] = []
        if json_strings:
            self._read = [name for name in signature.parameters if bare(signature.hints.get(name))[0] not in _TEXT]
        self._made: Adapter | None = None
        schema = _plain.arguments(signature.parameters, signature.hints, _NONE)
        self.is_plain = schema is not None and not self._read
        if schema is None:
            from ._types import UNSUPPORTED, schema_of

            try:
                schema = schema_of(self._adapter)
            except UNSUPPORTED as error:
                raise TypeError(f"{name_of(signature.function)}: {getattr(error, 'message', error)}") from error
        self.schema = schema
        supplied = {signature.context, *signature.dependencies}
        self.are_told = bool(texts) and texts.keys() <= {*schema["properties"], *supplied}
        # As members of the schema, not as fields of pydantic, which keeps the description of a recursive class for others.
        for name, shown in schema["properties"].items():
            for note in bare(signature.hints.get(name))[1]:
                if isinstance(note, dict):
                    shown.update(note)
                elif isinstance(note, str):
                    shown.setdefault("description", note)
            if name in texts:
                shown.setdefault("description", texts[name])

    @property
    def _adapter(self) -> Adapter:
        if self._made is None:
            from inspect import signature

            from ._types import arguments

            own, function = self._signature, self._signature.function
            parameters = [
                one.replace(annotation=own.hints.get(one.name, Any))
                for one in signature(function).parameters.values()
                if one.name in own.parameters
            ]
            self._made = arguments(name_of(function), parameters)
        return self._made

    def prepare(self, given: dict[str, Any]) -> dict[str, Any]:
        """Validates arguments and converts them to the types of the parameters.

        Raises:
            InvalidArguments: They are not valid.
        """
        from ._types import parsed, validated

        if self._read:
            given = parsed(given, self._read)
        return validated(self._adapter, self._title, given, self._strict)

    def strings(self) -> list[tuple[str, str | None, str | None, bool]]:
        """The arguments as a prompt shows them: name, title, description, and whether it is required."""
        required = self.schema.get("required", ())
        shown = self.schema["properties"].items()
        return [(name, one.get("title"), one.get("description"), name in required) for name, one in shown]


def name_of(function: Function) -> str:
    """The name of a function, for errors."""
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
        raise _unnamed(function, code.co_flags & 0x04, code.co_flags & 0x08)
    count = code.co_argcount
    names = code.co_varnames[: count + code.co_kwonlyargcount]
    parameters = dict.fromkeys(names, _NONE)
    defaults = plain.__defaults__ or ()
    parameters.update(zip(names[count - len(defaults) : count], defaults))
    parameters.update(plain.__kwdefaults__ or {})
    if bound is not None:
        del parameters[names[0]]
    return parameters, bool(code.co_flags & _COROUTINE)


def _unnamed(function: Function, has_args: int, has_kwargs: int) -> TypeError:
    """The error for parameters that a caller cannot name."""
    what = "*args" if has_args else "**kwargs" if has_kwargs else "positional-only parameters"
    told = f"Functions with {what} are not supported as tools, resources or prompts"
    return TypeError(f"{told}: {name_of(function)}; use standard parameters, which callers can name")


def _inspected(function: Function) -> tuple[dict[str, Any], bool]:
    import inspect

    parameters = inspect.signature(function).parameters.values()
    for parameter in parameters:
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            is_args, is_kwargs = parameter.kind == parameter.VAR_POSITIONAL, parameter.kind == parameter.VAR_KEYWORD
            raise _unnamed(function, is_args, is_kwargs)
    empty = inspect.Parameter.empty
    made = {parameter.name: _NONE if parameter.default is empty else parameter.default for parameter in parameters}
    return made, is_coroutine_function(function)


def is_coroutine_function(function: Function) -> bool:
    """Whether calling it returns a coroutine. For a wrapper, the wrapped function decides."""
    import inspect

    called = inspect.unwrap(function)
    call = getattr(type(called), "__call__", None)
    return inspect.iscoroutinefunction(called) or inspect.iscoroutinefunction(call)
