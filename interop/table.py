"""Which client and server takes part in which feature, as the README prints it."""

from __future__ import annotations

from features import FEATURES, Feature
from peers import CLIENTS, OUR_LACKS, OURS, SERVERS, Peer

BEGIN, END = "<!-- table -->\n", "<!-- end of table -->\n"


def cell(client: Peer, server: Peer, feature: Feature) -> str:
    """Which side of an SDK has the feature."""
    has = {
        side: feature.name not in peer.lacks and feature.since <= peer.revisions[-1]
        for side, peer in (("client", client), ("server", server))
    }
    return "both" if all(has.values()) else "".join(side for side in has if has[side]) or "–"


def table() -> str:
    """Rows of features, columns of SDKs, then why what is missing is."""
    sdks = {name: (CLIENTS[name], SERVERS[name]) for name in CLIENTS}
    sdks |= {f"our {name}": tuple(Peer(lacks=side) for side in OUR_LACKS[name]) for name in OURS}
    lines = [f"| feature | since | {' | '.join(sdks)} |", f"|---|---|{'---|' * len(sdks)}"]
    for feature in FEATURES:
        cells = [cell(*pair, feature) for pair in sdks.values()]
        lines.append(f"| {feature.name} | {feature.since} | {' | '.join(cells)} |")
    sides: dict[tuple[str, str, str], list[str]] = {}  # that lack it, of (SDK, feature, reason)
    for name, pair in sdks.items():
        for side, peer in zip(("client", "server"), pair):
            for lack in peer.lacks.items():
                sides.setdefault((name, *lack), []).append(side)
    why = [f"- {name}, {' and '.join(of)}, {feature}: {reason}" for (name, feature, reason), of in sides.items()]
    return "\n".join([*lines, "", *why, ""])


def drawn(readme: str) -> str:
    """The README with the table as it is now."""
    head, rest = readme.split(BEGIN)
    return head + BEGIN + table() + END + rest.split(END)[1]
