"""What a process is like while it serves on its stdin and stdout."""

from __future__ import annotations

import sys


class stray_output:
    """While the engine holds the wire, `print` writes to stderr, buffered text included."""

    def __enter__(self) -> None:
        self.stdout = sys.stdout
        if self.stdout is not None:
            self.stdout.flush()
        sys.stdout = sys.stderr

    def __exit__(self, *_: object) -> None:
        sys.stdout = self.stdout


class interrupts_left_to_the_engine:
    """An interrupt ends the server in good order instead of raising `KeyboardInterrupt`."""

    def __enter__(self) -> None:
        from signal import SIG_IGN, SIGINT, signal

        self.handler = signal(SIGINT, SIG_IGN)

    def __exit__(self, *_: object) -> None:
        from signal import SIGINT, signal

        signal(SIGINT, self.handler)
