"""Content that handlers return and clients receive: text, images, audio and resources."""

from __future__ import annotations

from typing import Any, ClassVar


Wire = dict[str, Any]


class _Value:
    """A value class with equality and repr by its fields."""

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


def _members(**members: object) -> Wire:
    """Makes a dict of the members that are not `None`."""
    return {name: value for name, value in members.items() if value is not None}


class _Block(_Value):
    """A content block. `annotations` give its audience and priority; `meta` is its `_meta`."""

    __slots__ = ("annotations", "meta")

    def __init__(self, annotations: Wire | None, meta: Wire | None) -> None:
        self.annotations = annotations
        self.meta = meta

    def _fields(self) -> dict[str, object]:
        more = _members(annotations=self.annotations, meta=self.meta)
        return {name: getattr(self, name) for name in type(self).__slots__} | more

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, _handler: object) -> Any:
        from pydantic_core import core_schema

        wire = core_schema.plain_serializer_function_ser_schema(lambda block: block.wire())
        return core_schema.is_instance_schema(cls, serialization=wire)

    @classmethod
    def __get_pydantic_json_schema__(cls, _schema: object, _handler: object) -> Wire:
        return {"type": "object", "description": cls.__doc__}

    def _wire(self, kind: str, **members: object) -> Wire:
        return _members(type=kind, **members, annotations=self.annotations, _meta=self.meta)


class Text(_Block):
    """A block of text."""

    __slots__ = ("text",)

    def __init__(self, text: str, *, annotations: Wire | None = None, meta: Wire | None = None) -> None:
        super().__init__(annotations, meta)
        self.text = text

    def wire(self) -> Wire:
        return self._wire("text", text=self.text)


class _Binary(_Block):
    __slots__ = ("data", "mime_type")
    _type: ClassVar[str]

    def __init__(self, data: bytes, mime_type: str, annotations: Wire | None, meta: Wire | None) -> None:
        super().__init__(annotations, meta)
        self.data = data
        self.mime_type = mime_type

    def wire(self) -> Wire:
        return self._wire(self._type, data=base64(self.data), mimeType=self.mime_type)

    def _fields(self) -> dict[str, object]:
        return {"data": self.data, "mime_type": self.mime_type} | super()._fields()


class Image(_Binary):
    """An image."""

    __slots__ = ()
    _type = "image"

    def __init__(
        self, data: bytes, mime_type: str = "image/png", *, annotations: Wire | None = None, meta: Wire | None = None
    ) -> None:
        super().__init__(data, mime_type, annotations, meta)


class Audio(_Binary):
    """An audio recording."""

    __slots__ = ()
    _type = "audio"

    def __init__(
        self, data: bytes, mime_type: str = "audio/wav", *, annotations: Wire | None = None, meta: Wire | None = None
    ) -> None:
        super().__init__(data, mime_type, annotations, meta)


class ResourceContents(_Value):
    """The contents of a resource at one URI: text or bytes."""

    __slots__ = ("uri", "content", "mime_type", "meta")

    def __init__(
        self, uri: str, content: str | bytes, mime_type: str | None = None, *, meta: Wire | None = None
    ) -> None:
        self.uri = uri
        self.content = content
        self.mime_type = mime_type
        self.meta = meta

    @property
    def text(self) -> str | None:
        """The text; `None` when it is bytes."""
        return self.content if isinstance(self.content, str) else None

    @property
    def blob(self) -> bytes | None:
        """The bytes; `None` when it is text."""
        return self.content if isinstance(self.content, bytes) else None

    def wire(self) -> Wire:
        body = {"text": self.content} if isinstance(self.content, str) else {"blob": base64(self.content)}
        return _members(uri=self.uri, mimeType=self.mime_type, **body, _meta=self.meta)


class EmbeddedResource(_Block):
    """A resource, with its contents."""

    __slots__ = ("resource",)

    def __init__(
        self, resource: ResourceContents, *, annotations: Wire | None = None, meta: Wire | None = None
    ) -> None:
        super().__init__(annotations, meta)
        self.resource = resource

    def wire(self) -> Wire:
        return self._wire("resource", resource=self.resource.wire())


class ResourceLink(_Block):
    """A link to a resource, which the client may read."""

    __slots__ = ("uri", "name", "mime_type", "title", "description", "size")

    def __init__(
        self,
        uri: str,
        name: str,
        mime_type: str | None = None,
        *,
        title: str | None = None,
        description: str | None = None,
        size: int | None = None,
        annotations: Wire | None = None,
        meta: Wire | None = None,
    ) -> None:
        super().__init__(annotations, meta)
        self.uri = uri
        self.name = name
        self.mime_type = mime_type
        self.title = title
        self.description = description
        self.size = size

    def wire(self) -> Wire:
        about = _members(title=self.title, description=self.description, size=self.size)
        return self._wire("resource_link", uri=self.uri, name=self.name, mimeType=self.mime_type, **about)


Content = Text | Image | Audio | EmbeddedResource | ResourceLink


class Message(_Value):
    """One message of a prompt."""

    __slots__ = ("role", "content")

    def __init__(self, content: str | Content | Wire, role: str = "user") -> None:
        self.role = role
        self.content = Text(content) if isinstance(content, str) else content

    @property
    def text(self) -> str:
        """The text of the message; empty if its content is not text."""
        return self.content.text if isinstance(self.content, Text) else ""

    def wire(self) -> Wire:
        content = self.content
        return {"role": self.role, "content": content if isinstance(content, dict) else content.wire()}


class ToolResult(_Value):
    """A complete tool result, for handlers that return more than one value: content, structured content, an error flag
    and `_meta`."""

    __slots__ = ("content", "structured", "is_error", "meta")

    def __init__(
        self, content: object = None, structured: object = None, is_error: bool = False, *, meta: Wire | None = None
    ) -> None:
        self.content = content
        self.structured = structured
        self.is_error = is_error
        self.meta = meta


BLOCKS = (Text, Image, Audio, EmbeddedResource, ResourceLink)


def is_content(value: Any) -> bool:
    """Whether a value is content other than text."""
    return isinstance(value, (*BLOCKS, ResourceContents, bytes, bytearray, memoryview))


def block(value: Any) -> Wire | None:
    """Makes a content block of a value; `None` if the value is not content."""
    if isinstance(value, str):
        return {"type": "text", "text": str(value)}
    if isinstance(value, BLOCKS):
        return value.wire()
    if isinstance(value, ResourceContents):
        return EmbeddedResource(value).wire()
    if isinstance(value, (bytes, bytearray, memoryview)):
        kind = "application/octet-stream"
        return EmbeddedResource(ResourceContents(f"data:{kind}", bytes(value), kind)).wire()
    return None


def parse(wire: Wire) -> Content | Wire:
    """Parses a content block; one of an unknown type stays a dict."""
    more = {"annotations": wire.get("annotations"), "meta": wire.get("_meta")}
    match wire.get("type"):
        case "text":
            return Text(wire["text"], **more)
        case "image":
            return Image(_bytes(wire["data"]), wire["mimeType"], **more)
        case "audio":
            return Audio(_bytes(wire["data"]), wire["mimeType"], **more)
        case "resource":
            return EmbeddedResource(parse_contents(wire["resource"]), **more)
        case "resource_link":
            about = {name: wire.get(name) for name in ("title", "description", "size")}
            return ResourceLink(wire["uri"], wire["name"], wire.get("mimeType"), **about, **more)
    return wire


def parse_contents(wire: Wire) -> ResourceContents:
    """Parses the contents of a resource at one URI."""
    content = wire["text"] if "text" in wire else _bytes(wire["blob"])
    return ResourceContents(wire["uri"], content, wire.get("mimeType"), meta=wire.get("_meta"))


def base64(data: bytes) -> str:
    from binascii import b2a_base64

    return b2a_base64(data, newline=False).decode("ascii")


def _bytes(text: str) -> bytes:
    from binascii import a2b_base64

    return a2b_base64(text)
