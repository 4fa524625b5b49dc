"""The applications that Dyno knows, by the name that a study writes."""

from __future__ import annotations

from dbdyno.applications.keystone import KEYSTONE
from dbdyno.applications.product import Installed, Product
from dbdyno.study.nouns import Application

PRODUCTS: dict[str, Product] = {product.name: product for product in (KEYSTONE,)}


def installed(wish: Application | None) -> Installed | None:
    """The application that a study asks for; None where it asks for none. Raises EngineMissing with the
    commands that install it."""
    if wish is None:
        return None
    product = PRODUCTS[wish.name]
    return Installed(product, product.locate(wish), wish)
