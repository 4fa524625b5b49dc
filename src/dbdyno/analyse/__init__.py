"""From records to an Analysis: pure functions, with no server, clock, file or chance in them.

`analyse` is the entry; `steady` finds where a trial grew steady, `blocks` pairs trials, `intervals` holds
the statistics of ratios, `effects` judges each variant by them and by its `guards`, `assurance` tells how
many more blocks that takes, `floor` what a run cannot tell, `layout` how far luck of layout goes, `twin`
judges the instrument itself, `factorial` the factors and their interactions, `gap` shares a gap out among
factors, `fractional` does from a fraction of the variants, `frontier` sets recall against speed, `counted`
compares counted work, `split` tells where an operation's time went, `request` the same of one that passes
through an application, `overhead` where a trial's, `museum` collects the answer. Of a search `candidates`
tells what was tried, `confirmation` what is better, `elimination` which changes carry it, and `search`
puts that together. Of several runs `compare` tells the gap between two sides, `gate` holds one against
another, and `trend` follows a study over time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["Analysis", "analyse", "explain_gap"]

if TYPE_CHECKING:
    from dbdyno.analyse.analysis import explain_gap
    from dbdyno.analyse.entry import analyse
    from dbdyno.analyse.model import Analysis
else:

    def __getattr__(name: str) -> object:
        """Imports the analysis when it is asked for: who only plans a study must not wait for numpy."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from dbdyno.analyse import analysis, entry

        return entry.analyse if name == "analyse" else getattr(analysis, name)
