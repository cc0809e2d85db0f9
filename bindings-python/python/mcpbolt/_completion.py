"""Completion of the arguments of prompts and resource templates while a user types."""

from __future__ import annotations

from typing import Any


class CompletionRequest:
    """A client's request for the values that an argument may take, given its beginning.

    Attributes:
        prompt: The name of the prompt that the argument belongs to; `None` for a template.
        uri: The URI of the template, or resource, that the argument belongs to; `None` for a prompt.
        argument: The argument's name.
        value: The text that the user has typed so far.
        context: The other arguments that are already decided.
    """

    __slots__ = ("prompt", "uri", "argument", "value", "context")

    def __init__(self, wire: dict[str, Any]) -> None:
        self.prompt: str | None = wire["ref"].get("name")
        self.uri: str | None = wire["ref"].get("uri")
        self.argument: str = wire["argument"]["name"]
        self.value: str = wire["argument"]["value"]
        self.context: dict[str, str] = (wire.get("context") or {}).get("arguments") or {}
