"""`dyno explain`: the gap between two variants of a run, as a product of factors."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.analyse import explain_gap
from dbdyno.analyse.family import FACTORS_MOST
from dbdyno.analyse.losses import gap_with_losses
from dbdyno.begin.losses import with_losses
from dbdyno.begin.stored_study import require_speeds, study_of
from dbdyno.cli.deliver import deliver
from dbdyno.cli.formats import format_of, format_options
from dbdyno.cli.options import store_option
from dbdyno.cli.stored_run import chosen, run_to_read
from dbdyno.errors import UserError
from dbdyno.records.place import store_url
from dbdyno.records.store import Store
from dbdyno.study import Design, Study
from dbdyno.study.designs import variants_of
from dbdyno.study.trials import Variant


@click.command()
@click.argument("run", default="last")
@click.option(
    "--from", "slow", metavar="VARIANT", help="The slow variant, or its number; the baseline if left out."
)
@click.option(
    "--to",
    "fast",
    metavar="VARIANT",
    help="The fast variant, or its number; every factor's last level if left out.",
)
@format_options
@store_option
def command(
    run: str,
    slow: str | None,
    fast: str | None,
    form: str | None,
    as_json: bool,
    output: Path | None,
    store: str | None,
) -> None:
    """Explain the gap between two variants of RUN (the last one if left out) as a product of factors.

    The run's study must be a factorial one, so that every variant between the two was measured; or, for more
    factors, a fraction of one, which names what it cannot tell apart.
    """
    form = format_of(form, as_json, output)
    with Store(store_url(store)) as opened:
        found = run_to_read(opened, run)
        require_speeds(found)
        records = opened.records(found.run)
    study = study_of(found)
    variants = {variant.name: variant for variant in variants_of(study)}
    ends = _slow(variants, slow), _fast(study, variants, fast)
    _require_all_between(study, *ends)
    gap = explain_gap(study, records, *ends)
    gap = gap_with_losses(gap, study, with_losses(study, found).given_up) or gap
    title = f"{study.title}: {ends[0].name} to {ends[1].name}"
    deliver("explain", gap, form, output, title=title)


def _slow(variants: dict[str, Variant], name: str | None) -> Variant:
    return next(iter(variants.values())) if name is None else _named(variants, name)


def _fast(study: Study, variants: dict[str, Variant], name: str | None) -> Variant:
    if name is not None:
        return _named(variants, name)
    last = {factor.name: factor.levels[-1] for factor in study.factors}
    return next(
        (variant for variant in variants.values() if variant.levels == last), list(variants.values())[-1]
    )


def _named(variants: dict[str, Variant], name: str) -> Variant:
    return variants[chosen(list(variants), name)]


def _require_all_between(study: Study, slow: Variant, fast: Variant) -> None:
    """Raises UserError where the design did not measure what the gap between the two is made of."""
    differing = [name for name in slow.levels if slow.levels[name] != fast.levels[name]]
    if study.design is Design.FRACTIONAL:
        if slow.levels != study.baseline or len(differing) < len(study.factors):
            raise UserError(
                "a fraction explains only the gap from the baseline to every factor's second level",
                "leave --from and --to out",
            )
        return
    if study.design is not Design.FACTORIAL:
        reason = f"the design {study.design.value!r} does not measure what lies between two variants"
        raise UserError(reason, 'write design = "factorial", with two levels a factor')
    if not differing:
        raise UserError("the two variants are the same", "name another with --from or --to")
    if len(differing) > FACTORS_MOST:
        reason = f"they differ in {len(differing)} factors, which is {2 ** len(differing)} variants"
        hint = f'at most {FACTORS_MOST} are shared out exactly; for more, design = "{Design.FRACTIONAL}"'
        raise UserError(reason, hint)
