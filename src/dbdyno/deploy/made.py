"""A recipe from a finished run: which variant may be deployed, and what of it production takes.

The build of a recipe is told by what it was made of, so that it can be made again on another host.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from dbdyno.analyse.model import Analysis, Ratio, Role, VariantResult, Verdict
from dbdyno.deploy.deployment import DeployedBuild, Deployment, ProductionChange, without_folders
from dbdyno.deploy.evidence import evidence_page
from dbdyno.deploy.files import RecipeFile, ansible_role, by_hand, files_beside, files_for_host, tuned_profile
from dbdyno.engines import registry
from dbdyno.engines.built import patches_of, recipe_file, recipe_of
from dbdyno.engines.engine import Engine
from dbdyno.engines.facts import Production
from dbdyno.errors import Blocked, UserError
from dbdyno.findings.gap import shares
from dbdyno.frozen import ENGINE_FACTOR, Level, level_shown, level_text
from dbdyno.host import cache
from dbdyno.layers.layer import ask, by_layer
from dbdyno.layers.registry import KNOBS, LAYERS, gives_up, in_production
from dbdyno.layers.setup import Part, PartPlace
from dbdyno.layers.source import key_in, wish_among
from dbdyno.obtain.source import making
from dbdyno.obtain.source.build import BuildAccount, BuildSpecification
from dbdyno.obtain.source.profile import PROFILE
from dbdyno.obtain.source.toolchain import recorded
from dbdyno.records.record import Evidence, Outcome, Record
from dbdyno.report.words.naming import workload_text
from dbdyno.report.words.safe import clean
from dbdyno.study.designs import of_build

Contents = dict[str, bytes]
"""Files by their path in the recipe's folder."""


def build_with_key(
    engine: Engine, levels: Mapping[str, Level], key: str, folder: Path
) -> tuple[DeployedBuild, Contents] | None:
    """The build of these levels that has a key, and the files that make it again: its recipe, its patches and
    the profiles that guided it. None where the levels ask for no build. `folder` is the study's. Raises
    UserError where the build is not kept, or where a file of it has changed since."""
    wish = wish_among(ask(by_layer(levels), LAYERS, engine))
    if wish is None:
        return None
    made, account = _kept(key)
    return _facts(made, account), dict(_files(engine, wish, account, made, folder))


def _kept(key: str) -> tuple[Path, BuildAccount]:
    """The folder of the build, which nobody frees until this process ends, and its account."""
    shelf = cache.shelf("builds")
    for name in shelf.names():
        account = making.readable_account(shelf.folder / name)
        if account is not None and account.key == key and (made := shelf.take(name)) is not None:
            return made, account
    raise UserError(
        f"the build {key or 'of this variant'} is not kept any more", "run the study again, which makes it"
    )


def _facts(made: Path, account: BuildAccount) -> DeployedBuild:
    build_id = ""
    with suppress(Blocked):
        build_id = recorded((made / making.PREFIX / account.program).resolve()).build_id
    return DeployedBuild(
        key=account.key,
        words=without_folders(account.words),
        source=without_folders(account.source),
        patches=account.patches,
        toolchain=account.toolchain,
        flags=account.flags,
        trained="; ".join(one.words for one in (account.training, account.bolt) if one),
        build_id=build_id,
    )


def _files(
    engine: Engine, wish: BuildSpecification, account: BuildAccount, made: Path, folder: Path
) -> Iterator[tuple[str, bytes]]:
    path = recipe_file(engine, wish, folder)
    if recipe_of(engine, wish, folder).digest != account.recipe:
        raise _changed(path)
    yield "build/recipe.toml", path.read_bytes()
    for patch in patches_of(wish, folder):
        if f"{patch.name} {patch.digest[:12]}" not in account.patches:
            raise _changed(folder / patch.name)
        yield f"build/patches/{patch.name}", patch.content
    for name, profile in {"profile": made / PROFILE, "bolt": made / making.BOLT / PROFILE}.items():
        for file in sorted(one for one in profile.rglob("*") if one.is_file()):
            yield f"build/{name}/{file.relative_to(profile)}", file.read_bytes()


def _changed(file: Path) -> UserError:
    return UserError(
        f"{file.name} is not what the build was made of", "put it back as it was, or run the study again"
    )


NEVER = (Verdict.BROKEN, Verdict.BLOCKED, Verdict.FAILED, Verdict.INERT)
"""Verdicts of variants that have no speed, so that nothing speaks for them."""
OF_THE_DRIVER = frozenset({"driver_cpu_us_per_op"})
"""Costs that production does not have."""


def chosen_variant(analysis: Analysis, name: str | None, any_verdict: bool) -> VariantResult:
    """The variant of a name, else the one that is faster than each other that helped. Raises UserError where
    there is none, or where nothing speaks for it; with `any_verdict` a speed is enough."""
    answer = analysis.answer
    name = name or (answer.faster[0] if answer.faster and not answer.level else None)
    if name is None:
        faster = "\n".join(f"    {name}" for name in answer.level)
        hint = (
            f"choose one by --variant:\n{faster}" if faster else "choose one by --variant and --any-verdict"
        )
        raise UserError(f"no variant of run {analysis.run.run} is faster than all others", hint)
    variant = next(each for each in analysis.variants if each.name == name)
    if variant.role is not Role.CANDIDATE:
        raise UserError(
            f"{name} is a {variant.role.value} of the run, so it changes nothing", "choose another variant"
        )
    if variant.verdict is None or variant.verdict in NEVER:
        word = variant.verdict.value if variant.verdict else "without a verdict"
        raise UserError(f"{name} is {word}, so nothing speaks for it", "choose a variant that has a speed")
    if variant.verdict is not Verdict.FASTER and not any_verdict:
        raise UserError(
            f"{name} is not faster than the baseline: its verdict is {variant.verdict.value}",
            "choose another by --variant, or write the recipe all the same by --any-verdict",
        )
    return variant


def production_of(engine: Engine) -> Production:
    """How an engine is deployed. Raises UserError where Dyno does not know that."""
    if engine.production is None:
        raise UserError(
            f"Dyno does not know how {engine.title} is deployed", "deploy it by hand: dyno report --trials"
        )
    return engine.production


class MadeRecipe(NamedTuple):
    """A recipe, the engine that it is for, and the files of its build."""

    deployment: Deployment
    engine: Engine
    build: Contents


def recipe_made(
    analysis: Analysis, records: Sequence[Record], name: str | None, any_verdict: bool
) -> MadeRecipe:
    """The recipe of a finished run's variant. Raises UserError like `chosen_variant`, and where the variant
    runs another engine than the baseline."""
    variant = chosen_variant(analysis, name, any_verdict)
    if ENGINE_FACTOR in variant.changed:
        told = f"{clean(variant.name)} runs another engine than the baseline, which no recipe installs"
        hint = "upgrade the server, and take the recipe of a run whose baseline is that engine"
        raise UserError(told, hint)
    engine = registry.engine(analysis.study.engine.engine)
    deployment = deployment_of(analysis, records, variant, engine)
    levels = {**analysis.study.settings, **variant.levels}
    key = key_in(measured_record(records, variant).evidence)
    build = build_with_key(engine, levels, key, analysis.study.folder)
    if build is None:
        return MadeRecipe(deployment, engine, {})
    facts = build[0].but(changed=any(map(of_build, variant.changed)))
    return MadeRecipe(deployment.but(build=facts), engine, build[1])


EVIDENCE = "EVIDENCE.md"


def recipe_files(
    deployment: Deployment, engine: Engine, build: Contents, tuned: bool = False, role: bool = False
) -> list[RecipeFile]:
    """The files of a recipe; with a profile of TuneD, and with a role of Ansible, where those are asked for
    and have something to hold."""
    production = production_of(engine)
    for_host = files_for_host(deployment, production)
    evidence = evidence_page(deployment, by_hand(deployment, for_host), engine.title)
    files = [*for_host, *files_beside(deployment, production, for_host)]
    files += [
        RecipeFile(EVIDENCE, evidence.encode()),
        *(RecipeFile(name, text) for name, text in build.items()),
    ]
    if tuned:
        files += tuned_profile(deployment)
    if role:
        files += ansible_role(for_host, deployment.service)
    return files


def deployment_of(
    analysis: Analysis, records: Sequence[Record], variant: VariantResult, engine: Engine
) -> Deployment:
    """The recipe of a variant, without its build. Raises UserError for a variant that changes what production
    does not have."""
    study, run, production = analysis.study, analysis.run, production_of(engine)
    record = measured_record(records, variant)
    found = _changes({**study.settings, **variant.levels}, engine, record, shares(analysis, records, variant))
    _require_deployable(variant, found)
    search = analysis.search if analysis.search and analysis.search.winner == variant.name else None
    throughput, version = variant.summary("throughput"), record.engine_version
    return Deployment(
        run=run.run,
        title=study.title,
        variant=_name(variant),
        verdict=variant.verdict or Verdict.INCONCLUSIVE,
        host=run.host.name or "",
        measured_unix_s=run.created_unix_s,
        dyno_version=run.dyno_version,
        engine=engine.name,
        version=version,
        workload=without_folders(workload_text(analysis)),
        blocks=study.blocks,
        response=study.goal.response,
        effect=variant.effect,
        costs=tuple(cost for cost in variant.costs if cost.metric not in OF_THE_DRIVER),
        taken_back=search is not None and bool(search.rounds),
        optimism=search.optimism if search is not None else None,
        throughput_per_s=throughput.mean if throughput else None,
        changes=tuple(
            change.but(was=_level(factor, analysis.baseline.levels[factor]))
            for factor, change in found.items()
            if factor in variant.changed
        ),
        held=tuple(
            change
            for factor, change in found.items()
            if factor not in variant.changed and in_production(factor)
        ),
        service=production.of(production.service, version),
        configuration=production.of(production.folder, version),
    )


def _name(variant: VariantResult) -> str:
    """A variant is named by its levels, and those of builds by files."""
    return without_folders(variant.name) if any(map(of_build, variant.changed)) else variant.name


def _level(factor: str, level: Level) -> Level:
    return without_folders(level_text(level)) if of_build(factor) else level


def measured_record(records: Sequence[Record], variant: VariantResult) -> Record:
    """The last record of a variant that has a speed: what its server said of itself. Raises UserError where
    there is none."""
    measured = [
        record
        for record in records
        if record.variant == variant.name and record.outcome is Outcome.MEASURED and not record.of_no_block
    ]
    if not measured:
        raise UserError(f"no trial of {variant.name} has a speed", "choose another variant")
    return measured[-1]


def _changes(
    levels: Mapping[str, Level], engine: Engine, record: Record, own: Mapping[str, Ratio]
) -> dict[str, ProductionChange]:
    """Every level of a variant, by factor."""
    split = by_layer(levels)
    settings = split.get("config", {})
    parts = [part for request in ask(split, LAYERS, engine) for part in request.parts(engine, settings)]
    reasons = {one.name: one.why for one in engine.settings.searchable(0)}
    reasons |= {one.name: one.why for one in engine.settings.proposals(0)}
    evidence = {one.factor: one for one in record.evidence}
    return {
        factor: ProductionChange(
            factor=factor,
            level=_level(factor, level),
            parts=tuple(part for part in parts if part.factor == factor) or _without_parts(factor, level),
            **_read(evidence.get(factor)),
            why=reasons.get(factor, "") or (KNOBS[factor].effect if factor in KNOBS else ""),
            share=own.get(factor),
            gives_up=gives_up(factor, level, engine, levels),
        )
        for factor, level in levels.items()
    }


def _read(evidence: Evidence | None) -> dict[str, str]:
    """What a trial read of a level. What settings answer to a statement, another host can ask again; all
    other readings name processes and devices of the host of the run."""
    if evidence is None or evidence.effective is None or not evidence.factor.startswith("config."):
        return {}
    exercised = evidence.exercised.value if evidence.exercised else ""
    return {
        "statement": evidence.effective.source,
        "answer": evidence.effective.value,
        "exercised": exercised,
    }


def _without_parts(factor: str, level: Level) -> tuple[Part, ...]:
    """A level that production has when nothing sets another one."""
    if of_build(factor) or not in_production(factor):
        return ()
    deed = f"take out what sets another level than {level_shown(level)}, which needs nothing"
    return (Part(factor=factor, place=PartPlace.BY_HAND, name=factor, value=deed),)


def _require_deployable(variant: VariantResult, found: Mapping[str, ProductionChange]) -> None:
    """Raises UserError where a change is of the load, or of a volume that Dyno made: nobody can deploy it."""
    for factor in variant.changed:
        if not found[factor].parts and not in_production(factor):
            raise UserError(
                f"{variant.name} changes {factor}, which no server in production has",
                "choose a variant that differs from the baseline in the server or its host alone",
            )
