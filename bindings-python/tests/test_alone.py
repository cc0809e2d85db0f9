"""Features that need no other package: also a program of its own, `python test_alone.py`."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import sysconfig
import tempfile
import unittest
from importlib.metadata import version
from pathlib import Path

PROGRAM = """
from mcpbolt import Server

server = Server("alone", "1.0.0")


@server.tool
def add(a: int, b: int) -> int:
    return a + b


@server.tool
async def wait(seconds: float) -> str:
    import asyncio

    await asyncio.sleep(seconds)
    return "waited"


if __name__ == "__main__":
    import sys

    server.run(*sys.argv[1:])
"""


def run(*words: str, input: str = "") -> str:
    done = subprocess.run(words, capture_output=True, text=True, input=input, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def python(code: str) -> str:
    return run(sys.executable, "-c", code)


class Alone(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = Path(folder.name) / "program.py"
        self.file.write_text(PROGRAM)

    def test_importing_brings_three_modules_at_most(self) -> None:
        code = "import sys; before = set(sys.modules); import mcpbolt; print(*(set(sys.modules) - before))"
        brought = python(code).split()
        self.assertIn("mcpbolt._core", brought)
        self.assertLessEqual(len(brought), 3, brought)

    def test_all_that_is_offered_needs_the_standard_library_alone(self) -> None:
        code = (
            "import sys, mcpbolt, mcpbolt.engine; [getattr(mcpbolt, name) for name in mcpbolt.__all__];"
            "print(*{name.split('.')[0] for name in sys.modules} - set(sys.stdlib_module_names))"
        )
        # Modules that the interpreter imports at its start may be there, too.
        begins = set(python("import sys; print(*{name.split('.')[0] for name in sys.modules})").split())
        self.assertEqual(set(python(code).split()) - begins, {"mcpbolt"})

    def test_the_version_is_that_of_what_is_installed(self) -> None:
        import mcpbolt

        self.assertEqual(mcpbolt.__version__, version("mcpbolt"))

    def test_the_module_asks_for_no_lock_of_the_interpreter(self) -> None:
        import mcpbolt._core  # noqa: F401

        if sysconfig.get_config_var("Py_GIL_DISABLED"):
            self.assertFalse(sys._is_gil_enabled())  # type: ignore[attr-defined]

    def test_a_client_calls_a_server_in_this_process_as_a_child_and_over_http(self) -> None:
        from mcpbolt import Client

        names: dict[str, object] = {"__name__": "program"}
        exec(PROGRAM, names)
        server = names["server"]

        async def ask(where: object) -> None:
            async with Client(where) as client:  # type: ignore[arg-type]
                self.assertEqual([tool.name for tool in await client.list_tools()], ["add", "wait"])
                self.assertEqual((await client.call_tool("add", {"a": 2, "b": 40})).text, "42")
                self.assertEqual((await client.call_tool("wait", {"seconds": 0})).text, "waited")

        async def everywhere() -> None:
            await ask(server)
            await ask([sys.executable, str(self.file)])
            async with server.listening("http://127.0.0.1:0/mcp") as address:  # type: ignore[attr-defined]
                await ask(address)

        asyncio.run(asyncio.wait_for(everywhere(), 60))

    def test_messages_are_decoded_and_encoded(self) -> None:
        from mcpbolt import engine

        line = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"add","arguments":{"a":[1,2.5,null]}}}'
        message = engine.decode(line)
        self.assertEqual((message.id, message.method), (7, "tools/call"))
        self.assertEqual(engine.encode_request(7, "tools/call", message.params), line)

    def test_the_command_says_what_it_does_and_does_it(self) -> None:
        hello = (
            '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
            '"capabilities":{},"clientInfo":{"name":"alone","version":"1"}}}\n'
        )
        script = Path(sysconfig.get_path("scripts")) / "mcpbolt"
        commands = [[sys.executable, "-m", "mcpbolt"]]
        if script.exists():
            commands.append([os.fspath(script)])
        for command in commands:
            self.assertIn("--http", run(*command, "run", "--help"))
            self.assertIn('"serverInfo"', run(*command, "run", f"{self.file}:server", input=hello))

    def test_what_needs_the_sdk_says_so(self) -> None:
        code = "import sys; sys.modules['mcp'] = None; import mcpbolt.mcp\ntry: mcpbolt.mcp.stdio_client\nexcept ImportError as error: print(error.name)"
        self.assertIn(python(code).strip(), ("mcp", "mcp.client", "mcp_types", "anyio"))


if __name__ == "__main__":
    unittest.main()
