use super::*;
use crate::count::series::{SecondLatencies, Series};
use crate::count::tally::Second;
use crate::error::Fate;

const PHASES: Phases = Phases {
    start_ns: 10 * NS_PER_S,
    measured_ns: 12 * NS_PER_S,
    end_ns: 14 * NS_PER_S,
    shown_ns: 10 * NS_PER_S,
    before_ns: 0,
    more: false,
};

fn deadlock() -> Error {
    Error::server("1213 deadlock", Fate::Retry, "a deadlock was found")
}

fn duplicate() -> Error {
    Error::server("1062 duplicate", Fate::Failed, "the key is there")
}

fn put_together(kinds: usize, parts: &Receiver<SecondPart>) -> Series {
    let mut series = Series::new(1, kinds, false);
    parts.try_iter().for_each(|part| series.add(part, |_, _| {}));
    series.finish(|_, _| {});
    series
}

#[test]
fn what_is_on_a_border_counts_where_it_belongs() {
    let (sender, receiver) = channel();
    let mut recorder = Recorder::new(1, PHASES, sender);
    // Over the beginning of the measured part, within it, over its end, and given up.
    recorder.done(0, PHASES.measured_ns - 5, PHASES.measured_ns - 5, PHASES.measured_ns + 5);
    recorder.done(0, PHASES.measured_ns, PHASES.measured_ns, PHASES.measured_ns + 5);
    recorder.done(0, PHASES.end_ns - 1, PHASES.end_ns - 1, PHASES.end_ns + 5);
    recorder.given_up(0, PHASES.end_ns - 1, PHASES.end_ns + 5);
    recorder.finish();
    let series = put_together(1, &receiver);
    assert_eq!((series.totals[0].len(), recorder.unfinished), (3, 2));
    let seconds: Vec<_> = series.done.iter().map(|one| (one.second, one.operations)).collect();
    assert_eq!(seconds, [(-2, 0), (-1, 0), (0, 2), (1, 0), (2, 1)]);
}

/// Of a second each, across the phases' borders in any way.
#[test]
fn what_is_over_a_border_counts_by_its_share() {
    let shares = |began: &[f64]| {
        let mut recorder = Recorder::new(1, PHASES, channel().0);
        for begins_s in began {
            let began_ns = (begins_s * NS_PER_S as f64) as u64;
            recorder.done(0, began_ns, began_ns, began_ns + NS_PER_S);
        }
        (recorder.work(), recorder.operations[0])
    };
    // The measured part lasts from 12 s to 14 s. A client that is never idle does two, wherever they end.
    assert_eq!(shares(&[11.0, 12.0, 13.0, 14.0]), (2.0, 2));
    assert_eq!(shares(&[11.25, 12.25, 13.25]), (2.0, 2));
    assert_eq!(shares(&[10.0]), (0.0, 0));
    let mut recorder = Recorder::new(1, PHASES, channel().0);
    // One that all of the measured part waits for, and one that was due before it and began in it.
    recorder.done(0, 10 * NS_PER_S, 10 * NS_PER_S, 18 * NS_PER_S);
    assert_eq!((recorder.work(), recorder.operations[0]), (0.25, 0));
    assert_eq!(recorder.done(0, 11 * NS_PER_S, 12 * NS_PER_S, 13 * NS_PER_S), 1.0);
}

#[test]
fn what_failed_has_latencies_of_its_own() {
    let mut recorder = Recorder::new(1, PHASES, channel().0);
    recorder.gave_nothing(PHASES.start_ns, PHASES.measured_ns + 1);
    assert!(recorder.failed_latencies.is_none(), "it began in the warm-up");
    recorder.gave_nothing(PHASES.measured_ns, PHASES.measured_ns + 1_000);
    recorder.gave_nothing(PHASES.end_ns - 1, PHASES.end_ns + 5_000);
    let failed = recorder.failed_latencies.unwrap();
    assert_eq!((failed.len(), failed.min(), failed.max()), (2, 1_000, 5_003));
}

#[test]
fn what_is_given_up_is_no_second_of_the_series() {
    let (sender, receiver) = channel();
    let mut recorder = Recorder::new(1, PHASES, sender);
    recorder.given_up(0, PHASES.measured_ns, PHASES.measured_ns + 7);
    recorder.finish();
    let series = put_together(1, &receiver);
    assert_eq!((series.totals[0].len(), series.done.len()), (1, 0));
}

#[test]
fn a_thread_uses_emptied_counters_again() {
    let (sender, receiver) = channel();
    let mut recorder = Recorder::new(1, PHASES, sender);
    let mut series = Series::new(1, 1, false);
    let mut allocated = std::collections::BTreeSet::new();
    for second in 10..14 {
        recorder.done(0, 0, 0, second * NS_PER_S + 5);
        allocated.insert(recorder.second_latencies.as_ptr() as usize);
        recorder.observe((second + 1) * NS_PER_S);
        receiver.try_iter().for_each(|part| series.add(part, |_, _| {}));
    }
    assert_eq!(allocated.len(), 2);
}

#[test]
fn only_the_measured_part_counts_but_all_is_acknowledged() {
    let (sender, receiver) = channel();
    let mut recorder = Recorder::new(1, PHASES, sender);
    for second in 10..15 {
        let now_ns = second * NS_PER_S + 500;
        recorder.done(0, now_ns - 100, now_ns - 100, now_ns);
    }
    recorder.failed(&deadlock(), 14 * NS_PER_S + 600);
    recorder.finish();
    assert_eq!(recorder.acknowledged[0], 5);
    assert!(recorder.errors.is_empty());
    let series = put_together(1, &receiver);
    assert_eq!(series.totals[0].len(), 2);
    let seconds: Vec<_> =
        series.done.iter().map(|one| (one.second, one.operations, one.errors, one.max_us)).collect();
    let second = |number, errors| (number, 1, errors, 0.1);
    assert_eq!(seconds, [second(-2, 0), second(-1, 0), second(0, 0), second(1, 0), second(2, 1)]);
}

#[test]
fn transactions_are_counted_by_the_tenth_of_a_second_in_which_they_end() {
    let (sender, receiver) = channel();
    let mut recorder = Recorder::new(1, PHASES, sender);
    for (tenths_ns, count) in [(100, 3), (119, 1), (120, 2), (121, 1), (129, 4)] {
        for _ in 0..count {
            recorder.done(0, 0, 0, tenths_ns * NS_PER_S / 10);
        }
    }
    recorder.finish();
    let tenths: Vec<_> = receiver.try_iter().map(|part| part.tenths).collect();
    assert_eq!(
        tenths,
        [[3, 0, 0, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0, 0, 1], [2, 1, 0, 0, 0, 0, 0, 0, 0, 4]]
    );
}

#[test]
fn the_fewest_and_the_most_are_of_clients_that_are_over() {
    let mut recorder = Recorder::new(1, PHASES, channel().0);
    assert_eq!(recorder.by_client, None);
    let done = [11, 12, 13, 14].map(|at| recorder.done(0, 0, (at - 1) * NS_PER_S, at * NS_PER_S));
    assert_eq!(done, [0.0, 0.0, 1.0, 1.0]);
    [7.0, 1.5, 9.0].into_iter().for_each(|operations| recorder.client_over(operations));
    assert_eq!(recorder.by_client, Some(ByClient { least: 1.5, most: 9.0 }));
}

#[test]
fn errors_retries_and_roll_backs_count_in_the_measured_part_only() {
    let mut recorder = Recorder::new(1, PHASES, channel().0);
    for now_ns in [PHASES.start_ns, PHASES.measured_ns - 1, PHASES.measured_ns, PHASES.end_ns] {
        recorder.failed(&duplicate(), now_ns);
        recorder.retried(&deadlock(), now_ns);
        recorder.rolled_back(now_ns);
    }
    assert_eq!((recorder.retries, recorder.rollbacks), (1, 1));
    assert_eq!(recorder.errors.into_values().collect::<Vec<_>>(), [1, 1]);
    let examples: Vec<String> = recorder.error_examples.into_values().collect();
    assert_eq!(examples, ["the key is there", "a deadlock was found"]);
}

#[test]
fn a_measured_part_of_no_whole_seconds_has_a_last_second_that_is_short() {
    let phases = Phases { measured_ns: NS_PER_S, end_ns: 2 * NS_PER_S + 500, ..Phases::default() };
    let (sender, receiver) = channel();
    let mut recorder = Recorder::new(2, phases, sender);
    for (kind, now_ns) in [(0, NS_PER_S), (1, phases.end_ns - 1), (0, phases.end_ns), (1, 3 * NS_PER_S)] {
        recorder.done(kind, now_ns - 100, now_ns - 100, now_ns);
    }
    recorder.finish();
    let (mut series, mut seen) = (Series::new(1, 2, true), Vec::new());
    let mut whole = |second: &Second, latencies: &SecondLatencies| {
        seen.push((second.second, latencies.by_kind.iter().map(Latencies::len).collect::<Vec<_>>()));
    };
    receiver.try_iter().for_each(|part| series.add(part, &mut whole));
    series.finish(&mut whole);
    assert_eq!(seen, [(-1, vec![0, 0]), (0, vec![1, 0]), (1, vec![0, 1]), (2, vec![1, 1])]);
    assert_eq!(series.totals.iter().map(Latencies::len).collect::<Vec<_>>(), [1, 1]);
}

#[test]
fn a_second_goes_on_in_the_next_slice_and_what_settles_is_not_shown() {
    let (sender, receiver) = channel();
    let slice = |start_ns: u64, before_ns, more| Phases {
        start_ns,
        measured_ns: start_ns + 100,
        end_ns: start_ns + 100 + 6 * NS_PER_S / 10,
        shown_ns: start_ns + 100,
        before_ns,
        more,
    };
    let warmup = Phases { measured_ns: NS_PER_S, end_ns: NS_PER_S, more: true, ..Phases::default() };
    let slices = [slice(5 * NS_PER_S, 0, true), slice(9 * NS_PER_S, 6 * NS_PER_S / 10, false)];
    let mut recorder = Recorder::new(1, warmup, sender);
    recorder.done(0, 5, 5, 500);
    recorder.done(0, 5, 5, NS_PER_S + 5);
    for phases in slices {
        recorder.go_on(phases);
        for now_ns in [phases.measured_ns - 1, phases.measured_ns + 1, phases.end_ns - 1, phases.end_ns + 1] {
            recorder.done(0, now_ns - 1, now_ns - 1, now_ns);
            recorder.failed(&deadlock(), now_ns);
        }
    }
    recorder.finish();
    let series = put_together(1, &receiver);
    let seconds: Vec<_> = series.done.iter().map(|one| (one.second, one.operations, one.errors)).collect();
    assert_eq!(seconds, [(-1, 1, 0), (0, 3, 3), (1, 1, 1), (2, 1, 1)]);
    assert_eq!(series.totals[0].len(), 4, "the last of each slice began in it");
    assert_eq!((recorder.operations[0], recorder.acknowledged[0]), (4, 10));
    assert_eq!(recorder.work(), 4.0);
    assert_eq!(recorder.errors["1213 deadlock"], 4);
}

#[test]
fn a_warm_up_of_no_whole_seconds_has_a_first_second_that_is_short() {
    let phases = Phases { start_ns: 500, measured_ns: NS_PER_S, end_ns: 2 * NS_PER_S, ..Phases::default() };
    assert_eq!(phases.second(500), -1);
    assert_eq!(end_of(-1, phases), NS_PER_S);
}
