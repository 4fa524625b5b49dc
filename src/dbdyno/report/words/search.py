"""A search in sentences: what it ends with, what that took, and how far its own figures were off."""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.analyse.candidates import Starts
from dbdyno.analyse.model import GIVEN_UP, Analysis, Change, SearchResult, Tried
from dbdyno.frozen import Level, level_shown, listed
from dbdyno.records import metrics
from dbdyno.report.words.naming import factor_text, levels_text, marked_text
from dbdyno.report.words.numbers import interval_text, plural, ratio_text, seconds_text, share_text
from dbdyno.report.words.safe import clean
from dbdyno.study.nouns import Promise
from dbdyno.study.trials import Purpose

DOING = {
    Purpose.FLOOR: "measuring the baseline twice",
    Purpose.SEARCH: "searching",
    Purpose.CONFIRMATION: "confirming",
    Purpose.ELIMINATION: "taking changes back",
    Purpose.STARTS: "starting the winner",
}
"""What a search is at in its blocks, by their purpose."""


def headline(analysis: Analysis, found: SearchResult) -> str:
    """What the search ends with, in one sentence or two."""
    response = metrics.find(analysis.method.response).title
    if not found.confirmed:
        return _not_confirmed(found)
    if found.winner is None or found.effect is None:
        tried = plural(len(found.tried), "candidate")
        return f"Nothing helped: of {tried}, none is shown to be faster than the baseline in fresh blocks."
    changed = {change.factor: change.level for change in found.changes}
    changes = changes_text(found, found.winner, changed)
    ratio = f"{ratio_text(found.effect.ratio)} times the baseline’s {response}"
    kept = plural(len(found.changes), "change")
    best = f"the best of {len(found.finalists)} that were confirmed, " if len(found.finalists) > 1 else ""
    return f"{ratio} ({interval_text(found.effect)}), {best}with {kept}: {changes}."


def _not_confirmed(found: SearchResult) -> str:
    """What a search tells that is not over, or that found nothing to confirm."""
    bests = [one for one in found.tried if one.ratio is not None and one.ratio == one.best]
    if not found.tried:
        return "The search is not over. It has tried no candidate yet."
    if not bests:
        tried = plural(len(found.tried), "candidate")
        return f"Nothing helped: of {tried}, none is better than the baseline in the search’s own blocks."
    best = bests[-1]
    assert best.ratio is not None  # chosen for it
    return (
        f"The search is not over. The best response in its own blocks so far is {ratio_text(best.ratio)}"
        f" times the baseline’s, which proves nothing: {changes_text(found, best.name, best.changed)}."
    )


def change_text(change: Change) -> str:
    """A change as it is to be made."""
    return clean(f"{factor_text(change.factor)} = {level_shown(change.level)}")


def changes_text(found: SearchResult, name: str, changed: Mapping[str, Level]) -> str:
    """What a candidate or a variant changes, and what that gives up."""
    return marked_text(levels_text(changed), found.given_up.get(name, ()))


def given_up_text(found: SearchResult, name: str) -> str:
    """What a candidate or a variant gives up; empty where it keeps all."""
    return " and ".join(found.given_up.get(name, ()))


def sentences(found: SearchResult) -> list[str]:
    """What a reader must know beside the changes: what went, how optimistic the search was, what failed, and
    how long each part took."""
    told = [
        *_given_up(found),
        _judged(found),
        _removed(found),
        _cut_short(found),
        _optimism(found),
        _starts(found.starts),
        _apart(found),
        _failed(found.tried),
        _took(found),
    ]
    return [sentence for sentence in told if sentence]


def _given_up(found: SearchResult) -> list[str]:
    """What the winner gives up; and what may be had for what, by the search's own blocks."""
    told = []
    if lost := given_up_text(found, found.winner or ""):
        told.append(f"The winner gives up {lost}.")
    best = sorted((one for one in found.tried if GIVEN_UP in one.frontier), key=lambda one: one.ratio or 0.0)
    if best:
        listed = "; ".join(_bargain(found, one) for one in best)
        told.append(
            f"Speed against what is given up, in the search’s own blocks, which prove nothing: {listed}."
        )
    if any(Promise.DURABILITY in promises for promises in found.given_up.values()):
        told.append(
            "How many transactions a power cut takes along was not measured, because a search cuts no power."
            " A study of the winner with [restarts] measures that."
        )
    return told


def _bargain(found: SearchResult, one: Tried) -> str:
    lost = given_up_text(found, one.name)
    assert one.ratio is not None  # what has none is on no frontier
    kept = f"gives up {lost}" if lost else "keeps all"
    changes = levels_text(one.changed)
    return (
        f"{changes} ({clean(one.name)}) {kept} and has {ratio_text(one.ratio)} times the baseline’s response"
    )


LOST = 0.7
"""A finalist that keeps less than this of the ratio that it was chosen by has lost 30 % of its speed."""


def _judged(found: SearchResult) -> str:
    """How many of the best of a searcher hold when they are measured again, side by side with Dyno's own."""
    told = []
    for side, words in (("theirs", "theirs"), ("own", "Dyno’s own")):
        best = [one for one in found.judged if one.side in (side, "both")]
        if best:
            holding = sum(one.holds for one in best)
            lost = sum(one.again is not None and _kept_share(one.told, one.again) < LOST for one in best)
            told.append(f"{holding} of {len(best)} of {words} hold ({lost} lost 30 % or more)")
    return f"Measured again in fresh blocks, of the best {' and '.join(told)}." if told else ""


def _kept_share(told: float, again: float) -> float:
    """What a finalist keeps of its speed. What was told of it is better than the baseline, whichever way is
    better."""
    return again / told if told > 1.0 else told / again


def _removed(found: SearchResult) -> str:
    if not found.removed:
        return ""
    names = listed([change_text(change) for change in found.removed])
    return f"Taken back, because no contribution of them shows: {names}."


def _cut_short(found: SearchResult) -> str:
    """Why changes are still there that an elimination would take away."""
    last = found.rounds[-1] if found.rounds else None
    if last is not None and last.reference != found.winner:
        return "What the last round left seems worse, or is not shown to be faster, so it does not count."
    if last is not None and last.removed:
        names = listed([factor_text(name) for name in last.removed])
        return f"The time was over before the winner could be measured without {names}, which may do nothing."
    if found.winner is not None and not found.rounds and len(found.changes) > 1:
        return "The changes were not taken back one by one, so their shares are not known."
    return ""


def _optimism(found: SearchResult) -> str:
    if found.optimism is None:
        return ""
    if found.optimism >= 1.0:
        by = f"{ratio_text(found.optimism)} times too good"
    else:
        by = f"too low, {ratio_text(found.optimism)} times the confirmed one"
    return f"The search’s own ratio of the confirmed candidate was {by}. Only the confirmed one is told."


def _starts(starts: Starts | None) -> str:
    """How many starts of the winner were bad, how many may be, and what the study's question lacks."""
    if starts is None or not starts.count:
        return ""
    most, confidence = share_text(starts.share_most, 2), share_text(starts.confidence)
    known = (
        f"{starts.bad} of {plural(starts.count, 'start')} of the winner were bad (failed, or no faster than"
        f" the baseline): up to {most} may be, with {confidence}."
    )
    if starts.asked is None or starts.share_most <= starts.asked:
        return known
    lacks = f"The study asks for at most {share_text(starts.asked)}"
    if starts.count < starts.needed:
        return f"{known} {lacks}, which takes {starts.needed} starts: the time was over before."
    return f"{known} {lacks}, which {plural(starts.needed, 'start')} show only without a bad one."


def _apart(found: SearchResult) -> str:
    if not found.apart_blocks:
        return ""
    return (
        f"In {plural(found.apart_blocks, 'block')} of the confirmation not all servers were up together, so"
        " what the host did meanwhile is in its ratios."
    )


def _failed(tried: tuple[Tried, ...]) -> str:
    causes: dict[str, int] = {}
    for one in tried:
        if one.cause:
            causes[clean(one.cause)] = causes.get(clean(one.cause), 0) + 1
    if not causes:
        return ""
    ranked = sorted(causes.items(), key=lambda item: -item[1])
    most, count = ranked[0]
    failed = f"{plural(sum(causes.values()), 'candidate')} had no speed that counts"
    if not ranked[1:]:
        return f"{failed}: {most}."
    return f"{failed}, {count} of them because: {most}; {plural(len(ranked) - 1, 'other cause')} as well."


def _took(found: SearchResult) -> str:
    parts = [f"{DOING[purpose]} {seconds_text(seconds)}" for purpose, seconds in found.took_s.items()]
    return f"Time: {', '.join(parts)}." if parts else ""


METHOD_OF_OTHERS = (
    "Evaluation: a searcher of others named levels, and each block holds them beside the baseline. A ratio of"
    " few blocks has an interval by the noise floor, which is the spread of two servers of the baseline in"
    " blocks of their own. So it takes other levels to be as noisy. The best of many is lucky, so the best of"
    " each searcher were measured again in fresh blocks, with keys, copies of the data and servers of their"
    " own. Only those give a verdict. Dyno’s own search, where it was asked for, had as much time."
)
METHOD = (
    "Search: each candidate is compared with the baseline in the same block. The first ones change a few"
    " factors at random. Later ones are picked around the best one: three of four by a Gaussian process of"
    " all ratios, one by a tree-structured Parzen estimator. Such a ratio is the best of many, so it is too"
    " good. The confirmation measures the best candidates anew, in blocks with keys, copies of the data and"
    " servers of their own, and only its intervals give a verdict. The elimination takes each change of the"
    " winner back in turn: a share is the ratio winner / winner without the change, and with the"
    " study's confidence none of the intervals of a round is wrong."
)
