"""The tee passes on bytes, ends, signals and exit statuses."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import record

TEE = Path(__file__).resolve().parent / "tee.py"


class Tee(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "record"

    def start(self, program: str) -> subprocess.Popen:
        command = [sys.executable, "-S", TEE, self.path, "--", sys.executable, "-S", "-u", "-c", program]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(child.stdout.close)
        return child

    def test_bytes_pass_both_ways_and_are_kept(self) -> None:
        child = self.start("import sys, shutil; shutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer)")
        sent = b"".join(b'{"n": %d}\n' % n for n in range(200_000))
        self.assertEqual(child.communicate(sent)[0], sent)
        self.assertEqual(child.returncode, 0)
        kept = record.read(self.path)
        for side in (record.CLIENT, record.SERVER):
            raw = b"".join(line.raw + b"\n" for line in kept.lines if line.sender == side)
            self.assertEqual(raw, sent)
        self.assertLess(kept.exit_delay_s, 5)

    def test_exit_status(self) -> None:
        child = self.start("import sys; sys.stdin.read(); sys.exit(7)")
        child.communicate(b"")
        self.assertEqual(child.returncode, 7)
        self.assertEqual(record.read(self.path).exit_status, 7)

    def test_a_signal_reaches_the_server_and_its_death_is_ours(self) -> None:
        child = self.start("import time; print('up'); time.sleep(60)")
        child.stdout.readline()
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=10)
        self.assertEqual(child.returncode, -signal.SIGTERM)

    def test_a_server_that_closes_its_input_breaks_the_clients_pipe(self) -> None:
        child = self.start("import os, time; os.close(0); print('closed'); time.sleep(2)")
        child.stdout.readline()
        with self.assertRaises(BrokenPipeError):
            for _ in range(200):
                os.write(child.stdin.fileno(), b"x\n")
                time.sleep(0.01)
        child.stdin.close()
        child.wait(10)


if __name__ == "__main__":
    unittest.main()
