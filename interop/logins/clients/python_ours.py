"""Logs in with our client in Python and calls `whoami` twice, after a pause of `MCPBOLT_PAUSE` seconds. Prints both
answers.

    python python_ours.py browser|paste|dpop|device|machine URL
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from mcpbolt import AuthorizationPage, Client, DeviceCode, OAuth

BACK = "http://127.0.0.1:9/callback"
BROWSER = [sys.executable, str(Path(__file__).parent.parent / "browser.py")]


def opened(page: AuthorizationPage) -> None:
    """Starts a browser, which comes back by itself."""
    subprocess.Popen([*BROWSER, page.url], stdout=subprocess.DEVNULL)


async def pasted(page: AuthorizationPage) -> str:
    """Returns the address at which a browser ends."""
    browser = await asyncio.create_subprocess_exec(*BROWSER, "--until", BACK, page.url, stdout=subprocess.PIPE)
    told, _ = await browser.communicate()
    return told.decode().strip()


def entered(code: DeviceCode) -> None:
    subprocess.run([*BROWSER, code.verification_uri_complete or ""], check=True, stdout=subprocess.DEVNULL)


WAYS: dict[str, dict[str, Any]] = {
    "browser": {"on_authorize": opened},
    "dpop": {"on_authorize": opened, "dpop": True},
    "paste": {"on_authorize": pasted, "redirect_uri": BACK},
    "device": {"grant": "device", "client_id": "device", "on_device_code": entered},
    "machine": {"grant": "client_credentials", "client_id": "machine", "client_secret": "secret-of-the-machine"},
}


async def main() -> None:
    way, url = sys.argv[1:]
    async with Client(url, auth=OAuth("python", **WAYS[way])) as client:
        print((await client.call_tool("whoami", {})).text)
        await asyncio.sleep(float(os.environ.get("MCPBOLT_PAUSE", "0")))
        print((await client.call_tool("whoami", {})).text)


asyncio.run(main())
