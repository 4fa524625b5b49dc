"""No circle between the driver's modules nor its rooms, and the search finds one where there is one."""

from __future__ import annotations

from pathlib import Path

from tests.structure_rust import circles, rooms, rust_arrows


def crate(folder: Path, **files: str) -> Path:
    """A crate's source: `run__client` is the file `run/client.rs`."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.rs"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_no_module_of_the_driver_leads_back_to_itself() -> None:
    assert circles(rust_arrows()) == []


def test_no_room_of_the_driver_leads_back_to_itself() -> None:
    assert circles(rooms(rust_arrows())) == []


def test_a_circle_is_found_through_lists_and_re_exports(tmp_path: Path) -> None:
    source = crate(
        tmp_path,
        lib="mod io;\nmod session;\n",
        io__mod="mod stream;\npub use stream::Stream;\n",
        io__stream="use crate::session::{Row, target::Target as T};\n",
        session__mod="pub mod target;\npub use self::row::Row;\nmod row;\n",
        session__row="pub struct Row;\n",
        session__target="use crate::io::Stream;\n",
    )
    arrows = rust_arrows(source)
    assert arrows["io::stream"] == {"session::row", "session::target"}
    assert circles(arrows) == [["io::stream", "session::target"]]
    assert circles(rooms(arrows)) == [["io", "session"]]


def test_a_path_within_the_code_is_an_arrow_too(tmp_path: Path) -> None:
    source = crate(
        tmp_path,
        lib="mod a;\nmod b;\n",
        a="fn f() { crate::b::g() }\n",
        b="use std::fmt;\nfn g() { super::a::f() }\n",
    )
    assert circles(rust_arrows(source)) == [["a", "b"]]


def test_comments_texts_tests_and_other_crates_make_no_arrow(tmp_path: Path) -> None:
    source = crate(
        tmp_path,
        lib="mod a;\nmod b;\n",
        a='// crate::b\nuse serde::b;\nconst A: &str = "crate::b";\n'
        "#[cfg(test)]\nmod tests {\n    use crate::b;\n}\n",
        b="use crate::a::A;\n",
    )
    assert rust_arrows(source)["a"] == frozenset()


def test_a_folder_and_its_parts_are_one(tmp_path: Path) -> None:
    source = crate(
        tmp_path,
        lib="mod run;\n",
        run__mod="mod client;\nuse client::Client;\npub struct Run;\n",
        run__client="use super::Run;\npub struct Client;\n",
    )
    assert circles(rust_arrows(source)) == []
