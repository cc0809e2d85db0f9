#!/usr/bin/env python3
"""A browser without a user: follows redirects with cookies, submits the first form of each page, and stops
at a page without one. As a program it can stand in `BROWSER`; with `--until` it does not open the address
that starts so, but prints it. With the path of Chromium in `MCPBOLT_CHROMIUM`, that browser does so (chromium.mjs).

    python3 browser.py [--until http://127.0.0.1:9/callback] 'http://127.0.0.1:9000/auth?…'
"""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from html.parser import HTMLParser
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path

PAGES = 10
# Browsers trust this machine without TLS, too.
LOCAL = DefaultCookiePolicy(secure_protocols=("http", "https"))


class _Form(HTMLParser):
    """The first form of a page: where it goes, and its fields."""

    def __init__(self) -> None:
        super().__init__()
        self.action: str | None = None
        self.fields: dict[str, str] = {}
        self.pressed = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form" and self.action is None:
            self.action = given.get("action", "")
        # Of several buttons, the first is pressed.
        is_pressed = tag == "button" and not self.pressed
        self.pressed |= tag == "button"
        if (tag == "input" or is_pressed) and "name" in given:
            self.fields.setdefault(given["name"], given.get("value", ""))


class Stopped(urllib.request.HTTPRedirectHandler):
    """Follows no redirect to what the browser shall not open."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.location: str | None = None

    def redirect_request(self, req, fp, code, msg, headers, newurl):  # noqa: ANN001, ANN201, PLR0913
        if newurl.startswith(self.prefix):
            self.location = newurl
            return None
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def open_url(url: str, stop_at: str | None = None) -> str:
    """Opens the URL; returns the text of the last page, or the redirect that starts with `stop_at`."""
    if chromium := os.environ.get("MCPBOLT_CHROMIUM"):
        program = ["node", Path(__file__).parent / "chromium.mjs", chromium]
        until = ["--until", stop_at] if stop_at else []
        return subprocess.run([*program, *until, url], stdout=subprocess.PIPE, text=True, timeout=60, check=True).stdout.strip()
    handlers: list[urllib.request.BaseHandler] = [urllib.request.HTTPCookieProcessor(CookieJar(LOCAL))]
    stopped = Stopped(stop_at) if stop_at else None
    opener = urllib.request.build_opener(*handlers, *([stopped] if stopped else []))
    data = None
    for _ in range(PAGES):
        try:
            with opener.open(url, data, timeout=60) as answer:
                page, at = answer.read().decode(), answer.url
        except urllib.error.HTTPError as error:
            if stopped and stopped.location:
                return stopped.location
            raise RuntimeError(f"{url}: {error.code} {error.read().decode(errors='replace')[:500]}") from None
        form = _Form()
        form.feed(page)
        if form.action is None:
            return page
        url, data = urllib.parse.urljoin(at, form.action), urllib.parse.urlencode(form.fields).encode()
    raise RuntimeError(f"{url}: no end after {PAGES} forms")


if __name__ == "__main__":
    end = sys.argv[sys.argv.index("--until") + 1] if "--until" in sys.argv else None
    last = open_url(sys.argv[-1], end)
    print(*[last] * bool(end))
