"""Questions of handlers on the Python SDK to a client, in the form of its revision."""

from __future__ import annotations

import json

import mcp_types as types

NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


class Unanswered(Exception):
    """A question that the client has to answer before the call is made again."""

    def __init__(self, name: str, request: types.InputRequest, answers: dict) -> None:
        self.result = types.InputRequiredResult(input_requests={name: request}, request_state=json.dumps(answers))


class Rounds:
    """The questions of one call. In the handshake era they are requests; later the call ends with
    each that has no answer yet, and the client keeps the answers there are as the state.
    """

    def __init__(self, session, modern: bool, responses: dict | None, state: str | None) -> None:
        self.session, self.modern = session, modern
        self.answers = json.loads(state or "{}")
        for name, response in (responses or {}).items():
            self.answers[name] = response if isinstance(response, dict) else response.model_dump(by_alias=True, exclude_none=True)

    async def ask(self, name: str, request: types.InputRequest, result: type):
        if not self.modern:
            return await self.session.send_request(request, result)
        if name not in self.answers:
            raise Unanswered(name, request, self.answers)
        return result.model_validate(self.answers[name])

    async def model(self, text: str) -> str:
        message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=text))
        params = types.CreateMessageRequestParams(messages=[message], max_tokens=100)
        said = await self.ask("model", types.CreateMessageRequest(params=params), types.CreateMessageResult)
        return said.content.text

    async def model_with_tools(self) -> str:
        message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="How warm is it?"))
        weather = types.Tool(name="weather", input_schema={"type": "object"})
        params = types.CreateMessageRequestParams(messages=[message], max_tokens=100, tools=[weather])
        said = await self.ask("model", types.CreateMessageRequest(params=params), types.CreateMessageResultWithTools)
        content = said.content[0] if isinstance(said.content, list) else said.content
        return f"uses {content.name}"

    async def user(self, message: str) -> types.ElicitResult:
        params = types.ElicitRequestFormParams(message=message, requested_schema=NAME)
        return await self.ask("user", types.ElicitRequest(params=params), types.ElicitResult)

    async def page(self) -> str:
        about = {} if self.modern else {"elicitation_id": "errand-1"}
        params = types.ElicitRequestURLParams(message="Sign in.", url="https://example.com/sign-in", **about)
        return (await self.ask("page", types.ElicitRequest(params=params), types.ElicitResult)).action

    async def roots(self) -> str:
        listed = await self.ask("roots", types.ListRootsRequest(), types.ListRootsResult)
        return " ".join(str(root.uri) for root in listed.roots)


async def answer(tool: str, arguments: dict, rounds: Rounds) -> str:
    """The outcomes of the tools that ask."""
    match tool:
        case "ask_model":
            return await rounds.model(arguments["text"])
        case "ask_tools":
            return await rounds.model_with_tools()
        case "ask_page":
            return await rounds.page()
        case "ask_roots":
            return await rounds.roots()
        case "interview":
            return await rounds.model((await rounds.user("Who?")).content["name"])
    answered = await rounds.user(arguments["message"])
    return f"accept {answered.content['name']}" if answered.action == "accept" else answered.action
