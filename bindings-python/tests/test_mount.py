"""Servers within servers: `Server.mount`."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mcpbolt import Call, Client, CompletionRequest, Context, Misuse, PeerError, Policy, Server
from support import coroutine


def library(**options: Any) -> Server:
    server = Server("library", **options)

    @server.tool
    def find(title: str) -> str:
        return f"{title} found"

    @server.resource("book://list")
    def books() -> str:
        return "Faust"

    @server.resource("book://{title}/page")
    def page(title: str) -> str:
        return f"a page of {title}"

    @server.prompt
    def review(title: str) -> str:
        return f"Review {title}"

    @server.completion
    def complete(request: CompletionRequest) -> list[str]:
        return [f"{request.value}!"]

    return server


@coroutine
async def test_all_that_a_server_offers_is_offered_under_the_prefix() -> None:
    outer = Server("outer")
    outer.tool(name="own")(lambda: "own")
    outer.mount("lib", library())
    async with Client(outer) as caller:
        assert [tool.name for tool in await caller.list_tools()] == ["own", "lib_find"]
        assert (await caller.call_tool("lib_find", {"title": "Faust"})).text == "Faust found"
        assert (await caller.call_tool("own")).text == "own"
        with pytest.raises(PeerError, match="unknown tool"):
            await caller.call_tool("find", {"title": "Faust"})
        assert [one.uri for one in await caller.list_resources()] == ["book://lib/list"]
        (contents,) = await caller.read_resource("book://lib/list")
        assert (contents.uri, contents.text) == ("book://lib/list", "Faust")
        (template,) = await caller.list_resource_templates()
        assert template.uri_template == "book://lib/{title}/page"
        assert (await caller.read_resource("book://lib/Faust/page"))[0].text == "a page of Faust"
        (prompt,) = await caller.list_prompts()
        assert prompt.name == "lib_review"
        assert (await caller.get_prompt("lib_review", {"title": "Faust"})).messages[0].text == "Review Faust"
        assert (await caller.complete(prompt, "title", "Fau")).values == ["Fau!"]
        assert (await caller.complete(template, "title", "Fau")).values == ["Fau!"]


@coroutine
async def test_what_is_added_and_removed_later_is_shown_to_connected_clients() -> None:
    inner = Server("inner", list_changes=True, subscriptions=True)
    middle = Server("middle", list_changes=True)
    outer = Server("outer", list_changes=True, subscriptions=True)
    middle.mount("inner", inner)
    outer.mount("mid", middle)
    changed: list[str] = []
    updated: list[str] = []
    async with Client(
        outer, revision="2025-11-25", on_list_changed=changed.append, on_resource_updated=updated.append
    ) as caller:
        assert await caller.list_tools() == []
        inner.tool(name="new")(lambda: "new")
        assert [tool.name for tool in await caller.list_tools()] == ["mid_inner_new"]
        assert (await caller.call_tool("mid_inner_new")).text == "new"
        inner.resource("memo://one")(lambda: "1")
        assert (await caller.read_resource("memo://mid/inner/one"))[0].text == "1"
        await caller.subscribe("memo://mid/inner/one")
        inner.resource_updated("memo://one")
        inner.remove_tool("new")
        assert await caller.list_tools() == []
        outer.mount("more", library_without_completion())
        assert [tool.name for tool in await caller.list_tools()] == ["more_find"]
        while not updated or "tools" not in changed:
            await asyncio.sleep(0.01)
    assert updated == ["memo://mid/inner/one"]


def library_without_completion() -> Server:
    server = Server("library")

    @server.tool
    def find(title: str) -> str:
        return title

    return server


@coroutine
async def test_additions_are_visible_to_the_next_client_of_a_server_without_changes() -> None:
    inner, outer = Server("inner"), Server("outer")
    outer.mount("in", inner)
    outer.tool(name="own")(lambda: "own")
    for names in (["own"], ["own", "in_new"]):
        async with Client(outer) as caller:
            assert [tool.name for tool in await caller.list_tools()] == names
        if names == ["own"]:
            inner.tool(name="new")(lambda: "new")


@coroutine
async def test_middleware_of_both_surrounds_a_call_and_each_sees_its_own_names() -> None:
    inner, outer = library(), Server("outer")
    outer.mount("lib", inner)
    seen: list[str] = []

    @outer.middleware
    async def around(call: Call, next: Any) -> Any:
        seen.append(f"outer {call.method} {call.name}")
        return await next(call)

    @inner.middleware
    async def within(call: Call, next: Any) -> Any:
        seen.append(f"inner {call.method} {call.name}")
        return await next(call)

    async with Client(outer) as caller:
        await caller.call_tool("lib_find", {"title": "Faust"})
        (contents,) = await caller.read_resource("book://lib/Faust/page")
        assert contents.uri == "book://lib/Faust/page"
        (prompt,) = await caller.list_prompts()
        await caller.complete(prompt, "title", "F")
    assert seen == [
        "outer tools/call lib_find",
        "inner tools/call find",
        "outer resources/read book://lib/Faust/page",
        "inner resources/read book://Faust/page",
        "outer prompts/list None",
        "outer completion/complete lib_review",
        "inner completion/complete review",
    ]


@coroutine
async def test_hooks_of_the_mounted_server_count_for_its_tools(caplog: pytest.LogCaptureFixture) -> None:
    def never(tool: str, arguments: dict[str, Any], context: Context) -> bool:
        return tool != "erase"

    inner, outer = Server("inner", approval={"erase": never}), Server("outer")
    failures: list[str] = []
    inner.on_error(lambda error, call: failures.append(f"inner {error}"))
    outer.on_error(lambda error, call: failures.append(f"outer {error}"))

    @inner.tool
    def erase() -> str:
        return "erased"

    @inner.tool
    def broken() -> str:
        raise OSError("broken")

    outer.mount("disk", inner)
    async with Client(outer) as caller:
        assert (await caller.call_tool("disk_erase")).text == "the call was not approved"
        assert (await caller.call_tool("disk_broken")).is_error
    assert failures == ["inner broken", "outer broken"]
    assert [record.name for record in caplog.records] == ["mcpbolt.server.inner"]


@coroutine
async def test_lifespans_are_entered_once_and_each_tool_has_the_state_of_its_server() -> None:
    events: list[str] = []

    def living(name: str) -> Server:
        @asynccontextmanager
        async def lifespan(server: Server) -> AsyncIterator[str]:
            events.append(f"begin {name}")
            yield f"state of {name}"
            events.append(f"end {name}")

        server = Server(name, lifespan=lifespan)

        @server.tool
        def state(context: Context) -> str:
            return str(context.state)

        return server

    inner, outer = living("inner"), living("outer")
    outer.mount("a", inner)
    outer.mount("b", inner)
    async with Client(outer) as caller:
        assert (await caller.call_tool("state")).text == "state of outer"
        assert (await caller.call_tool("a_state")).text == "state of inner"
        assert (await caller.call_tool("b_state")).text == "state of inner"
    assert events == ["begin inner", "begin outer", "end outer", "end inner"]


@coroutine
async def test_collisions_are_refused_with_both_origins() -> None:
    inner, outer = Server("inner"), Server("outer")
    inner.tool(name="add")(lambda: "inner")
    outer.tool(name="in_add")(lambda: "outer")
    with pytest.raises(ValueError, match="server 'outer' would offer the tool 'in_add' twice: its own and 'add' of server 'inner'"):
        outer.mount("in", inner)
    outer.mount("x", inner)
    with pytest.raises(ValueError, match="'x_add' twice: 'add' of server 'inner' and its own"):
        outer.tool(name="x_add")(lambda: "outer")
    outer.tool(name="x_sub")(lambda: "outer")
    with pytest.raises(ValueError, match="'x_sub' twice: its own and 'sub' of server 'inner'"):
        inner.tool(name="sub")(lambda: "inner")
    async with Client(outer) as caller:
        assert [tool.name for tool in await caller.list_tools()] == ["in_add", "x_sub", "x_add"]


def test_what_cannot_be_mounted_is_refused() -> None:
    inner, outer = Server("inner"), Server("outer")
    with pytest.raises(ValueError, match="is not a name"):
        outer.mount("a/b", inner)
    outer.mount("in", inner)
    with pytest.raises(ValueError, match="within the other"):
        inner.mount("out", outer)
    with pytest.raises(ValueError, match="within the other"):
        outer.mount("self", outer)
    with pytest.raises(ValueError, match="server 'safe' has a policy"):
        outer.mount("safe", Server("safe", policy=Policy(keys={"k": ("a", [])})))


@coroutine
async def test_what_comes_too_late_is_refused() -> None:
    outer = Server("outer", list_changes=True)
    async with Client(outer) as caller:
        with pytest.raises(Misuse, match="mount it before"):
            outer.mount("lib", library())
        assert await caller.list_tools() == []


def test_a_server_that_mounts_another_is_collected() -> None:
    inner = library()
    outer = Server("outer")
    outer.mount("lib", inner)
    outer._catalog()
    alive = weakref.ref(outer)
    del outer
    gc.collect()
    assert alive() is None
    inner.tool(name="later")(lambda: "")


@coroutine
async def test_skills_of_a_mounted_server_are_within_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "poems"
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: poems\ndescription: Writes poems.\n---\nWrite.\n")
    inner, outer = Server("inner"), Server("outer")
    inner.add_skills(tmp_path)
    outer.mount("lib", inner)
    async with Client(outer) as caller:
        uris = [one.uri for one in await caller.list_resources()]
        assert len(uris) == 1 and uris[0].startswith("skill://lib/poems"), uris


@coroutine
async def test_a_completion_is_asked_of_the_server_that_has_the_prompt_or_template() -> None:
    def named(name: str) -> Server:
        server = Server(name)
        server.prompt(name=f"{name}_poem")(lambda about: "")
        server.resource(f"{name}://{{x}}/y")(lambda x: "")
        server.completion(lambda request: [f"{name} {request.value}"])
        return server

    outer = Server("outer")
    for prefix, name in (("", "all"), ("b", "one"), ("b_c", "two")):
        outer.mount(prefix, named(name))
    completed = {}
    async with Client(outer) as caller:
        for prompt in await caller.list_prompts():
            completed[prompt.name] = (await caller.complete(prompt, "about", "x")).values
        for template in await caller.list_resource_templates():
            completed[template.uri_template] = (await caller.complete(template, "x", "x")).values
    assert completed == {
        "all_poem": ["all x"],
        "b_one_poem": ["one x"],
        "b_c_two_poem": ["two x"],
        "all://{x}/y": ["all x"],
        "one://b/{x}/y": ["one x"],
        "two://b_c/{x}/y": ["two x"],
    }
