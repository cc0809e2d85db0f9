"""MCP servers and clients on a native engine.

    from mcpbolt import Server

    server = Server("calculator", "1.0.0")

    @server.tool
    def add(a: int, b: int) -> str:
        "Adds two numbers."
        return str(a + b)

    server.run()

Importing this package loads only its native engine; the module behind each name is imported on
first use.
"""

from . import _core

__version__: str = _core.__version__

TYPE_CHECKING = False  # as of `typing`, which need not be imported for it
if TYPE_CHECKING:
    from ._actions import ActionAnswer as ActionAnswer, BreakerPolicy as BreakerPolicy, RetryPolicy as RetryPolicy
    from ._client import Client as Client
    from ._pool import Pool as Pool, PoolCounts as PoolCounts
    from ._icon import Icon as Icon
    from ._content import (
        ResourceContents as ResourceContents,
        Text as Text,
        Image as Image,
        Audio as Audio,
        EmbeddedResource as EmbeddedResource,
        ResourceLink as ResourceLink,
        Message as Message,
        ToolResult as ToolResult,
    )
    from ._ask import Asked as Asked
    from ._completion import CompletionRequest as CompletionRequest
    from ._depends import Depends as Depends
    from ._call import Call as Call, Middleware as Middleware, Next as Next
    from ._core import Context as Context, Results as Results
    from ._errors import (
        McpError as McpError,
        ToolError as ToolError,
        ProtocolError as ProtocolError,
        ActionError as ActionError,
        InvalidArguments as InvalidArguments,
        InvalidParams as InvalidParams,
        BreakerOpen as BreakerOpen,
        ResourceNotFound as ResourceNotFound,
        PeerError as PeerError,
        RequestTimeout as RequestTimeout,
        RequestCancelled as RequestCancelled,
        ConnectionClosed as ConnectionClosed,
        CarrierError as CarrierError,
        Overloaded as Overloaded,
        Unsupported as Unsupported,
        BadAnswer as BadAnswer,
        DecodeError as DecodeError,
        Misuse as Misuse,
    )
    from ._questions import (
        Root as Root,
        Sampled as Sampled,
        SamplingRequest as SamplingRequest,
        Elicited as Elicited,
        ElicitationRequest as ElicitationRequest,
    )
    from ._results import (
        ClientInfo as ClientInfo,
        Completions as Completions,
        ServerInfo as ServerInfo,
        Tool as Tool,
        Resource as Resource,
        ResourceTemplate as ResourceTemplate,
        Prompt as Prompt,
        PromptArgument as PromptArgument,
        CallToolResult as CallToolResult,
        PromptResult as PromptResult,
    )
    from ._skill import Skill as Skill, SkillFile as SkillFile
    from ._task import Task as Task, TaskInfo as TaskInfo
    from ._server import Server as Server
    from ._auth import ApiKey as ApiKey, Basic as Basic, Bearer as Bearer, ConnectOptions as ConnectOptions
    from ._oauth import AssertionRequest as AssertionRequest, AuthorizationPage as AuthorizationPage
    from ._oauth import CredentialStore as CredentialStore, DeviceCode as DeviceCode, OAuth as OAuth
    from ._asgi import AsgiApp as AsgiApp
    from ._consent import ConsentProxy as ConsentProxy, Upstream as Upstream
    from ._loop import Counts as Counts, ServedAddress as ServedAddress
    from ._serve_options import ServeOptions as ServeOptions, SharedStore as SharedStore
    from ._permissions import PermissionManager as PermissionManager
    from ._resource import Issuer as Issuer, ResourceServer as ResourceServer
    from ._settings import Jwt as Jwt, Policy as Policy
    from ._settings import References as References, TaskLimits as TaskLimits
    from ._verifier import Credentials as Credentials, Principal as Principal
    from ._steps import Steps as Steps
    from ._install import install as install

_NAMES = {
    "_server": "Server",
    "_serve_options": "ServeOptions SharedStore",
    "_asgi": "AsgiApp",
    "_consent": "ConsentProxy Upstream",
    "_auth": "ApiKey Basic Bearer ConnectOptions",
    "_oauth": "AssertionRequest AuthorizationPage CredentialStore DeviceCode OAuth",
    "_loop": "ServedAddress Counts",
    "_permissions": "PermissionManager",
    "_resource": "Issuer ResourceServer",
    "_settings": "Jwt Policy References TaskLimits",
    "_verifier": "Credentials Principal",
    "_task": "Task TaskInfo",
    "_skill": "Skill SkillFile",
    "_icon": "Icon",
    "_core": "Context Results",
    "_steps": "Steps",
    "_install": "install",
    "_client": "Client",
    "_pool": "Pool PoolCounts",
    "_actions": "ActionAnswer BreakerPolicy RetryPolicy",
    "_ask": "Asked",
    "_depends": "Depends",
    "_call": "Call Middleware Next",
    "_completion": "CompletionRequest",
    "_questions": "Root Sampled SamplingRequest Elicited ElicitationRequest",
    "_results": (
        "ClientInfo Completions ServerInfo Tool Resource ResourceTemplate Prompt PromptArgument "
        "CallToolResult PromptResult"
    ),
    "_content": "ResourceContents Text Image Audio EmbeddedResource ResourceLink Message ToolResult",
    "_errors": (
        "McpError ToolError ProtocolError ActionError InvalidArguments InvalidParams BreakerOpen ResourceNotFound PeerError "
        "RequestTimeout RequestCancelled ConnectionClosed CarrierError Overloaded Unsupported BadAnswer "
        "DecodeError Misuse"
    ),
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
