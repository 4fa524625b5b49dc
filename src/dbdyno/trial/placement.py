"""Placement: pristine data restored for one trial, in a folder or on a volume, and verified once a run."""

from __future__ import annotations

import time
from pathlib import Path

from dbdyno.errors import DynoError
from dbdyno.frozen import Level
from dbdyno.host.clone import Cloned, differing_file, forget_cached, tree_size_bytes
from dbdyno.host.room import require_disk
from dbdyno.layers.setup import Before, Setup, apply
from dbdyno.trial.bench import Bench
from dbdyno.trial.pristine import Pristine


def place(setup: Setup, pristine: Pristine, bench: Bench) -> dict[str, Level]:
    """Puts the data where the levels ask for them; returns the image, and how it came there.

    Raises Blocked when a volume cannot be made here, DynoError when the clone differs from its source.
    """
    cloned = _put_on_volume(setup, pristine, bench) if setup.wish else pristine.clone(setup.data)
    began = time.monotonic()
    verified = _verify_folder(setup, pristine, bench)
    verify_s = time.monotonic() - began
    if verified and cloned.way != "copy":
        # A copy leaves its bytes in the page cache, every other way does not; nor must the comparison.
        forget_cached(setup.data)
    apply(setup, Before.START)
    return {
        "image": pristine.image,
        "way": cloned.way,
        "seconds": round(cloned.seconds, 3),
        "files": cloned.files,
        "bytes": cloned.size_bytes,
        "verified": verified,
        "verify_seconds": round(verify_s, 3),
    }


def _put_on_volume(setup: Setup, pristine: Pristine, bench: Bench) -> Cloned:
    # Here and below, because most data lie in a folder.
    from dbdyno.host.volumes import volume

    wish = setup.wish
    assert wish is not None
    data_bytes = tree_size_bytes(pristine.data)
    require_disk(setup.scratch, 2 * volume.size_for(data_bytes, wish), "a trial")
    if wish.filesystem == "tmpfs":
        setup.volume = volume.attach_tmpfs(setup.journal, pristine.folder, wish, setup.scratch)
    else:
        raw_file = setup.engine.raw_file
        image = volume.image_of(setup.journal, pristine.folder, raw_file, wish)
        setup.volume = volume.attach(setup.journal, image, pristine.folder, raw_file, wish, setup.scratch)
    return setup.volume.cloned


def _verify_folder(setup: Setup, pristine: Pristine, bench: Bench) -> bool:
    """Compares the first clone of each source with it, byte for byte; later ones come by the same way."""
    source = _source(setup, pristine)
    if source in bench.verified:
        return False
    differing = differing_file(pristine.data, setup.data)
    if differing:
        raise DynoError(
            f"the clone of the pristine data differs from the original in {differing}",
            f"the disk is faulty, or the data were changed; remove {pristine.folder}: they are made again",
        )
    bench.verified.add(source)
    return True


def _source(setup: Setup, pristine: Pristine) -> Path:
    """One name for each combination of data, image and device."""
    wish = setup.wish
    if wish is None:
        return pristine.folder / f"folder-of-{setup.scratch.parent.as_posix().replace('/', '_')}"
    from dbdyno.host.volumes import volume

    name = volume.image_name(wish, volume.size_for(tree_size_bytes(pristine.data), wish))
    return pristine.folder / f"{name}-{wish.device.replace('/', '_')}"
