"""Icons of servers, tools, resources and prompts."""

from __future__ import annotations

from ._content import Wire, _members, _Value


class Icon(_Value):
    """An icon, at an `https:` or in a `data:` URI.

    Args:
        sizes: Sizes such as "48x48", or "any".
        theme: "light" or "dark", if it suits only one of them.
    """

    __slots__ = ("src", "mime_type", "sizes", "theme")

    def __init__(
        self, src: str, mime_type: str | None = None, sizes: list[str] | None = None, theme: str | None = None
    ) -> None:
        self.src = src
        self.mime_type = mime_type
        self.sizes = sizes
        self.theme = theme

    @classmethod
    def of(cls, icon: Icon | str) -> Icon:
        return cls(icon) if isinstance(icon, str) else icon

    def wire(self) -> Wire:
        return _members(src=self.src, mimeType=self.mime_type, sizes=self.sizes, theme=self.theme)

    @classmethod
    def parse(cls, wire: Wire) -> Icon:
        return cls(wire["src"], wire.get("mimeType"), wire.get("sizes"), wire.get("theme"))
