"""Several processes that serve one address: `run(…, workers=…)`."""

from __future__ import annotations

import sys

from . import _core


def is_worker(workers: int | None) -> bool:
    """Whether this process serves as one of several."""
    return workers is not None and _core.is_worker()


def supervised(name: str, address: str, workers: int | None, grace: float, health: str | None) -> None:
    """Serves with that many processes, in each of which this program runs again, until this one gets a signal."""
    if workers is None:
        raise ValueError("health: the process that starts workers answers there; pass workers=, of which one is enough")
    if address == "stdio:":
        raise ValueError("stdio: has one client and one process; workers= needs an address such as http://127.0.0.1:8000/mcp")
    if workers < 1:
        raise ValueError(f"workers: at least 1, not {workers}")
    from contextlib import nullcontext

    from ._running import interrupts_left_to_the_engine, signals_of_the_engine

    def ready(at: str) -> None:
        print(f"{name} listens on {at}, with {workers} workers", file=sys.stderr, flush=True)

    signals = signals_of_the_engine()
    with interrupts_left_to_the_engine() if signals else nullcontext():
        _core.supervise(own_command(), address, (workers, grace, signals), health, ready)


def own_command() -> list[str]:
    """The command that runs this program again."""
    main = sys.modules["__main__"]
    arguments = sys.orig_argv[1:]
    is_interactive = getattr(main, "__file__", "<stdin>") == "<stdin>"
    if is_interactive and "-c" not in arguments:
        raise RuntimeError("workers= starts this program again for each process; run it as a file, with -m or with -c")
    return [sys.executable, *arguments]
