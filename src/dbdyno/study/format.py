"""The format of a study: the keys at the top, and with them all sections.

The reader, the JSON Schema, what Dyno writes itself and the tables of `docs/reference/study-format.md` follow
from these declarations. `excludes.py` says what does not go together.
"""

from __future__ import annotations

from dbdyno.frozen import ENGINE_FACTOR
from dbdyno.study import excludes, grammars, values
from dbdyno.study.catalogue import Catalogue, WorkloadOffer
from dbdyno.study.grammars import duration, integer, one_of
from dbdyno.study.keys import Key, Section
from dbdyno.study.nouns import BASELINE, SLICE_S, Arrangement, Design, Study
from dbdyno.study.schema import LEVEL, LEVELS, Schema, by_factor, by_name, or_list
from dbdyno.study.tables import (
    APPLICATION,
    DATA,
    DRIVER,
    ENGINE,
    GOAL,
    RANGE,
    RESTARTS,
    SEARCH,
    SERVER,
    SOAK,
    UPGRADED,
    VARIANT,
    WORKLOAD,
    structured,
)

BLOCKS_MAX = 10_000
IMAGES_MAX = 10
BASELINES_MAX = 100


def _engine(catalogue: Catalogue) -> Schema:
    return {"anyOf": [ENGINE.properties(catalogue)["name"], ENGINE.schema(catalogue)]}


def _data(catalogue: Catalogue) -> Schema:
    return {"anyOf": [{"const": UPGRADED}, DATA.schema(catalogue)]}


def _workload(catalogue: Catalogue) -> Schema:
    shared = {name: words for name, words in WORKLOAD.properties(catalogue).items() if name != "name"}
    offers = {offer.name: (offer.description, _options(offer, catalogue)) for offer in catalogue.workloads}
    return {**by_name(offers, shared), "description": WORKLOAD.about}


def _options(offer: WorkloadOffer, catalogue: Catalogue) -> Schema:
    """The keys that [workload] has for one workload alone."""
    return {
        option.name: {
            **or_list(grammars.of_option(option).schema(catalogue)),
            "description": option.help,
            **({} if option.default is None else {"default": option.default}),
        }
        for option in offer.options
    }


def _settings(catalogue: Catalogue) -> Schema:
    return {**by_factor(LEVEL, catalogue), "description": "Levels that hold for every variant."}


def _factors(catalogue: Catalogue) -> Schema:
    words = "What is varied: layer.knob = [BASELINE, OTHER, ...], or a range."
    return {**by_factor({"anyOf": [LEVELS, RANGE.schema(catalogue)]}, catalogue), "description": words}


def _variants(catalogue: Catalogue) -> Schema:
    return {
        "type": "array",
        "description": f"For the design `list`: two or more, of which the first is named `{BASELINE}`, or "
        "not at all. For a search: what its best candidates are held against.",
        "items": VARIANT.schema(catalogue),
    }


STUDY = Section(
    "",
    (
        Key("engine", structured(_engine), more="Which server, as a text or a table: see below. Where engines"
            " are a factor, the baseline's, which may be left out.",
            missing=ENGINE.key("name").missing),
        Key("title", grammars.ONE_TEXT, "The question in one line.", otherwise="the file's name",
            field="title"),
        Key("design", one_of(Design), "Which combinations of levels are compared.", "See below.", "design"),
        Key("blocks", integer(1, BLOCKS_MAX), "How often every variant is measured: the unit of inference.",
            field="blocks"),
        Key("seed", integer(0, values.INT_MAX, "0 to 2^63 - 1"), "Draws the order of the trials.",
            otherwise="each run draws a seed", field="seed"),
        Key("aa", grammars.TRUTH, "Measure the baseline twice: the two must not be called different.",
            "The report says how often they were.", "aa"),
        Key("baselines", integer(1, BASELINES_MAX),
            "How often each block measures the baseline; variants are compared with the mean.",
            'More than one excludes `interval = "signed-rank"`.', "baselines"),
        Key("arrangement", one_of(Arrangement),
            "Whether all servers of a block run at once and the load goes round them in slices, "
            "or each trial runs by itself.", "See [slices](../concepts/verdicts.md#slices).", "arrangement",
            otherwise="side by side where that can be"),
        Key("slice", duration(0.1),
            "About how long a slice is measured. Without it, as long as the host's calibration "
            f"found best, else {SLICE_S:g}s, and longer where the first warm-ups show that a client would "
            "end fewer than two transactions in one.",
            "Every variant has an even number of them in each block.",
            "slice_s"),
        Key("images", integer(1, IMAGES_MAX),
            "How many images of the pristine data pairs of blocks take in turn.",
            "Making the further ones costs little where they take at most 5 % of the time that the run's "
            "loads take, and all images 8 GiB.",
            "images", otherwise="six where that costs little beside the run, else two, else one"),
        Key("server", structured(SERVER.schema)),
        Key("application", structured(APPLICATION.schema)),
        Key("driver", structured(DRIVER.schema)),
        Key("data", structured(_data)),
        Key("workload", structured(_workload)),
        Key("settings", structured(_settings)),
        Key("factors", structured(_factors)),
        Key("variants", structured(_variants)),
        Key("search", structured(SEARCH.schema)),
        Key("restarts", structured(RESTARTS.schema)),
        Key("goal", structured(GOAL.schema)),
        Key("soak", structured(SOAK.schema)),
    ),
    noun=Study,
    rules={
        "required": ["workload"],
        # Where engines are a factor, the first level is the study's.
        "anyOf": [
            {"required": ["engine"]},
            {"required": ["factors"], "properties": {"factors": {"required": [ENGINE_FACTOR]}}},
            {"required": ["variants"]},
        ],
        **excludes.rules(),
    },
)  # fmt: skip
HOMES = (STUDY, WORKLOAD, DATA, GOAL, SEARCH)
"""Sections whose keys are often written elsewhere by mistake."""


def study_schema(catalogue: Catalogue) -> Schema:
    """The schema (draft 2020-12) of a study that may use the names of `catalogue`."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A study for Dyno",
        **STUDY.schema(catalogue),
    }
