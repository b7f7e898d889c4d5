//! Decodes futures step by step, then evaluates the present.
//!
//! Each step first evaluates the known part of the future. It then reveals all squares and moves
//! whose likeliest class leads by at least 0.9. Of the remaining variables it reveals an equal
//! share per step, in order of the margin between the two likeliest classes (Kim et al. 2025). The
//! last step therefore evaluates a complete future. The move to play remains masked until the end.
//! Networks that evaluate [candidates](super::candidates) are given first moves instead.

use super::futures::{self, Futures, marks_of};
use super::{DenoisedFuture, Diffusion};
use crate::backend::{Decoding, PredictedFuture};
use crate::encode::Squares;
use crate::network::outputs::{OutputSet, Outputs};
use crate::network::parameters::Weights;
use crate::torch;
use tch::{Device, Kind, Tensor};

/// A variable is revealed immediately if the probability of its likeliest class exceeds that of the
/// second by at least this much.
const SURE: f32 = 0.9;

/// A partly revealed future of a position.
#[derive(Clone, Debug, PartialEq)]
pub struct Revealed {
    /// The board after each ply, in the view of its mover.
    pub boards: Vec<RevealedBoard>,
    /// The moves after the first.
    pub moves: Vec<RevealedMove>,
}

/// A future board, partly revealed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RevealedBoard {
    /// The class of each square: the revealed class, or the likeliest class if the square is
    /// unknown.
    pub squares: Squares,
    /// Unknown squares.
    pub unknown: u64,
    /// The network's probability for each square's class.
    pub probabilities: [f32; 64],
}

/// A future move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RevealedMove {
    /// The policy index of the revealed move, or of the likeliest move if the move is unknown.
    pub played: u16,
    /// The network's probability for this move.
    pub probability: f32,
    /// Whether the move has been revealed.
    pub is_known: bool,
}

impl Revealed {
    fn unknown(horizon: usize) -> Revealed {
        let board = RevealedBoard {
            squares: Squares::default(),
            unknown: u64::MAX,
            probabilities: [0.0; 64],
        };
        let played = RevealedMove {
            played: 0,
            probability: 0.0,
            is_known: false,
        };
        Revealed {
            boards: vec![board; horizon],
            moves: vec![played; horizon.saturating_sub(1)],
        }
    }

    /// Returns the share of unknown squares.
    fn unknown_share(&self) -> f32 {
        let unknown: u32 = self.boards.iter().map(|it| it.unknown.count_ones()).sum();
        unknown as f32 / (64 * self.boards.len().max(1)) as f32
    }

    pub(super) fn predicted(self) -> PredictedFuture {
        let boards = self.boards.into_iter().map(|board| board.squares);
        let moves = self.moves.into_iter().map(|it| (it.played, it.probability));
        PredictedFuture {
            boards: boards.collect(),
            moves: moves.collect(),
        }
    }
}

/// A variable of a future.
#[derive(Clone, Copy, Debug)]
enum Variable {
    Square { ply: usize, square: usize },
    Move(usize),
}

/// The network's predictions for the futures of B positions, on the CPU: the two likeliest classes
/// of each square, [B, H, 64], and of each move, [B, H − 1].
struct Reading {
    squares: Likeliest,
    moves: Likeliest,
}

#[derive(Default)]
struct Likeliest {
    classes: Vec<i64>,
    /// The probabilities of the two likeliest classes of each variable.
    probabilities: Vec<f32>,
}

impl Likeliest {
    fn of(logits: &Tensor) -> Likeliest {
        let (probabilities, classes) = logits.softmax(-1, Kind::Float).topk(2, -1, true, true);
        let classes = classes.select(-1, 0).to_device(Device::Cpu).reshape([-1]);
        Likeliest {
            classes: Vec::try_from(classes).expect("a vector of classes"),
            probabilities: torch::floats(&probabilities),
        }
    }

    /// Returns the likeliest class of a variable, the probability of this class, and its lead over
    /// the second class.
    fn read(&self, place: usize) -> (usize, f32, f32) {
        let [first, second] = [0, 1].map(|rank| self.probabilities[2 * place + rank]);
        (self.classes[place] as usize, first, first - second)
    }
}

/// The partly decoded futures of B positions.
pub(super) struct Unfolding<'a> {
    network: &'a Diffusion,
    /// The number of completed steps, and the total.
    taken: usize,
    pub left: usize,
    pub states: Vec<Revealed>,
    /// The first move that is given for each position. Empty if no moves are given.
    told: &'a [Option<u16>],
    /// The values of the future boards in the latest evaluation, as in [`DenoisedFuture::q`].
    pub q: Option<Tensor>,
    presents: Vec<Squares>,
    /// The correction of the square logits, or `None` if the horizon is 0.
    calibration: Option<Tensor>,
    device: Device,
}

impl Diffusion {
    /// Returns the `wanted` outputs for positions given as rows i64 [B, 104 + scalars], and each
    /// position's predicted future. After each step, `seen` receives the number of completed steps
    /// and the known parts of the futures.
    pub fn decode(
        &self,
        weights: &Weights,
        rows: &Tensor,
        decoding: Decoding,
        wanted: OutputSet,
        mut seen: impl FnMut(usize, &[Revealed]),
    ) -> (Outputs, Vec<PredictedFuture>) {
        if self.config.weighs && decoding.trust > 0 && decoding.steps > 1 {
            return self.weigh(weights, rows, decoding, wanted);
        }
        let mut future = Unfolding::new(self, rows, decoding, &[]);
        while future.left > 1 {
            future.step(weights, rows, OutputSet::default());
            seen(future.taken, &future.states);
        }
        let present = future.step(weights, rows, wanted);
        seen(future.taken, &future.states);
        let predicted = future.states.into_iter().map(Revealed::predicted);
        (present, predicted.collect())
    }

    /// Returns the futures of positions, given as rows, before the last decoding step. The move is
    /// chosen from these futures.
    pub fn imagine(&self, weights: &Weights, rows: &Tensor, decoding: Decoding) -> Futures {
        let mut future = Unfolding::new(self, rows, decoding, &[]);
        while future.left > 1 {
            future.step(weights, rows, OutputSet::default());
        }
        future.known()
    }
}

impl<'a> Unfolding<'a> {
    /// Starts with fully masked futures.
    pub fn new(
        network: &'a Diffusion,
        rows: &Tensor,
        decoding: Decoding,
        told: &'a [Option<u16>],
    ) -> Unfolding<'a> {
        let most = network.config.horizon as usize;
        let horizon = match decoding.horizon {
            0 => most,
            asked => asked.min(most),
        };
        let calibration = (horizon > 0).then(|| network.calibration(rows, horizon as i64));
        Unfolding {
            network,
            taken: 0,
            left: if horizon == 0 {
                1
            } else {
                decoding.steps.max(1)
            },
            states: vec![Revealed::unknown(horizon); rows.size()[0] as usize],
            presents: presents(rows),
            told,
            q: None,
            calibration,
            device: rows.device(),
        }
    }

    /// Evaluates the known part, reveals more of the future, and returns the wanted outputs for the
    /// present.
    pub fn step(&mut self, weights: &Weights, rows: &Tensor, wanted: OutputSet) -> Outputs {
        let imagined =
            self.network
                .denoise(weights, rows, &self.known(), wanted, !self.told.is_empty());
        self.taken += 1;
        self.left = self.left.saturating_sub(1);
        self.reveal(imagined.future.as_ref());
        self.q = imagined.future.and_then(|future| future.q);
        imagined.present
    }

    /// Returns the known parts of the futures as the network's input.
    fn known(&self) -> Futures {
        let (mut pieces, mut marks, mut noise) = (Vec::new(), Vec::new(), Vec::new());
        let words = |words: &[u64]| -> Vec<i64> { words.iter().map(|&it| it as i64).collect() };
        for (position, (state, present)) in self.states.iter().zip(&self.presents).enumerate() {
            let seen = [*present, present.reversed()];
            let played = |ply: usize| {
                let played = ply.checked_sub(1).and_then(|it| state.moves.get(it));
                played.filter(|it| it.is_known).map(|it| it.played)
            };
            let told = self.told.get(position).copied().flatten();
            marks.extend(words(&marks_of(0, told)));
            for (ply, board) in (1..).zip(&state.boards) {
                let board_seen = board.squares.with(board.unknown, &seen[ply % 2]);
                pieces.extend(words(&board_seen.planes()));
                marks.extend(words(&marks_of(board.unknown, played(ply))));
            }
            noise.push(state.unknown_share());
        }
        let count = self.states.len() as i64;
        let on_device = |words: &[i64], width: i64| {
            let words = Tensor::from_slice(words).view([count, -1, width]);
            words.to_device(self.device)
        };
        let horizon = self.states.first().map_or(0, |state| state.boards.len()) as i64;
        Futures {
            pieces: match horizon {
                0 => Tensor::zeros([count, 0, futures::PIECES], (Kind::Int64, self.device)),
                _ => on_device(&pieces, futures::PIECES),
            },
            marks: on_device(&marks, futures::MARKS),
            noise: Tensor::from_slice(&noise).to_device(self.device),
        }
    }

    /// Reveals the variables that are due after a step, using the predictions of this step.
    fn reveal(&mut self, found: Option<&DenoisedFuture>) {
        let (Some(found), Some(calibration)) = (found, &self.calibration) else {
            return;
        };
        let reading = Reading {
            squares: Likeliest::of(&(&found.squares + calibration)),
            moves: found.moves.as_ref().map(Likeliest::of).unwrap_or_default(),
        };
        let left = self.left;
        for (position, state) in self.states.iter_mut().enumerate() {
            let mut open: Vec<(f32, Variable)> = Vec::new();
            let horizon = state.boards.len();
            for (ply, board) in state.boards.iter_mut().enumerate() {
                for square in (0..64).filter(|square| board.unknown >> square & 1 != 0) {
                    let place = (position * horizon + ply) * 64 + square;
                    let (class, probability, score) = reading.squares.read(place);
                    board.squares.set(square, class);
                    board.probabilities[square] = probability;
                    open.push((score, Variable::Square { ply, square }));
                }
            }
            let moves = state.moves.len();
            for (number, played) in state.moves.iter_mut().enumerate() {
                if played.is_known {
                    continue;
                }
                let place = position * moves + number;
                let (class, probability, score) = reading.moves.read(place);
                (played.played, played.probability) = (class as u16, probability);
                open.push((score, Variable::Move(number)));
            }
            if left == 0 {
                continue;
            }
            open.sort_by(|(one, _), (other, _)| other.total_cmp(one));
            let sure = open.partition_point(|&(score, _)| score >= SURE);
            let part = (open.len() - sure).div_ceil(left);
            for &(_, variable) in &open[..sure + part] {
                match variable {
                    Variable::Square { ply, square } => {
                        state.boards[ply].unknown &= !(1 << square);
                    }
                    Variable::Move(number) => state.moves[number].is_known = true,
                }
            }
        }
    }
}

/// Returns the present board of each row.
fn presents(rows: &Tensor) -> Vec<Squares> {
    let words = rows.narrow(1, 0, futures::PIECES).to_device(Device::Cpu);
    let words: Vec<i64> = Vec::try_from(words.reshape([-1])).expect("a vector of words");
    let boards = words.chunks(futures::PIECES as usize);
    boards
        .map(|words| Squares::of_planes(bytemuck::cast_slice(words)))
        .collect()
}
