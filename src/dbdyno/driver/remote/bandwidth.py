"""How much the network carries between a load host and the server's host, in each direction by itself.

The load host connects to a socket of this moment at the server's address, and says a word that nobody else
knows. Whoever receives reads for a while, counts what comes in the second half, when TCP has found its pace,
and closes. Nothing is timed meanwhile.
"""

from __future__ import annotations

import secrets
import socket
from contextlib import suppress

from dbdyno.driver.conversation import Conversation
from dbdyno.driver.link import Bandwidth
from dbdyno.driver.remote.boot import CHUNK, FROM_SERVER, TO_SERVER, WORD_BYTES, sent, taken
from dbdyno.errors import DriverFailed

LEAST_S, MOST_S, TRIPS = 0.1, 2.0, 20
"""How long one direction takes: as long as so many round trips, within these bounds."""
WAIT_S = 10.0


def bandwidth(address: str, round_trip_s: float, load_host: Conversation) -> Bandwidth | None:
    """What the network carries to and from `address`, which is one of this host. None where the load host
    does not reach that socket: a firewall may pass the server's alone."""
    seconds = min(MOST_S, max(LEAST_S, TRIPS * round_trip_s))
    word = secrets.token_bytes(WORD_BYTES)
    found = {}
    with socket.create_server((address, 0)) as listener:
        listener.settimeout(WAIT_S)
        port = listener.getsockname()[1]
        for way in (TO_SERVER, FROM_SERVER):
            told = {"address": address, "port": port, "word": word.hex(), "way": way, "s": seconds}
            load_host.request(verb="carry", **told)
            here = _served(listener, word, way, seconds)
            try:
                reply = load_host.answer("carry", WAIT_S + MOST_S)["reply"]
            except DriverFailed as refused:
                if refused.kind != "connect":
                    raise
                return None
            found[way] = here if way == TO_SERVER else reply["bytes_per_s"]
    return Bandwidth(to_server_bytes_per_s=found[TO_SERVER], from_server_bytes_per_s=found[FROM_SERVER])


def _served(listener: socket.socket, word: bytes, way: str, seconds: float) -> float:
    """One direction, for whoever says the word; any other is hung up on. Gives what came, in bytes per
    second; 0 where it was sent. A load host that does not come says why in its answer."""
    with suppress(TimeoutError):
        while True:
            peer, _ = listener.accept()
            with peer:
                peer.settimeout(WAIT_S)
                if not secrets.compare_digest(_first(peer), word):
                    continue
                if way == TO_SERVER:
                    return taken(peer, seconds)
                sent(peer, bytes(CHUNK))
                return 0.0
    return 0.0


def _first(peer: socket.socket) -> bytes:
    """The first bytes that a peer says, as many as a word has."""
    try:
        return peer.recv(WORD_BYTES, socket.MSG_WAITALL)
    except OSError:
        return b""
