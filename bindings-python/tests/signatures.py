"""Generates signatures and arguments for them: plain types and all others that pydantic knows."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, Optional, TypeVar, Union
from uuid import UUID

from pydantic import AnyUrl, BaseModel, ConfigDict, Field
from typing_extensions import NotRequired, TypedDict

T = TypeVar("T")


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Point:
    x: int
    y: float = 0.5


@dataclass
class Tree:
    value: int
    children: list[Tree] = field(default_factory=list)


class Movie(TypedDict):
    name: str
    year: NotRequired[int]


class Pair(NamedTuple):
    left: int
    right: str = "r"


class Model(BaseModel):
    name: str = Field(min_length=1, description="Its name")
    size: int = Field(1, gt=0)
    day: date | None = None


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    point: Point
    tags: set[str] = set()


class Box(BaseModel, Generic[T]):
    value: T


class Linked(BaseModel):
    value: int
    next: Linked | None = None


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str


Pet = Annotated[Union[Cat, Dog], Field(discriminator="kind")]
Number = NewType("Number", int)

Make = Callable[[Random], Any]
ODD = [
    "x", "1", "1.0", "", "true", "no", "null", "2020-02-30", "2020-02-29", "NaN", 0, 1, -1, 7, 1.0, 2.5, -0.0, 1e300, 2**53 + 1,
    10**30, True, False, None, [], {}, [1], ["1"], {"a": 1}, {"x": "1"}, {"kind": "cat"}, {"name": "", "size": 0}, "é" * 20,
]  # fmt: skip
TEXTS = ["", "a", "red", "some text", "ä\n", "1"]


def _one_of(*values: Any) -> Make:
    return lambda random: random.choice(values)


def _object(required: dict[str, Make], optional: dict[str, Make]) -> Make:
    def make(random: Random) -> dict[str, Any]:
        chosen = {name: one for name, one in optional.items() if random.random() < 0.5}
        return {name: one(random) for name, one in (required | chosen).items()}

    return make


_INT = _one_of(0, 1, -5, 12345, 2**60, 10**25)
_FLOAT = _one_of(0.0, 1.5, -2.25, 3, 1e10)
_TEXT = _one_of(*TEXTS)
_POINT = _object({"x": _INT}, {"y": _FLOAT})


def _tree(random: Random, depth: int = 2) -> dict[str, Any]:
    made: dict[str, Any] = {"value": random.randrange(9)}
    if depth and random.random() < 0.7:
        made["children"] = [_tree(random, depth - 1) for _ in range(random.randrange(3))]
    return made


def _linked(random: Random) -> Any:
    return {"value": 1, "next": _linked(random) if random.random() < 0.5 else None}


PLAIN: list[tuple[Any, Make]] = [
    (int, _INT),
    (float, _FLOAT),
    (str, _TEXT),
    (bool, _one_of(True, False)),
    (Any, _one_of(*ODD)),
    (list, _one_of([], [1, "a", None])),
    (dict, _one_of({}, {"a": [1]})),
]
OTHERS: list[tuple[Any, Make]] = [
    (date, _one_of("2020-02-29", "1999-12-31")),
    (datetime, _one_of("2020-02-29T12:00:00Z", "2020-01-01T00:00:00", 1600000000)),
    (time, _one_of("12:30:00", "23:59:59.5")),
    (timedelta, _one_of("PT1H", "P3DT12H30M", 90, 1.5)),
    (UUID, _one_of("12345678-1234-5678-1234-567812345678")),
    (Decimal, _one_of("1.50", 2, 0.25)),
    (AnyUrl, _one_of("https://example.com/a?b=c", "ftp://h/x")),
    (Path, _one_of("/tmp/a", "b")),
    (bytes, _TEXT),
    (Literal["a", 1, None], _one_of("a", 1, None)),
    (Colour, _one_of("red", "blue")),
    (Level, _one_of(1, 2)),
    (Number, _INT),
    (Point, _POINT),
    (Tree, _tree),
    (Movie, _object({"name": _TEXT}, {"year": _INT})),
    (Pair, _one_of([1, "a"], [2], {"left": 1, "right": "b"})),
    (Model, _object({"name": _one_of("n", "long name")}, {"size": _one_of(1, 9), "day": _one_of(None, "2020-01-01")})),
    (Closed, _object({"point": _POINT}, {"tags": _one_of([], ["a", "b", "a"])})),
    (Box[int], _object({"value": _INT}, {})),
    (Box[Model], _object({"value": _object({"name": _one_of("n")}, {})}, {})),
    (Linked, _linked),
    (Pet, _one_of({"kind": "cat"}, {"kind": "cat", "lives": 3}, {"kind": "dog", "name": "Rex"})),
    (Union[Point, Model], _one_of({"x": 1}, {"name": "a"}, {"name": "a", "size": 2}, {"x": 1, "y": 2})),
    (Annotated[int, Field(ge=0, le=100, description="In percent")], _one_of(0, 50, 100, 101)),
    (Annotated[str, Field(pattern="^[a-z]+$", max_length=5)], _one_of("abc", "z", "toolong", "A")),
    (Annotated[float, Field(multiple_of=0.5)], _one_of(1, 0.5, 0.3)),
    (Annotated[list[int], Field(min_length=1)], _one_of([1], [1, 2], [])),
    (Annotated[int, Field(strict=True)], _one_of(1, 2)),
]


def hint(random: Random, plain: bool, depth: int = 2) -> tuple[Any, Make]:
    """A hint, and what makes JSON values that are mostly valid for it."""
    if depth == 0 or random.random() < 0.4:
        return random.choice(PLAIN if plain or random.random() < 0.2 else OTHERS)
    kind = random.choice(["list", "dict", "optional", "union"] + ([] if plain else ["set", "tuple", "pair"]))
    if kind == "union" and plain:
        (one, make), (other, make_other) = random.sample(PLAIN[:4], 2)
        return Union[one, other], lambda random: (make if random.random() < 0.5 else make_other)(random)
    if kind == "set":
        return random.choice([(set[int], _one_of([], [1, 2, 1])), (frozenset[str], _one_of(["a"], ["a", "b"]))])
    inner, make = hint(random, plain, depth - 1)
    match kind:
        case "list":
            return list[inner], lambda random: [make(random) for _ in range(random.randrange(4))]
        case "dict":
            return dict[str, inner], lambda random: {key: make(random) for key in random.sample(TEXTS, random.randrange(3))}
        case "optional":
            return Optional[inner], lambda random: None if random.random() < 0.3 else make(random)
        case "tuple":
            return tuple[inner, ...], lambda random: [make(random) for _ in range(random.randrange(3))]
    other, make_other = hint(random, plain, depth - 1)
    if kind == "pair":
        return tuple[inner, other], lambda random: [make(random), make_other(random)]
    return Union[inner, other], lambda random: (make if random.random() < 0.5 else make_other)(random)


def spoilt(random: Random, value: Any) -> Any:
    """The value with something else in one place."""
    if value and isinstance(value, (list, dict)) and random.random() < 0.7:
        key = random.choice(list(value) if isinstance(value, dict) else range(len(value)))
        changed = value.copy()
        changed[key] = spoilt(random, value[key])
        return changed
    return random.choice(ODD)


class Generated:
    """A function that records what it is called with, and returns its first argument."""

    def __init__(self, random: Random, plain: bool) -> None:
        self.seen: list[dict[str, Any]] = []
        names = ["a", "b", "count", "value"][: random.randrange(1, 5)]
        self.hints = {name: hint(random, plain) for name in names}
        defaults: dict[str, Any] = {}
        words: list[str] = []
        for name in names:
            if defaults or random.random() < 0.3:
                defaults[name] = None if random.random() < 0.5 else self._default(random, name, plain)
            words.append(f"{name}=defaults[{name!r}]" if name in defaults else name)
        if random.random() < 0.3:
            words.insert(random.randrange(len(words)), "*")
        source = f"def function({', '.join(words)}):\n    seen.append(dict({', '.join(f'{name}={name}' for name in names)}))\n    return a\n"
        space: dict[str, Any] = {"defaults": defaults, "seen": self.seen}
        exec(source, space)
        self.function = space["function"]
        self.function.__annotations__ = {name: one for name, (one, _) in self.hints.items()}
        if random.random() < 0.8:
            self.function.__annotations__["return"] = self.hints["a"][0]
        if random.random() < 0.5:
            lines = [f"    {name}: What {name} is." for name in random.sample(names, random.randrange(1, len(names) + 1))]
            self.function.__doc__ = "\n".join(["Does it.", "", "Args:", *lines])

    def _default(self, random: Random, name: str, plain: bool) -> Any:
        from pydantic import TypeAdapter, ValidationError

        one, make = self.hints[name]
        try:
            value = TypeAdapter(one).validate_python(make(random))
        except ValidationError:
            return None
        if plain:
            return value if isinstance(value, (str, int, float)) else None
        # pydantic mixes up the descriptions of parameters with the same recursive class.
        return value if one in (Tree, Linked) or random.random() < 0.5 else Field(value, description=f"Of {name}")

    def arguments(self, random: Random) -> dict[str, Any]:
        """Arguments that are often valid."""
        made = {name: make(random) for name, (_, make) in self.hints.items() if random.random() < 0.9}
        if made and random.random() < 0.4:
            name = random.choice(list(made))
            made[name] = spoilt(random, made[name])
        if random.random() < 0.05:
            made["unknown"] = 1
        return made
