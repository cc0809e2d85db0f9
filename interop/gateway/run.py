#!/usr/bin/env python3
"""`mcpbolt gateway` before servers by hand, with clients by hand: many of them at once, and servers that fail.

    python3 interop/gateway/run.py                 seconds
    python3 interop/gateway/run.py --deep          1,000 clients and 100,000 calls; 1,000 reloads with a million calls and more
    python3 interop/gateway/run.py --only crowd --seed 7

Needs the command (`cargo build -p mcpbolt-cli --bins --examples`, with --release for --deep) and Python 3.11.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import resource
import sys
import tempfile
from pathlib import Path

from crowd import Crowd
from faults import Faults
from gateway import ROOT

SCENES = ("crowd", "faults")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, help="the command (default: the one that cargo has built)")
    parser.add_argument("--deep", action="store_true", help="in full, for minutes")
    parser.add_argument("--only", choices=SCENES, action="append")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    program = options.program or ROOT / "target" / ("release" if options.deep else "debug") / "mcpbolt"
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    scenes = {
        "crowd": Crowd(program, options.seed, *((1000, 200, 100_000, 40) if options.deep else ())),
        "faults": Faults(program, options.seed, *((3.0, 1000) if options.deep else ())),
    }
    problems = []
    for name in options.only or SCENES:
        with tempfile.TemporaryDirectory(prefix=f"mcpbolt-{name}-") as folder:
            found = asyncio.run(scenes[name].run(Path(folder)))
        problems += [f"{name}: {one}" for one in found]
    print(*problems, sep="\n", end="\n" if problems else "")
    print(f"{'FAILED' if problems else 'ok'}, seed {options.seed}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
