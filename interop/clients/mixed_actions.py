"""A client of the action dialect without our code, for ../mixed.py: `python mixed_actions.py ADDRESS CALLS`."""

import json
import sys
import threading
from http.client import HTTPConnection
from urllib.parse import urlsplit

IN_FLIGHT = 16
ADDRESS, CALLS = urlsplit(sys.argv[1]), int(sys.argv[2])


class Tally:
    right, wrong = 0, None


def work(numbers: range, tally: Tally) -> None:
    connection = HTTPConnection(ADDRESS.netloc)
    for number in numbers:
        text, id = f"action {number} é 漢字", f"id-{number}"
        request = {"action": "echo", "params": {"text": text}, "metadata": {"request_id": id}}
        connection.request("POST", ADDRESS.path, json.dumps(request), {"Content-Type": "application/json"})
        answer = json.loads(connection.getresponse().read())
        # R-ACT-41: content alone, or the structured content that a server of Python adds.
        data = ({"content": [{"type": "text", "text": text}]}, {"result": text})
        is_right = answer["status"] == "success" and answer.get("data") in data
        if is_right and answer["metadata"]["request_id"] == id:
            tally.right += 1
        else:
            tally.wrong = answer


tallies = [Tally() for _ in range(IN_FLIGHT)]
for begin, end in ((0, CALLS // 2), (CALLS // 2, CALLS)):
    print("ready", flush=True)
    sys.stdin.readline()
    threads = [threading.Thread(target=work, args=(range(begin + n, end, IN_FLIGHT), tally)) for n, tally in enumerate(tallies)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
right = sum(tally.right for tally in tallies)
wrong = next((tally.wrong for tally in tallies if tally.wrong), None)
print(json.dumps({"right": right, "wrong": wrong}))
