"""Logs in with the command `mcpbolt`, as the guide ../../../core/AUTHORIZATION.md says, calls `whoami` twice, after a pause of `MCPBOLT_PAUSE` seconds, and logs
out. Prints both answers, and on stderr what the command does.

    python3 command.py browser|dpop|device|paste|machine MCPBOLT URL
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

sys.path.insert(0, str(Path(__file__).parent.parent))
import browser

WAYS = {
    "browser": [],
    "dpop": ["--dpop"],
    "device": ["--device", "--client-id", "device"],
    "paste": ["--paste"],
    "machine": ["--machine", "--client-id", "machine"],
}
way, program, url = sys.argv[1:]
GUIDE = Path(__file__).parents[3] / "core" / "AUTHORIZATION.md"
LINES = [line.split() for line in re.findall(r"^mcpbolt (.+)$", GUIDE.read_text(), re.MULTILINE)]
LOGIN, CALL, WHOAMI, LOGOUT = ([url if word.startswith("http") else word for word in line] for line in LINES)


def run(*words: str, fails: bool = False) -> str:
    done = subprocess.run([program, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    sys.stderr.write(done.stderr)
    if bool(done.returncode) != fails:
        raise SystemExit(f"{words}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stderr if fails else done.stdout


def page(login: subprocess.Popen) -> str:
    """The page that the command shows the user: the last one it names."""
    told = ""
    for line in login.stderr:
        told += line
        sys.stderr.write(line)
        if "Paste that address" in line or "The code is valid" in line:
            return re.findall(r"^  (http\S+)$", told, re.MULTILINE)[-1]
    raise SystemExit(told)


def log_in() -> None:
    words = [program, *LOGIN, *WAYS[way]]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as login:
        if way == "device":
            browser.open_url(page(login))
        if way == "paste":
            shown = page(login)
            callback = parse_qs(urlsplit(shown).query)["redirect_uri"][0]
            login.stdin.write(browser.open_url(shown, callback) + "\n")
            login.stdin.flush()
        told = login.communicate(timeout=60)
        sys.stderr.write(told[1])
        if login.returncode or "Logged in" not in told[0]:
            raise SystemExit(f"login: exit status {login.returncode}\n{told}")


with tempfile.TemporaryDirectory() as folder:
    os.environ["MCPBOLT_CREDENTIALS"] = f"{folder}/credentials"
    if way == "machine":
        os.environ["MCPBOLT_CLIENT_SECRET"] = "secret-of-the-machine"
    os.environ["BROWSER"] = f"{sys.executable} {browser.__file__}"
    told = run(*CALL, fails=True)
    if "mcpbolt login" not in told:
        raise SystemExit(f"it does not say what to do: {told}")
    log_in()
    print(run(*CALL), end="")
    if way != "machine":  # which has no refresh token
        time.sleep(float(os.environ.get("MCPBOLT_PAUSE", "0")))
    print(run(*CALL), end="")
    told = run(*WHOAMI)
    if "mcp:read" not in told:
        raise SystemExit(f"whoami: {told}")
    run(*LOGOUT)
    run(*CALL, fails=True)
