"""The process's stdout and signals while it runs a server."""

from __future__ import annotations

import sys

from . import _core


class stray_output:
    """Redirects `print` to stderr while the engine uses stdout for messages. Text that is still buffered is written
    to stdout first."""

    def __enter__(self) -> None:
        self.stdout = sys.stdout
        if self.stdout is not None:
            self.stdout.flush()
        sys.stdout = sys.stderr

    def __exit__(self, *_: object) -> None:
        sys.stdout = self.stdout


def signals_of_the_engine() -> list[int]:
    """The signals that end workers or replace them: none outside the main thread, where signals are left to the program, and none to
    end that the program ignores."""
    import threading
    from signal import SIG_IGN, SIGHUP, SIGINT, SIGTERM, getsignal

    if threading.current_thread() is not threading.main_thread():
        return []
    return [SIGHUP, *(number for number in (SIGINT, SIGTERM) if getsignal(number) is not SIG_IGN)]


class interrupts_left_to_the_engine:
    """Lets an interrupt shut down a server on stdin and stdout gracefully instead of raising `KeyboardInterrupt`."""

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
    """Lets termination signals shut down a server on the network gracefully instead of ending the process.

    The engine gets them at once, even while the main thread is blocked. The program's own handlers are restored
    afterwards, and another server may be run. Ignored signals stay ignored. In any thread other than the main
    one, signals are left to the program.
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
                # Some event loops replace the wakeup descriptor, so the handler notes the signal too.
                self.handlers[number] = signal(number, lambda number, _: self.termination.note(number))
        return self.termination

    def __exit__(self, *_: object) -> None:
        from signal import set_wakeup_fd, signal

        if self.handlers:
            set_wakeup_fd(self.wakeup)
        for number, handler in self.handlers.items():
            signal(number, handler)
