"""The engine by itself: messages, and connections that a program drives."""

from __future__ import annotations

import gc
import json
import math
import random
import sys
from typing import Any

import pytest

from mcpbolt import engine
from mcpbolt.engine import (
    Answered,
    Cancelled,
    Closed,
    Connection,
    DecodeError,
    Message,
    Notification,
    Opened,
    Progress,
    Request,
    Stray,
    decode,
    unpack,
)
from support import ROOT

REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
CORPUS = json.loads((ROOT / "corpus" / "bad_frames.json").read_text())
TEXTS = json.loads((ROOT / "corpus" / "json.json").read_text())
LIMIT_BYTES = 1 << 20
CALL = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":[2.5,null]}}}'


class Pair:
    """A client and a server joined by their bytes, on a clock of their own."""

    def __init__(self, revision: str, **options: Any) -> None:
        self.now = 0.0
        self.client = Connection("client", "me", revisions=[revision], now=0, **options)
        self.server = Connection("server", "you", "2", capabilities={"tools": {}}, now=0)
        self.run()

    def run(self) -> None:
        while True:
            there, back = self.client.output(self.now), self.server.output(self.now)
            if not there and not back:
                return
            self.server.feed(there, self.now)
            self.client.feed(back, self.now)

    def request(self) -> Request:
        requests = [event for event in self.server.events() if isinstance(event, Request)]
        assert len(requests) == 1
        return requests[0]


def test_a_message_is_looked_at_as_far_as_anybody_asks() -> None:
    message = decode(CALL)
    assert (message.kind, message.id, message.method, message.name) == ("request", 7, "tools/call", "add")
    assert message.params == {"name": "add", "arguments": {"a": 1, "b": [2.5, None]}}
    assert message.params is message.params and message.raw is CALL
    assert message.raw_arguments == b'{"a":1,"b":[2.5,null]}'
    assert message.result is message.error is message.fault is message.uri is message.raw_result is None
    assert message.with_id("x") == CALL.replace(b"7", b'"x"', 1)
    assert repr(message) == '<Message request 7 "tools/call">'


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, bytes.decode])
def test_bytes_come_in_any_shape(kind: Any) -> None:
    assert unpack(kind(CALL)) == ("request", 7, "tools/call", json.loads(CALL)["params"])
    assert decode(kind(CALL)).raw == CALL


def test_every_kind_of_message_is_unpacked_and_encoded() -> None:
    for raw, expected in [
        (engine.encode_request("é", "m", {"a": 1}), ("request", "é", "m", {"a": 1})),
        (engine.encode_request(1 << 70, "m"), ("request", 1 << 70, "m", None)),
        (engine.encode_notification("m", b' {"a": 1}\n'), ("notification", None, "m", {"a": 1})),
        (engine.encode_response(1, {}), ("response", 1, None, {})),
        (engine.encode_error(1, -3, "no", [1]), ("error", 1, None, {"code": -3, "message": "no", "data": [1]})),
        (engine.encode_error(None, -32700, "?"), ("error", None, None, {"code": -32700, "message": "?"})),
    ]:
        assert unpack(raw) == expected and b"\n" not in raw
        message = decode(raw)
        assert (message.kind, message.id, message.method) == expected[:3]
        assert (message.params or message.result or message.error or None) == (expected[3] or None)
    kind, _, _, messages = unpack(b"[" + CALL + b',{"x":1}]')
    assert kind == "batch" and [message.kind for message in messages] == ["request", "invalid"]
    assert [message.raw for message in decode(b"[1, 2]").messages()] == [b"1", b"2"]


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: engine.encode_request(True, "m"), TypeError),
        (lambda: engine.encode_request(1.5, "m"), TypeError),  # type: ignore[arg-type]
        (lambda: engine.encode_request("x" * 5000, "m"), ValueError),
        (lambda: engine.encode_request(1, "m", []), TypeError),  # type: ignore[arg-type]
        (lambda: engine.encode_request(1, "m", b"{} {}"), ValueError),
        (lambda: engine.encode_response(1, b"[]"), TypeError),
        (lambda: engine.dumps(math.nan), ValueError),
        (lambda: engine.dumps("\ud800"), ValueError),
        (lambda: decode(5), TypeError),  # type: ignore[arg-type]
        (lambda: decode("\ud800"), ValueError),
    ],
)
def test_what_nobody_could_read_is_not_written(make: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        make()


def test_bad_bytes_say_what_to_answer() -> None:
    with pytest.raises(DecodeError, match="unexpected byte at byte 36") as broken:
        decode(b'{"jsonrpc":"2.0","id":"a","method":01}')
    error = broken.value
    assert (error.code, error.offset, error.raw_id, error.scope, error.origin) == (-32700, 36, '"a"', "message", "peer")
    with pytest.raises(DecodeError) as deep:
        decode(b"[" * 20 + b"]" * 20, max_depth=19)
    assert deep.value.code == -32600
    invalid = decode(b'{"jsonrpc":"2.0","id":1,"method":"m","params":[]}')
    assert (invalid.kind, invalid.code, invalid.fault) == ("invalid", -32602, "params must be an object")
    assert invalid.invites_answer
    with pytest.raises(DecodeError, match="params must be an object") as fault:
        unpack(invalid.raw)
    assert (fault.value.code, fault.value.offset, fault.value.raw_id) == (-32602, None, "1")


def test_a_lone_surrogate_is_refused_where_it_is_looked_at() -> None:
    message = decode(b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\\ud800"}}')
    assert message.method == "m"
    with pytest.raises(ValueError, match="lone surrogate"):
        _ = message.params


def test_every_text_of_the_corpus_is_decided_as_in_rust() -> None:
    assert len(TEXTS) > 350
    for case in TEXTS:
        text = b"".join(map(text_of, case["text"]))
        taken = case.get("taken", case["kind"] == "y")
        try:
            value = engine.loads(text)
        except DecodeError:
            assert not taken or text.count(b"[") > 400, case["name"]
            continue
        except ValueError as error:
            # Grammar, which no string of Python holds.
            assert "surrogate" in str(error) and case["kind"] == "i", case["name"]
            continue
        assert taken, case["name"]
        assert repr(value) == repr(json.loads(text)), case["name"]


def text_of(part: Any) -> bytes:
    if isinstance(part, str):
        return part.encode()
    if "hex" in part:
        return bytes.fromhex(part["hex"])
    return part["repeat"].encode() * part["count"]


def anything(source: random.Random, depth: int = 4) -> Any:
    """Any value of JSON, small ones more often."""
    kinds = 8 if depth else 6
    match source.randrange(kinds):
        case 0:
            return source.choice([None, True, False, 0, -1, 2**63, -(2**63) - 1, 10**17, 10**18, -(10**19), 123456])
        case 1:
            return source.randrange(-(10 ** source.randrange(1, 30)), 10 ** source.randrange(1, 30))
        case 2:
            return source.choice([0.0, -0.0, 1e300, 5e-324, 1.5, math.pi, source.random()])
        case 3 | 4 | 5:
            alphabet = source.choice(["abc", 'a"\\\n', "aé", "日本", "a😀"])
            return "".join(source.choice(alphabet) for _ in range(source.choice([0, 1, 7, 14, 15, 16, 17, 31, 33, 300])))
        case 6:
            return [anything(source, depth - 1) for _ in range(source.randrange(6))]
        case _:
            return {str(anything(source, 0)): anything(source, depth - 1) for _ in range(source.randrange(6))}


def test_values_are_what_the_standard_library_reads_and_writes() -> None:
    source = random.Random(7)
    for _ in range(3000):
        value = anything(source)
        for style in ({"separators": (",", ":")}, {"indent": 1}, {"ensure_ascii": False}):
            text = json.dumps(value, **style)  # type: ignore[arg-type]
            assert repr(engine.loads(text)) == repr(value)
        assert repr(json.loads(engine.dumps(value))) == repr(value)


def test_every_decimal_is_the_nearest_double() -> None:
    source = random.Random(11)
    for _ in range(20_000):
        whole = str(source.randrange(10 ** source.randrange(1, 19)))
        text = f"{source.choice(['', '-'])}{whole}.{source.randrange(10 ** source.randrange(1, 20))}"
        assert repr(engine.loads(text)) == repr(float(text)), text
    for bad in ("1.", "-", "01", "-01", "00", "1.e1", ".5", "+1", "1..2", "1e", "0x1", "-.1", "1.2.3", "1-2"):
        with pytest.raises(DecodeError):
            engine.loads(bad)


def test_no_bent_text_is_read() -> None:
    """One byte of a text is another: what is no JSON any more is refused, the rest is what it says."""
    source = random.Random(13)
    texts = [json.dumps(anything(source), ensure_ascii=source.random() < 0.5).encode() for _ in range(400)]
    refused = 0
    for text in texts:
        for _ in range(20):
            at = source.randrange(len(text))
            bent = text[:at] + bytes([source.choice(b'"\\{}[],:0123-+.eEtfn \n\x00\xff')]) + text[at + source.randrange(2) :]
            try:
                expected = repr(json.loads(bent.decode(), parse_constant=lambda word: 1 / 0))
            except (ValueError, ZeroDivisionError):
                refused += 1
                with pytest.raises(ValueError):
                    engine.loads(bent)
                continue
            try:
                assert repr(engine.loads(bent)) == expected, bent
            except ValueError as error:
                assert "surrogate" in str(error) or bent[:3] == b"\xef\xbb\xbf", bent
    assert refused > 1000


def test_the_collector_of_cycles_is_left_as_it_was() -> None:
    text = json.dumps([[{"a": i}] for i in range(10_000)])
    for enabled in (True, False):
        (gc.enable if enabled else gc.disable)()
        try:
            assert len(engine.loads(text)) == 10_000
            with pytest.raises(ValueError, match="surrogate"):
                engine.loads(text[:-1] + ',"\\ud800"]')
            assert gc.isenabled() is enabled
        finally:
            gc.enable()


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_conversation_in_every_revision(revision: str) -> None:
    pair = Pair(revision)
    assert [event.revision for event in pair.client.events() if isinstance(event, Opened)] == [revision]
    assert pair.client.revision == revision
    pair.server.events()
    number = pair.client.request("tools/call", {"name": "add"}, progress=True)
    pair.run()
    request = pair.request()
    assert request.message.params and request.message.params["name"] == "add"
    assert request.revision == revision and pair.server.in_flight == 1
    request.progress(1, 2, "half")
    request.respond({"content": []})
    pair.run()
    progress, answered = pair.client.events()
    assert isinstance(progress, Progress) and isinstance(answered, Answered)
    assert (progress.number, progress.progress, progress.total) == (number, 1, 2)
    assert answered.number == number and answered.message and answered.error is None
    assert answered.message.result and answered.message.result["content"] == []
    assert ("resultType" in answered.message.result) == (revision == "2026-07-28")
    assert pair.server.in_flight == 0

    number = pair.client.request("resources/read", {"uri": "a:b"})
    pair.run()
    pair.request().fail("not_found", "no such thing", {"uri": "a:b"})
    pair.run()
    (failed,) = pair.client.events()
    assert isinstance(failed, Answered) and failed.error and failed.number == number
    assert failed.error.code == (-32602 if revision == "2026-07-28" else -32002)

    number = pair.client.request("tools/call", {"name": "slow"}, timeout=3)
    pair.run()
    request = pair.request()
    assert pair.client.timeout(pair.now) == pytest.approx(3, abs=0.1)
    pair.now += 4
    pair.client.handle_timeout(pair.now)
    pair.run()
    (late,) = pair.client.events()
    assert isinstance(late, Answered) and isinstance(late.error, TimeoutError)
    (cancelled,) = pair.server.events()
    assert isinstance(cancelled, Cancelled) and cancelled.request is request and request.cancelled
    request.respond({})
    pair.run()
    assert pair.client.events() == []

    number = pair.client.request("tools/call", {"name": "slow"})
    pair.run()
    request = pair.request()
    pair.client.cancel(number, "enough")
    pair.run()
    (cancelled,) = pair.server.events()
    assert isinstance(cancelled, Cancelled) and cancelled.reason == "enough"

    pair.server.notify("notifications/tools/list_changed")
    pair.client.feed(b"no message\n" + CALL.replace(b"tools/call", b"no/such") + b"\n", pair.now)
    pair.run()
    events = pair.client.events()
    strays = [event for event in events if isinstance(event, Stray)]
    assert (strays[0].what, strays[0].frame) == ("bad_frame", b"no message")
    assert any(isinstance(event, Notification) for event in events) or revision == "2026-07-28"

    pair.client.close()
    pair.client.output(pair.now)
    closed = pair.client.events()[-1]
    assert isinstance(closed, Closed) and closed.error.reason == "closed_locally" and pair.client.is_closed
    with pytest.raises(ConnectionError):
        pair.client.request("tools/call", {})


def test_what_is_no_setup_is_refused() -> None:
    for wrong in ({"side": "both"}, {"revisions": ["1999"]}, {"revisions": []}, {"opening": "?"}, {"framing": "?"}):
        with pytest.raises(ValueError, match="there is no"):
            Connection(**{"side": "server", "name": "x", **wrong})  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Connection("server", "x", capabilities=[])  # type: ignore[arg-type]
    with pytest.raises(engine.Misuse if hasattr(engine, "Misuse") else RuntimeError, match="not open"):
        Connection("client", "x").request("m")


# The corpus of bad frames, as `core/tests/bad_frames.rs` plays it.


def part(piece: Any, era: dict[str, Any]) -> bytes:
    if isinstance(piece, str):
        return piece.replace("$rest", era["rest"]).replace("$sleep", era.get("sleep", "")).encode()
    if "hex" in piece:
        return bytes.fromhex(piece["hex"])
    count = LIMIT_BYTES + 1 if piece["count"] == "over the limit" else piece["count"]
    return (piece["repeat"] * count).encode()


def sleep(request: Request) -> None:
    """Does what the diagnostic tool does with its arguments, and lists it alone."""
    message = request.message
    try:
        _ = message.params
    except ValueError as error:
        if request.revision < "2025-11-25":
            return request.fail("invalid_params", str(error))
        return request.respond({"content": [], "isError": True})
    if message.method == "tools/call":
        request.respond({"content": []})
    elif message.method == "tools/list":
        request.respond({"tools": []})
    else:
        request.fail("method_not_found", "no such method")


class Played:
    def __init__(self, era: dict[str, Any]) -> None:
        self.connection = Connection("server", "corpus", "1", capabilities={"tools": {}}, max_message_bytes=LIMIT_BYTES)
        for line in era["open"]:
            self.connection.feed(line + "\n")
        assert len(self.take()) == era["opening_answers"]

    def take(self) -> list[tuple[str, int | None, bool]]:
        """The answers so far, once everything that waits is answered."""
        written = self.connection.output()
        for event in self.connection.events():
            if isinstance(event, Request):
                sleep(event)
        written += self.connection.output()
        answers: list[tuple[str, int | None, bool]] = []
        for line in written.splitlines():
            frame = decode(line)
            for message in frame.messages() if frame.kind == "batch" else [frame]:
                assert message.kind in ("response", "error") or b'"id":null' in message.raw, message
                raw = message.raw_id or ("null" if b'"id":null' in message.raw else "absent")
                failure = bool(message.result and message.result.get("isError"))
                answers.append((raw, message.error["code"] if message.error else None, failure))
        return answers


@pytest.mark.parametrize("era", CORPUS["eras"])
def test_every_bad_frame_has_its_outcome(era: str) -> None:
    """R-RPC-01 to R-RPC-03, R-RPC-05 to R-RPC-13, R-RPC-17, R-RPC-21 to R-RPC-25, R-BAT-01, R-BAT-03 to R-BAT-05,
    R-BAT-08, R-STD-04, R-ERR-01, R-LIF-14, R-LIF-15, R-CAN-04, R-PAG-07."""
    setting = CORPUS["eras"][era]
    played = 0
    for case in CORPUS["frames"]:
        if era not in case.get("eras", [era]):
            continue
        frame = b"".join(part(piece, setting) for piece in case["send"]) + b"\n"
        unreadable = setting["unreadable_id"]
        wanted = [
            (unreadable if answer["id"] == "?" else answer["id"], answer.get("code"), answer.get("is_error", False))
            for answer in case.get("expect", [])
        ]
        for step in (len(frame), 1, 4093):
            if step == 1 and len(frame) > 10_000:
                continue
            pair = Played(setting)
            for at in range(0, len(frame), step):
                pair.connection.feed(memoryview(frame)[at : at + step])
            seen = pair.take()
            if case.get("any_order"):
                seen.sort(key=repr)
                wanted.sort(key=repr)
            assert seen == wanted, case["name"]
            then = case.get("then", '"then"')
            pair.connection.feed(f'{{"jsonrpc":"2.0","id":{then},{setting["rest"]}}}\n')
            assert pair.take() == [(then, None, False)], case["name"]
            played += 1
    assert played > 100, played


def test_messages_and_connections_leave_nothing_behind() -> None:
    def once() -> None:
        pair = Pair("2025-11-25")
        pair.client.request("tools/call", {"name": "x"}, progress=True)
        pair.run()
        pair.request().respond({"content": []})
        pair.run()
        message = decode(CALL)
        assert message.params
        with pytest.raises(DecodeError):
            decode(b"{")
        pair.client.events()

    def objects(rounds: int) -> int:
        for _ in range(rounds):
            once()
        gc.collect()
        return sys.getallocatedblocks()

    objects(20)
    before = objects(50)
    assert objects(200) - before < 150


def test_a_message_is_the_same_to_all_threads() -> None:
    from concurrent.futures import ThreadPoolExecutor

    messages = [decode(CALL) for _ in range(200)]
    with ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(lambda i: messages[i % 200].params, range(1600)))
    assert all(seen[i] is messages[i % 200].params for i in range(1600))


def test_a_message_that_came_is_kept_whole() -> None:
    server = Connection("server", "x", capabilities={"tools": {}})
    server.feed(
        b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
        b'"clientInfo":{"name":"a","version":"1"}}}\n' + CALL + b"\n"
    )
    requests = [event for event in server.events() if isinstance(event, Request)]
    assert [request.message.raw for request in requests] == [CALL]
    assert isinstance(requests[0].message, Message)
