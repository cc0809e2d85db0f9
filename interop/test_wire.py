"""The rules of wire.py each catch what breaks them (`python -m unittest`, run before the sessions)."""

import json
import unittest

import record
import wire

HANDSHAKE = [
    ("client", {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
        "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}}),
    ("server", {"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": "2025-06-18",
        "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}}),
]  # fmt: skip
PING = ("client", {"jsonrpc": "2.0", "id": 1, "method": "ping"})
PONG = ("server", {"jsonrpc": "2.0", "id": 1, "result": {}})
CALL = ("client", {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "t", "_meta": {"progressToken": 9}}})
CANCEL = ("client", {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}})
ERROR = {"code": -32700, "message": "m"}


def step(n: int) -> tuple[str, dict]:
    return "server", {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 9, "progress": n}}


def done(**result) -> tuple[str, dict]:
    return "server", {"jsonrpc": "2.0", "id": 2, "result": result or {"content": []}}


def recording(*messages: tuple[str, object]) -> record.Recording:
    lines = [
        record._line(at * wire.CROSSING_NS * 2, sender, json.dumps(value).encode())
        for at, (sender, value) in enumerate([*HANDSHAKE, *messages])
    ]
    return record.Recording(lines)


def problems(*messages: tuple[str, object]) -> list[str]:
    return wire.check(recording(*messages), record.SERVER)[1]


class Rules(unittest.TestCase):
    def finds(self, words: str, *messages: tuple[str, object]) -> None:
        found = problems(*messages)
        self.assertEqual(len(found), 1, found)
        self.assertIn(words, found[0])

    def test_a_good_session_is_good(self) -> None:
        self.assertEqual(problems(PING, PONG, CALL, step(1), step(2), done()), [])
        self.assertEqual(problems(CALL, CANCEL), [])

    def test_correlation(self) -> None:
        self.finds("never answered", PING)
        self.finds("an answer to nothing", PING, PONG, PONG)
        self.finds("an answer to nothing", ("server", {"jsonrpc": "2.0", "id": "7", "result": {}}))
        self.finds("after its cancellation", CALL, CANCEL, done())
        self.finds("after its cancellation", CALL, CANCEL, ("server", {"jsonrpc": "2.0", "id": 2, "error": ERROR}))
        told = ("server", {"jsonrpc": "2.0", "id": 2, "error": {"code": wire.CANCELLED, "message": "m"}})
        self.finds("after its cancellation", CALL, CANCEL, told)
        endpoint = wire.Wire(record.SERVER, http=True)
        endpoint.follow(recording(CALL, CANCEL, told))
        self.assertEqual(endpoint.problems, [])

    def test_progress(self) -> None:
        self.finds("does not increase", CALL, step(1), step(1), done())
        self.finds("nobody waits for", CALL, done(), step(1))

    def test_frames(self) -> None:
        self.finds("an array", ("server", []))
        self.finds("not an object", ("server", 1))

    def test_schemas(self) -> None:
        self.finds("CallToolResult", CALL, done(content=[{"type": "text"}]))
        self.finds("may not send", ("server", {"jsonrpc": "2.0", "method": "notifications/nonsense"}))
        self.assertEqual(problems(("server", {"jsonrpc": "2.0", "method": wire.OF_FASTMCP})), [])
        self.finds('"x" is not of type', PING, ("server", {"jsonrpc": "2.0", "id": 1, "error": {"code": "x", "message": "m"}}))
        self.finds('"2.0" was expected', PING, ("server", {"jsonrpc": "1.0", "id": 1, "result": {}}))
        self.assertEqual(problems(("server", {"jsonrpc": "2.0", "id": None, "error": ERROR})), [])

    def test_eras(self) -> None:
        told = ("server", {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {
            "notifications": {}, "_meta": {wire.META_SUBSCRIPTION: 7}}})  # fmt: skip
        self.finds("may not send", told)
        endpoint = wire.Wire(record.SERVER, together=False)
        endpoint.follow(recording(told))
        self.assertEqual(endpoint.problems, [])
        later = json.loads(json.dumps(HANDSHAKE).replace("2025-06-18", "2025-11-25"))
        unread = ("server", {"jsonrpc": "2.0", "id": None, "error": ERROR})
        self.finds("JSONRPCErrorResponse", *later, unread)
        endpoint.follow(recording(*later, unread))
        self.assertEqual(endpoint.problems, [])


if __name__ == "__main__":
    unittest.main()
