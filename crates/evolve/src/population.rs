//! Population of templates: islands, tournaments on time, and novelty by machine code and counters.

use crate::figures::geometric_mean;
use crate::outcome::Outcome;
use rand::{Rng, RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;

/// Number of islands: lines that only occasionally exchange their best.
pub const ISLANDS: u32 = 3;
/// Rounds between two exchanges of the best among islands.
const MIGRATION_ROUNDS: u32 = 8;
/// Members that compete to become a parent.
const TOURNAMENT_SIZE: usize = 3;
/// Probability that a tournament is on novelty instead of time.
const NOVELTY_PROBABILITY: f64 = 0.25;
/// Nearest neighbours of a member's novelty.
const NEIGHBOURS: usize = 3;

/// Correct template of the population.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Number of the change; `None`: the shipped template.
    pub change: Option<i64>,
    /// Island; the shipped template is on each.
    pub island: Option<u32>,
    /// Outcome of the change.
    pub outcome: Outcome,
    /// Hash of the machine code of its best configurations.
    pub code: String,
    /// Best time of each problem, microseconds.
    pub times: BTreeMap<String, f64>,
    /// Behaviour: logarithms of registers, code size and counters.
    pub behaviour: Vec<f64>,
}

/// Correct templates of an evolution, in the order of their changes; the first is the shipped one.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Population {
    members: Vec<Member>,
}

impl Population {
    /// Adds a member.
    pub fn add(&mut self, member: Member) {
        self.members.push(member);
    }

    /// Returns the members, oldest first.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Returns the geometric mean of the ratios of the shipped template's time to the member's.
    #[must_use]
    pub fn gain(&self, member: &Member) -> f64 {
        let gains = self.gains(member);
        let gains: Vec<f64> = gains.into_values().collect();
        geometric_mean(&gains).unwrap_or(1.0)
    }

    /// Returns the ratio of the shipped template's time to the member's, by problem.
    #[must_use]
    pub fn gains(&self, member: &Member) -> BTreeMap<String, f64> {
        let Some(shipped) = self.members.first() else {
            return BTreeMap::new();
        };
        let times = member.times.iter();
        let gains = times.filter_map(|(problem, us)| {
            let before = shipped.times.get(problem)?;
            Some((problem.clone(), before / us))
        });
        gains.collect()
    }

    /// Returns the island of a round.
    #[must_use]
    pub fn island(round: u32) -> u32 {
        round % ISLANDS
    }

    /// Chooses the parent of a round, deterministically for a seed and members.
    #[must_use]
    pub fn choose_parent(&self, seed: u64, round: u32) -> Option<&Member> {
        // Rotated: seed 1 in round 2 would otherwise draw as seed 2 in round 1.
        let mut rng = ChaCha8Rng::seed_from_u64(seed ^ u64::from(round).rotate_left(32));
        let island = Self::island(round);
        // In a round of exchange, members of all islands compete.
        let exchanges = round.is_multiple_of(MIGRATION_ROUNDS);
        let resident =
            |member: &&Member| exchanges || member.island.is_none_or(|own| own == island);
        let residents: Vec<&Member> = self.members.iter().filter(resident).collect();
        let by_novelty = rng.random_bool(NOVELTY_PROBABILITY);
        let score = |member: &Member| match by_novelty {
            true => self.novelty(member),
            false => self.gain(member),
        };
        tournament(&residents, &score, &mut rng)
    }

    /// Returns the mean distance to the nearest other members in behaviour.
    #[must_use]
    pub fn novelty(&self, member: &Member) -> f64 {
        let others = self
            .members
            .iter()
            .filter(|other| other.change != member.change);
        let mut distances: Vec<f64> = others.map(|other| distance(member, other)).collect();
        distances.sort_by(f64::total_cmp);
        distances.truncate(NEIGHBOURS);
        if distances.is_empty() {
            return 0.0;
        }
        distances.iter().sum::<f64>() / distances.len() as f64
    }
}

fn tournament<'m>(
    members: &[&'m Member],
    score: &dyn Fn(&Member) -> f64,
    rng: &mut impl Rng,
) -> Option<&'m Member> {
    let mut drawn = (0..TOURNAMENT_SIZE).filter_map(|_| {
        let at = rng.random_range(0..members.len().max(1));
        members.get(at).copied()
    });
    let first = drawn.next()?;
    // On equal scores the first drawn wins, so that the order of members has no effect.
    Some(
        drawn.fold(first, |best, one| match score(one) > score(best) {
            true => one,
            false => best,
        }),
    )
}

fn distance(a: &Member, b: &Member) -> f64 {
    if a.code == b.code {
        return 0.0;
    }
    let pairs = a.behaviour.iter().zip(&b.behaviour);
    pairs.map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(change: Option<i64>, island: Option<u32>, us: f64, behaviour: f64) -> Member {
        Member {
            change,
            island,
            outcome: Outcome::NotBetter,
            code: format!("{change:?}"),
            times: [("p".to_owned(), us)].into(),
            behaviour: vec![behaviour],
        }
    }

    fn population() -> Population {
        let mut all = Population::default();
        all.add(member(None, None, 100.0, 0.0));
        all.add(member(Some(1), Some(1), 50.0, 0.1));
        all.add(member(Some(2), Some(1), 90.0, 9.0));
        all.add(member(Some(3), Some(2), 20.0, 0.2));
        all
    }

    #[test]
    fn parents_are_those_of_the_seed() {
        let chosen = |seed| -> Vec<Option<i64>> {
            let rounds = 1..40;
            rounds
                .map(|round| population().choose_parent(seed, round).unwrap().change)
                .collect()
        };
        assert_eq!(chosen(1), chosen(1));
        assert_ne!(chosen(1), chosen(2));
        assert!(Population::default().choose_parent(1, 1).is_none());
    }

    #[test]
    fn islands_exchange_only_in_their_rounds() {
        for round in 1..200 {
            let all = population();
            let parent = all.choose_parent(7, round).unwrap();
            let own = parent
                .island
                .is_none_or(|island| island == Population::island(round));
            assert!(own || round % MIGRATION_ROUNDS == 0, "round {round}");
        }
    }

    #[test]
    fn fast_members_are_chosen_more_often_and_novel_ones_too() {
        let all = population();
        let count = |change| {
            let rounds = (1..3000)
                .filter(|round| Population::island(*round) == 1 && round % MIGRATION_ROUNDS != 0);
            rounds
                .filter(|round| all.choose_parent(3, *round).unwrap().change == change)
                .count()
        };
        let (shipped, fast, novel) = (count(None), count(Some(1)), count(Some(2)));
        assert!(fast > 2 * shipped, "{fast} {shipped}");
        assert!(novel > shipped, "{novel} {shipped}");
    }

    #[test]
    fn equal_code_is_not_novel() {
        let mut all = population();
        all.add(Member {
            code: "Some(2)".to_owned(),
            ..member(Some(4), Some(1), 80.0, 30.0)
        });
        let of_change = |change| all.members().iter().find(|it| it.change == Some(change));
        assert_eq!(distance(of_change(2).unwrap(), of_change(4).unwrap()), 0.0);
    }
}
