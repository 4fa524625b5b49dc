"""`dyno explain`: the gap between two variants of a run, as a product of factors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from dbdyno.analyse.quantiles import FACTORS_MOST
from dbdyno.cli import formats
from dbdyno.cli.deliver import deliver
from dbdyno.cli.formats import format_of
from dbdyno.cli.stored_run import chosen, run_to_read
from dbdyno.cli.terminal import tell
from dbdyno.errors import UserError
from dbdyno.findings.gap import explain_gap, explain_steps, gap_with_losses
from dbdyno.findings.gap_shares import steps_of
from dbdyno.frozen import ENGINE_FACTOR
from dbdyno.host.host_lock import alone
from dbdyno.prepare_run.adapted import require_timed
from dbdyno.prepare_run.own_files import left_out_lines, levels_line, old_defaults
from dbdyno.prepare_run.stored_study import require_speeds, study_of
from dbdyno.prepare_run.study_here import with_losses
from dbdyno.records.place import store_url
from dbdyno.records.record import Record
from dbdyno.records.store import Store
from dbdyno.study import Design, Study
from dbdyno.study.designs import variants_of
from dbdyno.study.trials import Variant
from dbdyno.study.written import with_old_defaults

DEFAULTS_S = 30.0
"""About how long servers of two versions take that are asked for their settings."""


def main(
    run: str,
    slow: str | None,
    fast: str | None,
    target: Path | None,
    form: str | None,
    as_json: bool,
    output: Path | None,
    store: str | None,
) -> None:
    form = format_of(form, as_json, output)
    with Store(store_url(store)) as opened:
        found = run_to_read(opened, run)
        require_speeds(found)
        records = opened.records(found.run)
    study = require_timed(study_of(found), "dyno explain")
    variants = {variant.name: variant for variant in variants_of(study)}
    ends = _slow(variants, slow), _fast(study, variants, fast)
    if target is not None:
        _write(study, records, ends, target)
        return
    if slow is None and fast is None and steps_of(study, list(variants.values())):
        gap, ends = explain_steps(study, found, records), (ends[0], list(variants.values())[-1])
    else:
        _require_all_between(study, *ends)
        gap = explain_gap(study, found, records, *ends)
    gap = gap_with_losses(gap, study, with_losses(study, found).given_up)
    title = f"{study.title}: {ends[0].name} to {ends[1].name}"
    deliver("explain", gap, form, output, heading=title)


def _write(study: Study, records: Sequence[Record], ends: tuple[Variant, Variant], target: Path) -> None:
    """Writes the study that tells the defaults of two versions from the rest of their gap."""
    if target.exists():
        raise UserError(f"{target} is there already", "give another name with --write")
    with alone(f"the defaults of {study.title}", DEFAULTS_S):
        found = old_defaults(study, records, *ends, tell)
    for line in (*levels_line(found), *left_out_lines(found)):
        tell(line)
    formats.write(target, with_old_defaults(study, ends, found.old, found.new))
    tell(f"`dyno run {target}` measures it, and `dyno explain` then splits the gap")
    click.echo(target)


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
        hint = 'write design = "factorial", with two levels a factor'
        if differing == [ENGINE_FACTOR]:
            hint = "`dyno explain --write FILE.toml` makes a study that tells changed defaults from the rest"
        raise UserError(reason, hint)
    if not differing:
        raise UserError("the two variants are the same", "name another with --from or --to")
    if len(differing) > FACTORS_MOST:
        reason = f"they differ in {len(differing)} factors, which is {2 ** len(differing)} variants"
        hint = f'at most {FACTORS_MOST} are shared out exactly; for more, design = "{Design.FRACTIONAL}"'
        raise UserError(reason, hint)
