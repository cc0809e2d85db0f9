"""Runs the server of the guide, ../../../core/AUTHORIZATION.md, in one language, with other addresses. If its URL ends
in `/dpop`, it demands proofs with nonces of its own.

    python3 guide.py python|node INTERPRETER ISSUER URL
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
language, interpreter, issuer, url = sys.argv[1:]
fence, ending = {"python": ("python", "py"), "node": ("js", "mjs")}[language]
program = re.search(rf"^```{fence}\n(.*?)^```$", (ROOT / "core" / "AUTHORIZATION.md").read_text(), re.MULTILINE | re.DOTALL)[1]
package = (ROOT / "bindings-node" / "index.mjs").as_uri()
for told, meant in {"https://login.example": issuer, "http://127.0.0.1:8000/mcp": url, "'mcpbolt'": f"'{package}'"}.items():
    program = program.replace(told, meant)
if url.endswith("/dpop"):
    secret = "s" * 32
    demands = {
        'scopes=["mcp:read"]': f'proofs="required", proof_nonces=("{secret}", 300.0)',
        "scopes: ['mcp:read']": f"proofs: 'required', proofNonces: {{ secret: '{secret}', period: 300_000 }}",
    }
    for scopes, demand in demands.items():
        program = program.replace(scopes, f"{scopes}, {demand}")
file = Path(tempfile.mkdtemp()) / f"server.{ending}"
file.write_text(program)
os.execvp(interpreter, [interpreter, str(file)])
