"""Schemas of signatures, and what is refused when they are registered."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field, make_dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, NewType, Optional, TypedDict, Union

import pydantic
import pytest
from pydantic import Field
from typing_extensions import NotRequired

from mcpbolt import Client, Message, PeerError, Server, ToolResult
from mcpbolt._returned import Returned
from mcpbolt._signature import Signature
from support import coroutine

if TYPE_CHECKING:
    from mcpbolt import Context, Steps


@dataclass
class Point:
    x: int
    y: int = 0


class Movie(TypedDict, total=False):
    title: str


class Shelf(TypedDict):
    movie: Movie
    place: NotRequired[Annotated[str, Field(max_length=9)]]


class Model(pydantic.BaseModel):
    name: str
    size: int = Field(gt=0)


@dataclass
class Tree:
    value: int
    children: list[Tree] = field(default_factory=list)


class Pair(NamedTuple):
    left: int
    right: str


class Square(pydantic.BaseModel):
    kind: Literal["square"] = "square"
    side: float


class Circle(pydantic.BaseModel):
    kind: Literal["circle"] = "circle"
    radius: float


Id = NewType("Id", int)
Shape = Annotated[Union[Square, Circle], Field(discriminator="kind")]


def schema(function: Any) -> dict[str, Any]:
    made: dict[str, Any] = Signature(function).arguments('tool "t"').schema
    return made


def test_a_plain_signature_becomes_an_object() -> None:
    def function(a: int, b: str = "x", *, c: bool | None = None, d: Annotated[float, "How many", {"title": "D"}] = 1) -> None: ...

    assert schema(function) == {
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {"type": "string", "default": "x"},
            "c": {"anyOf": [{"type": "boolean"}, {"type": "null"}], "default": None},
            "d": {"type": "number", "default": 1, "description": "How many", "title": "D"},
        },
        "required": ["a"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("hint", "given", "taken"),
    [
        (Point, {"x": "1"}, Point(1)),
        (Point | Model, {"name": "a", "size": 1}, Model(name="a", size=1)),
        (date | None, "2020-02-29", date(2020, 2, 29)),
        (timedelta, "PT1H", timedelta(hours=1)),
        (pydantic.AnyUrl, "https://example.com/a", pydantic.AnyUrl("https://example.com/a")),
        (Tree, {"value": 1, "children": [{"value": 2}]}, Tree(1, [Tree(2)])),
        (Pair, [1, "a"], Pair(1, "a")),
        (Id, 3, 3),
        (Shelf, {"movie": {"title": "M"}}, {"movie": {"title": "M"}}),
        (list[Shelf], [{"movie": {}}], [{"movie": {}}]),
        (Shape, {"kind": "circle", "radius": 1}, Circle(radius=1)),
        (Annotated[list[int], Field(max_length=1)], ["1"], [1]),
        (set[int], [1, 1], {1}),
        (bytes, "ä", "ä".encode()),
    ],
)
@coroutine
async def test_types_are_as_pydantic_has_them(hint: Any, given: Any, taken: Any) -> None:
    seen: list[Any] = []

    def take(value: Any) -> None:
        seen.append(value)

    take.__annotations__ = {"value": hint, "return": None}
    server = Server("types")
    server.tool(take)
    async with Client(server) as client:
        result = await client.call_tool("take", {"value": given})
        assert not result.is_error, result.text
        assert seen == [taken] and type(seen[0]) is type(taken)
        wrong = await client.call_tool("take", {"value": object.__doc__})
        assert wrong.is_error or hint is bytes
        assert str(object.__doc__) not in wrong.text, "the value is not told"


def test_a_field_may_be_the_default() -> None:
    def function(n: int = Field(description="How many", ge=1), m: int = Field(2, alias="M"), k: list[int] = Field(default_factory=list)) -> None: ...

    assert schema(function) == {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 1, "description": "How many"},
            "M": {"type": "integer", "default": 2},
            "k": {"type": "array", "items": {"type": "integer"}},
        },
        "required": ["n"],
        "additionalProperties": False,
    }
    assert Signature(function).arguments("t").prepare({"n": 1}) == {"n": 1, "m": 2, "k": []}


def test_a_default_may_stand_in_the_hint() -> None:
    def function(n: Annotated[int, Field(1)], m: int) -> None: ...

    assert schema(function)["required"] == ["m"]
    assert Signature(function).arguments("t").prepare({"m": "2"}) == {"n": 1, "m": 2}


def test_classes_of_one_name_are_told_apart() -> None:
    def made(kind: type) -> Any:
        return make_dataclass("Same", [("value", kind)])

    def function(a: Any, b: Any) -> None: ...

    function.__annotations__ = {"a": made(int), "b": made(str)}
    prepared = Signature(function).arguments("t").prepare({"a": {"value": 1}, "b": {"value": "b"}})
    assert (prepared["a"].value, prepared["b"].value) == (1, "b")
    assert len(schema(function)["$defs"]) == 2


@pytest.mark.parametrize(
    ("hint", "output", "wraps"),
    [
        (int, {"type": "integer"}, True),
        (list[str], {"type": "array", "items": {"type": "string"}}, True),
        (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}, True),
        (date, {"type": "string", "format": "date"}, True),
        (Literal["a", 1], {"enum": ["a", 1]}, True),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}, False),
    ],
)
def test_return_hints_become_output_schemas(hint: Any, output: dict[str, Any], wraps: bool) -> None:
    returned = Returned.of(hint, "t")
    assert returned and returned.wraps == wraps
    assert returned.schema == ({"type": "object", "properties": {"result": output}, "required": ["result"]} if wraps else output)


@pytest.mark.parametrize("hint", [None, Any, object, bytes, list, list[Any], tuple[Any, ...], Message, list[Message], Optional[Message], type])
def test_return_hints_of_content_and_of_anything_have_none(hint: Any) -> None:
    assert Returned.of(hint, "t") is None


@coroutine
async def test_results_are_converted_by_their_hint() -> None:
    server = Server("results")

    @server.tool
    def whole() -> int:
        return "7"  # type: ignore[return-value]

    @server.tool
    def days() -> list[date]:
        return [date(2020, 1, 1)]

    @server.tool
    def tree() -> Tree:
        return Tree(1, [Tree(2)])

    @server.tool
    def fields() -> Model:
        class More(Model):
            more: int = 3

        return More(name="a", size=1)

    @server.tool
    def wrong() -> dict[str, int]:
        return {"a": "secret"}  # type: ignore[dict-item]

    @server.tool(output_schema=False)
    def free() -> int:
        return 7

    @server.tool
    def maybe() -> str | None:
        return None

    async with Client(server) as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        assert (tools["tree"].output_schema or {})["type"] == "object"
        assert tools["free"].output_schema is None

        async def made(name: str) -> tuple[Any, str]:
            result = await client.call_tool(name)
            return result.structured, result.text

        assert await made("whole") == ({"result": 7}, "7")
        assert await made("days") == ({"result": ["2020-01-01"]}, '["2020-01-01"]')
        assert (await made("tree"))[0] == {"value": 1, "children": [{"value": 2, "children": []}]}
        assert (await made("fields"))[0] == {"name": "a", "size": 1, "more": 3}
        assert await made("free") == (7, "7")
        assert await made("maybe") == ({"result": None}, "")
        with pytest.raises(Exception, match="result of tool \"wrong\" does not fit its output schema: 1 validation error: a: Input") as raised:
            await made("wrong")
        assert "secret" not in str(raised.value)


def test_methods_partials_and_callables_are_functions() -> None:
    class Owner:
        def method(self, a: int) -> int:
            return a

        async def __call__(self, a: int) -> int:
            return a

    assert list(Signature(Owner().method).parameters) == ["a"]
    assert list(Signature(functools.partial(Owner().method)).parameters) == ["a"]
    assert Signature(Owner()).is_async and list(Signature(Owner()).parameters) == ["a"]
    assert schema(Owner())["properties"] == {"a": {"type": "integer"}}


def test_a_context_is_found_in_any_hint() -> None:
    def function(
        a: int,
        context: Annotated[Optional[Context], "of the call"] = None,
        steps: Steps | None = None,
    ) -> None: ...

    signature = Signature(function)
    assert signature.context == "context" and list(signature.parameters) == ["a", "steps"]


@pytest.mark.parametrize("function", [lambda *args: None, lambda **kwargs: None, lambda a, /: None])
def test_parameters_that_nobody_can_name_are_refused(function: Any) -> None:
    with pytest.raises(TypeError, match="Functions with .* are not supported as tools.*lambda"):
        Server("x").tool(function)


def test_hints_that_json_cannot_carry_are_refused() -> None:
    class Odd: ...

    def function(a: Odd) -> None: ...

    function.__annotations__ = {"a": Odd}
    with pytest.raises(TypeError, match="parameter 'a'"):
        Server("x").tool(function)

    def called(a: Callable[[int], str]) -> None: ...

    with pytest.raises(TypeError, match="called: .*JsonSchema"):
        Server("x").tool(called)

    def unchecked(a: Annotated[str, {"minLength": 1}]) -> None: ...

    with pytest.raises(TypeError, match="parameter 'a' of .*unchecked: 'minLength' is not checked.*pydantic.Field"):
        Server("x").tool(unchecked)

    for keyword in ("items", "properties", "additionalProperties", "anyOf", "not", "$ref", "dependentRequired"):
        function.__annotations__ = {"a": Annotated[list[str], {keyword: {}}]}
        with pytest.raises(TypeError, match=f"'{re.escape(keyword)}' is not checked"):
            Server("x").tool(function)


def test_a_name_that_not_all_clients_take_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    """R-NAM-01, R-NAM-02."""
    server = Server("names")
    for name in ("get_user-2.v1", "A", "x" * 128, "a b@é", "x" * 129, "dash-"):
        server.tool(name=name)(lambda: 1)
    assert [(one.name, one.levelname, one.getMessage()) for one in caplog.records] == [
        ("mcpbolt.server.names", "WARNING", f"Tool name validation warning for {name!r}: the name {why}")
        for name, why in {
            "a b@é": "contains spaces and contains invalid characters: '@', 'é'; some clients take only names of A-Z a-z 0-9 _ - .",
            "x" * 129: "exceeds maximum length: it has 129 characters, and some clients take only 128",
            "dash-": "starts or ends with a dash, which some clients do not take",
        }.items()
    ]


def test_bad_registrations_are_refused() -> None:
    server = Server("x")
    server.tool(name="same")(lambda: 1)
    server.tool(name="same")(lambda: 1)
    with pytest.raises(ValueError, match="already registered"):
        server._catalog()
    with pytest.raises(TypeError, match="You must provide a name for lambda functions: pass name="):
        server.tool(lambda: 1)

    def final() -> int:
        return 1

    final.__annotations__ = {"return": Final[int]}
    with pytest.raises(TypeError, match='tool "final": return annotation contains an invalid type qualifier'):
        server.tool(final)
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
        assert tool.input_schema["$defs"]["Model"]["properties"]["size"]["exclusiveMinimum"] == 0
        assert tool.output_schema and tool.output_schema["properties"]["name"] == {"type": "string"}
        one = {"name": "a", "size": 1}
        result = await client.call_tool("size", {"model": one, "more": [one | {"name": "b"}]})
        assert result.structured == {"name": "ab", "size": 1}
        wrong = await client.call_tool("size", {"model": one | {"size": 0}, "more": [], "limit": 10})
        assert wrong.is_error and wrong.text == (
            'invalid arguments for tool "size": 2 validation errors: model.size: Input should be greater than 0'
            " [type=greater_than]; limit: Input should be less than or equal to 9 [type=less_than_equal]"
        )


@coroutine
async def test_strict_servers_and_tools_convert_nothing() -> None:
    server = Server("strict", strict=True)

    def take(whole: int, day: date, pair: tuple[int, float]) -> str:
        return repr((whole, day, pair))

    server.tool(take)
    server.tool(name="lax", strict=False)(take)
    good = {"whole": 1, "day": "2020-01-01", "pair": [1, 2]}
    async with Client(server) as client:
        for tool in ("take", "lax"):
            assert (await client.call_tool(tool, good)).text == "(1, datetime.date(2020, 1, 1), (1, 2.0))"
        assert (await client.call_tool("take", good | {"whole": "1"})).is_error
        assert not (await client.call_tool("lax", good | {"whole": "1"})).is_error


@coroutine
async def test_strings_are_read_as_json_where_the_server_wants_it() -> None:
    server = Server("lenient", json_strings=True)

    def take(text: str, maybe: str | None, items: list[int], either: list[str] | str, size: int = 0) -> str:
        return repr((text, maybe, items, either, size))

    server.tool(take)
    plain = Server("plain")
    plain.tool(take)
    given = {"text": "[1]", "maybe": "{}", "items": "[1, 2]", "either": '["a"]', "size": "3"}
    async with Client(server) as client, Client(plain) as other:
        assert (await client.call_tool("take", given)).text == "('[1]', '{}', [1, 2], ['a'], 3)"
        assert (await client.call_tool("take", given | {"either": '"a"', "items": "[]"})).text == """('[1]', '{}', [], '"a"', 3)"""
        for wrong in ("[1", "{}", "1", "[" * 9999, "9" * 9999):
            assert (await client.call_tool("take", given | {"items": wrong})).is_error
        assert (await other.call_tool("take", given)).is_error
        assert (await other.call_tool("take", given | {"items": [1]})).text == """('[1]', '{}', [1], '["a"]', 3)"""


class Station:
    """A class that pydantic knows nothing of."""

    name: str
    height: int = 3
    _secret = 1

    def __init__(self, name: str) -> None:
        self.name = name


@coroutine
async def test_attributes_of_a_class_are_its_data() -> None:
    server = Server("stations")

    @server.tool
    def station(name: str) -> Station:
        return Station(name)

    @server.tool
    def whole(name: str) -> Annotated[ToolResult, Model]:
        return ToolResult("a model", {"name": name, "size": 1} if name else {"size": 1})

    async with Client(server) as client:
        listed = {tool.name: tool.output_schema for tool in await client.list_tools()}
        assert listed["station"] == {
            "type": "object",
            "description": "A class that pydantic knows nothing of.",
            "properties": {"name": {"type": "string"}, "height": {"type": "integer", "default": 3}},
            "required": ["name"],
        }
        assert (await client.call_tool("station", {"name": "north"})).structured == {"name": "north", "height": 3}
        assert listed["whole"] == Returned.of(Model, "").schema  # type: ignore[union-attr]
        result = await client.call_tool("whole", {"name": "a"})
        assert (result.text, result.structured) == ("a model", {"name": "a", "size": 1})
        with pytest.raises(PeerError, match="does not fit its output schema"):
            await client.call_tool("whole", {"name": ""})


@coroutine
async def test_prompts_and_templates_convert_their_text() -> None:
    server = Server("texts")

    @server.prompt
    def ask(day: date, times: int = 1) -> str:
        return repr((day, times))

    @server.resource("days://{day}")
    def read(day: date) -> str:
        return repr(day)

    async with Client(server) as client:
        made = await client.get_prompt("ask", {"day": "2020-01-01", "times": "3"})
        assert made.messages[0].text == "(datetime.date(2020, 1, 1), 3)"
        assert (await client.read_resource("days://2020-01-01"))[0].text == "datetime.date(2020, 1, 1)"
        with pytest.raises(Exception, match='invalid arguments for prompt "ask": 1 validation error: times') as raised:
            await client.get_prompt("ask", {"day": "2020-01-01", "times": "many"})
        assert raised.value.code == -32602  # type: ignore[attr-defined]
        with pytest.raises(Exception, match="days://{day}.*day: Input should be a valid date"):
            await client.read_resource("days://never")


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


GOOGLE = """Does it.

Args:
    a: The first,
        on two lines.
    b (str, optional): The second.
    m: Not told.
"""
NUMPY = """Does it.

Parameters
----------
a : int
    The first,
    on two lines.
b : str, optional
    The second.
m : Model
    Not told.
"""
SPHINX = """Does it.

:param a: The first,
    on two lines.
:param str b: The second.
:param m: Not told.
"""


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, SPHINX])
@pytest.mark.parametrize("kind", [int, date])
def test_parameters_are_described_by_docstrings(text: str, kind: type) -> None:
    def function(a: Any, b: str = "", m: Annotated[int, Field(description="Told.")] = 1) -> None: ...

    function.__doc__ = text
    function.__annotations__["a"] = kind
    server = Server("x")
    server.tool(function)
    server.tool(name="whole", description=text)(function)
    server.tool(name="none", description="")(function)
    server.prompt(function)
    assert [one.definition.get("description") for one in server._entries] == ["Does it.", text, "", "Does it."]
    described = {name: one.get("description") for name, one in schema(function)["properties"].items()}
    assert described == {"a": "The first,\non two lines.", "b": "The second.", "m": "Told."}


def test_the_description_of_a_recursive_class_is_that_of_its_parameter() -> None:
    class Node(pydantic.BaseModel):
        next: Optional[Node] = None

    Node.model_rebuild(_types_namespace={"Node": Node, "Optional": Optional})

    def described(a: Any, b: Annotated[int, "A number"]) -> None:
        """Does it.

        Args:
            a: The first.
        """

    def bare(a: Any) -> None: ...

    for function in (described, bare):
        function.__annotations__["a"] = Node
    assert schema(described)["properties"]["a"]["description"] == "The first."
    assert "description" not in schema(bare)["properties"]["a"]


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

    with pytest.raises(TypeError, match="parameter 'a' of .*holding: .*Nowhere"):
        Server("x").tool(holding)


def test_schemas_are_json() -> None:
    def function(a: Tree, b: Shape, c: Shelf | None = None) -> None: ...

    assert json.loads(json.dumps(schema(function))) == schema(function)
