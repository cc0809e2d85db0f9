"""Lists and results that a client gets from a server, parsed when they are accessed."""

from __future__ import annotations

from typing import Any

from . import _core
from ._content import Content, Message, ResourceContents, Text, Wire, _Value, parse, parse_contents
from ._icon import Icon


class ServerInfo(_Value):
    """A server's self-description. For display: it is not verified."""

    __slots__ = ("name", "version", "title", "instructions", "capabilities", "revision")

    def __init__(self, implementation: Wire, capabilities: Wire, instructions: str | None, revision: str) -> None:
        self.name: str = implementation.get("name", "")
        self.version: str = implementation.get("version", "")
        self.title: str | None = implementation.get("title")
        self.instructions = instructions
        self.capabilities = capabilities
        self.revision = revision

    @property
    def extensions(self) -> dict[str, Any]:
        """The extensions that the server offers: settings by name."""
        extensions: dict[str, Any] = self.capabilities.get("extensions", {})
        return extensions


class ClientInfo(_Value):
    """A client's self-description. For display: it is not verified."""

    __slots__ = ("name", "version", "title", "capabilities", "revision")

    def __init__(self, implementation: Wire, capabilities: Wire, revision: str) -> None:
        self.name: str = implementation.get("name", "")
        self.version: str = implementation.get("version", "")
        self.title: str | None = implementation.get("title")
        self.capabilities = capabilities
        self.revision = revision


class _Wired(_Value):
    """A value read from a JSON object of the wire, which is available as `wire`."""

    __slots__ = ("wire",)

    def __init__(self, wire: Wire) -> None:
        self.wire = wire

    def _fields(self) -> dict[str, object]:
        return self.wire

    @property
    def name(self) -> str:
        return str(self.wire["name"])

    @property
    def title(self) -> str | None:
        return self.wire.get("title")

    @property
    def description(self) -> str | None:
        return self.wire.get("description")

    @property
    def icons(self) -> list[Icon]:
        return [Icon.parse(wire) for wire in self.wire.get("icons", [])]

    @property
    def annotations(self) -> dict[str, Any]:
        annotations: dict[str, Any] = self.wire.get("annotations", {})
        return annotations

    @property
    def meta(self) -> dict[str, Any]:
        meta: dict[str, Any] = self.wire.get("_meta", {})
        return meta


class Tool(_Wired):
    """A tool that a server offers."""

    __slots__ = ()

    @property
    def input_schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = self.wire["inputSchema"]
        return schema

    @property
    def output_schema(self) -> dict[str, Any] | None:
        return self.wire.get("outputSchema")

    @property
    def task(self) -> str:
        """Whether calls may run as tasks: "forbidden", "optional" or "required" (2025-11-25)."""
        return str(self.wire.get("execution", {}).get("taskSupport", "forbidden"))


class Resource(_Wired):
    """A resource that a server offers."""

    __slots__ = ()

    @property
    def uri(self) -> str:
        return str(self.wire["uri"])

    @property
    def mime_type(self) -> str | None:
        return self.wire.get("mimeType")

    @property
    def size(self) -> int | None:
        """The size in bytes, if the server says so."""
        return self.wire.get("size")


class ResourceTemplate(_Wired):
    """A template for the URIs of resources that a server offers."""

    __slots__ = ()

    @property
    def uri_template(self) -> str:
        return str(self.wire["uriTemplate"])

    @property
    def mime_type(self) -> str | None:
        return self.wire.get("mimeType")


class PromptArgument(_Wired):
    """An argument of a prompt."""

    __slots__ = ()

    @property
    def required(self) -> bool:
        return bool(self.wire.get("required", False))


class Prompt(_Wired):
    """A prompt that a server offers."""

    __slots__ = ()

    @property
    def arguments(self) -> list[PromptArgument]:
        return [PromptArgument(wire) for wire in self.wire.get("arguments", [])]


class _Result:
    __slots__ = ("_answer", "_wire")

    def __init__(self, answer: _core.Answer) -> None:
        self._answer = answer
        self._wire: Wire | None = None

    @property
    def wire(self) -> Wire:
        """The whole result as it came."""
        if self._wire is None:
            self._wire = self._answer.parse()
        return self._wire

    @property
    def json(self) -> str:
        """The whole result as JSON text, as it came."""
        return self._answer.json()

    @property
    def meta(self) -> dict[str, Any]:
        """The `_meta` of the result."""
        meta: dict[str, Any] = self.wire.get("_meta", {})
        return meta

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.json})"


class CallToolResult(_Result):
    """The result of a tool call."""

    __slots__ = ()

    @property
    def content(self) -> list[Content | Wire]:
        """The content blocks; a block of an unknown type is a dict."""
        return [parse(block) for block in self.wire.get("content", [])]

    @property
    def text(self) -> str:
        """The text blocks, joined by newlines."""
        return "\n".join(block.text for block in self.content if isinstance(block, Text))

    @property
    def structured(self) -> Any:
        """The structured content; `None` if there is none."""
        return self.wire.get("structuredContent")

    @property
    def is_error(self) -> bool:
        """Whether the tool failed; the content then says why."""
        return bool(self.wire.get("isError", False))


class PromptResult(_Result):
    """A rendered prompt."""

    __slots__ = ()

    @property
    def description(self) -> str | None:
        return self.wire.get("description")

    @property
    def messages(self) -> list[Message]:
        return [Message(parse(wire["content"]), wire["role"]) for wire in self.wire.get("messages", [])]


class Completions(_Result):
    """The values that an argument may take."""

    __slots__ = ()

    @property
    def values(self) -> list[str]:
        """The first values, at most 100."""
        values: list[str] = self.wire["completion"]["values"]
        return values

    @property
    def total(self) -> int | None:
        """The number of values in all, if known."""
        total: int | None = self.wire["completion"].get("total")
        return total

    @property
    def has_more(self) -> bool:
        """Whether there are more values than these."""
        return bool(self.wire["completion"].get("hasMore", False))


def contents(answer: _core.Answer) -> list[ResourceContents]:
    """Parses the contents of a `resources/read` result."""
    return [parse_contents(wire) for wire in answer.parse().get("contents", [])]
