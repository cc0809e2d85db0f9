"""Extensions, skills, trace context and other `_meta`, and what servers are told of their clients."""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from mcpbolt import (
    BadAnswer,
    Client,
    ClientInfo,
    Context,
    Misuse,
    PeerError,
    ProtocolError,
    Server,
    ToolResult,
    Unsupported,
)
from support import client, coroutine

NEWEST = "2026-07-28"
OWN = "com.example/own"


@coroutine
async def test_an_extension_is_active_where_both_declare_it() -> None:
    """R-EXT-01 to R-EXT-03, R-CAP-06, R-CAP-08."""
    server = Server("own", extensions={OWN: {"a": 1}})

    @server.tool
    def own(context: Context) -> str:
        return f"{context.extension(OWN)}"

    for revision, declared, seen in [
        ("2025-11-25", {OWN: {"b": 2}}, "None"),
        (NEWEST, {}, "None"),
        (NEWEST, {OWN: {"b": 2}}, "{'b': 2}"),
    ]:
        async with Client(server, revision=revision, extensions=declared) as client:
            assert client.server_info.extensions == ({OWN: {"a": 1}} if revision == NEWEST else {})
            assert (await client.call_tool("own")).text == seen
    for wrong in ("own", "/own", "com..example/own"):
        with pytest.raises(ValueError):
            Server("x", extensions={wrong: {}})._catalog()
        with pytest.raises(ValueError):
            async with Client(server, extensions={wrong: {}}):
                pass


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25", NEWEST])
@coroutine
async def test_trace_context_goes_along_in_meta_and_back(revision: str) -> None:
    """R-MET-09, R-MET-10."""
    server = Server("traced")

    @server.tool
    def where(context: Context) -> ToolResult:
        own = {name: value for name, value in context.meta.items() if "modelcontextprotocol" not in name}
        return ToolResult(str(own), meta={"com.example/seen": True})

    @server.resource("memo://a")
    def memo(context: Context) -> str:
        return str(context.meta.get("traceparent"))

    @server.prompt
    def ask(context: Context) -> str:
        return str(context.meta.get("traceparent"))

    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    trace = {"traceparent": parent, "tracestate": "a=1", "baggage": "k=v"}
    async with Client(server, revision=revision) as client:
        result = await client.call_tool("where", meta=trace)
        assert result.text == str(trace)
        assert result.meta["com.example/seen"] is True
        assert (await client.read_resource("memo://a", meta=trace))[0].text == parent
        assert (await client.get_prompt("ask", meta=trace)).messages[0].text == parent


@pytest.mark.parametrize("revision", ["2025-06-18", NEWEST])
@coroutine
async def test_a_server_learns_who_its_client_is(revision: str) -> None:
    """R-LIF-04, R-MET-05, R-ROO-02, R-CAP-08."""
    told: list[Any] = []
    server = Server(
        "curious",
        on_initialized=lambda client: told.append((client.name, client.revision)),
        on_roots_changed=lambda client: told.append("roots" in client.capabilities),
    )

    @server.tool
    def who(context: Context) -> str:
        client = context.client
        assert isinstance(client, ClientInfo)
        return f"{client.name} {client.version} {client.revision} {'roots' in client.capabilities}"

    async with Client(server, revision=revision, name="me", version="7", roots=["file:///a"]) as client:
        assert (await client.call_tool("who")).text == f"me 7 {revision} True"
        client.set_roots(["file:///b"])
        await client.call_tool("who")
    # From 2026-07-28 on there is no handshake, and nothing is told between calls.
    assert told == ([("me", revision), True] if revision == "2025-06-18" else [])


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
@coroutine
async def test_the_end_of_a_pages_errand_is_told(revision: str) -> None:
    """R-ELI-10."""
    server = Server("pages")
    done: list[str] = []
    other: list[str] = []

    @server.tool
    def finish(context: Context) -> None:
        context.elicitation_complete("errand-7")

    async with Client(
        server,
        revision=revision,
        on_elicitation_url=lambda request: True,
        on_elicitation_complete=done.append,
        on_notification=lambda method, params: other.append(method),
    ) as client:
        await client.call_tool("finish")
        await client.ping()
    assert (done, other) == (["errand-7"] if revision == "2025-11-25" else [], [])


@coroutine
async def test_handlers_refuse_with_errors_of_the_protocol() -> None:
    """R-ERR-01."""
    server = Server("strict")
    kinds: list[Any] = ["internal", "invalid_params", "not_found", 1234]

    @server.tool
    def refuse(kind: int) -> None:
        raise ProtocolError(kinds[kind], "no", {"kind": kind})

    @server.resource("memo://a")
    def memo() -> str:
        raise ProtocolError(77, "not today")

    async with Client(server, revision=NEWEST) as client:
        codes = []
        for kind in range(4):
            with pytest.raises(PeerError) as caught:
                await client.call_tool("refuse", {"kind": kind})
            assert (caught.value.message, caught.value.data) == ("no", {"kind": kind})
            codes.append(caught.value.code)
        assert codes == [-32603, -32602, -32602, 1234]
        with pytest.raises(PeerError) as caught:
            await client.read_resource("memo://a")
        assert (caught.value.code, caught.value.message) == (77, "not today")


MANIFEST = "---\nname: pdf\ndescription: Fills in forms\nmetadata:\n  level: 2\n---\nRead on.\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pdf = tmp_path / "team" / "pdf"
    (pdf / "references").mkdir(parents=True)
    (pdf / "SKILL.md").write_text(MANIFEST)
    (pdf / "references" / "FORMS.md").write_text("Forms.\n")
    (pdf / "a.png").write_bytes(b"\xfb\xff")
    (pdf / ".secret").write_text("x")
    other = tmp_path / "notes"
    other.mkdir()
    (other / "SKILL.md").write_text("---\nname: notes\ndescription: Takes notes\n---\n")
    return tmp_path


def test_skills_are_listed_and_read(folder: Path) -> None:
    server = Server("office")
    server.add_skills(folder)

    @coroutine
    async def run() -> None:
        async with Client(server, revision=NEWEST) as client:
            assert "io.modelcontextprotocol/skills" in client.server_info.extensions
            notes, pdf = await client.list_skills()
            assert (notes.uri, notes.name) == ("skill://notes/SKILL.md", "notes")
            assert (pdf.uri, pdf.description) == ("skill://team/pdf/SKILL.md", "Fills in forms")
            assert pdf.frontmatter["metadata"] == {"level": 2}
            assert pdf.files is not None
            sizes = {file.uri.removeprefix("skill://team/pdf/"): file.size for file in pdf.files}
            assert sizes == {"SKILL.md": len(MANIFEST), "a.png": 2, "references/FORMS.md": 7}
            digest = next(file.digest for file in pdf.files if file.uri.endswith("png"))
            assert digest == "sha256:" + hashlib.sha256(b"\xfb\xff").hexdigest()
            assert await client.get_skill(pdf.uri) == pdf
            assert await client.read_skill(pdf) == MANIFEST
            assert await client.read_skill_file(pdf, "skill://team/pdf/a.png") == b"\xfb\xff"
            children = await client.read_directory("skill://team/pdf")
            assert [(child.name, child.mime_type) for child in children] == [
                ("SKILL.md", "text/markdown"),
                ("a.png", "image/png"),
                ("references", "inode/directory"),
            ]
            with pytest.raises(Misuse):
                await client.read_skill_file(pdf, "skill://notes/SKILL.md")
            # A skill that differs from its entry is not given to the program.
            pdf.wire["frontmatter"]["name"] = "other"
            with pytest.raises(BadAnswer):
                await client.read_skill(pdf)
        # The files are resources in every revision; the extension is not there before.
        async with Client(server, revision="2025-11-25") as client:
            assert (await client.read_resource("skill://notes/SKILL.md"))[0].text
            with pytest.raises(Unsupported):
                await client.list_skills()
        async with Client(Server("none")) as client:
            with pytest.raises(Unsupported):
                await client.list_skills()

    run()


def test_what_is_no_skill_is_not_offered(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="SKILL.md"):
        Server("office").add_skills(tmp_path)
    (tmp_path / "SKILL.md").write_text("no frontmatter")
    server = Server("office")
    server.add_skills(tmp_path)
    with pytest.raises(ValueError, match="frontmatter"):
        server._catalog()


def test_links_and_pipes_in_a_skill_are_not_offered(folder: Path) -> None:
    (folder / "outside").write_text("secret")
    (folder / "notes" / "link").symlink_to(folder / "outside")
    (folder / "notes" / "elsewhere").symlink_to(folder / "team")
    os.mkfifo(folder / "notes" / "pipe")
    linked = folder / "linked"
    linked.mkdir()
    (linked / "SKILL.md").symlink_to(folder / "notes" / "SKILL.md")
    server = Server("office")
    server.add_skills(folder)

    @coroutine
    async def run() -> None:
        async with Client(server, revision=NEWEST) as client:
            notes, pdf = await client.list_skills()
            assert [file.uri for file in notes.files or []] == ["skill://notes/SKILL.md"]
            assert pdf.uri == "skill://team/pdf/SKILL.md"

    run()
    with pytest.raises(ValueError, match="SKILL.md"):
        server.add_skills(linked)


def test_a_skill_comes_while_clients_are_connected(folder: Path) -> None:
    server = Server("office", list_changes=True)

    @coroutine
    async def run() -> None:
        told: list[str] = []
        async with Client(server, revision="2025-06-18", on_list_changed=told.append) as client:
            await client.ping()  # the server has heard that this client is ready
            server.add_skills(folder / "notes")
            while not told:
                await asyncio.sleep(0.005)
            assert [resource.uri for resource in await client.list_resources()] == ["skill://notes/SKILL.md"]
        assert told == ["resources"]

    run()


def test_skills_over_a_pipe(folder: Path) -> None:
    code = f"from mcpbolt import Server; s = Server('office'); s.add_skills({str(folder)!r}); s.run()"

    @coroutine
    async def run() -> None:
        async with client([sys.executable, "-c", code], revision=NEWEST) as connected:
            _, pdf = await connected.list_skills()
            assert await connected.read_skill(pdf) == MANIFEST

    run()
