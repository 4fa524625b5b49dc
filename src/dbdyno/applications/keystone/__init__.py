"""Keystone, the identity service of OpenStack, under gunicorn."""

from __future__ import annotations

from dbdyno.applications.keystone import life
from dbdyno.applications.keystone.life import OWN, locate
from dbdyno.applications.product import Product

KEYSTONE = Product(
    name="keystone",
    title="Keystone",
    protocols=frozenset(("mysql",)),
    own=OWN,
    worker_bytes=150 << 20,
    locate=locate,
    life=life,
)
