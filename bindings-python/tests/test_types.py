"""Signatures, arguments and results, generated, beside pydantic, FastMCP and the official SDK: `MCPBOLT_SIGNATURES` of them, from
`MCPBOLT_SEED`."""

from __future__ import annotations

import asyncio
import json
import os
from random import Random
from typing import Any, Optional, Union, get_args, get_origin

import pytest
from fastmcp.tools.function_tool import FunctionTool
from fastmcp.utilities.types import get_cached_typeadapter
from mcp.server.mcpserver.utilities.func_metadata import func_metadata
from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from mcpbolt import Client, PeerError, Server
from mcpbolt._errors import InvalidArguments
from mcpbolt._hints import bare
from mcpbolt._signature import Signature
from mcpbolt._types import faults
from signatures import Generated

SIGNATURES = int(os.environ.get("MCPBOLT_SIGNATURES", "300"))
SEED = int(os.environ.get("MCPBOLT_SEED", "20261125"))
VALUES = 8  # arguments for each signature


LEFT_OUT = ("title", "$defs", "x-fastmcp-wrap-result")


def spelt(schema: Any, definitions: dict[str, Any], within: tuple[str, ...] = ()) -> Any:
    """A schema without titles, without what only FastMCP's own client reads, and with references in full. Choices are
    sorted: a cache of FastMCP takes `int | str` for `str | int`."""
    if isinstance(schema, list):
        return [spelt(one, definitions, within) for one in schema]
    if not isinstance(schema, dict):
        return schema
    reference = schema.get("$ref", "").removeprefix("#/$defs/")
    if reference and reference not in within:
        full = {**definitions[reference], **{key: one for key, one in schema.items() if key != "$ref"}}
        return spelt(full, definitions, (*within, reference))
    full = {key: spelt(one, definitions, within) for key, one in schema.items() if key not in LEFT_OUT}
    return full | ({"anyOf": sorted(full["anyOf"], key=repr)} if "anyOf" in full else {})


def equal(ours: Any, theirs: Any) -> bool:
    """Whether schemas are equal but for that."""
    both = [one and spelt(one, one.get("$defs", {})) for one in (ours, theirs)]
    return bool(both[0] == both[1])


def is_open(hint: Any) -> bool:
    """Whether it is a union that says nothing of some values. FastMCP gives it a schema, by which any value is valid."""
    return get_origin(hint) is Union and any(one in (Any, list, list[Any], tuple[Any, ...]) for one in get_args(hint))


def same(one: Any, other: Any) -> bool:
    """Whether values are equal, with the same types everywhere."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return repr(one) == repr(other) if not isinstance(one, (set, frozenset)) else one == other


def ordered(value: Any) -> Any:
    """The JSON value with its lists in order: those of sets have none."""
    if isinstance(value, dict):
        return {key: ordered(one) for key, one in value.items()}
    return sorted(map(ordered, value), key=repr) if isinstance(value, list) else value


def dumped(hint: Any, value: Any) -> Any:
    """The JSON value of a return value, as pydantic has it."""
    adapter: Any = TypeAdapter(hint)
    return adapter.dump_python(adapter.validate_python(value), mode="json", by_alias=True)


def errors(error: ValidationError) -> list[tuple[Any, str]]:
    return [(one["loc"], one["type"]) for one in error.errors(include_url=False)]


def written(random: Random, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments, with some of their lists, objects and nulls as strings of JSON."""
    return {
        name: json.dumps(one) if isinstance(one, (list, dict, type(None))) and random.random() < 0.5 else one
        for name, one in arguments.items()
    }


def read_by_sdk(function: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments with the strings that the SDK reads as JSON. It reads those for `str | None` too, and then refuses them."""
    texts = [name for name, hint in function.__annotations__.items() if bare(hint)[0] == Optional[str]]
    read = func_metadata(function, structured_output=False).pre_parse_json(arguments)
    return read | {name: arguments[name] for name in texts if name in arguments}


async def check(random: Random, plain: bool) -> tuple[int, int]:
    """Holds a signature against FastMCP; gives the number of calls, and of those that were refused."""
    generated = Generated(random, plain)
    function, seen = generated.function, generated.seen
    beside = FunctionTool.from_function(function)
    adapter: Any = get_cached_typeadapter(function)
    is_strict = random.random() < 0.25
    reads = random.random() < 0.25
    server = Server("types", strict=is_strict, json_strings=reads)
    server.tool(function)
    own = Signature(function).arguments('tool "function"', is_strict, reads)
    assert own.is_plain or not plain or reads
    refused = 0
    async with Client(server) as client:
        (tool,) = await client.list_tools()
        assert equal(tool.input_schema, beside.parameters), (tool.input_schema, beside.parameters)
        if is_open(function.__annotations__.get("return")):
            assert tool.output_schema is None
        else:
            assert equal(tool.output_schema, beside.output_schema), (tool.output_schema, beside.output_schema)
        for _ in range(VALUES):
            given = generated.arguments(random)
            given = written(random, given) if reads else given
            arguments = read_by_sdk(function, given) if reads else given
            seen.clear()
            expected: Any = None
            try:
                if is_strict:
                    adapter.validate_json(to_json(arguments), strict=True)
                else:
                    adapter.validate_python(arguments)
            except ValidationError as error:
                expected = error
            try:
                result = await client.call_tool("function", given)
            except PeerError as error:
                # A default is returned that is not valid for the hint.
                assert "does not fit its output schema" in error.message, error
                with pytest.raises(ValidationError):
                    dumped(function.__annotations__["return"], seen[0]["a"])
                continue
            told = function.__annotations__, given, result.text
            if expected is not None:
                refused += 1
                assert result.is_error and not seen, told
                assert result.text == f'invalid arguments for tool "function": {faults(expected)}'
                with pytest.raises(InvalidArguments) as raised:
                    own.prepare(given)
                assert errors(raised.value.__cause__) == errors(expected), told  # type: ignore[arg-type]
                continue
            theirs, ours = seen
            assert same(theirs, ours), (*told, theirs, ours)
            if result.is_error:
                assert "nan" in repr(ours["a"]), "JSON has no NaN"
                continue
            if "return" in function.__annotations__ and tool.output_schema is not None:
                returned = function.__annotations__["return"]
                value, made = dumped(returned, ours["a"]), result.structured
                wraps = "x-fastmcp-wrap-result" in (beside.output_schema or {})
                value = {"result": value} if wraps else value
                theirs = beside.convert_result(theirs["a"]).structured_content
                if "set[" in repr(returned) or "Closed" in repr(returned):
                    value, theirs, made = ordered(value), ordered(theirs), ordered(made)
                assert same(made, value) and made == theirs, told
    return VALUES, refused


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "any"])
def test_types_are_those_of_pydantic_and_fastmcp(plain: bool) -> None:
    calls = refused = 0
    for number in range(SIGNATURES // 2):
        try:
            more, wrong = asyncio.run(asyncio.wait_for(check(Random(f"{SEED} {plain} {number}"), plain), 60))
        except BaseException:
            print(f"MCPBOLT_SEED={SEED}, signature {number}, {plain=}")
            raise
        calls, refused = calls + more, refused + wrong
    print(f"{SIGNATURES // 2} signatures, {calls} calls, {refused} of them refused")
    assert calls // 10 < refused < calls * 9 // 10
