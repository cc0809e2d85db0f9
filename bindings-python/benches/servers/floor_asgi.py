"""As little as a server in Python can do on HTTP: an application of ASGI and orjson on uvicorn with httptools and
uvloop, no checks. `floor_asgi.py PORT`."""

import sys
from typing import Any

import orjson
import uvicorn

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


async def app(scope: Any, receive: Any, send: Any) -> None:
    body = b""
    more = True
    while more:
        message = await receive()
        body += message["body"]
        more = message.get("more_body", False)
    request = orjson.loads(body)
    if request["method"] == "tools/call":
        text = request["params"]["arguments"]["text"]
        result: Any = {"content": [{"type": "text", "text": text}], "resultType": "complete"}
    else:
        result = {"tools": [{"name": "echo", "inputSchema": SCHEMA}], "resultType": "complete"}
    answer = orjson.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result})
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(answer)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


if __name__ == "__main__":
    uvicorn.run(
        app,
        port=int(sys.argv[1]),
        log_level="warning",
        access_log=False,
        loop="uvloop",
        http="httptools",
        lifespan="off",
    )
