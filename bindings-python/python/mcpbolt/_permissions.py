"""Permissions that a program checks itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._core import Permissions, to_json


class PermissionManager:
    """Says what permissions allow, by the rules of `Policy(permissions=…)`: only named items are allowed, and `denied` takes
    precedence. URIs are normalised before they are matched; one with a `..` segment is never allowed.

    Args:
        config: `{"tools": {"allowed": […], "denied": […]}, "resources": {…}}`, as for a `Policy`.

    Raises:
        ValueError: Raised if `config` does not have this shape.
    """

    __slots__ = ("_permissions",)

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._permissions = Permissions(to_json(dict(config)))

    def can_access_resource(self, uri: str) -> bool:
        """Whether a resource may be read."""
        return self._permissions.may_read(uri)

    def can_execute_tool(self, tool: str) -> bool:
        """Whether a tool may be called."""
        return self._permissions.may_call(tool)
