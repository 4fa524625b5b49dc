"""What of a configuration file was not taken is named by file and line wherever a run is shown."""

from __future__ import annotations

import io

from rich.console import Console

from dbdyno.findings import analyse, configuration, trial
from dbdyno.frozen import Configuration, IncludedFile, NotTaken
from dbdyno.report.renderers.terminal import render
from tests.analyse.factory import a_run, a_study, records_of
from tests.report.browser import Outline
from tests.report.cases import HOSTILE
from tests.report.forms import as_page

FOUND = Configuration(
    path="my.cnf",
    text="port=1",
    digest="d",
    settings={"config.back_log": "2"},
    not_taken=(
        NotTaken(line=1, text="port=1", reason="Dyno sets this itself"),
        NotTaken(line=7, text=HOSTILE, reason="it is a path", file="conf.d/a.cnf"),
    ),
    included=(IncludedFile(path="conf.d/a.cnf", text="", digest="e"),),
)


def test_each_line_is_named_by_file_and_number() -> None:
    first, *lines = configuration.lines(FOUND)
    assert first == "From my.cnf and 1 included file: 1 setting, 2 lines not taken"
    assert lines[0] == "  my.cnf:1: port=1: Dyno sets this itself"
    assert lines[1].startswith("  conf.d/a.cnf:7: ") and "\x1b" not in lines[1]


def test_a_run_shows_them_on_the_terminal_and_on_its_page() -> None:
    study = a_study()
    run = a_run(study).model_copy(update={"configuration": FOUND})
    analysis = analyse(study, run, records_of(study))
    console = Console(file=io.StringIO(), record=True, width=200)
    render(trial.run_document(analysis), console)
    page = Outline(as_page(analysis)).shown
    for shown in (console.export_text(), page):
        for told in ("my.cnf:1", "conf.d/a.cnf:7", "Dyno sets this itself", configuration.title(FOUND)):
            assert told in shown
