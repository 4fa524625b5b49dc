"""Which variants become a recipe, and what of their levels production takes."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from dbdyno.analyse.model import Verdict
from dbdyno.deploy.deployment import without_folders
from dbdyno.deploy.made import build_with_key, chosen_variant, deployment_of, production_of
from dbdyno.engines.built import recipe_of
from dbdyno.engines.mariadb import MARIADB
from dbdyno.engines.postgresql import POSTGRESQL
from dbdyno.engines.sqlite import SQLITE
from dbdyno.errors import UserError
from dbdyno.findings import analyse
from dbdyno.frozen import Level
from dbdyno.host import cache
from dbdyno.layers.setup import PartPlace
from dbdyno.obtain.source.build import BuildAccount, BuildSpecification, Flags, Trainer, Training
from dbdyno.records.record import Outcome
from dbdyno.study import Design
from tests.analyse.factory import broken
from tests.deploy.recipes import finished, recipe
from tests.fakes import FakeEngine

IO_CAPACITY: dict[str, tuple[Level, Level]] = {"config.innodb_io_capacity": (200, 2000)}


def test_a_recipe_has_the_changes_of_a_variant_with_what_each_gained() -> None:
    found = recipe(MARIADB, IO_CAPACITY, {"config.innodb_buffer_pool_size": "1G", "workload.clients": 8})
    [change] = found.changes
    assert (change.factor, change.level, change.was) == ("config.innodb_io_capacity", 2000, 200)
    assert change.share == found.effect and found.effect is not None and found.effect.ratio > 1.5
    assert change.answer == "2000" and change.statement
    assert found.verdict is Verdict.FASTER
    assert [each.factor for each in found.held] == ["config.innodb_buffer_pool_size"]
    assert found.held[0].was is None
    assert (found.service, found.configuration) == ("mariadb", "/etc/mysql/mariadb.conf.d")


def test_the_gain_of_two_changes_is_shared_out() -> None:
    two: dict[str, tuple[Level, Level]] = {**IO_CAPACITY, "config.sync_binlog": (0, 1)}
    analysis, records, variant = finished(two, design=Design.FACTORIAL)
    found = deployment_of(analysis, records, variant, MARIADB)
    shares = [change.share.ratio for change in found.changes if change.share]
    assert len(shares) == 2
    assert found.effect is not None
    assert shares[0] * shares[1] == pytest.approx(found.effect.ratio, rel=0.02)


def test_the_variant_that_helped_most_is_chosen() -> None:
    analysis, _, variant = finished(IO_CAPACITY)
    assert chosen_variant(analysis, None, False) == variant


def test_where_nothing_helped_nothing_is_chosen() -> None:
    analysis, _, variant = finished(IO_CAPACITY, gain=1.0)
    with pytest.raises(UserError, match="no variant of run"):
        chosen_variant(analysis, None, False)
    with pytest.raises(UserError, match="is not faster than the baseline"):
        chosen_variant(analysis, variant.name, False)
    assert chosen_variant(analysis, variant.name, True) == variant


def test_variants_that_helped_alike_are_named_on_lines_of_their_own() -> None:
    analysis, _, _ = finished(IO_CAPACITY)
    alike = analysis.answer.but(best=None, level=("a=1, b=2", "a=1"))
    with pytest.raises(UserError) as refused:
        chosen_variant(analysis.but(answer=alike), None, False)
    assert refused.value.hint.splitlines()[1:] == ["    a=1, b=2", "    a=1"]


def test_neither_the_baseline_nor_a_broken_variant_is_ever_deployed() -> None:
    analysis, records, variant = finished(IO_CAPACITY)
    with pytest.raises(UserError, match="it changes nothing"):
        chosen_variant(analysis, "baseline", True)
    spoilt = broken("account 12, teller 11")
    changed = [spoilt(each) if each.variant == variant.name else each for each in records]
    again = analyse(analysis.study, analysis.run, changed)
    with pytest.raises(UserError, match="is broken, so nothing speaks for it"):
        chosen_variant(again, variant.name, True)
    with pytest.raises(UserError, match="no trial of"):
        deployment_of(again, changed, variant, MARIADB)
    assert any(each.outcome is Outcome.BROKEN for each in changed)


@pytest.mark.parametrize(
    ("factor", "levels"),
    [("workload.clients", (1, 8)), ("storage.device", ("loop", "ram")), ("cpu.driver", ("all", "0"))],
)
def test_a_change_that_no_server_has_is_refused(factor: str, levels: tuple[Level, Level]) -> None:
    analysis, records, variant = finished({factor: levels})
    with pytest.raises(UserError, match=f"changes {factor}, which no server in production has"):
        deployment_of(analysis, records, variant, MARIADB)


@pytest.mark.parametrize(("level", "given_up"), [(0, True), (2, True), (1, False)])
def test_what_can_be_lost_is_known(level: Level, given_up: bool) -> None:
    found = recipe(MARIADB, {"config.innodb_flush_log_at_trx_commit": (3, level)})
    assert bool(found.given_up) is given_up


def test_a_setting_of_the_data_is_changed_by_hand() -> None:
    found = recipe(MARIADB, {"config.innodb_page_size": ("16K", "8K")})
    assert found.parts(PartPlace.SETTING) == ()
    [deed] = found.parts(PartPlace.BY_HAND)
    assert "make the data anew" in str(deed.value)


def test_huge_pages_bring_settings_values_of_the_kernel_and_a_limit() -> None:
    held = {"config.innodb_buffer_pool_size": "1G"}
    found = recipe(MARIADB, {"memory.huge_pages": ("off", "2M")}, held)
    assert {part.name: part.value for part in found.parts(PartPlace.SETTING)} == {"large_pages": "ON"}
    [pages] = found.parts(PartPlace.KERNEL)
    assert pages.name == "/proc/sys/vm/nr_hugepages"
    assert isinstance(pages.value, int) and 512 < pages.value < 640
    assert [part.name for part in found.parts(PartPlace.UNIT)] == ["LimitMEMLOCK"]
    [deed] = found.parts(PartPlace.BY_HAND)
    assert str(pages.value) in str(deed.value)


def test_a_level_that_needs_nothing_says_so() -> None:
    found = recipe(MARIADB, {"memory.allocator": ("jemalloc", "libc")})
    [deed] = found.parts(PartPlace.BY_HAND)
    assert "libc" in str(deed.value)


def test_a_build_is_named_without_the_folders_of_its_host() -> None:
    sources: dict[str, tuple[Level, Level]] = {"source.origin": ("debian", "/srv/src/mariadb")}
    analysis, records, variant = finished(sources, design=Design.ONE_AT_A_TIME)
    found = deployment_of(analysis, records, variant, MARIADB)
    [change] = found.changes
    assert (found.variant, change.level, change.was) == ("source.origin=mariadb", "mariadb", "debian")
    assert change.parts == ()
    assert "/srv" not in found.model_dump_json()


def test_names_of_a_release_are_those_of_the_measured_one() -> None:
    found = recipe(POSTGRESQL, {"config.work_mem": ("4MB", "64MB")})
    assert found.service == "postgresql@15-main"
    assert found.configuration == "/etc/postgresql/15/main/conf.d"


def test_an_engine_that_nobody_knows_how_to_deploy_is_refused() -> None:
    with pytest.raises(UserError, match="does not know how Fake is deployed"):
        production_of(FakeEngine().engine)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("/home-of-me/src/mariadb at v1 (abc)", "mariadb at v1 (abc)"),
        ("~/patches/one.patch two.patch", "one.patch two.patch"),
        ("debian:trixie=11.8", "debian:trixie=11.8"),
        ("sub/one.patch", "sub/one.patch"),
        ("clang -O2 recipe=/a/b.toml", "clang -O2 recipe=b.toml"),
    ],
)
def test_folders_of_a_host_are_left_out(text: str, told: str) -> None:
    assert without_folders(text) == told


KEY = "0123456789abcdef"
PATCH = """\
--- a/src/btree.c
+++ b/src/btree.c
@@ -1 +1 @@
-one
+two
"""
BY_COMPILER = Training(
    trainer=Trainer(workload="tpcb", transactions=9),
    transactions=9,
    took_s=1.0,
    files=1,
    functions=8,
    executed=4,
    profile="a" * 64,
)
BY_BOLT = BY_COMPILER.but(profile="b" * 64, moved=2)
LEVELS: dict[str, Level] = {"build.optimisation": "-O3", "source.patches": "one.patch"}


@pytest.fixture
def study(homes: Path) -> Path:
    """The folder of a study, whose build is kept."""
    folder = homes / "study"
    folder.mkdir()
    (folder / "one.patch").write_text(PATCH)
    digest = hashlib.sha256(PATCH.encode()).hexdigest()
    account = BuildAccount(
        key=KEY,
        engine="sqlite",
        words="gcc -O3 patches one.patch",
        source=f"{folder}/sqlite at v1 (abc)",
        patches=(f"one.patch {digest[:12]}",),
        toolchain="gcc 12.2.0",
        flags=Flags(compile=("-O3",)),
        recipe=recipe_of(SQLITE, BuildSpecification(), folder).digest,
        program="bin/program",
        took_s=1.0,
        training=BY_COMPILER,
        bolt=BY_BOLT,
    )

    def make(making: Path) -> tuple[str, str]:
        (making / "prefix/bin").mkdir(parents=True)
        shutil.copy("/bin/true", making / "prefix/bin/program")
        (making / "profile/src").mkdir(parents=True)
        (making / "profile/src/btree.gcda").write_bytes(b"\x00profile")
        (making / "bolt/profile").mkdir(parents=True)
        (making / "bolt/profile/merged.fdata").write_bytes(b"1 main 0 1 often 0 0 9")
        (making / "build.json").write_text(account.model_dump_json())
        return "a build", "tests"

    cache.shelf("builds").once(f"sqlite-{KEY}", make)
    return folder


def test_a_build_comes_with_all_that_makes_it_again(study: Path) -> None:
    found = build_with_key(SQLITE, LEVELS, KEY, study)
    assert found is not None
    build, files = found
    assert build.source == "sqlite at v1 (abc)"
    assert build.flags.compile == ("-O3",)
    assert files["build/patches/one.patch"] == PATCH.encode()
    assert files["build/profile/src/btree.gcda"] == b"\x00profile"
    assert files["build/bolt/merged.fdata"].endswith(b" 9")
    assert build.trained == f"{BY_COMPILER.words}; {BY_BOLT.words}" and "2 laid out anew" in build.trained
    assert SQLITE.recipe is not None
    assert files["build/recipe.toml"] == SQLITE.recipe.read_bytes()
    assert all(str(study) not in text.decode(errors="replace") for text in files.values())


def test_levels_without_a_build_have_none(study: Path) -> None:
    assert build_with_key(SQLITE, {"config.synchronous": "off"}, "", study) is None


def test_a_build_that_is_gone_is_told(study: Path) -> None:
    with pytest.raises(UserError, match="is not kept any more"):
        build_with_key(SQLITE, LEVELS, "f" * 16, study)


def test_a_patch_that_has_changed_is_refused(study: Path) -> None:
    (study / "one.patch").write_text(PATCH.replace("two", "three"))
    with pytest.raises(UserError, match=r"one\.patch is not what the build was made of"):
        build_with_key(SQLITE, LEVELS, KEY, study)


def test_a_recipe_that_has_changed_is_refused(study: Path) -> None:
    assert SQLITE.recipe is not None
    (study / "own.toml").write_text(f"{SQLITE.recipe.read_text()}\n[environment]\nA = 'b'\n")
    with pytest.raises(UserError, match=r"own\.toml is not what the build was made of"):
        build_with_key(SQLITE, {**LEVELS, "source.recipe": "own.toml"}, KEY, study)
