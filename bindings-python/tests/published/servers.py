"""Servers that others have published on PyPI and that run without an account: how each is installed, started and called."""

from __future__ import annotations

import os
import subprocess
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from published.right import PNG
from published.site import SITE


@dataclass(frozen=True)
class Published:
    """A published server.

    Attributes:
        package: Its name on PyPI, with the release that is tested.
        command: The console script and its arguments, in a folder that `prepare` fills.
        known: Values for parameters of these names, and for those of one tool (`tool.parameter`).
        without: Tools that are not called, each with the reason.
        with_: Further packages that it needs.
        varies: Tools whose answers contain the time or the like; only their shape is compared.
        serves_itself: Why it serves by itself under `mcpbolt exec`, if it does.
        is_listed_only: Whether no tool is called: each needs something that is not there.
        measured: The tool whose calls are measured, if it is not the first one that answers without an error.
    """

    package: str
    command: list[str]
    prepare: Callable[[Path], object] = lambda folder: None
    known: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    without: Mapping[str, str] = field(default_factory=dict)
    with_: tuple[str, ...] = ()
    varies: tuple[str, ...] = ()
    serves_itself: str = ""
    is_listed_only: bool = False
    measured: str = ""

    @property
    def name(self) -> str:
        return self.package.partition("==")[0]


AT = "1767225600 +0000"
GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    **{f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in (("NAME", "a"), ("EMAIL", "a@b"), ("DATE", AT))},
}


def repository(folder: Path, *first: str) -> None:
    """Two commits, something staged, and something that is not."""
    (folder / "a.txt").write_text("one\n")
    run = lambda *words: subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, env={**os.environ, **GIT})  # noqa: E731
    run("init", "-q", "-b", "main")
    for text in ("one\n", "one\ntwo\n"):
        (folder / "a.txt").write_text(text)
        run("add", "a.txt", *first)
        run("commit", "-q", "-m", f"Writes {len(text)} bytes")
    (folder / "b.txt").write_text("staged\n")
    run("add", "b.txt")
    (folder / "a.txt").write_text("changed\n")


def texts(folder: Path) -> None:
    (folder / "a.txt").write_text("one\ntwo\n")
    (folder / "a.csv").write_text("name,size\na,1\nb,2\n")
    (folder / "a.md").write_text("# A\n\nText.\n")
    (folder / "a.png").write_bytes(b64decode(PNG))


def paper(folder: Path) -> None:
    (folder / "papers").mkdir()
    (folder / "papers" / "2401.00001.md").write_text("# On proofs\n\n## Introduction\n\nThere are proofs.\n\n## Proofs\n\nThese are they.\n")


def program(folder: Path) -> None:
    """A program that is committed."""
    (folder / "a.py").write_text("def one():\n    return 1\n\n\ndef two():\n    return one() + one()\n")
    repository(folder, "a.py")


SERVERS = [
    Published(
        "mcp-server-git==2026.10.19",
        ["mcp-server-git", "--repository", "."],
        repository,
        {"repo_path": ".", "files": ["a.txt"], "message": "A message", "branch_name": "main", "target": "HEAD~1", "revision": "HEAD",
         "git_create_branch.branch_name": "new", "branch_type": "local"},
        GIT,
    ),
    Published(
        "mcp-server-time==2026.10.19",
        ["mcp-server-time", "--local-timezone", "Europe/Berlin"],
        known={"timezone": "Asia/Tokyo", "source_timezone": "Europe/Paris", "target_timezone": "America/New_York", "time": "12:30"},
    ),
    Published("mcp-server-fetch==2026.10.24", ["mcp-server-fetch", "--ignore-robots-txt", "--allow-private-ips"], known={"url": SITE}),
    Published(
        "excel-mcp-server==2.2.2",
        ["excel-mcp-server", "stdio", "--allow-dir", "."],
        texts,
        {"path": "a.xlsx", "sheet": "Four", "at": "A1", "cell": "B2", "range": "A1:B3", "csv_path": "a.csv", "import_csv.sheet": "Five",
         "copy_range.at": "D1", "query": "x", "replacement": "z", "style": {"bold": True}, "refers_to": "Four!$A$1",
         "set_defined_name.name": "first", "delete_defined_name.name": "first"},
        varies=("list_workbooks", "export_workbook"),
        measured="list_workbooks",
    ),
    Published(
        "office-word-mcp-server==1.1.11",
        ["word_mcp_server"],
        texts,
        known={"filename": "a.docx", "source_filename": "a.docx", "target_filename": "b.docx", "rows": 2, "cols": 2, "level": 1,
               "paragraph_index": 0, "table_index": 0, "row_index": 0, "col_index": 0},
        without={"convert_to_pdf": "needs an office suite"},
        measured="list_available_documents",
    ),
    Published(
        "mcp-server-duckdb==1.1.0",
        ["mcp-server-duckdb", "--db-path", "a.duckdb"],
        known={"query": "select 1 as a, 'b' as b"},
        with_=("mcp==1.30.0",),
    ),
    Published(
        "web-forager==4.0.0",
        ["web-forager", "serve"],
        known={"url": "http://127.0.0.1:9/a", "allow_jina": False},
        without={name: "tries search engines for minutes" for name in ("duckduckgo_search", "duckduckgo_news_search", "search")},
        with_=("lxml_html_clean==0.4.6",),
    ),
    Published(
        "awslabs-aws-documentation-mcp-server==1.2.3",
        ["awslabs.aws-documentation-mcp-server"],
        known={"url": "https://docs.aws.amazon.com/s3/a.html", "search_phrase": "bucket"},
        measured="search_documentation",
    ),
    Published(
        "mcp-clickhouse==0.7.0",
        ["mcp-clickhouse"],
        environment={"CLICKHOUSE_HOST": "127.0.0.1", "CLICKHOUSE_PORT": "9", "CLICKHOUSE_USER": "a", "CLICKHOUSE_PASSWORD": "b"},
        is_listed_only=True,
    ),
    Published(
        "cli-mcp-server==0.2.5",
        ["cli-mcp-server"],
        texts,
        {"command": "cat a.txt"},
        {"ALLOWED_DIR": ".", "ALLOWED_COMMANDS": "cat,ls,pwd", "ALLOWED_FLAGS": "all"},
        with_=("mcp==1.30.0",),
    ),
    Published("markitdown-mcp==0.0.1a8", ["markitdown-mcp"], texts, {"uri": "data:text/plain,some%20text"}),
    Published("duckduckgo-mcp-server==0.7.0", ["duckduckgo-mcp-server", "--allow-private-urls"], known={"url": SITE, "max_results": 1}, measured="fetch_content"),
    Published("office-powerpoint-mcp-server==2.0.7", ["ppt_mcp_server"], known={"file_path": "a.pptx", "slide_index": 0, "layout_index": 0}, with_=("mcp==1.30.0",)),
    Published("awslabs-aws-iac-mcp-server==1.0.26", ["awslabs.aws-iac-mcp-server"], known={"template_content": "Resources: {}"}),
    Published(
        "mcp-server-motherduck==1.1.0",
        ["mcp-server-motherduck", "--db-path", ":memory:", "--read-write"],
        known={"query": "select 1 as a, 'b' as b", "sql": "select 1 as a"},
    ),
    Published(
        "arxiv-mcp-server==0.8.2",
        ["arxiv-mcp-server", "--storage-path", "papers"],
        paper,
        known={"paper_id": "2401.00001", "query": "proofs", "max_results": 1},
        measured="list_papers",
    ),
    Published("mcp-yahoo-finance==0.2.0", ["mcp-yahoo-finance"], known={"symbol": "ABC"}, measured="get_current_stock_price"),
    Published("code-review-graph==2.3.9", ["code-review-graph", "serve"], program, {"repo_root": "."}),
    Published("jcodemunch-mcp==1.108.399", ["jcodemunch-mcp"], texts, {"path": ".", "folder_path": ".", "action": "list_repos"}, serves_itself="the program has streams of its own"),
    Published("awslabs-aws-pricing-mcp-server==1.1.1", ["awslabs.aws-pricing-mcp-server"], environment={"AWS_REGION": "us-east-1"}, is_listed_only=True),
]

# Those that every run of the tests takes.
FEW = ["mcp-server-git", "mcp-server-time", "mcp-server-fetch", "excel-mcp-server", "markitdown-mcp"]
