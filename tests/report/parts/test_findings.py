"""What did not help, told once for all that ended alike, and what makes trials doubtful."""

from __future__ import annotations

from dbdyno.report.document import Items
from dbdyno.report.parts import findings
from tests.report.cases import all_verdicts, file_systems, one_block


def items(title: str, sections: list[tuple[str, Items]]) -> Items:
    [found] = [one for name, one in sections if title in name]
    return found


def found_in(case: str) -> list[tuple[str, Items]]:
    analysis = {"all_verdicts": all_verdicts, "file_systems": file_systems, "one_block": one_block}[case]()
    sections = findings.sections(analysis)
    return [(one.title, part) for one in sections for part in one.body if isinstance(part, Items)]


def test_what_ended_alike_stands_together_with_its_remedy() -> None:
    [blocked] = items("museum", found_in("file_systems")).items
    assert blocked.mark.text == "⊘ blocked" and blocked.step == "it offers: none"
    assert str(blocked.about).count("storage.scheduler=bfq") == 8
    assert blocked.lines == ("loop0 offers no bfq",)


def test_a_warning_says_in_how_many_trials_of_which_variants_it_was_seen() -> None:
    driver, host = items("Warnings", found_in("all_verdicts")).items
    assert (driver.mark.text, host.mark.text) == ("! 6 trials", "! 6 trials")
    assert "driver was the limit" in str(driver.about) and "(config.page_size=32768)" in str(driver.about)
    assert host.step.startswith("measure on dedicated CPUs")
    assert all(one.small and one.small[0] for one in (driver, host))


def test_a_run_without_either_has_no_such_section() -> None:
    assert not [name for name, _ in found_in("one_block") if "museum" in name]
