"""A small real application for tests, in front of a server that speaks MySQL's protocol."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

from dbdyno.applications.product import ApplicationPlace, Front, InstalledApplication, Product
from dbdyno.engines.server import start_server
from dbdyno.host.launch import Launch
from dbdyno.obtain.installation import Installation
from dbdyno.study.nouns import Application

SERVED = Path(__file__).with_name("shop_served.py")
INSTALLATION = Installation(
    "shop", "1.0", str(SERVED), SERVED.parent, (sys.executable, str(SERVED)), "0" * 12
)
SCRIPT = """
[[start.statements]]
request = "GET /enter"
[[transactions]]
name = "buy"
statements = [{ request = "POST /buy", expect = 201 }]
"""


@dataclass(frozen=True)
class Life:
    """How the shop behaves, in a word of `shop_served.py`."""

    manner: str

    def populate(self, installation: Installation, wish: Application, place: ApplicationPlace) -> None:
        place.data.mkdir(mode=0o700)

    def start(self, installation: Installation, wish: Application, place: ApplicationPlace) -> Front:
        place.runtime.mkdir(mode=0o700)
        socket = place.runtime / "shop.sock"
        [database] = parse_qs(urlsplit(place.database_url).query)["socket"]
        running = start_server(
            title="Shop 1.0",
            url=f"http://localhost?socket={quote(str(socket), safe='/')}",
            installation=installation,
            command=[*installation.command, str(socket), self.manner, database],
            folder=place.runtime,
            data=place.data,
            runtime=place.runtime,
            how=Launch(),
            socket=socket,
            version_sql="GET /version\n< body /version",
            problems=lambda log: [line for line in log.splitlines() if "ERROR" in line],
            hint=lambda _: "read the shop's log",
            leftovers=(socket,),
        )
        return Front(running, lambda: (), lambda: None)


def shop(manner: str) -> InstalledApplication:
    """The shop as a study would have it."""
    wish = Application(name="shop", workers=1)
    product = Product(
        name="shop",
        title="Shop",
        protocols=frozenset(("mysql",)),
        own=frozenset(),
        worker_bytes=32 << 20,
        locate=lambda _: INSTALLATION,
        life=Life(manner),
    )
    return InstalledApplication(product, INSTALLATION, wish)
