"""The README's picture: the report of a stored run, as a terminal shows it. `make picture` draws it.

The run is `studies/quickstart.toml`, kept as lines of JSON: the run, then a record per trial.
"""

from __future__ import annotations

import gzip
import io
import re
from pathlib import Path

from rich.console import Console

from dbdyno.analyse import Analysis
from dbdyno.prepare_run.stored_run import analysed
from dbdyno.prepare_run.stored_study import study_of
from dbdyno.records.record import Record
from dbdyno.records.run import run_of_document
from tests.report.forms import print_report

STORED = Path(__file__).parent / "stored" / "quickstart.jsonl.gz"
PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "report.svg"
COLUMNS = 96


def stored_analysis() -> Analysis:
    """The analysis of the stored run."""
    first, *others = gzip.decompress(STORED.read_bytes()).decode().splitlines()
    run = run_of_document(first)
    return analysed(study_of(run), run, [Record.model_validate_json(line) for line in others])


def drawn() -> str:
    """The picture as SVG. It asks the network for nothing: whoever looks at it has a fixed-width font."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, highlight=False)
    print_report(stored_analysis(), console)
    svg = console.export_svg(title="dyno run studies/quickstart.toml", unique_id="report")
    return re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)


if __name__ == "__main__":
    PICTURE.write_text(drawn(), encoding="utf-8")
