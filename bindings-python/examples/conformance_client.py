"""The client that the official conformance suite asks for, on Streamable HTTP. The suite says in the
environment which scenario it plays, and passes the server's URL last:

    conformance client --command "python conformance_client.py" --suite all
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from http.client import HTTPConnection
from typing import Any, Literal
from urllib.parse import urlsplit

from mcpbolt import AuthorizationPage, Client, ElicitationRequest, OAuth, __version__

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


def redirected(page: AuthorizationPage) -> str:
    """Consents without a browser: where the page redirects to."""
    url = urlsplit(page.url)
    connection = HTTPConnection(url.netloc)
    connection.request("GET", f"{url.path}?{url.query}")
    location = connection.getresponse().headers["location"]
    connection.close()
    return str(location)


def login(scenario: str) -> OAuth | None:
    """The login that the scenario asks for."""
    if not scenario.startswith("auth/"):
        return None
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    assertion = context.get("idp_id_token") or context.get("valid_jwt")
    grant: Literal["code", "client_credentials", "workload", "enterprise"] = "code"
    if "idp_token_endpoint" in context:
        grant = "enterprise"
    elif "valid_jwt" in context:
        grant = "workload"
    elif "client-credentials" in scenario:
        grant = "client_credentials"
    provider = {name: context.get(f"idp_{name}", "") for name in ("token_endpoint", "client_id")}
    return OAuth(
        "mcpbolt-conformance",
        grant=grant,
        client_id=context.get("client_id"),
        client_secret=context.get("client_secret"),
        signing_key=context.get("private_key_pem"),
        signing_algorithm=context.get("signing_algorithm", "ES256"),
        client_metadata_url="https://conformance-test.local/client-metadata.json",
        identity_provider=provider if grant == "enterprise" else None,
        redirect_uri="http://localhost:3000/callback",
        on_authorize=redirected,
        assertion=lambda _: assertion,
    )


async def main() -> None:
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    # Older suites name no revision, and know no probe; the extensions are those of the newest.
    revision = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "")
    newest = scenario.startswith(SKILLS) or revision >= "2026-07-28"
    async with Client(
        sys.argv[-1],
        auth=login(scenario),
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
