#!/usr/bin/env python3
"""A server by hand, which writes down every call, for gateways to stand before.

far.py NAME REVISION LEDGER [PORT]     on HTTP, or without a port on stdin and stdout

    echo {text}                 answers NAME:TEXT
    slow {text, steps, ms}      reports each step, with the text as its message, then answers NAME:TEXT
    ask {text}                  asks the user TEXT, answers NAME:TEXT:SECRET with the secret of whoever was asked
    touch {uri}                 tells all subscribers of the resource that it has changed

The ledger has a line for the start of the process, and for each call when it begins and when it ends.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
from collections.abc import Callable
from typing import Any

import http1

Message = dict[str, Any]
Say = Callable[[Message], None]
MODERN = "2026-07-28"
SUBSCRIPTION, VERSION = "io.modelcontextprotocol/subscriptionId", "io.modelcontextprotocol/protocolVersion"
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("ask", "echo", "slow", "touch")]
CAPABILITIES = {"tools": {"listChanged": True}, "resources": {"subscribe": True}}
FORM = {"type": "object", "properties": {"secret": {"type": "string"}}}


class Session:
    """What the server keeps of one connection: the calls under way, its own questions, the subscriptions."""

    def __init__(self) -> None:
        self.calls: dict[Any, asyncio.Task] = {}
        self.questions: dict[int, asyncio.Future] = {}
        self.subscribed: set[str] = set()
        self.standing: Say | None = None  # where notifications go that belong to no request
        self.listening: dict[Any, tuple[set[str], Say]] = {}

    def touched(self, uri: str) -> None:
        updated = {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}}
        if uri in self.subscribed and self.standing:
            self.standing(updated)
        for identity, (uris, say) in self.listening.items():
            if uri in uris:
                say({**updated, "params": {"uri": uri, "_meta": {SUBSCRIPTION: identity}}})


class Far:
    def __init__(self, name: str, revision: str, ledger: str) -> None:
        self.name, self.revision, self.modern = name, revision, revision == MODERN
        self.ledger = os.open(ledger, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.numbers = itertools.count(1)
        self.sessions: dict[str, Session] = {}
        self.note("start", str(os.getpid()))

    def note(self, *words: str) -> None:
        os.write(self.ledger, (" ".join(words) + "\n").encode())

    def receive(self, message: Message, session: Session, say: Say) -> asyncio.Task | None:
        """Begins the work on a message; the task of a request, which ends with its answer."""
        params = message.get("params") or {}
        match message.get("method"):
            case None:
                asked = session.questions.pop(message["id"], None)
                if asked and not asked.done():
                    asked.set_result(message.get("result"))
            case "notifications/cancelled":
                if under_way := session.calls.get(params["requestId"]):
                    under_way.cancel()
            case method if "id" in message:
                task = asyncio.ensure_future(self.answer(message["id"], method, params, session, say))
                session.calls[message["id"]] = task
                task.add_done_callback(lambda _: session.calls.pop(message["id"], None))
                return task
        return None

    async def answer(self, identity: Any, method: str, params: Message, session: Session, say: Say) -> None:
        try:
            result = await self.result(identity, method, params, session, say)
        except LookupError as error:
            return say({"jsonrpc": "2.0", "id": identity, "error": {"code": -32601, "message": str(error)}})
        if self.modern:
            result.setdefault("resultType", "complete")
            if method in ("tools/list", "server/discover"):
                result |= {"ttlMs": 0, "cacheScope": "private"}
        say({"jsonrpc": "2.0", "id": identity, "result": result})

    async def result(self, identity: Any, method: str, params: Message, session: Session, say: Say) -> Message:
        info = {"name": self.name, "version": "1"}
        match method:
            case "initialize" if not self.modern:
                return {"protocolVersion": self.revision, "capabilities": CAPABILITIES, "serverInfo": info}
            case "server/discover" if self.modern:
                meta = {"io.modelcontextprotocol/serverInfo": info}
                return {"supportedVersions": [self.revision], "capabilities": CAPABILITIES, "_meta": meta}
            case "tools/list":
                return {"tools": TOOLS}
            case "tools/call":
                return await self.call(params, session, say)
            case "resources/subscribe" | "resources/unsubscribe" if not self.modern:
                change = session.subscribed.add if method == "resources/subscribe" else session.subscribed.discard
                change(params["uri"])
                return {}
            case "subscriptions/listen" if self.modern:
                wanted = params["notifications"]
                ours = {SUBSCRIPTION: identity}
                granted = {"notifications": wanted, "_meta": ours}
                say({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": granted})
                session.listening[identity] = (set(wanted.get("resourceSubscriptions", [])), say)
                try:
                    await asyncio.Event().wait()
                finally:
                    session.listening.pop(identity, None)
            case "ping" | "logging/setLevel":
                return {}
        raise LookupError(f"no {method} here")

    async def call(self, params: Message, session: Session, say: Say) -> Message:
        arguments = params.get("arguments") or {}
        text, answers = str(arguments.get("text")), params.get("inputResponses")
        if not answers:
            self.note("call", text)
        how = "cancelled"
        try:
            said = await self.worked(params, arguments, answers, session, say)
            how = "end"
        finally:
            self.note(how, text)
        return said if "resultType" in said else {"content": [{"type": "text", "text": said["text"]}]}

    async def worked(self, params: Message, arguments: Message, answers: Message | None, session: Session, say: Say) -> Message:
        text = str(arguments.get("text"))
        match params["name"]:
            case "echo":
                pass
            case "slow":
                token = params.get("_meta", {}).get("progressToken")
                for step in range(1, arguments["steps"] + 1):
                    if token is not None:
                        report = {"progressToken": token, "progress": step, "message": text}
                        say({"jsonrpc": "2.0", "method": "notifications/progress", "params": report})
                    await asyncio.sleep(arguments["ms"] / 1000)
            case "ask":
                question = {"message": text, "requestedSchema": FORM}
                if self.modern and not answers:
                    asked = {"who": {"method": "elicitation/create", "params": question}}
                    return {"resultType": "input_required", "inputRequests": asked, "requestState": f"of {text}"}
                if self.modern and params.get("requestState") != f"of {text}":
                    raise LookupError(f"the state of {text} is {params.get('requestState')}")
                said = answers["who"] if answers else await self.asked(question, session, say)
                text += ":" + str(said["content"]["secret"])
            case "touch":
                for each in list(self.sessions.values()) or [session]:
                    each.touched(arguments["uri"])
            case name:
                raise LookupError(f"no tool {name}")
        return {"text": f"{self.name}:{text}"}

    async def asked(self, question: Message, session: Session, say: Say) -> Message:
        number = next(self.numbers)
        session.questions[number] = asyncio.get_running_loop().create_future()
        say({"jsonrpc": "2.0", "id": number, "method": "elicitation/create", "params": question})
        return await session.questions[number]

    async def serve_pipes(self) -> None:
        loop, reader = asyncio.get_running_loop(), asyncio.StreamReader(limit=1 << 24)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        session = Session()

        def say(message: Message) -> None:
            sys.stdout.write(json.dumps(message) + "\n")
            sys.stdout.flush()

        session.standing = say
        while line := await reader.readline():
            self.receive(json.loads(line), session, say)

    async def serve_http(self, port: int) -> None:
        async with await asyncio.start_server(self.exchanges, "127.0.0.1", port, limit=1 << 24, backlog=1024) as server:
            await server.serve_forever()

    async def exchanges(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """The requests on one HTTP connection, one after another."""
        try:
            while request := await http1.request(reader):
                if not await self.exchange(*request, reader, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def exchange(self, method: str, head: dict[str, str], body: bytes, reader, writer) -> bool:
        """Answers one request. Returns whether the connection goes on."""
        message = json.loads(body) if body else {}
        more, identity = {}, head.get("mcp-session-id", "")
        if self.modern:
            # Each POST stands for itself: ids of different ones may be equal.
            identity = f"POST {next(self.numbers)}"
        elif message.get("method") == "initialize":
            identity = more["Mcp-Session-Id"] = f"{self.name}-{os.getpid()}-{next(self.numbers)}"
        if more or self.modern and method == "POST":
            self.sessions[identity] = Session()
        session = self.sessions.get(identity)
        if session is None or method == "DELETE":
            self.sessions.pop(identity, None)
            http1.respond(writer, 200 if session else 404)
            return True
        if method == "GET":
            return await self.stands(session, reader, writer)
        said: asyncio.Queue[Message] = asyncio.Queue()
        task = self.receive(message, session, said.put_nowait)
        if task is None:
            self.sessions.pop(identity) if self.modern else None
            http1.respond(writer, 202)
            return True
        gone = asyncio.ensure_future(reader.read(1)) if self.modern else None
        if gone:
            gone.add_done_callback(lambda _: task.cancel())
        http1.begin(writer, more)
        task.add_done_callback(lambda _: said.put_nowait({}))
        while message := await said.get():
            http1.event(writer, message)
            if message.get("id") is not None and "method" not in message:
                break
        if self.modern:
            self.sessions.pop(identity, None)
        http1.end(writer)
        if gone is None:
            return True
        is_gone = gone.done()
        gone.cancel()
        await asyncio.wait([gone])
        return not is_gone

    async def stands(self, session: Session, reader, writer) -> bool:
        """The stream of a session."""
        http1.begin(writer, {})
        session.standing = lambda message: http1.event(writer, message)
        await reader.read(1)
        session.standing = None
        return False


def main() -> None:
    name, revision, ledger, *port = sys.argv[1:]
    far = Far(name, revision, ledger)
    asyncio.run(far.serve_http(int(port[0])) if port else far.serve_pipes())


if __name__ == "__main__":
    main()
