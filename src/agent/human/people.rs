//! The policy of people in a position, and the moves about which the search may say nothing.
//!
//! How well people of a rating see a mate in one, their own or the opponent's, is in the network's
//! [correction](crate::tactics::correction). A search sees every mate, so it would play better than
//! they do: moves that mate or allow mate keep the share that the policy gives them.

use crate::backend::{Evaluated, Properties, Value};
use crate::chess::Game;
use crate::softmax::softmax;
use crate::tactics::features;
use shakmaty::Move;

/// The policy of people in a position.
pub(super) struct People {
    /// The position's value.
    pub value: Value,
    /// The moves whose share the search leaves unchanged.
    pub settled: Vec<Move>,
    /// Each legal move with its probability and with what the correction adds to its logit.
    moves: Vec<(Move, f32, f32)>,
}

impl People {
    /// Corrects the policy of a network's evaluation, if the network has a correction.
    pub fn of(properties: &Properties, game: &Game, evaluated: Evaluated) -> People {
        let mut policy = evaluated.logits.clone();
        let mut settled = Vec::new();
        if let Some(correction) = properties.people_correction() {
            let features = features(game.position(), &evaluated.moves);
            correction.correct(&features, super::rating(game), &mut policy);
            let of_moves = evaluated.moves.iter().zip(&features);
            let mates = of_moves.filter(|(_, of)| of.mates || of.allows_mate);
            settled = mates.map(|(&mv, _)| mv).collect();
        }
        let added = policy.iter().zip(&evaluated.logits).map(|(a, b)| a - b);
        let added: Vec<f32> = added.collect();
        softmax(&mut policy, 1.0);
        let moves = evaluated.moves.iter().zip(policy).zip(added);
        People {
            value: evaluated.value,
            settled,
            moves: moves
                .map(|((&mv, prior), added)| (mv, prior, added))
                .collect(),
        }
    }

    /// Returns the probabilities of these moves, which are not normalised among them.
    pub fn priors(&self, of: &[Move]) -> Vec<(Move, f32)> {
        let moves = self.moves.iter().filter(|(mv, ..)| of.contains(mv));
        moves.map(|&(mv, prior, _)| (mv, prior)).collect()
    }

    /// Returns what the correction adds to the logit of each move.
    pub fn shifts(&self) -> Vec<(Move, f32)> {
        self.moves
            .iter()
            .map(|&(mv, _, added)| (mv, added))
            .collect()
    }
}
