"""The releases of the official SDK and FastMCP that this package knows, and what it does under each."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version as read_version

ACCELERATED = "accelerated"
"""The engine answers tools, resources, prompts and lists; the rest goes to the package's own request handling."""
CARRIED = "carried"
"""The engine reads, checks and writes the messages; the package's own sessions answer them."""

# By package and minor release. The README's table is tested against this one, and the tests of existing servers run
# with the newest release of each minor one.
RELEASES: dict[str, dict[str, str]] = {
    "mcp": {
        "1.27": CARRIED,
        "1.28": CARRIED,
        "1.29": CARRIED,
        "1.30": CARRIED,
        "2.2": ACCELERATED,
        "2.3": ACCELERATED,
    },
    "fastmcp": {
        "3.2": CARRIED,
        "3.3": CARRIED,
        "3.4": CARRIED,
        "4.0": ACCELERATED,
        "4.1": ACCELERATED,
        "4.2": ACCELERATED,
    },
}


# Reading one takes milliseconds. That a package is not there is not kept.
version = cache(read_version)
# Distributions that have the package, too.
_OTHERS = {"fastmcp": ("fastmcp-slim",)}


def installed(package: str) -> str | None:
    """The installed version of a package; `None` without its metadata: it is not installed, or the program is frozen."""
    for name in (package, *_OTHERS.get(package, ())):
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return None


def release(package: str) -> str | None:
    """The installed minor release of a package; `None` without its metadata."""
    found = installed(package)
    return found and ".".join(found.split(".")[:2])


def known(package: str) -> str | None:
    """What this package does under the installed release of another: `ACCELERATED`, `CARRIED`, or `None` under a
    release that it does not know."""
    return RELEASES[package].get(release(package) or "")


def unknown(package: str) -> str | None:
    """A message that the installed release of a package in use is not known; `None` if it is."""
    if known(package) is not None:
        return None
    found = installed(package)
    if found is None:
        return f"the release of {package} is unknown, since its package metadata is not installed"
    return f"{package} {found} is not known to this mcpbolt, which knows {listed(package)}"


def unfit(package: str) -> str | None:
    """A message that nothing can be accelerated under the installed release of a package in use; `None` if it can."""
    if known(package) == CARRIED:
        return f"{package} {installed(package)} is not accelerated, only {listed(package, ACCELERATED)} are"
    return unknown(package)


def listed(package: str, what: str | None = None) -> str:
    """The minor releases of a package under which this package does that, as a sentence says them."""
    names = [name for name, does in RELEASES[package].items() if what in (None, does)]
    return ", ".join(names[:-1]) + (" and " if len(names) > 1 else "") + names[-1]
