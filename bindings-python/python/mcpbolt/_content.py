"""Content: what handlers give back and what clients receive."""

from __future__ import annotations

from typing import Any, ClassVar

from ._plain import base64

Wire = dict[str, Any]


class _Value:
    """Equality and repr by the fields."""

    __slots__: tuple[str, ...] = ()

    def _fields(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in type(self).__slots__}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Value) or type(self) is not type(other):
            return NotImplemented
        return self._fields() == other._fields()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self._fields().items())
        return f"{type(self).__name__}({fields})"


class Text(_Value):
    """A block of text."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def wire(self) -> Wire:
        return {"type": "text", "text": self.text}


class _Binary(_Value):
    __slots__ = ("data", "mime_type")
    _type: ClassVar[str]

    def __init__(self, data: bytes, mime_type: str) -> None:
        self.data = data
        self.mime_type = mime_type

    def wire(self) -> Wire:
        return {"type": self._type, "data": base64(self.data), "mimeType": self.mime_type}

    def _fields(self) -> dict[str, object]:
        return {"data": self.data, "mime_type": self.mime_type}


class Image(_Binary):
    """An image."""

    __slots__ = ()
    _type = "image"

    def __init__(self, data: bytes, mime_type: str = "image/png") -> None:
        super().__init__(data, mime_type)


class Audio(_Binary):
    """A sound."""

    __slots__ = ()
    _type = "audio"

    def __init__(self, data: bytes, mime_type: str = "audio/wav") -> None:
        super().__init__(data, mime_type)


class ResourceContents(_Value):
    """What is read at one URI: text or bytes."""

    __slots__ = ("uri", "content", "mime_type")

    def __init__(self, uri: str, content: str | bytes, mime_type: str | None = None) -> None:
        self.uri = uri
        self.content = content
        self.mime_type = mime_type

    @property
    def text(self) -> str | None:
        """The text; `None` when it is bytes."""
        return self.content if isinstance(self.content, str) else None

    @property
    def blob(self) -> bytes | None:
        """The bytes; `None` when it is text."""
        return self.content if isinstance(self.content, bytes) else None

    def wire(self) -> Wire:
        wire: Wire = {"uri": self.uri}
        if self.mime_type is not None:
            wire["mimeType"] = self.mime_type
        if isinstance(self.content, str):
            wire["text"] = self.content
        else:
            wire["blob"] = base64(self.content)
        return wire


class EmbeddedResource(_Value):
    """A resource, with its contents."""

    __slots__ = ("resource",)

    def __init__(self, resource: ResourceContents) -> None:
        self.resource = resource

    def wire(self) -> Wire:
        return {"type": "resource", "resource": self.resource.wire()}


class ResourceLink(_Value):
    """A resource to be read by who wants it."""

    __slots__ = ("uri", "name", "mime_type")

    def __init__(self, uri: str, name: str, mime_type: str | None = None) -> None:
        self.uri = uri
        self.name = name
        self.mime_type = mime_type

    def wire(self) -> Wire:
        wire: Wire = {"type": "resource_link", "uri": self.uri, "name": self.name}
        if self.mime_type is not None:
            wire["mimeType"] = self.mime_type
        return wire


Content = Text | Image | Audio | EmbeddedResource | ResourceLink


class Message(_Value):
    """One message of a prompt."""

    __slots__ = ("role", "content")

    def __init__(self, content: str | Content | Wire, role: str = "user") -> None:
        self.role = role
        self.content = Text(content) if isinstance(content, str) else content

    @property
    def text(self) -> str:
        """Its text; empty when it is something else."""
        return self.content.text if isinstance(self.content, Text) else ""

    def wire(self) -> Wire:
        content = self.content
        return {"role": self.role, "content": content if isinstance(content, dict) else content.wire()}


class ToolResult(_Value):
    """A tool's result in full, for who wants to say more than one value says."""

    __slots__ = ("content", "structured", "is_error")

    def __init__(self, content: object = None, structured: object = None, is_error: bool = False) -> None:
        self.content = content
        self.structured = structured
        self.is_error = is_error


_BLOCKS = (Text, Image, Audio, EmbeddedResource, ResourceLink)


def block(value: Any) -> Wire | None:
    """One block of content, if the value is one."""
    if isinstance(value, str):
        return {"type": "text", "text": str(value)}
    if isinstance(value, _BLOCKS):
        return value.wire()
    if isinstance(value, ResourceContents):
        return EmbeddedResource(value).wire()
    if isinstance(value, (bytes, bytearray, memoryview)):
        kind = "application/octet-stream"
        return EmbeddedResource(ResourceContents(f"data:{kind}", bytes(value), kind)).wire()
    return None


def parse(wire: Wire) -> Content | Wire:
    """A block of content as it came; as a dict when its type is not known."""
    match wire.get("type"):
        case "text":
            return Text(wire["text"])
        case "image":
            return Image(_bytes(wire["data"]), wire["mimeType"])
        case "audio":
            return Audio(_bytes(wire["data"]), wire["mimeType"])
        case "resource":
            return EmbeddedResource(parse_contents(wire["resource"]))
        case "resource_link":
            return ResourceLink(wire["uri"], wire["name"], wire.get("mimeType"))
    return wire


def parse_contents(wire: Wire) -> ResourceContents:
    """What was read at one URI."""
    content = wire["text"] if "text" in wire else _bytes(wire["blob"])
    return ResourceContents(wire["uri"], content, wire.get("mimeType"))


def _bytes(text: str) -> bytes:
    from binascii import a2b_base64

    return a2b_base64(text)
