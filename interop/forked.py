#!/usr/bin/env python3
"""Starts a Python program as a fork of a process that has imported it: to import an SDK takes a second
of CPU time, and a session may need two such programs.

    python forked.py keep SOCKET SCRIPT              the process that is forked, until its stdin ends
    python -S forked.py SOCKET SCRIPT [ARGUMENT...]  the program: `main()` of the script, in a fork

The second process stands for its fork, which has its standard streams and its arguments: it passes
signals on and ends as the fork does, and the fork is killed when it is gone.
"""

import json
import os
import signal
import socket
import sys

FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def keep(path: str, script: str) -> None:
    """Goes on in each fork with the script's `main()`."""
    import gc
    import importlib

    folder, name = os.path.split(script)
    sys.path[0] = folder
    main = importlib.import_module(name.removesuffix(".py")).main
    gc.freeze()  # or the first collection in a fork copies every page
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    print("ready", flush=True)
    fork_for_each(listener)
    main()


def fork_for_each(listener: socket.socket) -> None:
    """Returns in each fork, with the streams and the arguments of who asked for it."""
    import select

    woken, waking = os.pipe()
    os.set_blocking(waking, False)
    signal.set_wakeup_fd(waking)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    forks: dict[socket.socket, int] = {}
    while True:
        ready, _, _ = select.select([sys.stdin, woken, listener, *forks], [], [])
        gone = forks.keys() & ready
        for asker in forks if sys.stdin in ready else gone:
            os.kill(forks[asker], signal.SIGKILL)
        if sys.stdin in ready:
            os._exit(0)
        if woken in ready:
            os.read(woken, 1 << 12)
        for asker in [*forks]:
            # Without SIGCHLD only those that were just killed are waited for.
            pid, status = os.waitpid(forks[asker], 0 if asker in gone else os.WNOHANG)
            if pid:
                tell(asker, os.waitstatus_to_exitcode(status))
                asker.close()
                del forks[asker]
        if listener not in ready:
            continue
        asker, _ = listener.accept()
        request, streams, _, _ = socket.recv_fds(asker, 1 << 16, 3)
        pid = os.fork() if request else None
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
            for descriptor in (*streams, woken, waking):
                os.close(descriptor)
            for other in (listener, asker, *forks):
                other.close()
            sys.argv = json.loads(request)
            return
        for stream in streams:
            os.close(stream)
        if pid:
            tell(asker, pid)
            forks[asker] = pid


def tell(asker: socket.socket, number: int) -> None:
    try:
        asker.sendall(b"%d\n" % number)
    except OSError:
        pass  # it is gone


def stand_for(path: str, words: list[str]) -> None:
    """Starts a fork with these arguments, and ends as it does."""
    while (nothing := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass  # a stream was closed, whose number the socket would have had
    keeper = socket.socket(socket.AF_UNIX)
    keeper.connect(path)
    socket.send_fds(keeper, [json.dumps(words).encode()], [0, 1, 2])
    answers = keeper.makefile()
    pid = int(answers.readline())
    for number in FORWARDED:
        signal.signal(number, lambda number, _frame: os.kill(pid, number))
    for number in (0, 1):  # held by the fork alone, so that the other side sees it close them
        os.dup2(nothing, number)
    status = int(answers.readline())
    if status < 0:
        if -status in FORWARDED:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


if __name__ == "__main__":
    if sys.argv[1] == "keep":
        keep(*sys.argv[2:])
    else:
        stand_for(sys.argv[1], sys.argv[2:])
