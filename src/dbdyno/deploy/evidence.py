"""The page of a recipe for its reader: what each change gains and costs, and how that was measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dbdyno.analyse.model import Ratio, Verdict
from dbdyno.deploy.deployment import DeployedBuild, Deployment, ProductionChange
from dbdyno.frozen import level_shown
from dbdyno.layers.setup import Part, PartPlace
from dbdyno.records import metrics
from dbdyno.report.words.numbers import (
    DASH,
    day_text,
    effect_text,
    interval_text,
    plural,
    ratio_text,
    share_text,
)
from dbdyno.report.words.safe import clean, markdown
from dbdyno.study.nouns import Promise

PLACES = {
    PartPlace.SETTING: "the server's settings",
    PartPlace.ENVIRONMENT: "the server's environment",
    PartPlace.UNIT: "the server's systemd unit",
    PartPlace.KERNEL: "the kernel",
    PartPlace.QUEUE: "the disk of the data",
    PartPlace.MOUNT: "the mount of the data",
    PartPlace.BY_HAND: "by hand",
}
LOSSES = {
    Promise.DURABILITY: "a commit can be lost, of which a client was told, when the server or the host ends"
    " suddenly",
    Promise.INTEGRITY: "data can be wrong after a sudden end or a fault, and nobody is told",
    Promise.ISOLATION: "a transaction can see, or overwrite, what another one did in its midst",
    Promise.SECURITY: "a fault of the server is easier to attack",
}
SCRIPTS = (
    "`./apply` puts the recipe into effect, as root. It keeps what was there before.",
    "`./check` says what of it is not in effect. It needs no Dyno; `dyno recipe check` looks closer.",
    "`./undo` takes back what `apply` changed, where nobody has changed it since.",
)


def evidence_page(deployment: Deployment, by_hand: Mapping[str, str], engine_title: str) -> str:
    """The page as Markdown, ending in a newline. What can be lost stands on top."""
    parts = [
        f"# {_text(_title(deployment, engine_title))}",
        _given_up(deployment),
        _measured(deployment),
        "## Changes",
        _changes(deployment),
        _reasons(deployment.changes),
        *_listed("## What it costs", _costs(deployment)),
        *_listed("## To do by hand", [f"- {_text(name)}: {_code(deed)}" for name, deed in by_hand.items()]),
        *_listed("## The build", _build(deployment.build)),
        *_held(deployment),
        "## How to use it",
        "\n".join(f"- {line}" for line in SCRIPTS),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _title(deployment: Deployment, engine_title: str) -> str:
    """The gain, where the run has shown one; else the verdict."""
    changes, told = plural(len(deployment.changes), "change"), deployment.verdict.value
    if deployment.effect is not None and deployment.verdict is Verdict.FASTER:
        told = f"{ratio_text(deployment.effect.ratio)} times the {_metric(deployment.response)}"
    return f"{engine_title} {deployment.version}: {changes}, {told}"


def _given_up(deployment: Deployment) -> str:
    """What can be lost, for durability in transactions of the measured speed."""
    changes = deployment.given_up
    if not changes:
        return ""
    named = ", ".join(f"{_level(one)}: {_loss(one)}" for one in changes)
    lasting = all(one.gives_up is not Promise.DURABILITY for one in changes)
    per_s = None if lasting else deployment.throughput_per_s
    speed = f" Each second that is lost is {per_s:,.0f} transactions at the measured speed." if per_s else ""
    return f"> **This recipe gives up {deployment.promises}.** {named}.{speed}"


def _loss(change: ProductionChange) -> str:
    """What can be lost by a level; empty where nothing can."""
    return LOSSES[change.gives_up] if change.gives_up is not None else ""


def _measured(deployment: Deployment) -> str:
    date = day_text(deployment.measured_unix_s)
    effect, facts = deployment.effect, []
    if effect is not None:
        gain = f"{effect_text(effect)} times the {_metric(deployment.response)}"
        sure = f"interval of {share_text(effect.confidence)}, {plural(effect.pairs, 'block')}"
        facts.append(f"variant / baseline: {gain}, {sure}")
    if deployment.optimism is not None:
        facts.append(f"the search's own ratio / the confirmed one: {ratio_text(deployment.optimism)}")
    facts += [
        f"verdict: {deployment.verdict.value}",
        f"run {_code(deployment.run)} of {_text(deployment.title)}, variant {_code(deployment.variant)}",
        f"host {_text(deployment.host) or 'without a name'}, {date}, Dyno {_text(deployment.dyno_version)}",
        f"load: {_text(deployment.workload)}",
    ]
    return "\n".join(f"- {fact}" for fact in facts)


def _changes(deployment: Deployment) -> str:
    heads = ("change", "was", "share of the gain", "interval", "where")
    rows = [
        (
            _level(change),
            _code(level_shown(change.was)) if change.was is not None else DASH,
            ratio_text(change.share.ratio) if change.share else "not measured alone",
            interval_text(change.share) if change.share else DASH,
            _where(change.parts),
        )
        for change in deployment.changes
    ]
    return "\n\n".join(filter(None, [_table(heads, rows), _of_shares(deployment)]))


def _of_shares(deployment: Deployment) -> str:
    """What the shares of several changes mean."""
    changes = deployment.changes
    if len(changes) < 2:
        return ""
    if deployment.taken_back and any(change.share for change in changes):
        return "A share is the ratio with all changes / without this one. They need not multiply to the gain."
    if all(change.share for change in changes):
        return "A share is a ratio. All of them multiply to the gain."
    return "The run does not tell what each change gains by itself. A factorial study does."


def _where(parts: Sequence[Part]) -> str:
    return ", ".join(dict.fromkeys(PLACES[part.place] for part in parts)) or "the build"


def _reasons(changes: Iterable[ProductionChange]) -> str:
    lines = []
    for change in changes:
        told = [change.why.rstrip(".")] if change.why else []
        told += [f"under the load: {change.exercised}"] if change.exercised else []
        told += [f"the server answered {change.answer}"] if change.answer else []
        if told:
            sentences = ". ".join(one[0].upper() + one[1:] for one in told)
            lines.append(f"- {_code(change.factor)}: {_text(sentences)}.")
    return "\n".join(lines)


def _costs(deployment: Deployment) -> list[str]:
    rows = [
        (_text(metrics.find(cost.metric).title), ratio_text(cost.ratio), interval_text(cost), _way(cost))
        for cost in deployment.costs
    ]
    return [_table(("metric", "ratio", "interval", "is"), rows)] if rows else []


def _way(cost: Ratio) -> str:
    """Whether the whole interval lies on one side of 1."""
    if cost.low is None or cost.high is None or cost.low <= 1.0 <= cost.high:
        return ""
    better = (cost.low > 1.0) is metrics.find(cost.metric).higher_is_better
    return "better" if better else "worse"


def _build(build: DeployedBuild | None) -> list[str]:
    if build is None:
        return []
    facts = {
        "made of": build.source,
        "patches": ", ".join(build.patches),
        "built with": f"{build.words} ({build.toolchain})",
        "flags": " ".join((*build.flags.compile, *build.flags.link)),
        "trained": build.trained,
        "build id": build.build_id,
    }
    told = [f"- {name}: {_code(value)}" for name, value in facts.items() if value]
    shared = [] if build.changed else ["- Variant and baseline were both this build."]
    files = {"its recipe": True, "its patches": build.patches, "its profile": build.trained}
    holds = " and ".join(name for name, there in files.items() if there)
    return [*told, *shared, f"- The folder `build` holds {holds}."]


def _held(deployment: Deployment) -> list[str]:
    if not deployment.held:
        return []
    told = (
        "Variant and baseline both had these levels, and the recipe sets them as well."
        if deployment.whole
        else "Variant and baseline both had these levels. The recipe leaves them as they are on your host. "
        "Where they differ there, the gain may be another."
    )
    rows = [(_code(each.factor), _code(level_shown(each.level)), _loss(each)) for each in deployment.held]
    return ["## What else the measured server had", told, _table(("factor", "level", "gives up"), rows)]


def _listed(title: str, lines: Sequence[str]) -> list[str]:
    """A part with its title, where there is something to list."""
    return [title, "\n".join(lines)] if lines else []


def _level(change: ProductionChange) -> str:
    return _code(f"{change.factor} = {level_shown(change.level)}")


def _metric(name: str) -> str:
    return metrics.find(name).title


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _code(text: str) -> str:
    """Text from outside as it is, in a cell or a line."""
    shown = clean(text).replace("|", r"\|").replace("`", "'")
    return f"`{shown}`"


def _text(text: str) -> str:
    """Text from outside, which opens no cell, no tag, no link and no line."""
    return markdown(clean(text))
