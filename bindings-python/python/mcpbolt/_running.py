"""What a process is like while it is there for a server alone."""

from __future__ import annotations

import sys

from . import _core


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
    """An interrupt ends a server on stdin and stdout in good order instead of raising `KeyboardInterrupt`."""

    def __enter__(self) -> None:
        from signal import SIGHUP, SIGINT, SIGTERM, getsignal, signal

        self.handlers = {number: getsignal(number) for number in (SIGHUP, SIGINT, SIGTERM)}
        signal(SIGINT, lambda *_: None)

    def __exit__(self, *_: object) -> None:
        from signal import signal

        for number, handler in self.handlers.items():
            if handler is not None:
                signal(number, handler)


class ended_by_signals:
    """Signals that ask the process to end have a server on the network end in good order instead.

    The engine hears of them at once, even while the main thread is wedged. The program's own handlers are
    back afterwards, and another server may follow. What the process ignores stays ignored; in another thread
    than the main one, signals are the program's affair.
    """

    def __enter__(self) -> _core.Termination | None:
        from signal import SIG_IGN, SIGHUP, SIGINT, SIGTERM, getsignal, set_wakeup_fd, signal

        self.handlers = {}
        self.termination = _core.Termination()
        try:
            self.wakeup = set_wakeup_fd(self.termination.fileno(), warn_on_full_buffer=False)
        except ValueError:
            return None
        for number in (SIGHUP, SIGINT, SIGTERM):
            if getsignal(number) not in (None, SIG_IGN):
                # Some event loops have signals noted elsewhere.
                self.handlers[number] = signal(number, lambda number, _: self.termination.note(number))
        return self.termination

    def __exit__(self, *_: object) -> None:
        from signal import set_wakeup_fd, signal

        if self.handlers:
            set_wakeup_fd(self.wakeup)
        for number, handler in self.handlers.items():
            signal(number, handler)
