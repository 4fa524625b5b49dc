"""`dyno publish`: writes a run into a folder that others can check."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from dbdyno.cli.patience import waiting
from dbdyno.cli.stored_run import run_to_read
from dbdyno.cli.terminal import tell
from dbdyno.errors import UserError
from dbdyno.prepare_run.begun import question_of
from dbdyno.publish import MAKE_A_KEY
from dbdyno.publish.folder import require_empty, write_folder
from dbdyno.publish.making import (
    PUBLIC_OF,
    SIGNED,
    STATEMENT,
    UNSIGNED,
    PrivateKey,
    contents_of,
    folder_source,
    private_key,
)
from dbdyno.records.chain import Publication, sha256
from dbdyno.records.place import store_url
from dbdyno.records.store import Store
from dbdyno.report.words.numbers import plural
from dbdyno.study import excludes


def main(run: str, folder: Path, key: Path | None, unsigned: bool, store: str | None) -> None:
    if key is None and not unsigned:
        raise UserError(
            "no key signs the folder, so nobody could tell whose it is",
            f"make a key: {MAKE_A_KEY}; then --key dyno.key, or --unsigned",
        )
    excludes.require(key=key, unsigned=unsigned)
    require_empty(folder)
    signing = private_key(key, _password) if key is not None else None
    with Store(store_url(store)) as opened:
        found = run_to_read(opened, run)
        with waiting(f"reading and analysing {found.run}"):
            contents = contents_of(folder_source(opened, found, signing, tell), signing)
        write_folder(folder, contents)
        _note(opened, found.run, question_of(found), contents, signing)
    click.echo(str(folder))
    click.echo(f"run {found.run}: {plural(len(contents), 'file')}", err=True)
    if signing is not None:
        click.echo(f"  signed by the key {signing.public.fingerprint}", err=True)
        click.echo(f"  others need its public half: {PUBLIC_OF}", err=True)


def _password() -> str:
    """Asks for the password of a key. Raises UserError where there is nobody to ask."""
    if not sys.stdin.isatty():
        raise UserError(
            "the key is encrypted, and there is no terminal to ask for its password",
            "run it on a terminal, or sign with a key without a password",
        )
    return str(click.prompt("Password of the key", hide_input=True, err=True))


def _note(
    store: Store, run: str, question: str, contents: dict[str, bytes], signing: PrivateKey | None
) -> None:
    """Notes in the chain that the run was shown, where this user may write the store."""
    statement = contents[f"{STATEMENT}{SIGNED if signing else UNSIGNED}"]
    content = Publication(
        question=question,
        run=run,
        published_unix_s=time.time(),
        statement_sha256=sha256(statement),
        key=signing.public.fingerprint if signing else "",
    )
    try:
        store.require_writable()
    except UserError as error:
        click.echo(f"the store does not note that the run was published: {error.message}", err=True)
    else:
        store.append(content)
