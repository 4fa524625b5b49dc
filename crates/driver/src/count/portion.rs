//! What one of several hosts counted whose clients are those of one load, and the tally of all of them.
//!
//! Counts add, histograms add, and a second or a slice is that of all hosts. So the tally is the one that a single host
//! with all these clients would have made of the same transactions.

use super::histogram::{decoded, latencies, Latencies};
use super::series::second_of;
use super::statements::Statements;
use super::tally::{ByClient, FineSeries, Second, Slice, Tally};
use super::total::{OpenLoop, Total};
use crate::error::{Error, Result};
use crate::workload::Start;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the clients of one host counted.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Portion {
    pub total: Total,
    /// What that host found in the data before any load.
    pub start: Start,
}

/// The tally of a load whose clients were on all these hosts.
pub fn tally_of(portions: Vec<Portion>) -> Result<Tally> {
    let start = portions.first().map(|portion| portion.start.clone()).unwrap_or_default();
    if portions.iter().any(|portion| portion.start != start) {
        return Err(Error::user("the load hosts found other data before the load than each other")
            .hint("nobody else may write to the server until all of them are connected"));
    }
    let seconds = seconds(&portions)?;
    let whole = portions
        .into_iter()
        .map(|portion| Ok(portion.total))
        .reduce(|all, one| with(all?, one?))
        .unwrap_or_else(|| Err(Error::internal("no host counted anything")))?;
    Ok(Tally { start, series: seconds, ..whole.tally(Vec::new())? })
}

/// The seconds of all hosts. One in which a host did nothing has none of its latencies.
fn seconds(portions: &[Portion]) -> Result<Vec<Second>> {
    let mut all = BTreeMap::<i64, (Latencies, u64)>::new();
    for total in portions.iter().map(|portion| &portion.total) {
        for (second, histogram) in total.series.iter().zip(&total.second_histograms) {
            let (seen, errors) = all.entry(second.second).or_insert_with(|| (latencies(), 0));
            *errors += second.errors;
            if !histogram.is_empty() {
                *seen += decoded(histogram)?;
            }
        }
    }
    Ok(all.into_iter().map(|(second, (seen, errors))| second_of(second, &seen, errors)).collect())
}

/// Two hosts' counts, summed.
fn with(mut all: Total, other: Total) -> Result<Total> {
    let names = |total: &Total| total.by_transaction.iter().map(|kind| kind.name.clone()).collect::<Vec<_>>();
    if (&all.workload, all.seed, names(&all)) != (&other.workload, other.seed, names(&other)) {
        return Err(Error::internal("the load hosts did not carry out the same load"));
    }
    for (ours, theirs) in all.by_transaction.iter_mut().zip(&other.by_transaction) {
        ours.latencies += &theirs.latencies;
        ours.operations += theirs.operations;
        ours.over_borders += theirs.over_borders;
        ours.acknowledged += theirs.acknowledged;
    }
    for (label, count) in other.errors {
        *all.errors.entry(label).or_default() += count;
    }
    other.error_examples.into_iter().for_each(|(label, example)| {
        all.error_examples.entry(label).or_insert(example);
    });
    all.untaken += &other.untaken;
    all.failed += &other.failed;
    all.recalls.merge(&other.recalls);
    all.threads.extend(other.threads);
    Ok(Total {
        backend: together(all.backend, &other.backend),
        clients: all.clients + other.clients,
        started_unix_s: all.started_unix_s.min(other.started_unix_s),
        duration_s: all.duration_s.max(other.duration_s),
        by_statement: statements(&[all.by_statement, other.by_statement]),
        unfinished: all.unfinished + other.unfinished,
        retries: all.retries + other.retries,
        rollbacks: all.rollbacks + other.rollbacks,
        unknown: all.unknown + other.unknown,
        clients_lost: all.clients_lost + other.clients_lost,
        by_client: all.by_client.into_iter().chain(other.by_client).reduce(ByClient::with),
        rows_read: all.rows_read + other.rows_read,
        bytes_received: all.bytes_received + other.bytes_received,
        bytes_sent: all.bytes_sent + other.bytes_sent,
        sched_batch: all.sched_batch || other.sched_batch,
        gather_us_max: all.gather_us_max.max(other.gather_us_max),
        open_loop: all.open_loop.into_iter().chain(other.open_loop).reduce(arrivals),
        fine_series: all.fine_series.into_iter().chain(other.fine_series).reduce(fine),
        slices: slices(all.slices, other.slices),
        saturated: all.saturated.or(other.saturated),
        interrupted: all.interrupted || other.interrupted,
        ..all
    })
}

fn together(all: String, other: &str) -> String {
    match all.split(", ").any(|one| one == other) {
        true => all,
        false => format!("{all}, {other}"),
    }
}

fn statements(each: &[Statements]) -> Statements {
    let mut all = Statements::default();
    each.iter().for_each(|one| all.merge(one));
    all
}

fn arrivals(all: OpenLoop, other: OpenLoop) -> OpenLoop {
    OpenLoop {
        offered: all.offered + other.offered,
        backlog_max: all.backlog_max + other.backlog_max,
        backlog_end: all.backlog_end + other.backlog_end,
        due_at_end: all.due_at_end + other.due_at_end,
    }
}

/// Intervals have their numbers from the same start; one that a host does not have adds nothing.
fn fine(all: FineSeries, other: FineSeries) -> FineSeries {
    let (mut longer, shorter) = match all.operations.len() < other.operations.len() {
        true => (other, all),
        false => (all, other),
    };
    longer.operations.iter_mut().zip(shorter.operations).for_each(|(ours, theirs)| *ours += theirs);
    longer
}

/// A slice begins with the first host that begins it. One that not all hosts had is left out.
fn slices(all: Vec<Slice>, other: Vec<Slice>) -> Vec<Slice> {
    let pair = |(ours, theirs): (Slice, Slice)| Slice {
        started_unix_s: ours.started_unix_s.min(theirs.started_unix_s),
        duration_s: ours.duration_s.max(theirs.duration_s),
        operations: ours.operations + theirs.operations,
        throughput_per_s: ours.throughput_per_s + theirs.throughput_per_s,
    };
    all.into_iter().zip(other).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::histogram::encoded;
    use crate::count::recall::Recalls;
    use crate::count::total::{ByTransaction, ThreadUse};
    use crate::job::Gather;
    use proptest::prelude::*;

    /// What a host counted whose transactions of each second had these latencies (ns).
    fn portion(seconds: &[Vec<u64>]) -> Portion {
        let histogram = |values: &[u64]| {
            let mut seen = latencies();
            values.iter().for_each(|&value| seen.record(value).unwrap());
            seen
        };
        let whole = histogram(&seconds.concat());
        let each = seconds.iter().map(|values| histogram(values)).collect::<Vec<_>>();
        let total = Total {
            workload: "tpcb".to_owned(),
            protocol: "mysql".to_owned(),
            server_version: "11.8".to_owned(),
            backend: "epoll".to_owned(),
            clients: 2,
            seed: 7,
            started_unix_s: 10.0,
            warmup_s: 0.0,
            duration_s: seconds.len() as f64,
            by_transaction: vec![ByTransaction {
                name: "transfer".to_owned(),
                operations: whole.len(),
                over_borders: 0.0,
                acknowledged: whole.len(),
                latencies: whole,
            }],
            by_statement: Statements::default(),
            untaken: latencies(),
            unfinished: 0,
            failed: latencies(),
            errors: BTreeMap::new(),
            error_examples: BTreeMap::new(),
            retries: 1,
            rollbacks: 0,
            unknown: 0,
            clients_lost: 0,
            by_client: None,
            rows_read: 0,
            recalls: Recalls::default(),
            bytes_received: 100,
            bytes_sent: 50,
            threads: vec![ThreadUse::default()],
            gather: Gather::Off,
            sched_batch: false,
            gather_us_max: 0,
            open_loop: None,
            series: (0..).zip(&each).map(|(second, seen)| second_of(second, seen, 0)).collect(),
            second_histograms: each.iter().map(|seen| encoded(seen).unwrap()).collect(),
            fine_series: None,
            slices: Vec::new(),
            saturated: None,
            replay: None,
            interrupted: false,
        };
        Portion { total, start: Start::from([("account".to_owned(), 3)]) }
    }

    /// As it crosses the border, there and back.
    fn sent(portion: &Portion) -> Portion {
        serde_json::from_str(&serde_json::to_string(portion).unwrap()).unwrap()
    }

    proptest! {
        /// Of two seconds each.
        #[test]
        fn the_tally_of_several_hosts_is_that_of_one_with_all_their_transactions(
            hosts in proptest::collection::vec(
                proptest::collection::vec(proptest::collection::vec(1u64..1_000_000_000, 1..40), 2..=2), 1..4,
            ),
        ) {
            let together = (0..2).map(|second| hosts.iter().flat_map(|host| host[second].clone()).collect());
            let alone = tally_of(vec![portion(&together.collect::<Vec<_>>())]).unwrap();
            let all = tally_of(hosts.iter().map(|host| sent(&portion(host))).collect()).unwrap();
            prop_assert_eq!(&all.histogram, &alone.histogram);
            prop_assert_eq!(all.latency_us, alone.latency_us);
            prop_assert_eq!(all.by_transaction[0].1.latency_us, alone.by_transaction[0].1.latency_us);
            prop_assert_eq!(&all.series, &alone.series);
            prop_assert_eq!((all.operations, all.acknowledged), (alone.operations, alone.acknowledged));
            let hosts = hosts.len() as u32;
            prop_assert_eq!((all.clients, all.threads, all.retries), (2 * hosts, hosts, u64::from(hosts)));
        }
    }

    #[test]
    fn hosts_that_found_other_data_are_refused() {
        let (one, mut other) = (portion(&[vec![1]]), portion(&[vec![1]]));
        other.start.insert("account".to_owned(), 4);
        let refused = tally_of(vec![one, other]).unwrap_err();
        assert!(refused.message().contains("found other data"), "{refused}");
    }

    #[test]
    fn hosts_of_other_loads_are_refused() {
        let (one, mut other) = (portion(&[vec![1]]), portion(&[vec![1]]));
        other.total.seed = 8;
        assert!(tally_of(vec![one, other]).is_err());
        assert!(tally_of(Vec::new()).is_err());
    }

    #[test]
    fn a_slice_is_that_of_all_hosts() {
        let slice = |started_unix_s, operations: u64| Slice {
            started_unix_s,
            duration_s: 0.5,
            operations,
            throughput_per_s: 2.0 * operations as f64,
        };
        let merged = slices(vec![slice(1.0, 10), slice(2.0, 20)], vec![slice(1.01, 5)]);
        assert_eq!(merged, vec![slice(1.0, 15)]);
    }
}
