"""A server that writes bad frames before its answers: a client must skip each of them and answer none.

The frames are those of ../../corpus/bad_frames.json that are bad in either direction. The tool
`noise` writes them and then answers how many there were; `received` answers what came from the
client since the start that was no request and no notification.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import bad_frames

META = "io.modelcontextprotocol/"
BAD = {-32700, -32600}
REFUSED = ("a request before the handshake", "a second initialize")  # good frames, for a client
SETTLES = '"id":7,"result":{}}'  # could be the answer to a request of the client's


def noise(era_name: str) -> list[bytes]:
    corpus = json.loads(bad_frames.CORPUS.read_text())
    era = corpus["eras"][era_name]
    return [
        bad_frames.encode(case["send"], era)
        for case in corpus["frames"]
        if era_name in case.get("eras", [era_name])
        and {answer.get("code") for answer in case["expect"]} <= BAD
        and case["name"] not in REFUSED
        and "over the limit" not in str(case["send"])
        and "$sleep" not in str(case["send"])
        and not str(case["send"][0]).endswith(SETTLES)
    ]


def result(revision: str, method: str, name: str, strays: list[str]) -> tuple[bytes, dict]:
    """Returns the garbage before the answer, and the answer."""
    if method == "tools/list":
        tools = [{"name": n, "inputSchema": {"type": "object"}} for n in ("noise", "received")]
        return b"", {"tools": tools}
    if method == "tools/call" and name == "noise":
        frames = noise(revision)
        return b"".join(frames), {"content": [{"type": "text", "text": str(len(frames))}]}
    if method == "tools/call":
        return b"", {"content": [{"type": "text", "text": json.dumps(strays)}]}
    if method == "server/discover":
        return b"", {"supportedVersions": [revision], "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private"}
    return b"", {}


def main() -> None:
    out, strays, negotiated = sys.stdout.buffer, [], ""
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if not isinstance(message, dict) or "method" not in message:
            strays.append(line.decode())
            continue
        params = message.get("params") or {}
        revision = params.get("_meta", {}).get(f"{META}protocolVersion", negotiated)
        if "id" not in message:
            continue
        if message["method"] == "initialize":
            negotiated = params["protocolVersion"]
            answer = {
                "protocolVersion": negotiated,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "garbage", "version": "1"},
            }
            before = b""
        else:
            before, answer = result(revision, message["method"], params.get("name", ""), strays)
        if revision >= "2026":
            answer |= {"resultType": "complete", "_meta": {f"{META}serverInfo": {"name": "garbage", "version": "1"}}}
            if message["method"] == "tools/list":
                answer |= {"ttlMs": 0, "cacheScope": "private"}
        whole = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer}).encode()
        out.write(before + whole + b"\n")
        out.flush()


main()
