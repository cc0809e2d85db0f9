"""Questions of servers and answers of clients, in both eras: requests of their own up to 2025-11-25, rounds after."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from mcpbolt import (
    Client,
    ConnectionClosed,
    Context,
    Elicited,
    ElicitationRequest,
    Message,
    PeerError,
    Root,
    Sampled,
    SamplingRequest,
    Server,
    ToolError,
    Unsupported,
)
from support import coroutine

ERAS = ["2025-06-18", "2025-11-25", "2026-07-28"]
NEWER = ["2025-11-25", "2026-07-28"]


def model(request: SamplingRequest) -> Sampled:
    words = " ".join(message.text for message in request.messages)
    return Sampled(f"{words}, at most {request.max_tokens}", "a-model")


@pytest.mark.parametrize("revision", ERAS)
@coroutine
async def test_the_model_is_asked(revision: str) -> None:
    """R-SMP-01, R-MRT-01: from a coroutine and from a plain function."""
    server = Server("asks")

    @server.tool
    async def later(text: str, context: Context) -> str:
        said = await context.sample(text, max_tokens=7)
        return f"{said.model}: {said.text}"

    @server.tool
    def blocking(text: str, context: Context) -> str:
        said = context.sample([Message(text), Message("b", "assistant")], max_tokens=8, system_prompt="short").wait()
        return f"{said.role}: {said.text}"

    async with Client(server, revision=revision, on_sampling=model) as client:
        assert (await client.call_tool("later", {"text": "a"})).text == "a-model: a, at most 7"
        assert (await client.call_tool("blocking", {"text": "a"})).text == "assistant: a b, at most 8"
        calls = [client.call_tool("later", {"text": str(i)}) for i in range(100)]
        assert [result.text for result in await asyncio.gather(*calls)] == [f"a-model: {i}, at most 7" for i in range(100)]


@dataclass
class Order:
    size: int
    colour: str = "red"
    note: str | None = None


@pytest.mark.parametrize("revision", ERAS)
@coroutine
async def test_the_user_fills_in_a_form(revision: str) -> None:
    """R-ELI-01, R-ELI-05, R-ELI-06."""
    server = Server("asks")
    seen: list[ElicitationRequest] = []

    @server.tool
    async def order(context: Context) -> str:
        answer = await context.elicit("What size?", Order)
        return f"{answer.action} {answer.content!r}"

    @server.tool
    def dictionary(context: Context) -> str:
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        return str(context.elicit("Which?", schema).wait().content)

    answers: list[Any] = [{"size": 3}, {"n": 4}, False, None, {"size": "wide"}]

    async def user(request: ElicitationRequest) -> Any:
        seen.append(request)
        await asyncio.sleep(0)
        return answers.pop(0)

    async with Client(server, revision=revision, on_elicitation=user) as client:
        assert (await client.call_tool("order")).text == "accept Order(size=3, colour='red', note=None)"
        assert (await client.call_tool("dictionary")).text == "{'n': 4}"
        assert (await client.call_tool("order")).text == "decline None"
        assert (await client.call_tool("order")).text == "cancel None"
        # Content that does not fit the form is not sent.
        if revision == "2026-07-28":
            with pytest.raises(Exception, match="size|wide|integer"):
                await client.call_tool("order")
        else:
            assert (await client.call_tool("order")).is_error
    assert seen[0].message == "What size?" and seen[0].schema
    assert seen[0].schema["properties"]["note"] == {"type": "string"}
    assert seen[0].schema["required"] == ["size"]


@pytest.mark.parametrize("revision", NEWER)
@coroutine
async def test_the_user_goes_to_a_page(revision: str) -> None:
    """R-ELI-08, R-ELI-09."""
    server = Server("asks")
    pages: list[str | None] = []

    @server.tool
    async def pay(context: Context) -> str:
        return (await context.elicit_url("Pay here", "https://example.com/pay")).action

    def page(request: ElicitationRequest) -> bool:
        pages.append(request.url)
        return True

    async with Client(server, revision=revision, on_elicitation_url=page) as client:
        assert (await client.call_tool("pay")).text == "accept"
    assert pages == ["https://example.com/pay"]


@pytest.mark.parametrize("revision", ERAS)
@coroutine
async def test_roots_are_shown_and_replaced(revision: str) -> None:
    """R-ROO-01, R-ROO-02."""
    server = Server("asks")

    @server.tool
    async def roots(context: Context) -> str:
        return ", ".join(f"{root.uri} {root.name}" for root in await context.roots())

    async with Client(server, revision=revision, roots=["file:///a", Root("file:///b", "b")]) as client:
        assert (await client.call_tool("roots")).text == "file:///a None, file:///b b"
        client.set_roots([Root("file:///c")])
        assert (await client.call_tool("roots")).text == "file:///c None"
        with pytest.raises(ValueError, match="file://"):
            client.set_roots(["https://example.com"])


@pytest.mark.parametrize("revision", ERAS)
@coroutine
async def test_questions_side_by_side_go_out_together(revision: str) -> None:
    """R-MRT-02: and the handler runs from its beginning for each round."""
    server = Server("asks")
    runs = 0
    ended: list[str] = []

    @server.tool
    async def both(context: Context) -> str:
        nonlocal runs
        runs += 1
        try:
            one, two = await asyncio.gather(context.sample("one", max_tokens=1), context.sample("two", max_tokens=2))
            three = await context.sample("three", max_tokens=3)
            return " | ".join(said.text for said in (one, two, three))
        finally:
            ended.append("ended")

    async with Client(server, revision=revision, on_sampling=model) as client:
        result = await client.call_tool("both")
        assert result.text == "one, at most 1 | two, at most 2 | three, at most 3"
    assert (runs, len(ended)) == ((3, 3) if revision == "2026-07-28" else (1, 1))


@coroutine
async def test_a_plain_function_is_unwound_when_its_round_is_over() -> None:
    """R-MRT-02."""
    server = Server("asks")
    ended: list[bool] = []

    @server.tool
    def careless(context: Context) -> str:
        try:
            said = context.sample("x", max_tokens=1).wait().text
        except Exception:
            return "swallowed"
        finally:
            ended.append(context.cancelled)
        return said

    async with Client(server, revision="2026-07-28", on_sampling=model) as client:
        assert (await client.call_tool("careless")).text == "x, at most 1"
    assert ended == [True, False]


@pytest.mark.parametrize("revision", ERAS)
@coroutine
async def test_what_a_client_does_not_offer_is_not_asked(revision: str) -> None:
    """R-CAP-03."""
    server = Server("asks")
    errors: list[BaseException] = []

    @server.tool
    async def ask(what: str, context: Context) -> str:
        asked: Any = {
            "sample": lambda: context.sample("x", max_tokens=1),
            "form": lambda: context.elicit("x", {"type": "object", "properties": {}}),
            "page": lambda: context.elicit_url("x", "https://example.com"),
            "roots": context.roots,
        }[what]()
        try:
            await asked
        except Unsupported as error:
            errors.append(error)
        return "asked"

    async with Client(server, revision=revision) as client:
        for what in ("sample", "form", "page", "roots"):
            await client.call_tool("ask", {"what": what})
    assert len(errors) == 4


@pytest.mark.parametrize("revision", ERAS)
@coroutine
async def test_a_handler_that_fails_is_told_of(revision: str) -> None:
    server = Server("asks")

    @server.tool
    async def ask(context: Context) -> str:
        try:
            return (await context.sample("x", max_tokens=1)).text
        except PeerError as error:
            return f"refused: {error.message}"

    def refuses(request: SamplingRequest) -> Sampled:
        raise ToolError("no more money")

    async with Client(server, revision=revision, on_sampling=refuses) as client:
        if revision == "2026-07-28":
            # R-MRT-15: the client gives the call up.
            with pytest.raises(Exception, match="no more money"):
                await client.call_tool("ask")
        else:
            assert (await client.call_tool("ask")).text == "refused: no more money"


@coroutine
async def test_a_call_that_is_cancelled_takes_its_question_along() -> None:
    """R-CAN-01: the client's own handler is cancelled with it."""
    server = Server("asks")
    begun, cancelled = asyncio.Event(), asyncio.Event()

    @server.tool
    async def ask(context: Context) -> str:
        return (await context.sample("x", max_tokens=1)).text

    @server.tool
    def blocking(context: Context) -> str:
        return context.sample("x", max_tokens=1).wait().text

    async def slow(request: SamplingRequest) -> Sampled:
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return Sampled("never", "m")

    for tool in ("ask", "blocking"):
        async with Client(server, revision="2025-11-25", on_sampling=slow) as client:
            begun.clear()
            cancelled.clear()
            call = asyncio.create_task(client.call_tool(tool))
            await begun.wait()
            call.cancel()
            await cancelled.wait()
    # The end of the connection does the same.
    client = Client(server, revision="2025-11-25", on_sampling=slow)
    begun.clear()
    cancelled.clear()
    async with client:
        call = asyncio.create_task(client.call_tool("ask"))
        await begun.wait()
    await cancelled.wait()
    with pytest.raises(ConnectionClosed):
        await call


@pytest.mark.parametrize("revision", ERAS)
@coroutine
async def test_prompts_and_resources_may_ask(revision: str) -> None:
    """R-MRT-01."""
    server = Server("asks")

    @server.prompt
    async def greeting(context: Context) -> str:
        return (await context.sample("greet", max_tokens=1)).text

    @server.resource("notes://{name}")
    async def note(name: str, context: Context) -> str:
        return (await context.sample(name, max_tokens=2)).text

    async with Client(server, revision=revision, on_sampling=model) as client:
        assert (await client.get_prompt("greeting")).messages == [Message("greet, at most 1")]
        assert (await client.read_resource("notes://today"))[0].text == "today, at most 2"


@coroutine
async def test_a_state_that_is_not_the_servers_is_refused() -> None:
    """R-MRT-08."""
    server = Server("asks")

    @server.tool
    async def ask(context: Context) -> str:
        return (await context.sample("x", max_tokens=1)).text

    async with Client(server, revision="2026-07-28", on_sampling=model) as client:
        with pytest.raises(PeerError) as caught:
            await client.request("tools/call", {"name": "ask", "arguments": {}, "requestState": "forged"})
        assert caught.value.code == -32602
        assert (await client.call_tool("ask")).text == "x, at most 1"


def test_values_are_compared_by_what_they_hold() -> None:
    assert Sampled.parse(Sampled("a", "m").wire()) == Sampled("a", "m")
    assert Elicited("accept", {"a": 1}).accepted and not Elicited("cancel").accepted


@coroutine
async def test_plain_functions_that_wait_for_a_client_are_in_nobodys_way() -> None:
    """More of them than there are workers."""
    server = Server("asks")
    waiting, go_on = 0, asyncio.Event()

    @server.tool
    def ask(context: Context) -> str:
        return context.sample("x", max_tokens=1).wait().text

    @server.tool
    def quick() -> str:
        return "quick"

    async def late(request: SamplingRequest) -> Sampled:
        nonlocal waiting
        waiting += 1
        await go_on.wait()
        return Sampled("late", "m")

    async with Client(server, revision="2025-11-25", on_sampling=late) as client:
        asking = [asyncio.ensure_future(client.call_tool("ask")) for _ in range(100)]
        while waiting < 100:
            await asyncio.sleep(0.01)
        for _ in range(3):
            assert (await client.call_tool("quick", timeout=5)).text == "quick"
        go_on.set()
        assert {(await one).text for one in asking} == {"late"}
        assert (await client.call_tool("quick", timeout=5)).text == "quick"
