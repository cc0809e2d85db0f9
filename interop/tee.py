#!/usr/bin/env python3
"""A transparent tee for stdio: runs a server command and records what passes in both directions.

    python3 -S tee.py RECORD -- COMMAND [ARGUMENT...]

Bytes are forwarded as they come, a record is written before its bytes are forwarded (so an
answer never stands before its request), and nothing is parsed here. End of stream, a broken
pipe, SIGTERM, SIGINT, SIGHUP and the exit status are passed on. stderr is left alone.

A record is a line `KIND NANOSECONDS LENGTH`, LENGTH bytes, and a newline:

    >  bytes from client to server      <  bytes from server to client
    )  the client closed its end        (  the server closed its end
    p  the server's process id          x  the server's exit status (negative: a signal)
"""

import os
import signal
import subprocess
import sys
import threading
import time

CHUNK_BYTES = 1 << 18
SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}


class Record:
    def __init__(self, path: str) -> None:
        self.fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        self.lock = threading.Lock()

    def write(self, kind: str, data: bytes = b"") -> None:
        with self.lock:
            parts = b"%c %d %d\n" % (ord(kind), time.monotonic_ns(), len(data)), data, b"\n"
            os.write(self.fd, b"".join(parts))


def pump(source: int, sink: int, record: Record, data_kind: str, end_kind: str) -> None:
    """Copies until either side is closed, then closes both."""
    try:
        while data := os.read(source, CHUNK_BYTES):
            record.write(data_kind, data)
            view = memoryview(data)
            while view:
                view = view[os.write(sink, view) :]
    except OSError:
        pass  # a broken pipe: closing `source` below lets the writer see it too
    record.write(end_kind)
    os.close(sink)
    os.close(source)


def pass_on_signals(server: subprocess.Popen) -> None:
    while True:
        server.send_signal(signal.sigwait(SIGNALS))


def main() -> None:
    path, separator, *command = sys.argv[1:]
    assert separator == "--" and command, __doc__
    record = Record(path)
    # They wait for the thread below: a handler would run only once the wait for the child is over.
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    # A group of its own, so that a signal to ours reaches the server once, from here.
    child = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS),
    )
    record.write("p", b"%d" % child.pid)
    threading.Thread(target=pass_on_signals, args=(child,), daemon=True).start()

    stdin, stdout = os.dup(child.stdin.fileno()), os.dup(child.stdout.fileno())
    child.stdin.close()
    child.stdout.close()
    up = threading.Thread(target=pump, args=(0, stdin, record, ">", ")"), daemon=True)
    down = threading.Thread(target=pump, args=(stdout, 1, record, "<", "("), daemon=True)
    up.start()
    down.start()
    status = child.wait()
    record.write("x", b"%d" % status)
    down.join()
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        os.kill(os.getpid(), -status)
    os._exit(status)


if __name__ == "__main__":
    main()
