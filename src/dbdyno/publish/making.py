"""A run of a store as a published folder holds it: put together, stated, and signed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from dbdyno.errors import DynoError, UserError
from dbdyno.host import cache
from dbdyno.host.cache import Tell
from dbdyno.layers.source import key_in
from dbdyno.obtain.source import making
from dbdyno.prepare_run.begun import question_of, reruns_of
from dbdyno.publish import statement
from dbdyno.publish.account import Account, Given, PublishedBuild, made_here
from dbdyno.publish.contents import Contents, found_in, given_files, made_files
from dbdyno.publish.envelope import PrivateKey
from dbdyno.publish.folder import sha256_in
from dbdyno.publish.statement import Found
from dbdyno.records.chain import CHANGED, Entry, broken_at
from dbdyno.records.record import Record
from dbdyno.records.run import Run
from dbdyno.records.store import Store
from dbdyno.study.files import digest_of

KEY = "key.pub.pem"
STATEMENT, FIGURES, BUILD = "statement", "figures", "build-"
SIGNED, UNSIGNED = ".dsse.json", ".json"


def given_of(store: Store, run: Run, key: PrivateKey | None, tell: Tell) -> Given:
    """All that a folder of a run is made from. Raises UserError for a run that is not over, and DynoError
    for a chain that does not hold."""
    if run.run in {each.run for each in store.unfinished_runs()}:
        raise UserError(f"run {run.run} is not finished", f"go on with it: dyno run --resume {run.run}")
    chain = store.chain()
    if broken := broken_at(chain):
        raise DynoError(f"the chain of {store.place} does not hold: {broken}", CHANGED)
    records = store.records(run.run)
    builds, unkept = _builds(records)
    for one in unkept:
        tell(f"build {one} is not kept here any more, so nothing says how it was made")
    account = Account(
        run=run.run,
        published_unix_s=time.time(),
        made_by=made_here(),
        reruns=reruns_of(store, run),
        key=key.public.fingerprint if key else "",
        unkept=unkept,
    )
    return Given(account, run, tuple(records), tuple(_shown(chain, question_of(run))), builds)


def _shown(chain: list[Entry], question: str) -> Iterator[Entry]:
    """The whole chain. What the entries of other studies say is nobody's business here."""
    for entry in chain:
        yield entry if entry.question == question else entry.closed()


def _builds(records: list[Record]) -> tuple[tuple[PublishedBuild, ...], tuple[str, ...]]:
    """The builds that ran, by their accounts; and the keys of those that are not kept any more."""
    keys = sorted({key for record in records if (key := key_in(record.evidence))})
    shelf = cache.shelf("builds")
    kept: dict[str, PublishedBuild] = {}
    for name in shelf.names() if keys else ():
        account = making.readable_account(shelf.folder / name)
        if account is None or account.key not in keys or (folder := shelf.take(name)) is None:
            continue
        program = (folder / making.PREFIX / account.program).resolve()
        kept[account.key] = PublishedBuild(made=account, program_sha256=digest_of(program))
    builds = tuple(kept[key] for key in keys if key in kept)
    return builds, tuple(key for key in keys if key not in kept)


def contents_of(given: Given, key: PrivateKey | None) -> Contents:
    """Every file of the folder. The statement that names all others comes last."""
    found = found_in(given)
    contents = given_files(given) | {name: make() for name, make in made_files(given, found).items()}
    if key is not None:
        contents[KEY] = key.public.pem
    ending = SIGNED if key else UNSIGNED
    for name, payload in statements_beside(given, found, contents).items():
        contents[f"{name}{ending}"] = key.sealed(payload) if key else payload
    whole = statement.test_result(found, statement.digests_of(contents))
    return contents | {f"{STATEMENT}{ending}": key.sealed(whole) if key else whole}


def statements_beside(given: Given, found: Found, contents: Mapping[str, bytes]) -> Contents:
    """The payloads of the statements on the figures and on each build, by their names without an ending."""
    basis = {name: sha256_in(contents, name) for name in given_files(given) if name in contents}
    stated = {FIGURES: statement.figures(given, found, basis)}
    return stated | {f"{BUILD}{one.made.key}": statement.provenance(given, one) for one in given.builds}
