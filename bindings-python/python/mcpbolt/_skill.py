"""Skills of a server: instructions for models, with the files they need."""

from __future__ import annotations

from typing import Any

from ._results import _Wired


class SkillFile(_Wired):
    """A file of a skill."""

    __slots__ = ()

    @property
    def uri(self) -> str:
        return str(self.wire["uri"])

    @property
    def digest(self) -> str:
        """`sha256:` and 64 hexadecimal digits."""
        return str(self.wire["digest"])

    @property
    def size(self) -> int:
        """The size in bytes."""
        return int(self.wire["size"])


class Skill(_Wired):
    """A server's description of a skill. `wire` is the whole description."""

    __slots__ = ()

    @property
    def uri(self) -> str:
        """The URI of the manifest."""
        return str(self.wire["uri"])

    @property
    def frontmatter(self) -> dict[str, Any]:
        """The frontmatter of the manifest."""
        frontmatter: dict[str, Any] = self.wire["frontmatter"]
        return frontmatter

    @property
    def name(self) -> str:
        return str(self.frontmatter["name"])

    @property
    def description(self) -> str | None:
        return self.frontmatter.get("description")

    @property
    def files(self) -> list[SkillFile] | None:
        """The files, including the manifest; `None` if they are not known in advance."""
        files = self.wire["resources"]
        return [SkillFile(wire) for wire in files] if isinstance(files, list) else None
