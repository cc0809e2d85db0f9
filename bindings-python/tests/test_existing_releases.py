"""A server under releases of its packages that this package does not accelerate, and what a server has when it has been
served."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio.from_thread
import pytest
from support import coroutine
from test_existing_parts import HERE, fast, highlevel

from mcpbolt import Client, ServeOptions, Unsupported
from mcpbolt.mcp import _accelerate, _gate, _said, _seams, accelerate, listening, report, run, serve

README = Path(__file__).parents[1] / "README.md"


@pytest.fixture
def unknown(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As under a release that nobody knows."""
    monkeypatch.setattr(_gate, "RELEASES", {"mcp": {"0.1": _gate.ACCELERATED}, "fastmcp": {"0.1": _gate.ACCELERATED}})
    monkeypatch.setattr(_accelerate, "_warned", [])
    yield


@pytest.mark.usefixtures("unknown")
def test_an_unknown_release_runs_as_it_would_and_says_so() -> None:
    server = highlevel()
    with pytest.warns(UserWarning, match=f"mcp {version('mcp')} is not known"):
        accelerate(server)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert accelerate(server) is server
    assert report(server).kept == {"server": "it is not accelerated"}


@pytest.mark.filterwarnings("ignore:.*is not known")
@pytest.mark.usefixtures("unknown")
@pytest.mark.parametrize("make", [highlevel, fast])
@coroutine
async def test_every_way_to_serve_is_gated(make: Any) -> None:
    address = HERE.replace("/mcp", "/another")
    async with listening(make(), address) as here, Client(here) as client:
        assert here.endswith("/another")
        assert (await client.call_tool("through_the_kernel")).structured == {"result": True}


@pytest.mark.filterwarnings("ignore:.*is not known")
@pytest.mark.usefixtures("unknown")
def test_no_option_is_dropped_without_a_word() -> None:
    for options, names in ((ServeOptions(max_sessions=1, cors=True), "cors, max_sessions"), (ServeOptions(origins=[]), "origins")):
        with pytest.raises(Unsupported, match=f"options {names}: "):
            run(highlevel(), HERE, options=options)
        with pytest.raises(Unsupported, match=f"options {names}: "):
            asyncio.run(serve(highlevel(), HERE, options=options))
    for address in ("tcp:127.0.0.1:0", "ws://127.0.0.1:0/mcp", "https://127.0.0.1:0/mcp"):
        with pytest.raises(Unsupported, match="HTTP addresses only"):
            run(highlevel(), address)
    with pytest.raises(PermissionError, match="anonymous=True"):
        run(highlevel(), "http://0.0.0.0:0/mcp")


@pytest.mark.parametrize("make", [highlevel, fast])
@coroutine
async def test_a_server_at_two_addresses_changes_at_both(make: Any) -> None:
    server = accelerate(make())
    async with listening(server, HERE) as one, Client(one) as first:
        async with listening(server, HERE) as other, Client(other) as second:
            for client in (first, second):
                assert (await client.call_tool("through_the_kernel")).structured == {"result": False}
            remove = getattr(server, "remove_tool", None) or server.local_provider.remove_tool
            remove("through_the_kernel")
            for client in (first, second):
                assert (await client.call_tool("through_the_kernel")).is_error
                assert [tool.name for tool in await client.list_tools()] == ["with_context"]
        # The first goes on when the second has ended.
        server.tool(name="added")(lambda: "here")
        assert (await first.call_tool("added")).text == "here"


@coroutine
async def test_a_server_gets_its_own_containers_back() -> None:
    server = accelerate(highlevel())
    tools = server._tool_manager._tools
    async with listening(server, HERE):
        server.add_tool(lambda: "", name="added")
        assert server._tool_manager._tools is not tools
    assert server._tool_manager._tools is tools
    assert "added" in tools and type(tools) is dict
    assert type(server._lowlevel_server.middleware) is list


def hops() -> str:
    async def there() -> str:
        await anyio.sleep(0.01)
        return "there"

    anyio.from_thread.check_cancelled()
    return anyio.from_thread.run(there)


# So that the tool's own code does not tell.
REACH = {"hops": hops}


@pytest.mark.parametrize("make", [highlevel, fast])
@coroutine
async def test_plain_tools_reach_the_event_loop_from_their_threads(make: Any) -> None:
    server = make()

    def far() -> str:
        return REACH["hops"]()

    def near() -> str:
        return anyio.from_thread.run_sync(lambda: "here")

    server.tool()(far)
    server.tool()(near)
    said = report(accelerate(server))
    assert "tool far" in said.native and "tool near" in said.direct
    async with listening(server, HERE) as here, Client(here) as client:
        assert (await client.call_tool("far")).text == "there"
        assert (await client.call_tool("near")).text == "here"


def installed(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """As if only these distributions were installed with their metadata."""

    def found(name: str) -> str:
        if name not in names:
            raise PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(_gate, "version", found)
    monkeypatch.setattr(_accelerate, "_warned", [])
    monkeypatch.setattr(_said, "_told", set())


def test_the_release_of_fastmcp_is_known_by_its_slim_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, "mcp", "fastmcp-slim")
    assert _gate.release("fastmcp") == ".".join(version("fastmcp").split(".")[:2])
    assert _gate.known("fastmcp") == _gate.ACCELERATED
    assert _seams.unfit(fast(), _gate.ACCELERATED) is None
    assert report(accelerate(fast())).native


def test_programs_without_metadata_of_their_packages_run_as_they_would(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installed(monkeypatch)
    assert _gate.known("mcp") is None and _said.releases() == ""
    _seams.join("lowlevel", ModuleType("lowlevel"))
    unknown = "the release of mcp is unknown, since its package metadata is not installed"
    assert capsys.readouterr().err == f"mcpbolt: {unknown}: the program runs as it would without mcpbolt\n"
    server = highlevel()
    with pytest.warns(UserWarning, match=unknown):
        assert accelerate(server) is server
    assert report(server).kept == {"server": "it is not accelerated"}
    assert "the release of fastmcp is unknown" in str(_seams.unfit(fast(), _gate.ACCELERATED))


def test_the_table_of_the_readme_is_that_of_the_code() -> None:
    rows = [line.strip("| ").split(" | ") for line in README.read_text().splitlines() if line.startswith("| `mcp` |") or line.startswith("| `fastmcp` |")]
    expected = [
        [f"`{package}`", _gate.listed(package, _gate.ACCELERATED), _gate.listed(package, _gate.CARRIED)] for package in _gate.RELEASES
    ]
    assert rows == expected
