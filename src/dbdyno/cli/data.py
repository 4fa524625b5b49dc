"""`dyno cache data`: sets of vectors with their exact neighbours, in the cache."""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Table
from rich.text import Text

from dbdyno.cli.options import ListingGroup, json_option
from dbdyno.cli.terminal import terminal
from dbdyno.datasets import vectors
from dbdyno.datasets.vectors import Generator, VectorSet
from dbdyno.datasets.vectors.generate import lengths, nearness
from dbdyno.datasets.vectors.vector_set import DIMENSIONS_MAX, DISTANCES, VECTORS_MAX
from dbdyno.frozen import Frozen
from dbdyno.records.metrics import number_text
from dbdyno.report.words.safe import json_text

_distance_option = click.option(
    "--distance",
    type=click.Choice(DISTANCES),
    default=DISTANCES[0],
    show_default=True,
    help="Compute the exact neighbours under this distance.",
)
_k_option = click.option(
    "--k",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="Compute at least this many neighbours.",
)
_seed_option = click.option(
    "--seed", type=click.IntRange(0), default=1, show_default=True, help="Where the random numbers begin."
)


class VectorSetRow(Frozen):
    """A set of vectors as `--json` prints it; `neighbors` are how many exact ones each query has, by
    distance."""

    folder: str
    digest: str
    origin: str
    vectors: int
    dimensions: int
    queries: int
    size_bytes: int
    neighbors: dict[str, int]


@click.group(cls=ListingGroup)
def command() -> None:
    """Make sets of vectors, read them from files, inspect and list them.

    A study needs none of this: it names a file, or the generator's parameters, and Dyno makes the set when
    it is first needed.
    """


@command.command()
@click.option("--vectors", "count", type=click.IntRange(1, VECTORS_MAX), default=100_000, show_default=True)
@click.option("--dimensions", type=click.IntRange(1, DIMENSIONS_MAX), default=768, show_default=True)
@click.option("--queries", type=click.IntRange(1, VECTORS_MAX), default=1_000, show_default=True)
@click.option(
    "--clusters", type=click.IntRange(1), default=1, show_default=True, help="Draw from this many Gaussians."
)
@click.option(
    "--intrinsic-dimension",
    type=click.IntRange(1),
    default=32,
    show_default=True,
    help="Of the subspace around which the vectors lie; as many as --dimensions: no subspace.",
)
@click.option(
    "--noise",
    type=click.FloatRange(0, 1000),
    default=0.1,
    show_default=True,
    help="Standard deviation of the noise in each dimension; that of the subspace is 1.",
)
@_seed_option
@_distance_option
@_k_option
@json_option
def make(
    count: int,
    dimensions: int,
    queries: int,
    clusters: int,
    intrinsic_dimension: int,
    noise: float,
    seed: int,
    distance: str,
    k: int,
    as_json: bool,
) -> None:
    """Generate vectors and queries: a mixture of Gaussians in a subspace, plus noise."""
    generator = Generator(count, queries, dimensions, clusters, intrinsic_dimension, noise, seed)
    _show(vectors.with_neighbors(vectors.generated(generator, _tell), distance, k, _tell), as_json)


@command.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--queries-from", type=click.Path(path_type=Path), metavar="FILE", help="A second file holds the queries."
)
@click.option(
    "--held-out",
    type=click.IntRange(1),
    default=1_000,
    show_default=True,
    help="Take this many vectors out as queries, where the file has none.",
)
@_seed_option
@_distance_option
@_k_option
@json_option
def import_(
    file: Path, queries_from: Path | None, held_out: int, seed: int, distance: str, k: int, as_json: bool
) -> None:
    """Read vectors from FILE: .hdf5 (as ann-benchmarks lays it out), .npy, .fvecs or .fbin."""
    found = vectors.imported(file, queries_from, held_out, seed, _tell)
    _show(vectors.with_neighbors(found, distance, k, _tell), as_json)


@command.command()
@click.argument("name", metavar="SET")
@_distance_option
@_k_option
@json_option
def neighbors(name: str, distance: str, k: int, as_json: bool) -> None:
    """Compute more exact neighbours of a SET: a folder, or the beginning of a digest."""
    _show(vectors.with_neighbors(vectors.find(name), distance, k, _tell), as_json)


@command.command()
@click.argument("name", metavar="SET")
@json_option
def inspect(name: str, as_json: bool) -> None:
    """Show what a SET is like: a folder, or the beginning of a digest."""
    _show(vectors.find(name), as_json)


@command.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List the sets in the cache."""
    found = vectors.cached()
    if as_json:
        click.echo(json_text([_row(each) for each in found]))
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("set", "vectors", "dimensions", "queries", "MiB", "from"):
        table.add_column(heading, overflow="fold", no_wrap=heading == "set")
    for each in found:
        counts = (each.vectors, each.dimensions, each.queries, each.size_bytes >> 20)
        table.add_row(each.folder.name, *(f"{count:,}" for count in counts), Text(each.origin))
    terminal().print(table)


def _tell(line: str) -> None:
    click.echo(line, err=True)


def _row(found: VectorSet) -> VectorSetRow:
    return VectorSetRow(
        folder=str(found.folder),
        digest=found.digest,
        origin=found.origin,
        vectors=found.vectors,
        dimensions=found.dimensions,
        queries=found.queries,
        size_bytes=found.size_bytes,
        neighbors={
            distance: known.count
            for distance in DISTANCES
            if (known := found.neighbors(distance)) is not None
        },
    )


def _show(found: VectorSet, as_json: bool) -> None:
    if as_json:
        click.echo(json_text(_row(found)))
        return
    sizes, length = found.size_bytes / 2**20, lengths(found)
    span = f"{number_text(length.least)} to {number_text(length.most)}"
    lines = [
        ("set", found.folder.name),
        ("from", found.origin),
        ("folder", str(found.folder)),
        ("vectors", f"{found.vectors:,} x {found.dimensions:,}, {found.queries:,} queries, {sizes:,.0f} MiB"),
        ("lengths", f"{span}, mean {number_text(length.mean)} ({length.rows:,} vectors)"),
    ]
    for distance in DISTANCES:
        if (known := found.neighbors(distance)) is not None:
            seen = nearness(known)
            inner = seen.intrinsic_dimension
            estimate = "" if inner is None else f"; intrinsic dimension about {number_text(inner)}"
            means = f"{number_text(seen.nearest_mean)} of the nearest, {number_text(seen.kth_mean)} of"
            text = f"{seen.kept} exact neighbours per query; mean distance {means} number {seen.k}{estimate}"
            lines.append((distance, text))
    for name, text in lines:
        click.echo(f"{name:<10} {text}")
