"""A client process plays until it ends or is late, which is said of that session alone."""

import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import players

PROGRAM = """
import json, os, sys, time
for line in sys.stdin:
    session = json.loads(line)
    print(json.dumps(os.getpid()), flush=True)
    if session["revision"] == "ends": sys.exit(3)
    if session["revision"] == "hangs": time.sleep(60)
    print("null", flush=True)
"""


class Again(unittest.TestCase):
    def played(self, revision: str) -> tuple[int, str]:
        """By which process, and what went wrong."""
        lines, problems = players.again([sys.executable, "-c", PROGRAM], [revision, "stdio"], [], self.log, {})
        return int(lines[0]), " ".join(problems).partition(" (see")[0]

    def test_all(self) -> None:
        self.log = Path(self.enterContext(tempfile.TemporaryDirectory())) / "log"
        self.enterContext(players.gathered())
        first, fine = self.played("one")
        self.assertEqual((fine, self.played("another")), ("", (first, "")))
        self.assertEqual(self.played("ends"), (first, "the client ended with 3"))
        second, fine = self.played("one")
        self.assertEqual(fine, "")
        self.assertNotEqual(first, second)
        with mock.patch("players.SESSION_SECONDS", 0.2):
            self.assertEqual(self.played("hangs"), (second, "no end after 0.2 s"))
        self.assertEqual(self.played("one")[1], "")


if __name__ == "__main__":
    unittest.main()
