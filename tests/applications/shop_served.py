"""A small application for tests. It answers HTTP on a Unix socket, in the manner that it is told.

Arguments: its socket, its manner, and the socket of the database beneath. A manner is a key of `MANNERS`,
"sells", "does not start", or "never lets in".
"""

from __future__ import annotations

import itertools
import os
import random
import socket
import socketserver
import sys
import time
from http.server import BaseHTTPRequestHandler

LEAKED: list[socket.socket] = []
ASKED = itertools.count(1)
CHANCE = random.Random(3)
"""Every third answer would be the same one's of three clients who take turns."""
SOLD = (201, "{}")


class Shop(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    manner = ""
    database = ""

    def do_GET(self) -> None:
        if self.path == "/enter" and self.manner == "never lets in":
            time.sleep(3600)
        self.answer(200, '{"version": "1.0"}')

    def do_POST(self) -> None:
        behave = MANNERS.get(self.manner)
        status, body = behave(self.database) if behave else SOLD
        self.answer(status, body)

    def answer(self, status: int, body: str) -> None:
        self.send_response_only(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())


def breaks(_: str) -> tuple[int, str]:
    return 500, '{"error": "the till is empty"}'


def stumbles(_: str) -> tuple[int, str]:
    return (503, '{"error": "come again"}') if CHANCE.random() < 1 / 3 else SOLD


def leaks(database: str) -> tuple[int, str]:
    """Opens one more connection to the database, and never closes it."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(database)
    greeting = connection.recv(4096)
    if len(greeting) > 4 and greeting[4] != 0xFF:
        LEAKED.append(connection)
        return SOLD
    connection.close()
    return 500, '{"error": "no connection to the database"}'


def sleeps(_: str) -> tuple[int, str]:
    time.sleep(3600)
    return SOLD


def dies(_: str) -> tuple[int, str]:
    if next(ASKED) > 20:
        print("ERROR: the roof came down", file=sys.stderr, flush=True)
        os._exit(1)
    return SOLD


MANNERS = {"breaks": breaks, "stumbles": stumbles, "leaks": leaks, "sleeps": sleeps, "dies": dies}


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


if __name__ == "__main__":
    place, Shop.manner, Shop.database = sys.argv[1:]
    if Shop.manner == "does not start":
        sys.exit("ERROR: the shelf has no column `price`")
    with Server(place, Shop) as server:
        server.serve_forever()
