"""The steps of a client and a server, feature by feature.

Every server here that is not somebody else's finished program is the same server: it offers what
the steps below use. `peers.py` says which client or server lacks which feature.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from scripts import ROOT, Step, call, many

INVALID_PARAMS, METHOD_NOT_FOUND, RESOURCE_NOT_FOUND = -32602, -32601, -32002
FIRST, MODERN = "2024-11-05", "2026-07-28"
LISTINGS = 2  # of the tools, by who keeps them for as long as the server says: once whole, once by pages
TEXTS = {
    "small": "hello",
    "empty": "",
    "unicode": 'é ß 漢字 🦀 \u2028 \u2029 \x7f "quoted" \\ / \b\f\n\r\t \u0000 \ufeff',
    "1 MB": "0123456789abcdef" * 62_500,  # some clients take events of up to 1 MiB
}
PROGRESS_STEPS = 20
TOOLS = {"echo", "sleep", "progress", "stats", "add", "log", "touch"}
TOOLS |= {"ask_model", "ask_tools", "ask_user", "ask_page", "ask_roots", "interview", "context"}
GREETING, PIXEL, ITEM = "test://greeting", "test://pixel", "test://item/{id}"
PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
ICON = {"src": "https://example.com/icon.png", "mimeType": "image/png"}
EXTENSION = "example.com/interop"
TASK = ({"do": "task", "tool": "job", "arguments": {}}, {"text": "done", "status": "completed"})
TRACE = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "example.com/word": "hello"}


def of(name: str, **members: object) -> Callable[[list[dict]], bool]:
    """Whether a list has an item of that name with these members."""

    def check(items: list[dict]) -> bool:
        found = next((item for item in items if item["name"] == name), {})
        return all(found.get(key) == value for key, value in members.items())

    return check


def calls(_revision: str) -> list[Step]:
    return [
        ({"do": "tools"}, {"names": TOOLS}),
        *((call("echo", text=text), {"text": text, "is_error": False}) for text in TEXTS.values()),
        many("echo", "text"),
    ]


def refusals(revision: str) -> list[Step]:
    bad = {"code": INVALID_PARAMS} if revision < "2025-11-25" else {"is_error": True}
    return [
        (call("no_such_tool"), {"code": INVALID_PARAMS}),
        (call("echo", text=7), bad),
        ({"do": "prompt", "name": "greet", "arguments": {}}, {"code": INVALID_PARAMS}),
        ({"do": "read", "uri": "test://missing"}, {"code": {INVALID_PARAMS, RESOURCE_NOT_FOUND}}),
    ]


def progress(_revision: str) -> list[Step]:
    return [(call("progress", n=PROGRESS_STEPS) | {"progress": True}, {"text": "done", "seen": in_order})]


def in_order(seen: list[list]) -> bool:
    """That all of it came before the answer is read off the recording: the TypeScript clients forget
    a request's progress handler before they run what arrived with its answer.
    """
    steps = [step for step, _ in seen]
    return steps == sorted(set(steps)) and all(
        1 <= step <= PROGRESS_STEPS and total == PROGRESS_STEPS for step, total in seen
    )


def cancelling(_revision: str) -> list[Step]:
    """`stats` tells of the sleeps since it was last asked."""
    return [
        (call("sleep", ms=60_000) | {"cancel_ms": 500}, {"ended": "cancelled"}),
        (call("sleep", ms=60_000) | {"timeout_ms": 500}, {"ended": "timed out"}),
        (call("sleep", ms=200), {"text": "slept"}),
        (call("stats"), {"text": {"active": 0, "started": 3, "finished": 1, "cancelled": 2}}),
    ]


def resources(_revision: str) -> list[Step]:
    return [
        ({"do": "resources"}, {"names": {GREETING, PIXEL}}),
        ({"do": "read", "uri": GREETING}, {"text": "hello", "mime": "text/plain"}),
        ({"do": "read", "uri": PIXEL}, {"blob": PNG, "mime": "image/png"}),
    ]


def templates(_revision: str) -> list[Step]:
    return [
        ({"do": "templates"}, {"names": [ITEM]}),
        ({"do": "read", "uri": "test://item/7%208"}, {"text": "item 7 8"}),
    ]


def prompts(_revision: str) -> list[Step]:
    return [
        ({"do": "prompts"}, {"names": ["greet"]}),
        ({"do": "prompt", "name": "greet", "arguments": {"who": "Ada"}}, {"text": "Greet Ada."}),
    ]


def completion(_revision: str) -> list[Step]:
    ada = {"values": ["Ada", "Adele"]}
    return [
        ({"do": "complete", "prompt": "greet", "argument": "who", "value": "Ad"}, ada),
        ({"do": "complete", "template": ITEM, "argument": "id", "value": "Ad"}, ada),
    ]


def logging(_revision: str) -> list[Step]:
    return [({"do": "logs", "level": "warning", "tool": "log"}, {"levels": lambda levels: sorted(levels) == ["error", "warning"]})]


def changes(revision: str) -> list[Step]:
    tools, resource = "tools/list_changed", f"resources/updated {GREETING}"
    after = [] if revision == MODERN else [tools]
    return [({"do": "listen", "uris": [GREETING], "tool": "touch"}, {"heard": [resource, tools], "after": after})]


def nesting(_revision: str) -> list[Step]:
    return [(call("ask_model", text="nest 3"), {"text": "(((said nest 0)))"})]


def forms(_revision: str) -> list[Step]:
    asked = {"Who?": "accept Ada", "No?": "decline", "Never mind?": "cancel"}
    return [(call("ask_user", message=message), {"text": text}) for message, text in asked.items()]


def tasks(revision: str) -> list[Step]:
    return [] if revision == MODERN else [TASK]  # there they are an extension


@dataclass
class Feature:
    name: str
    since: str
    steps: Callable[[str], list[Step]]


def told(name: str, since: str, *steps: Step) -> Feature:
    """A feature whose steps are the same in every revision."""
    return Feature(name, since, lambda _revision: list(steps))


FEATURES = (
    Feature("calls", FIRST, calls),
    Feature("progress", FIRST, progress),
    Feature("cancelling", FIRST, cancelling),
    Feature("refusals", FIRST, refusals),
    told("unknown methods", FIRST, ({"do": "request", "method": "no/such_method"}, {"code": METHOD_NOT_FOUND})),
    told("pagination", FIRST, ({"do": "pages"}, {"pages": lambda pages: pages > 1})),
    told("annotations", "2025-03-26", ({"do": "tools"}, {"items": of("add", annotations={"readOnlyHint": True})})),
    told("titles", "2025-06-18", ({"do": "tools"}, {"items": of("add", title="Addition")})),
    told("icons", "2025-11-25", ({"do": "tools"}, {"items": of("add", icons=[ICON])})),
    told("structured content", "2025-06-18", (call("add", a=2, b=40), {"structured": {"sum": 42}})),
    Feature("resources", FIRST, resources),
    Feature("templates", FIRST, templates),
    Feature("prompts", FIRST, prompts),
    Feature("completion", FIRST, completion),
    Feature("logging", FIRST, logging),
    Feature("changes", FIRST, changes),
    Feature("caching", MODERN, lambda _revision: []),  # read off the recording: see LISTINGS
    told("sampling", FIRST, (call("ask_model", text="hi"), {"text": "said hi"})),
    told("sampling, 100 at once", "2025-11-25", many("ask_model", "text", "said ")),
    Feature("nesting", FIRST, nesting),
    told("sampling with tools", "2025-11-25", (call("ask_tools"), {"text": "uses weather"})),
    told("roots", FIRST, (call("ask_roots"), {"text": ROOT})),
    Feature("forms", "2025-06-18", forms),
    told("web pages", "2025-11-25", (call("ask_page"), {"text": "accept"})),
    told("rounds", "2025-06-18", (call("interview"), {"text": "said Ada"})),
    told("_meta", FIRST, (call("context") | {"meta": TRACE}, {"text": {"meta": TRACE}, "meta": {"example.com/seen": True}})),
    told(
        "extensions",
        MODERN,
        ({"do": "info"}, {"extensions": {EXTENSION: {"version": 1}}}),
        (call("context"), {"text": {"extension": {"version": 2}}}),
    ),
    Feature("tasks", "2025-11-25", tasks),
    told("tasks as an extension", MODERN, TASK),
)


def script(revision: str, name: str, lacks: set[str]) -> list[Step]:
    """Returns the steps of a client with a server of that name, except for features that one of them lacks."""
    shared = [feature for feature in FEATURES if feature.since <= revision and feature.name not in lacks]
    steps = [step for feature in shared for step in feature.steps(revision)]
    ping = [({"do": "ping"}, {})] if revision < MODERN else []
    opening = ({"do": "info"}, {"revision": revision, "name": name})
    return [opening, *ping, *steps, ({"do": "close"}, {})]
