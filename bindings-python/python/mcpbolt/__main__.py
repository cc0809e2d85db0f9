"""`python -m mcpbolt`, the same as the command `mcpbolt`."""

from ._run import main

main()
