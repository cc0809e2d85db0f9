"""What each check of the interop clients must have said."""

from __future__ import annotations

from collections.abc import Callable

TOOLS = {"echo", "resize", "sleep", "progress", "stats"}
TEXTS = {
    "small": "hello",
    "empty": "",
    "unicode": 'é ß 漢字 🦀 \u2028 \u2029 \x7f "quoted" \\ / \b\f\n\r\t \u0000 \ufeff',
    "1 MB": "0123456789abcdef" * 65_536,
}
INVALID_PARAMS, METHOD_NOT_FOUND = -32602, -32601
PROGRESS_STEPS = 20  # what the clients ask of the tool `progress`
CLOSE_SECONDS = 1.5  # as the client sees it; the server's own time is in the recording


def _connect(revision: str, facts: dict) -> bool:
    return facts["revision"] == revision and bool(facts["name"])


def _bad_arguments(revision: str, facts: dict) -> bool:
    """Arguments that break the tool's schema: an error of the protocol, since 2025-11-25 of the tool."""
    if revision < "2025-11-25":
        return facts.get("code") == INVALID_PARAMS
    return facts.get("is_error") is True


def _progress(_revision: str, facts: dict) -> bool:
    """In order, of the total. That all of it came before the answer is read off the recording: the
    TypeScript clients forget a request's progress handler before they run what arrived with its answer.
    """
    steps = [step for step, _total in facts["seen"]]
    return (
        facts["text"] == "done"
        and steps == sorted(set(steps))
        and all(step in range(1, PROGRESS_STEPS + 1) and total == PROGRESS_STEPS for step, total in facts["seen"])
    )


def _cancel(_revision: str, facts: dict) -> bool:
    before, during, after = facts["before"], facts["during"], facts["after"]
    return (
        during["active"] == before["active"] + 1
        and after["active"] == before["active"]
        and after["cancelled"] == before["cancelled"] + 1
        and after["finished"] == before["finished"]
    )


CHECKS: dict[str, Callable[[str, dict], bool]] = {
    "connect": _connect,
    "list": lambda _r, facts: TOOLS <= set(facts["tools"]),
    **{f"echo {of}": lambda _r, facts: facts["same"] is True for of in TEXTS},
    "resize": lambda _r, facts: facts["same"] is True,
    "unknown_tool": lambda _r, facts: facts.get("code") == INVALID_PARAMS,
    "bad_arguments": _bad_arguments,
    "unknown_method": lambda _r, facts: facts.get("code") == METHOD_NOT_FOUND,
    "ping": lambda _r, facts: "code" not in facts,
    "progress": _progress,
    "cancel": _cancel,
    "concurrent": lambda _r, facts: facts["wrong"] == [],
    "close": lambda _r, facts: facts["seconds"] < CLOSE_SECONDS,
}


def judge(revision: str, said: list[dict]) -> list[str]:
    """What is wrong with, or missing from, the checks a client printed."""
    named = {fact["check"] + (f" {fact['of']}" if "of" in fact else ""): fact for fact in said}
    wanted = [name for name in CHECKS if name != "ping" or revision < "2026"]
    problems = [f"{name}: not reached" for name in wanted if name not in named]
    for name in wanted:
        if name in named and not CHECKS[name](revision, named[name]):
            problems.append(f"{name}: {named[name]}")
    return problems
