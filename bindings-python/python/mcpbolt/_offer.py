"""What a server offers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, overload

from . import _core, _lower
from ._entry import Entry, Icons, TaskSupport, json
from ._errors import Misuse
from ._signature import Function, Signature
from ._steps import Steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike

    from ._settings import Settings

_F = TypeVar("_F", bound=Function)


class Offer:
    """Tools, resources, prompts, completions and skills: decorate functions to add to them."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._entries: list[Entry] = []
        self._made: list[_core.Catalog] = []
        self._is_stale = True

    @overload
    def tool(self, function: _F, /) -> _F: ...

    @overload
    def tool(
        self,
        function: None = None,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        input_schema: dict[str, Any] | None = None,
        output_schema: dict[str, Any] | None = None,
        annotations: Mapping[str, Any] | None = None,
        icons: Icons = (),
        meta: Mapping[str, Any] | None = None,
        action: Mapping[str, Any] | None = None,
        task: TaskSupport = "forbidden",
        kept: _core.Results | None = None,
        inline: bool = False,
    ) -> Callable[[_F], _F]: ...

    def tool(
        self,
        function: Function | None = None,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        input_schema: dict[str, Any] | None = None,
        output_schema: dict[str, Any] | None = None,
        annotations: Mapping[str, Any] | None = None,
        icons: Icons = (),
        meta: Mapping[str, Any] | None = None,
        action: Mapping[str, Any] | None = None,
        task: TaskSupport = "forbidden",
        kept: _core.Results | None = None,
        inline: bool = False,
    ) -> Any:
        """Offers a function as a tool. Its schemas come from its hints, its description from its
        docstring. With `input_schema` the function takes the arguments as that schema has them.

        Args:
            output_schema: What its structured content looks like. What it gives back is held against
                it, like against the class of its return hint, before it is sent.
            annotations: Hints on what it does: `readOnlyHint`, `destructiveHint` and so on.
            icons: Pictures of it: `Icon`s, or their URIs.
            meta: Its `_meta`.
            action: What `mcp.get_schema` of the action dialect shows of it besides: any of `examples`, `errors` (types of
                them), `help_url`, `deprecated` (a notice), `atomic` (whether it is undone where it fails), and more.
            task: Whether its calls may, or must, go on as tasks: see `Context.begin_task`.
            kept: Where its results are kept: the same call gets the same answer until its time is over or it is
                forgotten, without the function. Failures are not kept.

        A parameter with the hint `Steps` makes it atomic: what the function notes there is taken back unless the call
        comes to a good end.

        Raises:
            TypeError: A parameter has a hint that JSON cannot carry.
        """

        def add(function: _F) -> _F:
            signature = Signature(function)
            steps = signature.takes(Steps)
            entry = Entry(
                "tool", signature, name=name, title=title, text=description, icons=icons, meta=meta, inline=inline
            )
            if input_schema is None:
                entry.input_schema, entry.prepare = signature.schema()
                entry.integers = signature.integers()
            else:
                entry.input_schema = _core.to_json(input_schema)
            if output_schema is not None:
                entry.output_schema = _core.to_json(output_schema)
            elif "return" in signature.hints:
                from ._schema import output

                entry.output_schema = output(signature.hints["return"])
            entry.annotations = json(annotations)
            entry.action = json(action)
            entry.task = task
            entry.lower = _lower.tool if entry.output_schema is None else _lower.structured
            entry.is_atomic = steps is not None
            entry.kept = kept
            if self._settings.approval or self._settings.sanitise or kept or steps:
                from ._approval import look

                look(entry, self._settings, steps)
            self._add(entry)
            return function

        return add if function is None else add(function)

    def resource(
        self,
        uri: str,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        size: int | None = None,
        annotations: Mapping[str, Any] | None = None,
        icons: Icons = (),
        meta: Mapping[str, Any] | None = None,
    ) -> Callable[[_F], _F]:
        """Offers what a function gives back as a resource; with variables in the URI
        (`users://{id}`), which become its arguments, as a template of resources.

        Args:
            size: How many bytes it has, if that is known; templates have none.
            annotations: For whom it is and how much it matters: `audience`, `priority`,
                `lastModified`.
            icons: Pictures of it: `Icon`s, or their URIs.
            meta: Its `_meta`.

        Raises:
            TypeError: The function's parameters are not the template's variables.
        """

        def add(function: _F) -> _F:
            signature = Signature(function)
            kind = "template" if "{" in uri else "resource"
            entry = Entry(kind, signature, name=name, title=title, text=description, icons=icons, meta=meta)
            entry.uri = uri
            entry.mime_type = mime_type
            entry.size = size
            entry.annotations = json(annotations)
            entry.lower = _lower.contents(mime_type)
            if entry.kind == "resource" and signature.parameters:
                raise TypeError(f"{entry.name}: {uri!r} has no variables to give the function")
            self._add(entry)
            return function

        return add

    @overload
    def prompt(self, function: _F, /) -> _F: ...

    @overload
    def prompt(
        self,
        function: None = None,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Icons = (),
        meta: Mapping[str, Any] | None = None,
    ) -> Callable[[_F], _F]: ...

    def prompt(
        self,
        function: Function | None = None,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Icons = (),
        meta: Mapping[str, Any] | None = None,
    ) -> Any:
        """Offers a function as a prompt: it gives back text, a `Message`, or a list of them."""

        def add(function: _F) -> _F:
            signature = Signature(function)
            entry = Entry("prompt", signature, name=name, title=title, text=description, icons=icons, meta=meta)
            entry.arguments = signature.strings()
            entry.lower = _lower.messages(entry.description)
            self._add(entry)
            return function

        return add if function is None else add(function)

    def completion(self, function: _F, /) -> _F:
        """Completes the arguments of prompts and templates while a user types: the function is
        called with a `CompletionRequest` and gives back values, best first.

        Raises:
            Misuse: The server was made with `list_changes=True`, and what it can do is settled,
                because there was a connection.
        """
        if self._settings.list_changes and self._made:
            raise Misuse("clients were told what the server can do: add the completion before the first connects")
        signature = Signature(function)
        entry = Entry("completion", signature)
        if len(signature.parameters) != 1:
            raise TypeError(f"{entry.name}: takes the request, and perhaps a context")
        (name,) = signature.parameters
        from ._completion import CompletionRequest

        def prepare(arguments: dict[str, Any]) -> dict[str, Any]:
            return {name: CompletionRequest(arguments["request"])}

        entry.prepare = prepare
        entry.lower = _lower.completions
        self._settings.completion_entry = entry
        self._is_stale = True
        return function

    def add_skills(self, folder: str | PathLike[str]) -> None:
        """Offers the skill in a folder, or all those below it: folders with a `SKILL.md`. Their files
        are read now. Hidden ones are left out, and so is what is no plain file or folder: nothing is
        read through a symbolic link. What lies between becomes part of a skill's URI.

        Raises:
            ValueError: There is none.
        """
        from ._skills import skills

        for skill in skills(folder):
            self._change(lambda catalog: catalog.add_skill(skill))
            self._settings.skills.append(skill)

    def _change(self, change: Callable[[_core.Catalog], object]) -> None:
        """Makes a change where clients were told to expect some, or has the next one begin anew."""
        if self._settings.list_changes and self._made:
            change(self._made[-1])
        else:
            self._is_stale = True

    def _add(self, entry: Entry) -> None:
        self._change(lambda catalog: catalog.add(entry))
        self._entries.append(entry)

    def _remove(self, kind: str, name: str) -> None:
        def is_it(entry: Entry) -> bool:
            return entry.kind == kind and name == (entry.uri or entry.name)

        kept = [entry for entry in self._entries if not is_it(entry)]
        if len(kept) == len(self._entries):
            raise LookupError(f"there is no {kind} {name!r}")
        self._change(lambda catalog: catalog.remove(kind, name))
        self._entries = kept

    def remove_tool(self, name: str) -> None:
        """Offers that tool no longer; calls under way are finished.

        Raises:
            LookupError: There is none of that name.
        """
        self._remove("tool", name)

    def remove_prompt(self, name: str) -> None:
        """Offers that prompt no longer."""
        self._remove("prompt", name)

    def remove_resource(self, uri: str) -> None:
        """Offers that resource no longer."""
        self._remove("resource", uri)

    def remove_resource_template(self, template: str) -> None:
        """Offers resources by that template no longer."""
        self._remove("template", template)

    def resource_updated(self, uri: str) -> None:
        """Tells the clients that subscribed to it that a resource is another now.

        Raises:
            Misuse: The server was made without `subscriptions=True`.
        """
        if not self._settings.subscriptions:
            raise Misuse("clients cannot subscribe: make the server with subscriptions=True")
        for catalog in self._made:
            catalog.resource_updated(uri)

    def _catalog(self) -> _core.Catalog:
        """What is offered now. Connections share it, and the tasks that are kept, until it changes."""
        if self._is_stale and not (self._made and self._settings.list_changes):
            catalog = _core.Catalog(self._settings, self._entries)
            # Who subscribed is told of updates also where something else is offered by now.
            self._made = [*(made for made in self._made if made.in_use), catalog]
            self._is_stale = False
        return self._made[-1]
