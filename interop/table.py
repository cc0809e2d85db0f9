"""The features of each client and server, as the README prints them."""

from __future__ import annotations

from features import FEATURES, FIRST, Feature
from peers import CLIENTS, ONE_PLACE, OUR_LACKS, OURS, SERVERS, Peer

CARRIER_NAMES = {"http": "over Streamable HTTP", "sse": "over HTTP+SSE"}
BEGIN, END = "<!-- table -->\n", "<!-- end of table -->\n"


def sides(client: Peer, server: Peer) -> dict[str, Peer]:
    return {"client": client, "server": server}


def of(has: dict[str, bool]) -> str:
    """Returns the sides of an SDK that have it."""
    return "both" if all(has.values()) else "".join(side for side in has if has[side]) or "–"


def cell(client: Peer, server: Peer, feature: Feature) -> str:
    """Returns the sides of an SDK that have the feature."""
    all_sides = sides(client, server).items()
    return of({side: feature.name not in peer.lacks and feature.since <= peer.revisions[-1] for side, peer in all_sides})


def table() -> str:
    """Rows of features, columns of SDKs, then why what is missing is."""
    sdks = {name: (CLIENTS[name], SERVERS[name]) for name in CLIENTS}
    sdks |= {f"our {name}": tuple(Peer(carriers=ONE_PLACE, lacks=side) for side in OUR_LACKS[name]) for name in OURS}
    lines = [f"| feature | since | {' | '.join(sdks)} |", f"|---|---|{'---|' * len(sdks)}"]
    for feature in FEATURES:
        cells = [cell(*pair, feature) for pair in sdks.values()]
        lines.append(f"| {feature.name} | {feature.since} | {' | '.join(cells)} |")
    for carrier, name in CARRIER_NAMES.items():
        cells = [of({side: carrier in peer.carriers for side, peer in sides(*pair).items()}) for pair in sdks.values()]
        lines.append(f"| {name} | {FIRST} | {' | '.join(cells)} |")
    lacking: dict[tuple[str, str, str], list[str]] = {}  # the sides, of (SDK, feature, reason)
    for name, pair in sdks.items():
        for side, peer in sides(*pair).items():
            beside = {f"{feature} over HTTP": reason for feature, reason in peer.lacks_beside_stdio.items()}
            for lack in [*peer.lacks.items(), *beside.items()]:
                lacking.setdefault((name, *lack), []).append(side)
    why = [f"- {name}, {' and '.join(who)}, {feature}: {reason}" for (name, feature, reason), who in lacking.items()]
    return "\n".join([*lines, "", *why, ""])


def drawn(readme: str) -> str:
    """The README with the table as it is now."""
    head, rest = readme.split(BEGIN)
    return head + BEGIN + table() + END + rest.split(END)[1]
