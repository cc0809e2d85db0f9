"""Helpers of the tests: servers as processes, raw lines, and tests that are coroutines."""

from __future__ import annotations

import asyncio
import datetime
import functools
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from mcpbolt import Client

ROOT = Path(__file__).resolve().parents[2]
DIAGNOSTIC = [sys.executable, str(ROOT / "bindings-python" / "examples" / "diagnostic.py")]
SECONDS = 30
"""No test takes longer, whatever hangs."""

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As in the background of a shell: what this process ignores, servers that it starts would ignore, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)

HELLO = {
    "jsonrpc": "2.0",
    "id": "hello",
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}},
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def client(server: Any, **options: Any) -> Client:
    """A client whose child sees what this process sees of Python's variables."""
    return Client(server, inherit_env=["PYTHONPATH", "MCPBOLT_TRACE"], **options)


def coroutine(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A test that is a coroutine."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        async def watched() -> None:
            watch = threading.Timer(SECONDS + 15, hangs, [asyncio.get_running_loop(), test.__qualname__])
            watch.daemon = True
            watch.start()
            try:
                await asyncio.wait_for(test(*args, **kwargs), SECONDS)
            finally:
                watch.cancel()

        asyncio.run(watched())

    return run


def hangs(loop: asyncio.AbstractEventLoop, name: str) -> None:
    """Ends the process when a test does not let itself be cancelled; .cache/log/hangs.txt says what the test waits for."""
    record = ROOT / ".cache" / "log" / "hangs.txt"
    record.parent.mkdir(parents=True, exist_ok=True)
    with record.open("a") as out:
        print(f"{name} hangs; its tasks:", file=out)
        for task in asyncio.all_tasks(loop):
            task.print_stack(file=out)
            print(f"  waits for {getattr(task, '_fut_waiter', None)!r}", file=out)
    os._exit(70)


def certificate(folder: Path) -> tuple[Path, Path]:
    """One that vouches for itself, and its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    encoded = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    (folder / "key.pem").write_bytes(encoded)
    return folder / "cert.pem", folder / "key.pem"


class Raw:
    """A server as a process whose lines are written and read one by one."""

    def __init__(self, code: str | list[str], stderr: int | None = None) -> None:
        command = [sys.executable, "-c", code] if isinstance(code, str) else code
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=stderr)
        self.send(HELLO, READY)
        assert self.receive()["id"] == "hello"

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream:
                stream.close()

    def send(self, *messages: dict[str, Any]) -> None:
        assert self.process.stdin
        self.process.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
        self.process.stdin.flush()

    def call(self, id: object, tool: str, **arguments: Any) -> None:
        self.send({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout
        message: dict[str, Any] = json.loads(self.process.stdout.readline())
        return message

    def end(self, seconds: float) -> tuple[int, list[dict[str, Any]], str]:
        """Closes its stdin; gives its exit status, what it still said, and its stderr."""
        out, err = self.process.communicate(timeout=seconds)
        return self.process.returncode, [json.loads(line) for line in out.splitlines()], (err or b"").decode()
