//! The accuracy of predicted futures: decoded futures are compared with an engine's lines, ply by
//! ply.

use crate::backend::PredictedFuture;
use crate::chess::after;
use crate::data::examples::{Columns, Future, HorizonColumns, PositionColumns};
use crate::encode::{Input, Squares, policy_move};
use crate::network::Program;
use crate::torch::TorchError;
use serde::Serialize;
use shakmaty::{CastlingMode, Chess, Color, EnPassantMode, Position, PositionError};
use std::time::{Duration, Instant};
use tch::{Device, Kind, Tensor};

/// Counts over positions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FutureAccuracy {
    /// Positions that have a move to find.
    pub positions: u32,
    /// Positions in which the network's first move is correct.
    pub right: u32,
    /// Counts by ply, starting from 1.
    pub plies: Vec<PlyCounts>,
    /// The time that the network took.
    pub elapsed: Duration,
}

/// Counts for one ply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PlyCounts {
    /// Boards in the engine's lines.
    pub boards: u32,
    /// Boards imagined correctly, to the last square.
    pub exact: u32,
    /// Correct squares on the imagined boards.
    pub squares: u32,
    /// Squares that would be correct in a copy of the current board.
    pub copied: u32,
    /// Squares on the engine's boards that differ from the current board.
    pub changed: u32,
    /// The squares, among those, that were imagined correctly.
    pub changed_right: u32,
    /// Moves to this board in the engine's lines; the network's first move is taken from the
    /// policy.
    pub moves: u32,
    /// The moves that were imagined correctly.
    pub moves_right: u32,
    /// Positions in which all moves so far are legal and another move can follow.
    pub lines: u32,
    /// The positions, among those in `lines`, in which this move is legal too.
    pub legal: u32,
    /// Moves imagined on imagined boards.
    pub imagined: u32,
    /// The imagined moves that are legal on their boards.
    pub imagined_legal: u32,
    /// The imagined moves that lead to the next imagined board.
    pub consistent: u32,
}

impl FutureAccuracy {
    /// Creates counts for a network with this horizon, in plies.
    pub fn new(horizon: usize) -> FutureAccuracy {
        FutureAccuracy {
            plies: vec![PlyCounts::default(); horizon],
            ..FutureAccuracy::default()
        }
    }

    /// Evaluates positions with a network, decodes their futures in this many steps, and adds the
    /// results to the counts. `policy` is the index of the network's policy output.
    ///
    /// # Errors
    /// [`TorchError`] if the positions cannot be evaluated.
    pub fn add(
        &mut self,
        network: &dyn Program,
        policy: usize,
        columns: &HorizonColumns,
        steps: usize,
        device: Device,
    ) -> Result<(), TorchError> {
        let positions = &columns.positions;
        let words = positions.input_words();
        let rows = Tensor::from_slice(words).view([columns.len() as i64, -1]);
        let rows = rows.to_device(device);
        let began = Instant::now();
        let (outputs, predicted) = network.forward_with_futures(&rows, Some(steps))?;
        let logits = outputs[policy].to_kind(Kind::Float).to_device(Device::Cpu);
        self.elapsed += began.elapsed();
        let moves = logits.size()[1] as usize;
        let logits: Vec<f32> = Vec::try_from(logits.reshape([-1])).map_err(TorchError::from)?;
        for (index, logits) in logits.chunks(moves).enumerate() {
            let legal = positions.legal[index].iter();
            let chosen =
                legal.max_by(|&a, &b| logits[usize::from(a)].total_cmp(&logits[usize::from(b)]));
            let Some(chosen) = chosen else { continue };
            if let Some(target) = target(positions, index) {
                self.positions += 1;
                self.right += u32::from(chosen == target);
            }
            if let Some(predicted) = predicted.get(index) {
                let input = &positions.inputs[index];
                self.judge(input, &columns.futures[index], predicted, chosen);
            }
        }
        Ok(())
    }

    /// Adds a position's imagined future to the counts.
    fn judge(&mut self, input: &Input, future: &Future, predicted: &PredictedFuture, chosen: u16) {
        let present = Squares::of_planes(input.words());
        let seen = [present, present.reversed()];
        let Ok(root) = input.position() else { return };
        let mut line = policy_move(&root, chosen).map(|mv| after(&root, mv));
        let mut before = Some(root.clone());
        let boards = predicted.boards.iter().zip(&mut self.plies).enumerate();
        for (ply, (imagined, counts)) in boards {
            let present = &seen[(ply + 1) % 2];
            if let Some(real) = future.get(ply) {
                let wrong = real.board.difference(imagined);
                let changed = real.board.difference(present);
                counts.boards += 1;
                counts.exact += u32::from(wrong == 0);
                counts.squares += wrong.count_zeros();
                counts.copied += changed.count_zeros();
                counts.changed += changed.count_ones();
                counts.changed_right += (changed & !wrong).count_ones();
            }
            let played = match ply {
                0 => Some(chosen),
                _ => predicted.moves.get(ply - 1).map(|&(index, _)| index),
            };
            let Some(played) = played else { break };
            if ply > 0 {
                if let Some(real) = future.get(ply) {
                    counts.moves += 1;
                    counts.moves_right += u32::from(real.played == played);
                }
                line = line.filter(|position| !position.legal_moves().is_empty());
                counts.lines += u32::from(line.is_some());
                line = line.and_then(|it| policy_move(&it, played).map(|mv| after(&it, mv)));
                counts.legal += u32::from(line.is_some());
            }
            let reached = before.as_ref().and_then(|position| {
                let mv = policy_move(position, played)?;
                let next = after(position, mv);
                Some(Squares::of_board(next.board(), next.turn()))
            });
            counts.imagined += 1;
            counts.imagined_legal += u32::from(reached.is_some());
            counts.consistent += u32::from(reached == Some(*imagined));
            let turn = if ply % 2 == 0 {
                !root.turn()
            } else {
                root.turn()
            };
            before = imagined_position(imagined, turn, &root);
        }
    }

    /// Returns the share of correct first moves.
    pub fn share_right(&self) -> f64 {
        share(self.right, self.positions)
    }
}

/// Returns a share, or 0 if the total is 0.
pub fn share(part: u32, of: u32) -> f64 {
    f64::from(part) / f64::from(of.max(1))
}

/// Returns the move to find, if the position has one.
fn target(positions: &PositionColumns, index: usize) -> Option<u16> {
    let policy = &positions.policy;
    let first = policy.row.partition_point(|&row| row < index as i64);
    let own = (first..policy.row.len()).take_while(|&it| policy.row[it] == index as i64);
    let best = own.max_by(|&a, &b| policy.probability[a].total_cmp(&policy.probability[b]))?;
    u16::try_from(policy.index[best]).ok()
}

/// Returns the position of an imagined board, if a game can be played from it. The position has the
/// root's castling rights, as far as the board allows them.
fn imagined_position(squares: &Squares, turn: Color, root: &Chess) -> Option<Chess> {
    let mut setup = root.to_setup(EnPassantMode::Legal);
    setup.board = squares.board(turn);
    setup.turn = turn;
    setup.ep_square = None;
    setup
        .position::<Chess>(CastlingMode::Standard)
        .or_else(PositionError::ignore_invalid_castling_rights)
        .or_else(PositionError::ignore_too_much_material)
        .or_else(PositionError::ignore_impossible_check)
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Game;
    use crate::data::examples::FuturePly;
    use crate::encode::policy_index;

    /// Returns the plies of a game with the boards after them.
    fn plies(moves: &str) -> Future {
        let mut game = Game::default();
        let plies = moves.split_whitespace().map(|mv| {
            let mv = game.parse_move(mv).unwrap();
            let played = policy_index(mv, game.position().turn());
            game.play(mv);
            let board = Squares::of_board(game.position().board(), game.position().turn());
            FuturePly { played, board }
        });
        plies.collect()
    }

    fn predicted(plies: &Future) -> PredictedFuture {
        PredictedFuture {
            boards: plies.iter().map(|ply| ply.board).collect(),
            moves: plies.iter().skip(1).map(|ply| (ply.played, 1.0)).collect(),
        }
    }

    fn judge(real: &str, imagined: &PredictedFuture, chosen: u16) -> Vec<PlyCounts> {
        let mut found = FutureAccuracy::new(3);
        let input = Input::encode(&Game::default());
        found.judge(&input, &plies(real), imagined, chosen);
        found.plies
    }

    #[test]
    fn true_futures_count_as_right() {
        let line = plies("e2e4 e7e5 g1f3");
        let found = judge("e2e4 e7e5 g1f3", &predicted(&line), line[0].played);
        for (ply, counts) in found.iter().enumerate() {
            let later = u32::from(ply > 0);
            let changed = 2 * (ply as u32 + 1);
            let expected = PlyCounts {
                boards: 1,
                exact: 1,
                squares: 64,
                copied: 64 - changed,
                changed,
                changed_right: changed,
                moves: later,
                moves_right: later,
                lines: later,
                legal: later,
                imagined: 1,
                imagined_legal: 1,
                consistent: 1,
            };
            assert_eq!(*counts, expected, "{ply}");
        }
    }

    #[test]
    fn other_lines_are_judged_by_the_rules() {
        // Black's reply is predicted on an imagined board on which White has played another move.
        let real = plies("e2e4 e7e5");
        let line = plies("d2d4 d7d5 c1f4");
        let found = judge("e2e4 e7e5", &predicted(&line), real[0].played);
        assert_eq!((found[0].exact, found[0].changed_right), (0, 0));
        assert_eq!((found[0].imagined_legal, found[0].consistent), (1, 0));
        // The reply is legal. The move after it is illegal after 1. e4, but legal on the imagined
        // board.
        assert_eq!(
            (found[1].lines, found[1].legal, found[1].moves_right),
            (1, 1, 0)
        );
        assert_eq!((found[2].lines, found[2].legal), (1, 0));
        assert_eq!((found[2].imagined_legal, found[2].consistent), (1, 1));
        assert_eq!((found[2].boards, found[2].moves), (0, 0));
    }
}
