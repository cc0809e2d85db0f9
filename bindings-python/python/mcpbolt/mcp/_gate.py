"""The versions of the official SDK and FastMCP that this package is tested with."""

from __future__ import annotations

import warnings
from importlib.metadata import PackageNotFoundError, version

# The two newest minor releases of each.
TESTED = {"mcp": ("2.2", "2.3"), "fastmcp": ("4.0", "4.1")}


def release(package: str) -> str:
    """The installed minor release of a package."""
    return ".".join(version(package).split(".")[:2])


def untested(package: str) -> str | None:
    """A message that the installed version is not tested; `None` if it is, or if the package is not installed."""
    try:
        if release(package) in TESTED[package]:
            return None
    except PackageNotFoundError:
        return None
    installed = version(package)
    return f"{package} {installed} is not tested with this mcpbolt, which knows {' and '.join(TESTED[package])}"


def is_tested(server: object) -> bool:
    """Whether the packages that a server is made with have tested versions; warns once if not."""
    is_fastmcp = any(base.__module__.split(".")[0] == "fastmcp" for base in type(server).__mro__)
    reasons = [reason for package in ("mcp", *(["fastmcp"] if is_fastmcp else [])) if (reason := untested(package))]
    if reasons and not _warned:
        _warned.append(True)
        warnings.warn(f"{reasons[0]}: the server runs as it would without mcpbolt", stacklevel=3)
    return not reasons


_warned: list[bool] = []
