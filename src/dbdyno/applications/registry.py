"""The applications that Dyno knows, by the name that a study writes."""

from __future__ import annotations

from functools import cache

from dbdyno.applications.product import InstalledApplication, Product
from dbdyno.obtain.installation import Installation
from dbdyno.registry import LazyTable, registry
from dbdyno.study.nouns import Application

PRODUCTS: LazyTable[Product] = registry({"keystone": "dbdyno.applications.keystone:KEYSTONE"})


def installed(wish: Application | None) -> InstalledApplication | None:
    """The application that a study asks for; None where it asks for none. Raises EngineMissing with the
    commands that install it. It is looked for once in a process."""
    if wish is None:
        return None
    return InstalledApplication(PRODUCTS[wish.name], _located(wish.name, wish.version, wish.path), wish)


# A run asks before its first trial and for its bench, and reading all packages takes a while.
@cache
def _located(name: str, version: str, path: str) -> Installation:
    return PRODUCTS[name].locate(Application(name=name, version=version, path=path))
