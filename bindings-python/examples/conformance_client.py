"""The client that the official conformance suite asks for, on Streamable HTTP. The suite says in the
environment which scenario it plays, and passes the server's URL last:

    conformance client --command "python conformance_client.py" --suite all
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from mcpbolt import Client, ElicitationRequest, __version__

SKILLS = "sep-2640"
"""Scenarios about skills."""


def example(schema: dict[str, Any]) -> Any:
    """Something that fits a plain schema."""
    if schema.get("enum"):
        return schema["enum"][0]
    match schema.get("type"):
        case "integer" | "number":
            return 1
        case "boolean":
            return True
        case "array":
            return []
        case "object":
            return arguments(schema)
        case _:
            return "test"


def arguments(schema: dict[str, Any]) -> dict[str, Any]:
    """Arguments that fit a schema: what it requires."""
    properties = schema.get("properties", {})
    return {name: example(properties.get(name, {})) for name in schema.get("required", [])}


def filled(request: ElicitationRequest) -> dict[str, Any]:
    """A form as a user sends it who changes nothing, and fills in what has to be."""
    schema = request.schema or {}
    defaults = {name: field["default"] for name, field in schema.get("properties", {}).items() if "default" in field}
    return {**arguments(schema), **defaults}


async def play(client: Client, scenario: str) -> None:
    if scenario.startswith(SKILLS):
        for skill in await client.list_skills():
            if scenario != "sep-2640-client-no-prefetch":
                await client.read_skill(skill)
        return
    capabilities = client.server_info.capabilities
    if "tools" in capabilities:
        tools = await client.list_tools()
        if scenario == "http-custom-headers":
            for call in json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])["toolCalls"]:
                await client.call_tool(call["name"], call["arguments"])
        elif scenario == "json-schema-2020-12-preservation":
            (tool,) = [tool for tool in tools if tool.name == "json_schema_2020_12_tool"]
            await client.call_tool("json_schema_echo", {"schema": tool.input_schema})
        elif scenario != "json-schema-ref-no-deref":  # where only what is done with the list counts
            for tool in tools:
                await client.call_tool(tool.name, arguments(tool.input_schema))
    if "resources" in capabilities:
        for resource in await client.list_resources():
            await client.read_resource(resource.uri)
    if "prompts" in capabilities:
        for prompt in await client.list_prompts():
            await client.get_prompt(prompt.name, {argument.name: "test" for argument in prompt.arguments})


async def main() -> None:
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    # Older suites name no revision, and know no probe; the extensions are those of the newest.
    revision = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "")
    newest = scenario.startswith(SKILLS) or revision >= "2026-07-28"
    async with Client(
        sys.argv[-1],
        opening="probe" if newest else "handshake",
        revision=None if newest else revision or None,
        extensions={"io.modelcontextprotocol/skills": {}},
        on_elicitation=filled,
        name="mcpbolt-python-conformance",
        version=__version__,
    ) as client:
        await play(client, scenario)


if __name__ == "__main__":
    asyncio.run(main())
