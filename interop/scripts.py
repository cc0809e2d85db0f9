"""The language in which every client here is told what to do, and how its reports are judged.

A client (ours and those of others alike) is started as

    CLIENT REVISION stdio SERVER [ARGUMENT...]
    CLIENT REVISION http|sse URL

with what carries it (`sse` is the pair of endpoints of 2024-11-05), reads a list of steps as JSON
from its standard input, and prints one outcome a line, a JSON object. A server that is given a URL
listens there until SIGTERM, for one client after another, else it serves stdin and stdout. An error that the server answered with is the outcome {code}. A step names what to `do`:

    info                              {revision, name, extensions}: of the server
    tools | resources | templates | prompts
                                      {names, items}: the whole list, its items as on the wire; of
                                      resources the names are URIs
    pages                             {pages}: how many of them the tools come in
    call {tool, arguments}            {text, is_error, structured, meta}
         meta: {…}                    members of the request's `_meta`
         progress: true               adds {seen}: [[progress, total], …] until the answer
         cancel_ms | timeout_ms       {ended: "cancelled" | "timed out"}
    many {tool, argument, count}      {answers}: `count` calls at once, each with the text "call I"
    task {tool, arguments}            {text, status}: of a call that became a task, once that has ended
    read {uri}                        {text, blob, mime}
    prompt {name, arguments}          {text} of its first message
    complete {prompt | template, argument, value}
                                      {values}
    logs {level, tool}                {levels}: of what is logged at this level during a call
    listen {uris, tool}               {heard, after}: what is told of the tools and of these
                                      resources during a call, and during another when nobody
                                      listens any more
    ping                              {}
    request {method}                  {}
    close                             {strays, ms}: the server has ended; how many frames concerned
                                      nobody (where the client counts them), and how long it took

While it does so it answers what it is asked: MODEL, USER and ROOTS say how.
"""

from __future__ import annotations

import json
from collections.abc import Callable

Step = tuple[dict, dict]  # what to do, and what the outcome must hold
Script = Callable[[str], list[Step]]  # for a revision

# The answers of every client to the server's questions:
#
# model  of the text "nest N", N > 0: calls `ask_model` with "nest N-1" and says "(its answer)"; given
#        tools: uses the first, with the id "1" and no arguments; else: says "said TEXT"
# user   a form: accepts with {"name": "Ada"} "Who?", declines "No?", cancels anything else; a page: accepts
# roots  one, ROOT
ROOT = "file:///interop"


def call(tool: str, **arguments) -> dict:
    return {"do": "call", "tool": tool, "arguments": arguments}


def many(tool: str, argument: str, prefix: str = "", count: int = 100) -> Step:
    answers = [f"{prefix}call {i}" for i in range(count)]
    return {"do": "many", "tool": tool, "argument": argument, "count": count}, {"answers": answers}


def holds(expected: object, found: object) -> bool:
    """A dict asks for its members; a set for some of a list, or for one of its own; a function for
    its consent; else equality. A text is compared as JSON where something else than text is expected.
    """
    if callable(expected):
        return expected(found)
    if isinstance(expected, str) or not isinstance(found, str):
        if isinstance(expected, dict) and isinstance(found, dict):
            return all(key in found and holds(value, found[key]) for key, value in expected.items())
        if isinstance(expected, set):
            return expected <= set(found) if isinstance(found, list) else found in expected
        return expected == found
    try:
        return holds(expected, json.loads(found))
    except ValueError:
        return False


def judge(script: list[Step], outcomes: list[dict]) -> list[str]:
    """Returns wrong and missing outcomes among those that a client printed."""
    told = [json.dumps(step)[:100] for step, _ in script]
    problems = [f"{step}: not reached" for step in told[len(outcomes) :]]
    for step, (_, expected), found in zip(told, script, outcomes):
        if not holds(expected, found):
            problems.append(f"{step}: {json.dumps(found)[:300]}, not {str(expected)[:200]}")
    return problems
