//! The order in which statements are sent that are each sent by themselves: another one in each round.

use crate::random::Random;

/// Of the random numbers that order a round, so that they are none that a statement draws.
const ORDER: u64 = 0x4F52_4445 << 32;

/// How often each statement is sent, and from where the order of a round is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Rounds {
    pub rounds: u64,
    pub seed: u64,
}

/// Where a client is in its rounds.
#[derive(Debug, Default)]
pub struct Turn {
    taken: u64,
    order: Vec<usize>,
}

impl Turn {
    /// The statement that comes next.
    pub fn next(&mut self, rounds: Rounds, statements: usize) -> usize {
        let (round, at) = (self.taken / statements as u64, (self.taken % statements as u64) as usize);
        if at == 0 {
            let mut random = Random::new(rounds.seed, ORDER + round);
            self.order.clear();
            self.order.extend(0..statements);
            for last in (1..statements).rev() {
                self.order.swap(last, random.below(last as u64 + 1) as usize);
            }
        }
        self.taken += 1;
        self.order[at]
    }

    /// Whether the one that was taken last belongs to no round.
    pub fn is_over(&self, rounds: Rounds, statements: usize) -> bool {
        self.taken > rounds.rounds * statements as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_has_all_statements_in_an_order_of_its_own() {
        let (rounds, mut turn) = (Rounds { rounds: 2, seed: 7 }, Turn::default());
        let mut other = Turn::default();
        let drawn: Vec<usize> = (0..40).map(|_| turn.next(rounds, 20)).collect();
        assert_eq!(
            drawn,
            (0..40).map(|_| other.next(rounds, 20)).collect::<Vec<_>>(),
            "alike in all variants"
        );
        let (mut first, mut second) = (drawn[..20].to_vec(), drawn[20..].to_vec());
        assert_ne!(first, second);
        first.sort_unstable();
        second.sort_unstable();
        assert_eq!((first, second), ((0..20).collect(), (0..20).collect()));
        assert!(!turn.is_over(rounds, 20));
        turn.next(rounds, 20);
        assert!(turn.is_over(rounds, 20));
    }
}
