//! Gumbel selection at the root, for searches with few visits. Moves are sampled without
//! replacement by the Gumbel-top-k trick, and visits are distributed among them by sequential
//! halving (Danihelka et al. 2022, "Policy improvement by planning with Gumbel"; the order of
//! visits is that of DeepMind's mctx).

use crate::search::tree::Tree;
use crate::search::tree::header::Outcome;
use crate::search::tree::move_order::{Snapshot, prior_of};
use crate::search::tree::node::Node;
use crate::softmax::softmax;
use rand::Rng;

/// Added to the visits of the most-visited move in the scale of values (c_visit in the paper).
const SCALE_VISITS: f32 = 50.0;

/// A root move, with the data that Gumbel selection needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contender {
    /// The move's number in generation order.
    pub(crate) number: u8,
    pub(crate) prior: f32,
    /// The value for the player to move, if the move has been visited or is proven.
    pub(crate) q: Option<f32>,
    /// Visits completed and in flight.
    pub(crate) started: u32,
    /// Whether the move is proven to lose.
    pub(crate) lost: bool,
}

/// Returns the edges of a node as contenders.
pub(crate) fn contenders(tree: &Tree, node: Node<'_>) -> Vec<Contender> {
    tree.edges(node.header())
        .map(|edge| {
            let of = Snapshot::of(tree, edge);
            Contender {
                number: edge.rank().number(),
                prior: prior_of(edge),
                q: match of.header.outcome() {
                    Outcome::Unknown if of.statistics.visits == 0 => None,
                    _ => Some(of.statistics.q as f32),
                },
                started: edge.edge_visits().started(),
                lost: of.header.outcome() == Outcome::Win,
            }
        })
        .collect()
}

/// The noise and visit schedule of one search.
#[derive(Debug)]
pub(crate) struct Gumbel {
    /// The noise of each move, by move number.
    noise: Vec<f32>,
    /// Entry n is the number of visits that the move which receives the n-th visit already has.
    visits: Vec<u32>,
    scale: f32,
}

impl Gumbel {
    /// Samples Gumbel noise for a root with this many moves; `considered` of them share `visits`.
    /// `scale` is the paper's c_scale.
    pub(crate) fn new(
        random: &mut impl Rng,
        moves: usize,
        considered: usize,
        visits: usize,
        scale: f32,
    ) -> Gumbel {
        let draw = |_| {
            let uniform: f32 = random.random::<f32>().clamp(1e-9, 1.0 - 1e-7);
            -(-uniform.ln()).ln()
        };
        Gumbel {
            noise: (0..moves).map(draw).collect(),
            visits: halving(considered.min(moves), visits),
            scale,
        }
    }

    /// Selects the contender for the next visit. `own` is the position's own evaluation for the
    /// player to move.
    pub(crate) fn next(&self, contenders: &[Contender], own: f32) -> Option<usize> {
        let done: u32 = contenders.iter().map(|contender| contender.started).sum();
        let most = contenders.iter().map(|contender| contender.started).max()?;
        let wanted = self.visits.get(done as usize).copied().unwrap_or(most);
        self.best(contenders, own, |contender| contender.started == wanted)
            .or_else(|| self.best(contenders, own, |_| true))
    }

    /// Returns the move to play, which is the best of the most-visited moves.
    pub(crate) fn choice(&self, contenders: &[Contender], own: f32) -> Option<usize> {
        let open = contenders.iter().filter(|contender| !contender.lost);
        let most = open.map(|contender| contender.started).max();
        self.best(contenders, own, |contender| {
            most.is_none_or(|most| contender.started == most)
        })
    }

    /// Returns the best of the eligible contenders; proven losses come after all others.
    fn best(
        &self,
        contenders: &[Contender],
        own: f32,
        may_be: impl Fn(&Contender) -> bool,
    ) -> Option<usize> {
        let unvisited = mixed(contenders, own);
        let most = contenders.iter().map(|contender| contender.started).max()?;
        let factor = (SCALE_VISITS + most as f32) * self.scale;
        let score = |contender: &Contender| {
            let noise = self.noise.get(usize::from(contender.number));
            let logit = contender.prior.max(1e-9).ln() + noise.copied().unwrap_or(0.0);
            // In the paper, values lie in 0…1.
            let q = (contender.q.unwrap_or(unvisited) + 1.0) / 2.0;
            (!contender.lost, logit + factor * q)
        };
        (0..contenders.len())
            .filter(|&number| may_be(&contenders[number]))
            .max_by(|&a, &b| {
                let (a, b) = (score(&contenders[a]), score(&contenders[b]));
                a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
            })
    }
}

/// Returns the policy improved by a search (eq. 11 in the paper), in the order of the contenders.
/// It is informative even with few visits. `scale` is the paper's c_scale, and `own` is the
/// position's own evaluation for the player to move.
pub(crate) fn improved_policy(contenders: &[Contender], own: f32, scale: f32) -> Vec<f32> {
    let unvisited = mixed(contenders, own);
    let most = contenders.iter().map(|contender| contender.started).max();
    let factor = (SCALE_VISITS + most.unwrap_or(0) as f32) * scale;
    let logit = |contender: &Contender| {
        // In the paper, values lie in 0…1.
        let q = (contender.q.unwrap_or(unvisited) + 1.0) / 2.0;
        contender.prior.max(1e-9).ln() + factor * q
    };
    let mut policy: Vec<f32> = contenders.iter().map(logit).collect();
    softmax(&mut policy, 1.0);
    policy
}

/// Returns the assumed value of an unvisited move: a mixture of the position's own evaluation and
/// the visited moves' values, weighted by their priors (appendix D of the paper).
fn mixed(contenders: &[Contender], own: f32) -> f32 {
    let (mut visits, mut policy, mut worth) = (0.0, 0.0, 0.0);
    for contender in contenders {
        if let Some(q) = contender.q {
            visits += contender.started as f32;
            policy += contender.prior;
            worth += contender.prior * q;
        }
    }
    match policy > 0.0 {
        true => (own + visits * worth / policy) / (1.0 + visits),
        false => own,
    }
}

/// Returns the schedule of sequential halving: in each of log₂(considered) rounds, the remaining
/// moves get the same number of visits, and then the worse half is dropped. Entry n is the number
/// of visits that the move which receives the n-th visit already has.
fn halving(considered: usize, visits: usize) -> Vec<u32> {
    if considered < 2 {
        return (0..visits as u32).collect();
    }
    let rounds = considered.next_power_of_two().ilog2() as usize;
    let mut made = vec![0; considered];
    let mut left = considered;
    let mut order = Vec::with_capacity(visits + considered);
    while order.len() < visits {
        for _ in 0..(visits / (rounds * left)).max(1) {
            order.extend_from_slice(&made[..left]);
            made[..left].iter_mut().for_each(|visits| *visits += 1);
        }
        left = (left / 2).max(2);
    }
    order.truncate(visits);
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    #[test]
    fn visits_are_halved_as_in_mctx() {
        // mctx.seq_halving.get_sequence_of_considered_visits(4, 16) and (3, 7).
        let expected = [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5];
        assert_eq!(halving(4, 16), expected);
        assert_eq!(halving(3, 7), [0, 0, 0, 1, 1, 2, 2]);
        assert_eq!(halving(1, 4), [0, 1, 2, 3]);
        assert!(halving(16, 0).is_empty());
    }

    fn search(gumbel: &Gumbel, values: &[f32], visits: usize) -> (Vec<u32>, usize) {
        let mut contenders: Vec<Contender> = (0..values.len())
            .map(|number| Contender {
                number: number as u8,
                prior: 1.0 / values.len() as f32,
                q: None,
                started: 0,
                lost: false,
            })
            .collect();
        for _ in 0..visits {
            let next = gumbel.next(&contenders, 0.0).unwrap();
            contenders[next].started += 1;
            contenders[next].q = Some(values[next]);
        }
        let choice = gumbel.choice(&contenders, 0.0).unwrap();
        (contenders.iter().map(|c| c.started).collect(), choice)
    }

    #[test]
    fn the_best_of_those_drawn_is_found() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let values: Vec<f32> = (0..20).map(|number| number as f32 / 20.0 - 0.5).collect();
        let mut first_drawn = std::collections::BTreeSet::new();
        for _ in 0..50 {
            let gumbel = Gumbel::new(&mut random, 20, 8, 48, 20.0);
            let (visits, choice) = search(&gumbel, &values, 48);
            assert_eq!(visits.iter().sum::<u32>(), 48);
            let drawn = |number: &usize| visits[*number] > 0;
            assert_eq!((0..20).filter(drawn).count(), 8);
            assert_eq!(Some(choice), (0..20).rev().find(drawn));
            first_drawn.extend((0..20).filter(drawn));
        }
        // With equal priors, every move is sampled at some point.
        assert_eq!(first_drawn.len(), 20);
    }

    #[test]
    fn the_policy_is_improved_by_what_was_found() {
        let contender = |number, prior, q: Option<f32>| Contender {
            number,
            prior,
            q,
            started: u32::from(q.is_some()),
            lost: false,
        };
        let found = [
            contender(0, 0.5, Some(-0.2)),
            contender(1, 0.3, Some(0.2)),
            contender(2, 0.2, None),
        ];
        let policy = improved_policy(&found, 0.0, 0.1);
        // The value of unvisited moves: (0 + 2 · (−0.04 / 0.8)) / 3.
        let q: [f32; 3] = [0.4, 0.6, (1.0 - 0.1 / 3.0) / 2.0];
        let weights: Vec<f32> = found
            .iter()
            .zip(q)
            .map(|(contender, q)| contender.prior * (5.1 * q).exp())
            .collect();
        let sum: f32 = weights.iter().sum();
        for (p, weight) in policy.iter().zip(weights) {
            assert!((p - weight / sum).abs() < 1e-5, "{policy:?}");
        }
    }

    #[test]
    fn proven_losses_are_the_last_resort() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let gumbel = Gumbel::new(&mut random, 2, 2, 10, 1.0);
        let mut contenders = [true, false].map(|lost| Contender {
            number: u8::from(lost),
            prior: 0.5,
            q: Some(if lost { 0.9 } else { -0.9 }),
            started: 5,
            lost,
        });
        assert_eq!(gumbel.choice(&contenders, 0.0), Some(1));
        assert_eq!(gumbel.next(&contenders, 0.0), Some(1));
        contenders[1].lost = true;
        assert_eq!(gumbel.choice(&contenders, 0.0), Some(0));
    }
}
