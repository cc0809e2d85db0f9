"""The server that the official conformance suite asks for, on Streamable HTTP.

    python conformance_server.py http://127.0.0.1:8000/mcp
"""

from __future__ import annotations

import asyncio
import sys
import time
from base64 import b64decode
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from mcpbolt import (
    Audio,
    CompletionRequest,
    Context,
    Elicited,
    EmbeddedResource,
    Image,
    Message,
    ProtocolError,
    ResourceContents,
    Server,
    Text,
    ToolError,
    __version__,
)

PNG = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==")
"""One red pixel."""
WAV = b64decode("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=")
"""A moment of silence."""

server = Server(
    "mcpbolt-python-conformance",
    __version__,
    instructions="Every feature that the conformance suite looks at.",
    list_changes=True,
    subscriptions=True,
)


def embedded(uri: str) -> EmbeddedResource:
    return EmbeddedResource(ResourceContents(uri, "This is an embedded resource content.", "text/plain"))


def form(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


NAME = form({"name": {"type": "string"}}, "name")


def filled(answer: Elicited, field: str) -> str:
    """The value that the user filled in under that name."""
    return str(answer.content[field]) if answer.accepted else answer.action


# Tools of which each gives back one kind of thing.


@server.tool
def test_simple_text() -> str:
    """Gives a sentence."""
    return "This is a simple text response for testing."


@server.tool
def test_image_content() -> Image:
    """Gives an image."""
    return Image(PNG)


@server.tool
def test_audio_content() -> Audio:
    """Gives a sound."""
    return Audio(WAV)


@server.tool
def test_embedded_resource() -> EmbeddedResource:
    """Gives a resource."""
    return embedded("test://embedded-resource")


@server.tool
def test_multiple_content_types() -> list[Text | Image | EmbeddedResource]:
    """Gives three things."""
    return [Text("Multiple content types test:"), Image(PNG), embedded("test://mixed-content-resource")]


@server.tool
def test_error_handling() -> str:
    """Fails."""
    raise ToolError("This tool intentionally returns an error for testing")


@server.tool
def test_tool_with_logging(context: Context) -> str:
    """Logs."""
    for step in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        context.log("info", step)
        time.sleep(0.05)
    return "logged"


@server.tool
def test_logging_tool(context: Context) -> str:
    """Logs, for who wants it."""
    context.log("info", "at work")
    return "logged"


@server.tool
async def test_tool_with_progress(context: Context) -> str:
    """Reports progress."""
    for step in (0, 50, 100):
        context.progress(step, 100)
        await asyncio.sleep(0.05)
    return "done"


@server.tool(
    input_schema={
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    }
)
def json_schema_2020_12_tool(
    name: str = "", address: Any = None, contactMethod: str = "", phone: str = "", email: str = ""
) -> str:
    """Has a schema with everything."""
    return f"{name} {address} {phone or email}"


@server.tool
def test_custom_header(region: Annotated[str, {"x-mcp-header": "Region"}] = "") -> str:
    """Has an argument that travels in a header."""
    return region


@server.tool
async def test_reconnection(context: Context) -> str:
    """Has its client come back."""
    context.release_stream(0.5)
    await asyncio.sleep(0.1)
    return "the client came back"


# Tools that ask the client.


@server.tool
async def test_sampling(prompt: str, context: Context) -> str:
    """Asks the model."""
    said = await context.sample(prompt, max_tokens=100)
    return f"LLM response: {said.text}"


@server.tool
async def test_elicitation(message: str, context: Context) -> str:
    """Asks the user."""
    fields = {"username": {"type": "string"}, "email": {"type": "string"}}
    return f"User response: {await context.elicit(message, form(fields, *fields))}"


@server.tool
def test_missing_capability(context: Context) -> str:
    """Needs a model."""
    context.require("sampling")
    return "the client has a model"


@server.tool
async def test_elicitation_sep1034_defaults(context: Context) -> str:
    """Asks with defaults."""
    fields: dict[str, Any] = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    return str(await context.elicit("Is this right?", form(fields)))


@server.tool
async def test_elicitation_sep1330_enums(context: Context) -> str:
    """Asks for one or several of a few."""
    plain = ["option1", "option2", "option3"]
    titles = ("First Option", "Second Option", "Third Option")
    titled = [{"const": f"value{number}", "title": title} for number, title in enumerate(titles, 1)]
    fields: dict[str, Any] = {
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }
    return str(await context.elicit("Choose", form(fields)))


@server.tool
async def test_streaming_elicitation(context: Context) -> str:
    """Asks the user."""
    return filled(await context.elicit("Who are you?", NAME), "name")


@server.tool
def test_input_required_result_elicitation(context: Context) -> str:
    """Asks the user, on a worker's thread."""
    answer = context.named("user_name").elicit("What is your name?", NAME).wait()
    return f"Hello, {filled(answer, 'name')}!"


@server.tool
async def test_input_required_result_sampling(context: Context) -> str:
    """Asks the model."""
    question = context.named("capital_question").sample("What is the capital of France?", max_tokens=100)
    return (await question).text


@server.tool
async def test_input_required_result_list_roots(context: Context) -> str:
    """Asks for roots."""
    return str(await context.named("client_roots").roots())


async def confirmed(context: Context) -> str:
    """Asks with a state that the suite hands back, as it came or tampered with."""
    fields = form({"ok": {"type": "boolean"}}, "ok")
    await context.named("confirm").elicit("Please confirm", fields)
    return "state-ok"


server.tool(name="test_input_required_result_request_state")(confirmed)
server.tool(name="test_input_required_result_tampered_state")(confirmed)


@server.tool
async def test_input_required_result_multiple_inputs(context: Context) -> str:
    """Asks three things at once."""
    name, greeting, roots = await asyncio.gather(
        context.named("user_name").elicit("What is your name?", NAME),
        context.named("greeting").sample("Generate a greeting", max_tokens=50),
        context.named("client_roots").roots(),
    )
    return f"{filled(name, 'name')} {greeting.text} {roots}"


@server.tool
async def test_input_required_result_multi_round(context: Context) -> str:
    """Asks one thing after the other."""
    name = await context.named("step1").elicit("Step 1: What is your name?", NAME)
    fields = form({"color": {"type": "string"}}, "color")
    colour = await context.named("step2").elicit("Step 2: What is your favorite color?", fields)
    return f"{filled(name, 'name')} likes {filled(colour, 'color')}"


@server.tool
async def test_input_required_result_capabilities(context: Context) -> str:
    """Asks whom the client has."""
    try:
        context.require("elicitation")
    except ProtocolError:
        return (await context.sample("Who am I?", max_tokens=10)).text
    return filled(await context.elicit("Who are you?", NAME), "name")


@server.prompt
async def test_input_required_result_prompt(context: Context) -> str:
    """Asks the user first."""
    fields = form({"context": {"type": "string"}}, "context")
    answer = await context.named("user_context").elicit("What context should the prompt use?", fields)
    return filled(answer, "context")


# Tools whose calls go on as tasks.


@server.tool
def greet(name: str = "") -> str:
    """Greets."""
    return f"Hello, {name}!"


@server.tool(task="optional")
async def slow_compute(context: Context, seconds: float = 0, label: str = "") -> str:
    """A long job."""
    if seconds > 0:
        context.begin_task()
        await asyncio.sleep(seconds)
    return f"{label} computed"


@server.tool(task="required")
def failing_job(context: Context) -> str:
    """A job that fails."""
    context.begin_task()
    raise ToolError("this job always fails")


@server.tool(task="optional")
def protocol_error_job(context: Context) -> str:
    """A job that breaks down."""
    context.begin_task()
    raise ProtocolError("internal", "the job broke down")


@server.tool(task="optional")
async def confirm_delete(context: Context, filename: str = "it") -> str:
    """A job that asks."""
    context.begin_task()
    return str(await context.elicit(f"Really delete {filename}?", form({"confirm": {"type": "boolean"}}, "confirm")))


@server.tool(task="optional")
async def multi_input(context: Context) -> str:
    """A job that asks twice."""
    context.begin_task()
    first, second = await asyncio.gather(context.elicit("First?", NAME), context.elicit("Second?", NAME))
    return f"{filled(first, 'name')} {filled(second, 'name')}"


@server.tool(task="required")
async def test_tool_with_task(context: Context) -> str:
    """A job that asks before it is one."""
    answer = await context.named("user_name").elicit("What is your name?", NAME)
    context.begin_task()
    return f"Hello, {filled(answer, 'name')}!"


# Resources, prompts, completion and a skill.


@server.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """Text."""
    return "This is the content of the static text resource."


@server.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """An image."""
    return PNG


@server.resource("test://watched-resource", mime_type="text/plain")
def watched() -> str:
    """Changes."""
    return "watched"


@server.resource("test://template/{id}/data", mime_type="text/plain")
def template(id: str) -> str:
    """Data by id."""
    return f"Data for ID: {id}"


@server.prompt
def test_simple_prompt() -> str:
    """A sentence."""
    return "This is a simple prompt for testing."


@server.prompt
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """Two arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@server.prompt
def test_prompt_with_embedded_resource(resourceUri: str) -> Message:
    """A resource."""
    return Message(embedded(resourceUri))


@server.prompt
def test_prompt_with_image() -> Message:
    """An image."""
    return Message(Image(PNG))


@server.completion
def complete(request: CompletionRequest) -> list[str]:
    return [one for one in ("test", "testing") if one.startswith(request.value)]


with TemporaryDirectory() as folder:
    references = Path(folder, "conformance", "references")
    references.mkdir(parents=True)
    (references / "SUITE.md").write_text("# Suite\n")
    (references.parent / "SKILL.md").write_text("---\nname: conformance\ndescription: Runs the suite\n---\nRun it.\n")
    server.add_skills(folder)


# Tools that change what is offered.


@server.tool
def test_trigger_tool_change() -> str:
    """Offers a tool for a moment."""
    server.tool(name="for_a_moment", description="Nothing.")(lambda: "")
    server.remove_tool("for_a_moment")
    return "changed"


@server.tool
def test_trigger_prompt_change() -> str:
    """Offers a prompt for a moment."""
    server.prompt(name="for_a_moment", description="Nothing.")(lambda: "")
    server.remove_prompt("for_a_moment")
    return "changed"


if __name__ == "__main__":
    server.run(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000/mcp")
