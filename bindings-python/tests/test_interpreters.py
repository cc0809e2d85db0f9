"""What the package says in a sub-interpreter."""

from __future__ import annotations

import subprocess
import sys

SUB = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
own = interpreters.create()
code = '''
try:
    import mcpbolt
except ImportError as error:
    print("refused:", error, flush=True)
'''
interpreters.run_string(own, "import sys; sys.path[:] = " + repr(sys.path))
interpreters.run_string(own, code)
"""


def test_a_sub_interpreter_is_told_that_it_cannot_import_the_package() -> None:
    ran = subprocess.run([sys.executable, "-c", SUB], capture_output=True, text=True)
    assert "refused:" in ran.stdout and "subinterpreters" in ran.stdout, ran.stdout + ran.stderr
