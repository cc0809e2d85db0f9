"""Completing the arguments of prompts and resource templates while a user types."""

from __future__ import annotations

from typing import Any


class CompletionRequest:
    """What a client asks for: the values that an argument may take, given how it begins.

    Attributes:
        prompt: The prompt that the argument belongs to, if it is one's.
        uri: The template, or resource, that it belongs to, if it is one's.
        argument: The argument's name.
        value: What the user has typed so far.
        context: The other arguments, as far as they are decided.
    """

    __slots__ = ("prompt", "uri", "argument", "value", "context")

    def __init__(self, wire: dict[str, Any]) -> None:
        self.prompt: str | None = wire["ref"].get("name")
        self.uri: str | None = wire["ref"].get("uri")
        self.argument: str = wire["argument"]["name"]
        self.value: str = wire["argument"]["value"]
        self.context: dict[str, str] = (wire.get("context") or {}).get("arguments") or {}
