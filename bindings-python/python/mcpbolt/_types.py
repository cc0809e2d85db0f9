"""Types of signatures by pydantic: schemas, validation and conversion of arguments, results and forms."""

from __future__ import annotations

import sys
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import Parameter
from inspect import Signature as Parameters
from typing import Annotated, Any, Union

from pydantic import BaseModel, ConfigDict, PydanticUserError, TypeAdapter, ValidationError, create_model
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import SchemaError, from_json
from pydantic_core.core_schema import ErrorType
from typing_extensions import NotRequired, ReadOnly, TypedDict
from typing_inspection.introspection import AnnotationSource, ForbiddenQualifier, inspect_annotation

from ._errors import InvalidArguments
from ._hints import UNIONS, hints_of, names_of_caller
from ._plain import Schema

Adapter = TypeAdapter[Any]
MAX_FAULTS = 10  # that an error lists
# The exceptions that pydantic raises for types that it does not support.
UNSUPPORTED = (PydanticUserError, SchemaError, NameError, TypeError)
_FAULTS = frozenset(typing.get_args(ErrorType))


class Untitled(GenerateJsonSchema):
    """Leaves out the titles that repeat the names of fields and classes."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def model_schema(self, schema: Any) -> Schema:
        return _untitled(super().model_schema(schema), schema)

    def dataclass_schema(self, schema: Any) -> Schema:
        return _untitled(super().dataclass_schema(schema), schema)

    def typed_dict_schema(self, schema: Any) -> Schema:
        return _untitled(super().typed_dict_schema(schema), schema)

    def enum_schema(self, schema: Any) -> Schema:
        return _untitled(super().enum_schema(schema), schema)


def _untitled(made: Schema, schema: Any) -> Schema:
    """The JSON Schema of a class without its name."""
    if made.get("title") == getattr(schema.get("cls"), "__name__", None):
        made.pop("title", None)
    return made


def arguments(name: str, parameters: list[Parameter]) -> Adapter:
    """Makes the adapter that takes the arguments of a function by name, and gives those to call it with.

    Raises:
        TypeError: pydantic does not support the type of a parameter.
    """
    parameters = [one.replace(annotation=readable(one.annotation)) for one in parameters]

    try:
        return _taking(parameters)
    except SchemaError:
        # A default in `Annotated` may precede a parameter without one.
        return _taking([one.replace(kind=Parameter.KEYWORD_ONLY) for one in parameters])
    except UNSUPPORTED as error:
        for one in parameters:
            try:
                adapter_of(one.annotation)
            except UNSUPPORTED as of_parameter:
                raise TypeError(f"parameter {one.name!r} of {name}: {_told(of_parameter)}") from of_parameter
        raise TypeError(f"{name}: {_told(error)}") from error


def _taking(parameters: list[Parameter]) -> Adapter:
    def take(**arguments: Any) -> dict[str, Any]:
        return arguments

    take.__signature__ = Parameters(parameters)  # type: ignore[attr-defined]
    take.__annotations__ = {one.name: one.annotation for one in parameters}
    return adapter_of(take)


def adapter_of(hint: Any) -> Adapter:
    """The adapter of a type, whose own hints may name what is local to the innermost caller outside this package."""
    adapter: Adapter = TypeAdapter(readable(hint))
    if not adapter.pydantic_complete:
        adapter.rebuild(_types_namespace=names_of_caller())
    return adapter


def refuse_qualifiers(hint: Any, name: str) -> None:
    """Raises a `TypeError` if a return hint has a qualifier, such as `Final`, which says nothing of a value."""
    try:
        inspect_annotation(hint, annotation_source=AnnotationSource.FUNCTION)
    except ForbiddenQualifier as error:
        raise TypeError(f"{name}: return annotation contains an invalid type qualifier: {hint}") from error


def model_of(kind: Any) -> type[BaseModel]:
    """A model of the attributes that a class declares, which takes instances of the class.

    Raises:
        TypeError: It is no class, or declares none.
    """
    hints = hints_of(kind) if isinstance(kind, type) else {}
    fields: dict[str, Any] = {name: (hint, getattr(kind, name, ...)) for name, hint in hints.items() if name[0] != "_"}
    if not fields:
        raise TypeError(f"{kind!r} declares no attributes")
    return create_model(kind.__name__, __config__=ConfigDict(from_attributes=True), __doc__=kind.__doc__, **fields)


class ByConfig(Untitled):
    """Names the fields of a class by their aliases if its own configuration has `serialize_by_alias`."""

    def model_schema(self, schema: Any) -> Schema:
        with self._named_by(schema["cls"].model_config):
            return super().model_schema(schema)

    def dataclass_schema(self, schema: Any) -> Schema:
        with self._named_by(schema.get("config")):
            return super().dataclass_schema(schema)

    @contextmanager
    def _named_by(self, config: Any) -> Iterator[None]:
        before = self.by_alias
        self.by_alias = bool((config or {}).get("serialize_by_alias"))
        try:
            yield
        finally:
            self.by_alias = before


def schema_of(adapter: Adapter) -> Schema:
    """The JSON Schema of the values that a type takes."""
    return _rooted(adapter.json_schema(schema_generator=Untitled))


def schema_of_results(adapter: Adapter, by_alias: bool | None) -> Schema:
    """The JSON Schema of what `dumped` makes of the values of a type."""
    generator = Untitled if by_alias is not None else ByConfig
    return _rooted(adapter.json_schema(mode="serialization", by_alias=bool(by_alias), schema_generator=generator))


def _rooted(schema: Schema) -> Schema:
    """The schema without a reference at its root: protocol and clients look for `type` there."""
    reference = schema.pop("$ref", None)
    if reference is not None:
        schema = {**schema["$defs"][reference.removeprefix("#/$defs/")], **schema}
    return schema


def validated(adapter: Adapter, tool: str, given: dict[str, Any], strict: bool) -> dict[str, Any]:
    """The arguments to call a function with.

    Raises:
        InvalidArguments: They are not valid.
    """
    try:
        if strict:
            from ._core import to_json

            # The strict mode for JSON accepts dates and tuples as texts and lists, since JSON has no types for them.
            return adapter.validate_json(to_json(given), strict=True)  # type: ignore[no-any-return]
        return adapter.validate_python(given)  # type: ignore[no-any-return]
    except ValidationError as error:
        raise InvalidArguments(f"invalid arguments for {tool}: {faults(error)}") from error


def parsed(given: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """The arguments, with the strings among those named replaced by the JSON lists, objects and nulls that they are."""
    read = dict(given)
    for name in names:
        if isinstance(text := given.get(name), str):
            try:
                value = from_json(text)
            except ValueError:
                continue
            if not isinstance(value, (str, int, float)):
                read[name] = value
    return read


def dumped(adapter: Adapter, value: Any, by_alias: bool | None = True) -> Any:
    """The JSON value of a function's return value. `by_alias` is as pydantic has it.

    Raises:
        ValidationError: The value is not valid.
    """
    valid = adapter.validate_python(value, by_alias=True, by_name=True)
    if isinstance(valid, BaseModel):
        # By the instance, so that an instance of a subclass keeps its own fields.
        return valid.model_dump(mode="json", by_alias=by_alias)
    return adapter.dump_python(valid, mode="json", by_alias=by_alias)


def summary(error: ValidationError) -> dict[str, Any]:
    """The number and the types of the faults, without anything of the values. A validator may make types of its own."""
    found = {one["type"] for one in error.errors(include_url=False, include_context=False, include_input=False)}
    types = sorted({one if one in _FAULTS else "custom_error" for one in found})
    return {"error_count": error.error_count(), "error_types": types}


def faults(error: ValidationError) -> str:
    """The text of an error, in the words of pydantic: each place and its fault, without the values."""
    told = error.errors(include_url=False, include_context=False, include_input=False)
    lines = [f"{_place(one['loc'])}{one['msg']} [type={one['type']}]" for one in told[:MAX_FAULTS]]
    if len(told) > MAX_FAULTS:
        lines.append(f"and {len(told) - MAX_FAULTS} more")
    return f"{len(told)} validation error{'s' * (len(told) > 1)}: {'; '.join(lines)}"


def _place(steps: tuple[int | str, ...]) -> str:
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")
    return f"{place}: " if place else ""


def _told(error: BaseException) -> str:
    return str(getattr(error, "message", error))


def readable(hint: Any, within: tuple[Any, ...] = ()) -> Any:
    """The hint with each `typing.TypedDict`, which pydantic cannot read before Python 3.12, replaced by an equal one of
    `typing_extensions`."""
    if sys.version_info >= (3, 12) or hint in within:
        return hint
    if isinstance(hint, type) and type(hint).__module__ == "typing" and typing.is_typeddict(hint):
        return _rebuilt(hint, (*within, hint))
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    new = tuple(readable(one, within) for one in args)
    if all(one is other for one, other in zip(new, args)):
        return hint
    if origin is Annotated:
        return Annotated[(new[0], *hint.__metadata__)]
    return Union[new] if origin in UNIONS else origin[new]


def _rebuilt(kind: Any, within: tuple[Any, ...]) -> Any:
    items: dict[str, Any] = {}
    for name, hint in hints_of(kind).items():
        key = inspect_annotation(hint, annotation_source=AnnotationSource.TYPED_DICT)
        inner = readable(key.type, within)
        item = Annotated[(inner, *key.metadata)] if key.metadata else inner
        if "read_only" in key.qualifiers:
            item = ReadOnly[item]
        is_required = name in kind.__required_keys__ or "required" in key.qualifiers
        items[name] = item if is_required and "not_required" not in key.qualifiers else NotRequired[item]
    made: Any = TypedDict(kind.__name__, items)  # type: ignore[misc]
    for attribute in ("__doc__", "__module__", "__qualname__", "__pydantic_config__"):
        if hasattr(kind, attribute):
            setattr(made, attribute, getattr(kind, attribute))
    return made
