"""The schemas made from type hints."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Optional, TypedDict, Union

import pydantic
import pytest

from mcpbolt import Client, Server
from mcpbolt._schema import describe
from mcpbolt._signature import Signature
from support import coroutine


@dataclass
class Point:
    x: int
    y: int = 0


class Movie(TypedDict, total=False):
    title: str


class Model(pydantic.BaseModel):
    name: str
    size: int = pydantic.Field(gt=0)


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, {"type": "string"}),
        (Any, {}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}),
        (dict[str, Any], {"type": "object"}),
        (Optional[str], {"type": ["string", "null"]}),
        (Union[int, list[str]], {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "string"}}]}),
        (Literal["a", 1], {"enum": ["a", 1]}),
        (Annotated[int, "how many"], {"type": "integer", "description": "how many"}),
        (Annotated[int, {"minimum": 1}], {"type": "integer", "minimum": 1}),
        (tuple[int, str], {"type": "array", "minItems": 2, "maxItems": 2, "prefixItems": [{"type": "integer"}, {"type": "string"}]}),
        (bytes, {"type": "string", "contentEncoding": "base64"}),
        (Point, {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}, "required": ["x"]}),
        (Movie, {"type": "object", "properties": {"title": {"type": "string"}}}),
    ],
)
def test_hints_become_schemas(hint: Any, schema: dict[str, Any]) -> None:
    assert describe(hint)[0] == schema


def test_a_signature_becomes_an_object() -> None:
    def function(a: int, b: str = "x", *, c: bool | None = None) -> None: ...

    schema, _ = Signature(function).schema()
    assert json.loads(schema) == {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "string", "default": "x"}, "c": {"type": ["boolean", "null"]}},
        "required": ["a"],
    }


def test_methods_partials_and_callables_are_functions() -> None:
    import functools

    class Owner:
        def method(self, a: int) -> int:
            return a

        async def __call__(self, a: int) -> int:
            return a

    assert list(Signature(Owner().method).parameters) == ["a"]
    assert list(Signature(functools.partial(Owner().method)).parameters) == ["a"]
    assert Signature(Owner()).is_async and list(Signature(Owner()).parameters) == ["a"]


@pytest.mark.parametrize("function", [lambda *args: None, lambda **kwargs: None, lambda a, /: None])
def test_parameters_that_nobody_can_name_are_refused(function: Any) -> None:
    with pytest.raises(TypeError, match="must have a name"):
        Server("x").tool(function)


def test_hints_that_json_cannot_carry_are_refused() -> None:
    class Odd: ...

    def function(a: Odd) -> None: ...

    function.__annotations__ = {"a": Odd}
    with pytest.raises(TypeError, match="parameter 'a'"):
        Server("x").tool(function)


def test_bad_registrations_are_refused() -> None:
    server = Server("x")
    server.tool(name="same")(lambda: 1)
    server.tool(name="same")(lambda: 1)
    with pytest.raises(ValueError, match="already registered"):
        server._catalog()
    with pytest.raises(TypeError, match="inline"):

        @server.tool(inline=True)
        async def task() -> None: ...


@coroutine
async def test_pydantic_models_validate_and_describe() -> None:
    server = Server("models")

    @server.tool
    def size(model: Model, more: list[Model], limit: Annotated[int, pydantic.Field(le=9)] = 1) -> Model:
        return Model(name=model.name + more[0].name, size=limit)

    async with Client(server) as client:
        (tool,) = await client.list_tools()
        assert tool.input_schema["properties"]["more"]["items"]["properties"]["size"]["exclusiveMinimum"] == 0
        assert tool.output_schema and tool.output_schema["properties"]["name"] == {"title": "Name", "type": "string"}
        one = {"name": "a", "size": 1}
        result = await client.call_tool("size", {"model": one, "more": [one | {"name": "b"}]})
        assert result.structured == {"name": "ab", "size": 1}
        assert (await client.call_tool("size", {"model": one | {"size": 0}, "more": []})).is_error
        assert (await client.call_tool("size", {"model": one, "more": [one], "limit": 10})).is_error


@coroutine
async def test_descriptions_come_from_docstrings() -> None:
    server = Server("described")

    @server.tool
    def documented() -> None:
        """First line.

            Indented.
        Last line.
        """

    async with Client(server) as client:
        (tool,) = await client.list_tools()
        assert tool.description == "First line.\n\n    Indented.\nLast line."


@coroutine
async def test_hints_may_name_what_is_local_to_a_function() -> None:
    @dataclass
    class Inner:
        a: int

    @dataclass
    class Local:
        inner: Inner

    server = Server("local")

    @server.tool
    def use(value: Local) -> int:
        return value.inner.a

    @server.tool(name="again")
    async def use_again(values: list[Local]) -> Inner:
        return values[0].inner

    async with Client(server) as client:
        assert (await client.call_tool("use", {"value": {"inner": {"a": 7}}})).text == "7"
        assert (await client.call_tool("again", {"values": [{"inner": {"a": 7}}]})).structured == {"a": 7}


def test_hints_that_name_nothing_are_refused() -> None:
    def function(a: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(TypeError, match="hint of .*function cannot be resolved.*Nowhere"):
        Server("x").tool(function)

    @dataclass
    class Holder:
        a: Nowhere  # type: ignore[name-defined]  # noqa: F821

    def holding(a: Holder) -> None: ...

    with pytest.raises(TypeError, match="parameter 'a' of .*holding: a hint of .*Holder cannot be resolved.*Nowhere"):
        Server("x").tool(holding)
