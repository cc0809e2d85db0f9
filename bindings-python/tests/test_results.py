"""Schemas of return hints, and results that they give."""

from __future__ import annotations

from typing import Annotated, Any, Optional, Union

import pydantic
import pytest
from pydantic import Field

from mcpbolt import Client, EmbeddedResource, Image, Server, ToolResult
from mcpbolt._returned import Returned
from mcpbolt._results import CallToolResult
from support import coroutine


async def called(server: Server, tool: str) -> CallToolResult:
    async with Client(server) as client:
        return await client.call_tool(tool)


@pytest.mark.parametrize("hint", [Union[str, ToolResult], Optional[Union[ToolResult, int]], Union[Annotated[ToolResult, int], int]])
def test_a_whole_result_beside_data_is_refused(hint: Any) -> None:
    with pytest.raises(TypeError, match='tool "t": ToolResult cannot be used in Union.*output_schema=False'):
        Returned.of(hint, 'tool "t"')
    for other in (Optional[ToolResult], Union[ToolResult, Image, bytes], Union[ToolResult, Any]):
        assert Returned.of(other, "t") is None


def test_a_schema_may_be_demanded() -> None:
    server = Server("x")

    def returns(hint: Any) -> Any:
        def function() -> Any: ...

        function.__annotations__ = hint
        return server.tool(output_schema=True)(function)

    for hint, why in (
        ({}, "return annotation required for structured output"),
        ({"return": None}, "is not serializable for structured output"),
        ({"return": ToolResult}, "is not serializable for structured output"),
    ):
        with pytest.raises(TypeError, match=f'tool "function": .*{why}'):
            returns(hint)
    returns({"return": EmbeddedResource})
    returns({"return": list[Image]})
    blocks = {"type": "object", "description": "An image."}
    assert [one.definition["outputSchema"] for one in server._entries] == [
        {"type": "object", "description": "A resource, with its contents."},
        {"type": "object", "properties": {"result": {"items": blocks, "type": "array"}}, "required": ["result"]},
    ]


@coroutine
async def test_content_in_data_is_data() -> None:
    server = Server("x")

    class Report(pydantic.BaseModel):
        summary: str
        picture: Image

    @server.tool
    def report() -> Report:
        return Report(summary="s", picture=Image(b"b"))

    @server.tool(output_schema=True)
    def picture() -> Image:
        return Image(b"b")

    wire = {"type": "image", "data": "Yg==", "mimeType": "image/png"}
    async with Client(server) as client:
        assert (await client.call_tool("report")).structured == {"summary": "s", "picture": wire}
        result = await client.call_tool("picture")
        assert (result.content, result.structured) == ([Image(b"b")], wire)


class Named(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(serialize_by_alias=False)
    value: int = Field(serialization_alias="theValue")


class Aliased(Named):
    model_config = pydantic.ConfigDict(serialize_by_alias=True)


@pytest.mark.parametrize(
    ("option", "named", "aliased"), [(True, "theValue", "theValue"), (False, "value", "value"), (None, "value", "theValue")]
)
@coroutine
async def test_results_name_fields_as_the_server_says(option: bool | None, named: str, aliased: str) -> None:
    server = Server("x", serialize_by_alias=option)

    @server.tool
    def both() -> dict[str, Named | Aliased]:
        return {"named": Named(value=1), "aliased": Aliased(value=2)}

    async with Client(server) as client:
        (tool,) = await client.list_tools()
        assert tool.output_schema is not None
        properties = {name: [*one["properties"]] for name, one in tool.output_schema["$defs"].items()}
        assert properties == {"Named": [named], "Aliased": [aliased]}
        assert (await client.call_tool("both")).structured == {"named": {named: 1}, "aliased": {aliased: 2}}


@coroutine
async def test_keys_that_are_no_names_are_data() -> None:
    server = Server("x")

    @server.tool
    def counts() -> dict[int, str]:
        return {1: "a"}

    async with Client(server) as client:
        assert (await client.call_tool("counts")).structured == {"result": {"1": "a"}}


class Odd:
    def __repr__(self) -> str:
        return "an odd thing"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Odd(), '"an odd thing"'),
        ({"n": 1, "odd": Odd()}, '{"n":1,"odd":"an odd thing"}'),
        ([1, Odd()], '[1,"an odd thing"]'),
        ([Image(b"b"), Odd()], '"an odd thing"'),
    ],
)
@coroutine
async def test_without_a_schema_what_is_not_json_is_text(value: Any, text: str) -> None:
    server = Server("free")
    server.tool(name="free")(lambda: value)
    result = await called(server, "free")
    assert (result.is_error, result.structured, result.text) == (False, None, text)


@coroutine
async def test_with_a_schema_what_is_not_json_is_a_failure() -> None:
    server = Server("odd", mask_error_details=False)

    @server.tool
    def odd() -> dict[str, Any]:
        return {"odd": Odd()}

    result = await called(server, "odd")
    assert result.is_error
    assert result.text == "Error calling tool 'odd': Could not serialize the result: Odd is not JSON serializable"
