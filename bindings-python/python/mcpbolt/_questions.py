"""Questions of servers and answers of clients: sampling, elicitation and roots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._content import Content, Message, Text, Wire, _members, _Value, block, parse


class Root(_Value):
    """A folder or file that a client wants servers to keep to, at a `file://` URI."""

    __slots__ = ("uri", "name")

    def __init__(self, uri: str, name: str | None = None) -> None:
        self.uri = uri
        self.name = name

    def wire(self) -> Wire:
        return _members(uri=self.uri, name=self.name)

    @classmethod
    def parse(cls, wire: Wire) -> Root:
        return cls(wire["uri"], wire.get("name"))


class Sampled(_Value):
    """A model's answer: content blocks, the model's name, and why it stopped."""

    __slots__ = ("content", "model", "role", "stop_reason")

    def __init__(
        self,
        content: str | Content | Wire | list[Content | Wire],
        model: str,
        *,
        role: str = "assistant",
        stop_reason: str | None = "endTurn",
    ) -> None:
        blocks = content if isinstance(content, list) else [content]
        self.content: list[Content | Wire] = [Text(one) if isinstance(one, str) else one for one in blocks]
        self.model = model
        self.role = role
        self.stop_reason = stop_reason

    @property
    def text(self) -> str:
        """The text blocks, joined by newlines."""
        return "\n".join(one.text for one in self.content if isinstance(one, Text))

    def wire(self) -> Wire:
        blocks = [one if isinstance(one, dict) else block(one) for one in self.content]
        wire: Wire = {"role": self.role, "content": blocks[0] if len(blocks) == 1 else blocks, "model": self.model}
        if self.stop_reason is not None:
            wire["stopReason"] = self.stop_reason
        return wire

    @classmethod
    def parse(cls, wire: Wire) -> Sampled:
        return cls(_blocks(wire["content"]), wire["model"], role=wire["role"], stop_reason=wire.get("stopReason"))


class SamplingRequest(_Value):
    """A server's request to the client's model; `wire` is the whole request."""

    __slots__ = ("wire",)

    def __init__(self, wire: Wire) -> None:
        self.wire = wire

    @property
    def messages(self) -> list[Message]:
        """The conversation, with one content block in each message."""
        wires = self.wire["messages"]
        return [Message(one, wire["role"]) for wire in wires for one in _blocks(wire["content"])]

    @property
    def max_tokens(self) -> int:
        return int(self.wire["maxTokens"])

    @property
    def system_prompt(self) -> str | None:
        return self.wire.get("systemPrompt")

    @property
    def tools(self) -> list[Wire]:
        """The tools that the model may use."""
        tools: list[Wire] = self.wire.get("tools", [])
        return tools


class ElicitationRequest(_Value):
    """A server's request to the user: to fill in a form, or to visit a web page."""

    __slots__ = ("message", "schema", "url", "id")

    def __init__(self, message: str, schema: Wire | None = None, url: str | None = None, id: str | None = None) -> None:
        self.message = message
        self.schema = schema
        self.url = url
        self.id = id

    @classmethod
    def parse(cls, wire: Wire) -> ElicitationRequest:
        return cls(wire["message"], wire.get("requestedSchema"), wire.get("url"), wire.get("elicitationId"))


class Elicited(_Value):
    """A user's answer: `action` is "accept", "decline" or "cancel"; `content` is the filled-in form, as an
    instance of the form's class or as a dict."""

    __slots__ = ("action", "content")

    def __init__(self, action: str, content: Any = None) -> None:
        self.action = action
        self.content = content

    @property
    def accepted(self) -> bool:
        """Whether the user agreed."""
        return self.action == "accept"

    @classmethod
    def parse(cls, wire: Wire, make: Callable[[Any], Any] | None = None) -> Elicited:
        content = wire.get("content")
        return cls(wire["action"], make(content) if make and content is not None else content)


def _blocks(content: Wire | list[Wire]) -> list[Content | Wire]:
    return [parse(one) for one in (content if isinstance(content, list) else [content])]
