"""A fork passes for a process of its own, and never outlives the one that stands for it."""

import os
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import keepers

PROGRAM = """
import os, sys, time
def main():
    print(os.getpid(), *sys.argv[1:], flush=True)
    print("heard by nobody", file=sys.stderr, flush=True)
    if sys.stdin.read() == "sleep": time.sleep(60)
    sys.exit(3)
"""


class Forked(unittest.TestCase):
    def setUp(self) -> None:
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        script = folder / "forked_program.py"
        script.write_text(PROGRAM)
        self.command = [str(word) for word in keepers.command(script)]
        self.enterContext(keepers.kept([self.command]))

    def started(self, said: str) -> tuple[subprocess.Popen, int]:
        """With that as its input, and the fork."""
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
        process = subprocess.Popen([*self.command, "a", "b c"], **streams)
        pid, *words = process.stdout.readline().split()
        self.assertEqual(words, ["a", "b", "c"])
        process.stdin.write(said)
        process.stdin.close()
        process.stdin = None
        return process, int(pid)

    def assert_gone(self, pid: int) -> None:
        """A process without a parent stays a zombie until the system's first process takes its status."""
        until = time.monotonic() + 10
        with self.assertRaises(ProcessLookupError):
            while time.monotonic() < until:
                os.kill(pid, 0)
                time.sleep(0.01)

    def test_streams_and_status(self) -> None:
        for _ in range(2):
            process, _ = self.started("end")
            self.assertEqual((process.communicate()[0], process.returncode), ("", 3))

    def test_closed_streams(self) -> None:
        closed = subprocess.run(["sh", "-c", '"$@" 2>&-', "sh", *self.command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.assertEqual(closed.returncode, 3)

    def test_signals_are_passed_on(self) -> None:
        process, pid = self.started("sleep")
        process.terminate()
        process.communicate()
        self.assertEqual(process.returncode, -signal.SIGTERM)
        self.assert_gone(pid)

    def test_a_fork_ends_with_who_stands_for_it(self) -> None:
        process, pid = self.started("sleep")
        process.kill()
        process.communicate()  # until the fork, too, has closed its output
        self.assert_gone(pid)


if __name__ == "__main__":
    unittest.main()
