//! Data augmentation: left–right mirroring.

use crate::data::examples::PositionColumns;
use crate::data::loader::Batch;
use crate::encode::mirrored_index;
use crate::train::config::AugmentConfig;
use crate::train::objective::random_of;
use rand::Rng;

impl AugmentConfig {
    /// Mirrors some of the batch's positions without castling rights, together with their legal
    /// moves and their policy targets. The choice depends only on the seed and on the batch's index
    /// in the sample order.
    pub(super) fn apply(&self, batch: &mut Batch) {
        if self.mirror <= 0.0 {
            return;
        }
        let mut random = random_of(self.seed, batch);
        // Skip the random numbers for the samples of other ranks and replicas.
        for _ in 0..batch.first {
            random.random::<f64>();
        }
        let chosen: Vec<bool> = batch
            .columns
            .inputs
            .iter()
            .map(|input| random.random::<f64>() < self.mirror && input.is_without_castling())
            .collect();
        mirror(&mut batch.columns, &chosen);
    }
}

/// Mirrors the chosen samples.
fn mirror(batch: &mut PositionColumns, chosen: &[bool]) {
    for (row, _) in chosen.iter().enumerate().filter(|(_, chosen)| **chosen) {
        batch.inputs[row] = batch.inputs[row].mirrored();
        batch.legal[row] = batch.legal[row].iter().map(mirrored_index).collect();
    }
    let policy = &mut batch.policy;
    for (&row, index) in policy.row.iter().zip(&mut policy.index) {
        if chosen[row as usize] {
            *index = mirrored_index(*index as u16).into();
        }
    }
}

#[cfg(test)]
pub(in crate::train) mod tests {
    use super::*;
    use crate::chess::Game;
    use crate::data::Legal;
    use crate::data::examples::PolicyTargets;
    use crate::data::loader::Cursor;
    use crate::encode::{Input, policy_index};
    use shakmaty::{CastlingMode, Position as _};

    /// Returns positions of a game. Only one of them has castling rights.
    pub(in crate::train) fn batch() -> Batch {
        let fen = "4k3/1p3p2/8/2P5/5P2/1n6/6PP/R3K3 w - - 3 30";
        let mut game = Game::from_fen(fen, CastlingMode::Standard).unwrap();
        let mut games = vec![Game::default()];
        for _ in 0..40 {
            games.push(game.clone());
            let moves = game.position().legal_moves();
            game.play(moves[games.len() % moves.len()]);
        }
        let count = games.len();
        let moves = |game: &Game| {
            let turn = game.position().turn();
            let moves = game.position().legal_moves();
            (Legal::of(&moves, turn), policy_index(moves[0], turn))
        };
        let columns = PositionColumns {
            inputs: games.iter().map(Input::encode).collect(),
            legal: games.iter().map(|game| moves(game).0).collect(),
            policy: PolicyTargets {
                row: (0..count as i64).collect(),
                index: games.iter().map(|game| moves(game).1.into()).collect(),
                probability: vec![1.0; count],
            },
            result: vec![0; count],
            q: vec![0.5; count],
            short_term: vec![0.5; count],
            moves_left: vec![20.0; count],
            weight: vec![1.0; count],
        };
        Batch {
            columns,
            next: Cursor::default(),
            global_batch: count,
            first: 0,
        }
    }

    fn parts(batch: &Batch) -> (Vec<Input>, Vec<Legal>, Vec<i64>) {
        let columns = batch.columns.clone();
        (columns.inputs, columns.legal, columns.policy.index)
    }

    #[test]
    fn a_mirrored_sample_is_a_sample_of_the_mirrored_position() {
        let plain = batch();
        let mut mirrored = batch();
        let all = AugmentConfig {
            mirror: 1.0,
            seed: 0,
            ..AugmentConfig::default()
        };
        all.apply(&mut mirrored);
        assert_eq!(
            mirrored.columns.inputs[0], plain.columns.inputs[0],
            "castling is a right"
        );
        for row in 1..plain.len() {
            assert_ne!(mirrored.columns.inputs[row], plain.columns.inputs[row]);
            let position = mirrored.columns.inputs[row].position().unwrap();
            let legal = Legal::of(&position.legal_moves(), position.turn());
            assert_eq!(mirrored.columns.legal[row], legal);
            assert!(legal.contains(mirrored.columns.policy.index[row] as u16));
        }
        all.apply(&mut mirrored);
        assert_eq!(parts(&mirrored), parts(&plain));
    }

    #[test]
    fn the_choice_depends_on_seed_and_place_alone() {
        let with = |seed, offset| {
            let mut batch = batch();
            batch.next.offset = offset;
            AugmentConfig {
                mirror: 0.5,
                seed,
                ..AugmentConfig::default()
            }
            .apply(&mut batch);
            parts(&batch)
        };
        assert_eq!(with(1, 7), with(1, 7));
        assert_ne!(with(1, 7), with(2, 7));
        assert_ne!(with(1, 7), with(1, 8));
        let plain = batch();
        let moved = with(1, 7)
            .0
            .iter()
            .zip(&plain.columns.inputs)
            .filter(|(a, b)| a != b)
            .count();
        assert!((8..=32).contains(&moved), "{moved} of 40");
    }
}
