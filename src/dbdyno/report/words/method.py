"""How each number was made, and what its intervals promise."""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.analyse.estimate import IMAGES_LEAST
from dbdyno.analyse.intervals import one_sided
from dbdyno.analyse.model import Analysis, Method
from dbdyno.driver.link import LoadHost
from dbdyno.frozen import level_shown, listed
from dbdyno.records import metrics
from dbdyno.records.record import Outcome
from dbdyno.records.run import Brought
from dbdyno.report.words import hosts, naming, search
from dbdyno.report.words.numbers import (
    effect_text,
    limits_text,
    plural,
    ratio_text,
    rough_share_text,
    seconds_text,
    share_text,
)
from dbdyno.report.words.safe import clean
from dbdyno.study import Arrangement, Interval

PLACEBOS_ENOUGH = 5
"""Fewer say so little of the luck of layout that the report says so."""

INTERVALS: dict[Interval, str] = {
    Interval.STUDENT: "Student’s t on the log ratios of the blocks",
    Interval.SIGNED_RANK: "exact signed-rank on the blocks’ log ratios, around the Hodges-Lehmann estimate."
    " The mean stands beside it: on the other side of 1, or less than half as far from it, it leaves a"
    " verdict inconclusive",
    Interval.PLANNED: "a t interval on the log ratios of the blocks that may be looked at after every block"
    " of those that were planned",
    Interval.ANYTIME: "a t interval on the log ratios of the blocks that may be looked at after every block",
}


def method_text(analysis: Analysis) -> list[str]:
    """How each number was made, a sentence or two per item."""
    if analysis.run.of_logs:
        return _brought_text(analysis, analysis.run.of_logs)
    method = analysis.method
    return [
        _response_text(method),
        "Ratio: variant / baseline within a block, then the geometric mean over blocks. A block holds every"
        " variant once, in random order, so a disturbance of a whole block cancels out.",
        *filter(None, [_baselines_text(analysis), _search_text(analysis)]),
        f"Interval: {INTERVALS[method.interval]}. {_correction(method)}",
        *filter(None, [calibration_text(analysis), load_host_text(analysis)]),
        f"A verdict needs at least {plural(method.blocks_least, 'block')}. Faster also needs every guard to"
        " hold over its whole interval.",
        "Costs (p99, CPU per operation): each interval holds alone with"
        f" {share_text(method.confidence)}, not adjusted for the number of comparisons.",
        _margin_text(method),
        "More blocks: this many settle the variant in"
        f" {share_text(method.assurance)} of cases, for the hardest ratio that the blocks leave plausible."
        f"{_two_numbers(analysis)}",
        "Noise floor: half the width of each variant’s own interval. A true difference of that size is found"
        " in every second run. Blocks: efficiency relative to trials in any order (Yates 1935; Cochran and"
        " Cox 1957), with its 95 % interval.",
        _steady_text(analysis),
        *_images_text(analysis),
        *([hosts.method_text(analysis.hosts)] if analysis.hosts else []),
        "Latency: from the driver’s histograms, all measured trials of a variant together, three significant"
        " digits; drawn as far as ten operations lie above.",
    ]


def _response_text(method: Method) -> str:
    metric = metrics.find(method.response)
    unit = f" ({metric.unit})" if metric.unit else ""
    return f"Response: {metric.title}{unit}. {metric.definition}"


def _brought_text(analysis: Analysis, told: Brought) -> list[str]:
    """The same for a run that was brought."""
    method = analysis.method
    return [
        f"Brought {naming.warning(told, method.unit)}",
        _response_text(method),
        f"{naming.RATIOS[method.unit]} Interval: {naming.INTERVALS[method.unit]}. {_correction(method)}",
        f"A verdict needs at least {plural(method.blocks_least, method.unit)} of variant and baseline.",
        _margin_text(method),
        _steady_text(analysis),
        *(f"{remark}." for remark in told.remarks),
    ]


def ratio_text_of(analysis: Analysis) -> str:
    """What a ratio of the response is."""
    if analysis.run.of_logs:
        return naming.RATIOS[analysis.method.unit]
    if analysis.hosts is not None and analysis.hosts.over_hosts:
        return "Ratio: variant / baseline, geometric mean over the blocks of a host, then over hosts."
    return "Ratio: variant / baseline, geometric mean over blocks."


def _margin_text(method: Method) -> str:
    inner = share_text(one_sided(method.confidence_each))
    return (
        f"Margin: ratios from {ratio_text(1.0 / (1.0 + method.margin))} to {ratio_text(1.0 + method.margin)}"
        f" count as no effect, when the whole interval of {inner} lies there: each of its ends is wrong as"
        " seldom as a verdict of a difference (two one-sided tests: Schuirmann, J. Pharmacokin. Biopharm. 15,"
        " 1987)."
    )


def _steady_text(analysis: Analysis) -> str:
    """How many trials could be checked for a steady state, and how."""
    measured = [trial for trial in analysis.trials if trial.record.outcome is Outcome.MEASURED]
    checked = sum(trial.steady is not None for trial in measured)
    if not checked:
        return (
            f"Steady state: not checked; none of {plural(len(measured), 'measured trial')} has six whole"
            " seconds, warm-up included, three of them measured."
        )
    return (
        f"Steady state: checked in {checked} of {plural(len(measured), 'measured trial')}, by changepoints of"
        " the per-second series, warm-up included, in the manner of Barrett et al., OOPSLA 2017; lone seconds"
        " do not count."
    )


def _two_numbers(analysis: Analysis) -> str:
    """What two numbers of blocks are; empty where every estimate is one."""
    noisy = any(variant.blocks_more_even is not None for variant in analysis.variants)
    return " Of two numbers, the first settles it in half of cases." if noisy else ""


def _images_text(analysis: Analysis) -> list[str]:
    """How many images of the pristine data the verdicts rest on; nothing for records that do not say it."""
    trials = [trial.record for trial in analysis.trials if trial.record.outcome is Outcome.MEASURED]
    images = {record.reset["image"] for record in trials if "image" in record.reset}
    if not images:
        return []
    if len(images) >= IMAGES_LEAST and analysis.method.interval is not Interval.SIGNED_RANK:
        return [_over_images(analysis, len(images))]
    if len(images) > 1:
        return [
            f"Data: pairs of blocks took {len(images)} copies of the pristine data in turn. Intervals hold"
            " for these layouts of the data, and do not say how far another one could favour a variant."
        ]
    return ["Data: made once, so the intervals do not cover whether their layout favours one variant."]


def _over_images(analysis: Analysis, images: int) -> str:
    over = [clean(one.name) for one in analysis.variants if one.effect is not None and one.effect.images]
    whose = listed(over) or "none"
    both = " and over blocks, whichever reaches farther" if analysis.method.sequential else ""
    return (
        f"Data: pairs of blocks took {images} copies of the pristine data in turn. Where the copies differ by"
        " more than their blocks explain (F test at a level of 25 %, and of more where many intervals"
        " are told), the interval is over the means of"
        f" copies{both} (Ibragimov and Müller, JBES 28, 2010): of {whose} here."
    )


def _correction(method: Method) -> str:
    return _together(method) + (_looks(method) if method.sequential else "")


def _looks(method: Method) -> str:
    """Why an interval has to hold at every look."""
    if method.unfinished:
        return (
            " The run is not over, and might be stopped for what it shows. So until its planned blocks are"
            " there, intervals hold at all looks together (Lai, Annals of Statistics 4, 1976)."
        )
    if method.interval is Interval.PLANNED:
        return (
            " The run looked at them after every block and left out what was settled: they hold at all looks"
            f" up to {plural(method.blocks_most, 'block')} (the narrower of two kinds, each with a part of"
            " the error: Lan and DeMets, Biometrika 70, 1983; Lai, Annals of Statistics 4, 1976)."
        )
    return (
        " The run looked at them after every block and left out what was settled: they hold at all those"
        " looks together (Lai, Annals of Statistics 4, 1976)."
    )


def _together(method: Method) -> str:
    together, each = share_text(method.confidence), share_text(method.confidence_each)
    if method.comparisons < 2:
        return f"It holds with {together}; a single comparison needs no correction."
    deciding = method.comparisons - method.beside
    effects = f" and the {method.beside} of main effects and shares of the gap" if method.beside else ""
    return (
        f"With {together} confidence none of the {deciding} intervals that decide verdicts (of the response"
        f" and of guards){effects} is wrong: each alone holds with {each} (Šidák, JASA 62, 1967). The twin of"
        " an A/A study is not among them."
    )


def intervals_text(analysis: Analysis) -> str:
    """What the response's intervals promise; empty where nothing was compared."""
    method = analysis.method
    peeked = ", however often they were looked at" if method.sequential else ""
    if method.comparisons < 2:
        return f"Interval: {share_text(method.confidence)}{peeked}." if method.comparisons else ""
    together = f"for all {method.comparisons} comparisons together (Šidák){peeked}"
    return f"Intervals: {share_text(method.confidence)} {together}."


def layout_text(analysis: Analysis) -> str:
    """How far luck of layout goes, and how sure that is. Empty without placebos."""
    spread = analysis.method.layout
    if spread is None:
        return ""
    differ = "build differs" if spread.placebos == 1 else "builds differ"
    differs = (
        f"Layout: {spread.placebos} placebo {differ} from the baseline by up to"
        f" {rough_share_text(spread.difference)}, with the same code at other addresses."
    )
    if not spread.builds:
        return differs
    held = "one more build" if spread.builds == 1 else f"{spread.builds} more builds together"
    few = (
        " The spread of so few layouts is hardly known, so the limits are wide."
        f" {PLACEBOS_ENOUGH} seeds or more narrow them."
    )
    return (
        f"{differs} By luck alone {held} may be {limits_text(spread)}, with"
        f" {share_text(analysis.method.confidence)}. No build counts as faster or slower unless its whole"
        f" interval lies beyond that.{few if spread.placebos < PLACEBOS_ENOUGH else ''}"
    )


def _search_text(analysis: Analysis) -> str:
    """How candidates were found; empty for other designs than a search."""
    of_search = search.METHOD_OF_OTHERS if analysis.run.named_by_others else search.METHOD
    return of_search if analysis.search else ""


def _baselines_text(analysis: Analysis) -> str:
    """What candidates are compared with, where a block holds more than one baseline."""
    count = analysis.study.baselines_each
    return f"Baseline: the geometric mean of the {count} in each block (Dunnett 1955)." if count > 1 else ""


def calibration_text(analysis: Analysis) -> str:
    """What a calibration of the host decided before the run. Empty where none was used."""
    used = analysis.run.calibrated
    if used is None:
        return ""
    levels = ", ".join(f"{name} = {level_shown(level)}" for name, level in used.settings.items())
    told = [f"all variants have {levels}" if levels else "server and driver are free to use all CPUs"]
    if used.slice_s and analysis.run.arrangement is Arrangement.SIDE_BY_SIDE:
        told.append(f"a slice is about {seconds_text(used.slice_s)}")
    told += [f"the interval is {used.interval}"] if used.interval else []
    return f"Calibration of this host, made before the run: {'; '.join(told)}."


def load_host_text(analysis: Analysis) -> str:
    """Where the load came from and how far that is from the server. Empty where it came from the server's
    host."""
    loaded = [trial.record.load_hosts for trial in analysis.trials if trial.record.load_hosts]
    hosts = [host for each in loaded for host in each]
    if not hosts:
        return ""
    first, trips_us = hosts[0], sorted(host.round_trip_s * 1e6 for host in hosts)
    median_us, longest_us = trips_us[len(trips_us) // 2], 1e6 * max(host.round_trip_max_s for host in hosts)
    way = "encrypted" if first.encrypted else "not encrypted"
    told = (
        f"Load: from {_load_hosts(loaded[0])}, {way}. A round trip of the network"
        f" took {metrics.microseconds_text(median_us)} (median of {plural(len(loaded), 'trial')}), and"
        f" {metrics.microseconds_text(longest_us)} at the longest."
        f"{_bandwidth_text(hosts)}{_together_text(hosts)}"
    )
    clocks = [host.clock for host in hosts if host.clock is not None]
    if not clocks:
        return told
    farthest = max(clocks, key=lambda one: abs(one.clock_offset_s))
    apart_us, within_us = 1e6 * abs(farthest.clock_offset_s), 1e6 * farthest.clock_within_s
    return (
        f"{told} The clocks were apart by {metrics.microseconds_text(apart_us)} at most, known to within"
        f" {metrics.microseconds_text(within_us)}. All times are by the clock of the server's host."
    )


def _load_hosts(hosts: Sequence[LoadHost]) -> str:
    """load1 (4 CPUs) and load2 (8 CPUs)."""
    return listed([f"{clean(host.name)} ({plural(host.cpus, 'CPU')})" for host in hosts])


def _bandwidth_text(hosts: Sequence[LoadHost]) -> str:
    """The least that the network carried before or after a load. Empty where nobody looked."""
    found = [one for host in hosts for one in host.bandwidths]
    if not found:
        return ""
    to, back = (
        metrics.bytes_text(min(values))
        for values in (
            [one.to_server_bytes_per_s for one in found],
            [one.from_server_bytes_per_s for one in found],
        )
    )
    return f" Between loads it carried at least {to}/s to the server and {back}/s from it, one at a time."


def _together_text(hosts: Sequence[LoadHost]) -> str:
    """How far hosts that shared a load were together. Empty for one host."""
    late_s = [host.late_s for host in hosts if host.late_s is not None]
    if not late_s:
        return ""
    return (
        " The hosts shared the clients, and their histograms were added. None began a stretch more than"
        f" {metrics.microseconds_text(1e6 * max(late_s))} after the first."
    )


def aa_text(analysis: Analysis) -> str:
    """What the A/A check showed, beside what was promised. Empty without one."""
    check = analysis.aa
    if check is None:
        return ""
    if check.comparisons == 0:
        return "A/A: no comparison yet; it takes six blocks."
    low, high = (round(100.0 * share) for share in (check.share_low, check.share_high))
    whole = ""
    if check.effect is not None and check.effect.low is not None:
        whole = f" Over all {check.pairs} pairs: {effect_text(check.effect)}."
    return (
        f"A/A: {check.called} of {plural(check.comparisons, 'comparison')} of the baseline with itself called"
        f" different: a share of {low} to {high} % (95 % interval); promised {share_text(check.promised)}."
        f"{whole}"
    )
