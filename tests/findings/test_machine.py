"""The page of resets: what each way leaves of a machine's measurements, why, and what emulation hides."""

from __future__ import annotations

from tests.analyse.machine_cases import BLOCKED, BY_KEXEC, FAST, IN_FULL, analysed
from tests.analyse.platforms_cases import platform
from tests.report.forms import as_markdown, as_page


def test_each_way_has_a_row_of_what_its_logs_explain() -> None:
    told = as_markdown(analysed(IN_FULL, BY_KEXEC))
    assert "| full | 2 | yes | 2 events | yes | 12 events | yes | yes | 1 |" in told
    assert "| kexec | 2 | no | 0 to 2 events | 1 of 2 | 12 events | no | yes | 2 |" in told
    assert "kexec: not explained by their log alone: PCR 0, PCR 10." in told
    assert "kexec: a log could not be read to its end: it is none." in told


def test_times_stand_beside_what_they_are_worth() -> None:
    for told in (as_markdown(analysed(IN_FULL, BY_KEXEC)), as_page(analysed(IN_FULL, BY_KEXEC))):
        assert "25.0 (24.0 to 26.0)" in told and "11.5 (10.5 to 12.5)" in told
        assert "Emulated times have no verdict" in told
        assert "What emulation does not show" in told and "Trust comes from outside" in told
        assert "Verdicts" not in told


def test_why_they_differ_is_told_where_they_do() -> None:
    assert "Why they differ" not in as_markdown(analysed(IN_FULL))
    assert "Why they differ" in as_markdown(analysed(IN_FULL, BY_KEXEC))


def test_the_answer_says_after_which_resets_the_logs_explain_the_tpm() -> None:
    told = as_markdown(analysed(IN_FULL, BY_KEXEC))
    assert (
        "Do the logs explain the TPM? After 2 full resets they do. After 2 kexec resets they do not." in told
    )
    assert "No machine was reset yet." in as_markdown(analysed())


def test_a_machine_that_cannot_be_emulated_here_is_told() -> None:
    told = as_markdown(analysed(IN_FULL, BLOCKED))
    assert f"{FAST}: no machine of ppc64el runs here: swtpm is not installed; apt-get install swtpm." in told


def test_the_pages_of_the_guests_kernel_stand_beside_the_guest() -> None:
    machine = platform("ppc64el", page_bytes=65536)
    told = as_markdown(analysed(IN_FULL.but(platform=machine)))
    assert "64 KiB, as its kernel says in the guest" in told
    assert "as its kernel says" not in as_markdown(analysed(IN_FULL.but(platform=None)))
