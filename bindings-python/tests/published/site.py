"""A page on this machine, for servers that fetch one."""

from __future__ import annotations

from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

PAGE = b"<html><head><title>A page</title></head><body><h1>A page</h1><p>Some text, and <a href='/b'>a link</a>.</p></body></html>"
SITE = "http://site.invalid/"
"""Stands for its address in the arguments of tools."""


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.send_header("content-length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *_: object) -> None:
        """Logs nothing."""


@cache
def address() -> str:
    """Its address; it is served until this process ends."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/"
