"""What keeps variants from being put into effect, as far as it can be tried without a measurement.

Levels exclude each other, this host lacks something, an engine does not take a level, or a server does not
start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from dbdyno.begin.catalogue import located
from dbdyno.begin.engines import engine_of, untaken_of
from dbdyno.begin.running import refusals_of, settable
from dbdyno.frozen import Level, level_text
from dbdyno.host.allowed import Allowed
from dbdyno.host.cache import Tell
from dbdyno.host.host_lock import alone
from dbdyno.layers.foresight import Refusal, foresee, lacking
from dbdyno.layers.layer import by_layer
from dbdyno.obtain.installation import Installation
from dbdyno.report.words.numbers import plural
from dbdyno.study import Study
from dbdyno.study.trials import Variant
from dbdyno.trial.defaults import not_in_effect

START_S = 5.0
"""About how long a server takes that starts on empty data, for those who wait for this host."""


def levels_in(study: Study, variants: Sequence[Variant]) -> dict[str, dict[str, Level]]:
    """The levels of each variant by its name, those that hold for all included, as layers are asked about."""
    return {one.name: settable(study, {**study.settings, **one.levels}) for one in variants}


def blocked_of(study: Study, variants: Sequence[Variant], allowed: Allowed) -> tuple[Refusal, ...]:
    """The variants that will be blocked, and why. Starts nothing, and changes nothing."""
    levels, engines = levels_in(study, variants), partial(engine_of, study)
    excluded = foresee(levels, engines).blocked
    known = {name for one in excluded for name in one.variants}
    asked = {name: own for name, own in levels.items() if name not in known}
    here = lacking(asked, engines) if study.server is None else ()
    return (
        *excluded,
        *here,
        *untaken_of(study, variants, allowed),
        *refusals_of(study, tuple(variants)),
    )


def unstartable(study: Study, variants: Sequence[Variant], tell: Tell) -> Iterator[Refusal]:
    """The variants whose server does not start with all their settings together, or does not have them then.
    Starts one on empty data for each combination of settings."""
    asked: dict[tuple[str, tuple[tuple[str, str], ...]], list[Variant]] = {}
    for variant in variants if study.server is None else ():
        levels = {**study.settings, **variant.levels}
        config = by_layer(levels).get("config", {})
        key = tuple(sorted((name, level_text(level)) for name, level in config.items()))
        asked.setdefault((study.engine_of(levels).written, key), []).append(variant)
    with alone(f"the servers of {study.title}", START_S * len(asked), tell=tell):
        for (written, _), each in asked.items():
            levels = {**study.settings, **each[0].levels}
            found = located(study.engine_of(levels))
            if not isinstance(found, Installation):
                continue
            tell(f"{written} starts with the settings of {plural(len(each), 'variant')}")
            config = by_layer(levels).get("config", {})
            yield from _refusals(not_in_effect(engine_of(study, levels), found, config), config, each)


def _refusals(
    wrong: Mapping[str, str], config: Mapping[str, Level], variants: Sequence[Variant]
) -> Iterator[Refusal]:
    for name, why in wrong.items():
        yield Refusal(
            factor=f"config.{name}",
            reason=f"{name} = {level_text(config[name])}: {why}",
            remedy="take another level, or another one beside it",
            variants=tuple(one.name for one in variants),
        )
