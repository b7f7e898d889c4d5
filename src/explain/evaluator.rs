//! Evaluates games with an eager network.

use super::ExplainError;
use crate::backend::Value;
use crate::backend::metadata::ranking_outputs;
use crate::chess::Game;
use crate::encode::{Input, InputFormat, policy_index};
use crate::network::{Network, Output, OutputSet, Outputs, Pass, Positions, Tap, Taps, Weights};
use crate::softmax::softmax;
use crate::torch;
use serde::Serialize;
use shakmaty::{Bitboard, Position, Square};
use std::collections::BTreeMap;
use tch::{Kind, Tensor};

pub(super) use crate::torch::floats;

/// Number of positions per evaluation. It is enough for the full speed of a core and needs little
/// memory.
pub(super) const BATCH: usize = 32;

/// Maximum number of multiply–accumulate operations for each part of an explanation. They take
/// about 15 s on one core.
const AFFORDABLE: i64 = 500_000_000_000;

/// A network's evaluation of a position, for the side to move.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Evaluation {
    /// Expected result, W − L, in −1…1. It ranks the moves.
    pub q: f32,
    /// Probabilities of win, draw and loss.
    pub wdl: [f32; 3],
    /// Number of plies to the end of the game, if the network predicts it.
    pub moves_left: Option<f32>,
    /// Expected squared error of `q`, if the network predicts it.
    pub error: Option<f32>,
}

/// An evaluation with the policy: one probability for each legal move, in the order of the
/// position's legal moves.
#[derive(Clone, Debug)]
pub(super) struct Evaluated {
    pub evaluation: Evaluation,
    pub policy: Vec<f32>,
}

/// A network and its input encoding.
#[derive(Debug)]
pub(super) struct Evaluator<'a> {
    pub network: &'a Network,
    format: InputFormat,
    /// The indices of the words of an [`Input`] that the network reads, or `None` if it reads all
    /// words.
    words: Option<Vec<i64>>,
    /// The output that ranks moves and the output for its error, if moves are not ranked by `wdl`.
    value: Option<[Output; 2]>,
}

/// The results of a tapped forward pass.
#[derive(Debug)]
pub(super) struct Inside {
    pub evaluated: Evaluated,
    /// The row that the network read, i64 [1, words].
    pub row: Tensor,
    /// The index of each square in the board that the network sees.
    pub seen: [usize; 64],
    /// The policy indices of the legal moves.
    pub indices: Vec<i64>,
    /// The tensors that [`Taps`] collected.
    pub taps: BTreeMap<String, Tensor>,
}

impl<'a> Evaluator<'a> {
    /// Prepares a network.
    ///
    /// This limits libtorch to one thread per call, for the whole process. Our operations are too
    /// small to split: two programs with two threads each took minutes on two cores, because
    /// threads that wait for each other spin. More threads would also change the order of sums and
    /// thus the results.
    pub fn new(network: &'a Network) -> Result<Evaluator<'a>, ExplainError> {
        tch::set_num_threads(1);
        let architecture = &*network.architecture;
        for output in [Output::Policy, Output::Wdl] {
            if !architecture.has(output) {
                return Err(ExplainError::Output(output));
            }
        }
        let interface = architecture.interface();
        let format = InputFormat::from_number(interface.format)
            .ok_or(ExplainError::Format(interface.format))?;
        let value = ranking_outputs(&network.about.search_value);
        let value = value.map(|names| {
            names.map(|name| Output::from_name(name).expect("an output of some network"))
        });
        Ok(Evaluator {
            network,
            format,
            words: torch::words(&interface.scalars),
            value: value.filter(|&[value, _]| architecture.has(value)),
        })
    }

    /// Returns the outputs that explanations need.
    pub fn wanted(&self) -> OutputSet {
        let fixed = [Output::Policy, Output::Wdl, Output::MovesLeft];
        fixed
            .into_iter()
            .chain(self.value.into_iter().flatten())
            .collect()
    }

    /// Returns the maximum number of evaluations for a part of an explanation, which is smaller for
    /// larger networks.
    pub fn affordable(&self) -> usize {
        let macs = self.network.architecture.size().macs_total.max(1);
        usize::try_from(AFFORDABLE / macs).unwrap_or(usize::MAX)
    }

    /// Returns the ratings of the side to move and of the opponent, if the network uses ratings.
    pub fn ratings(&self, game: &Game) -> Option<[u16; 2]> {
        let reads = self
            .network
            .architecture
            .interface()
            .scalars
            .contains(&"self_elo");
        let ratings = game.ratings();
        let [white, black] = [ratings.white, ratings.black].map(Option::unwrap_or_default);
        reads.then(|| {
            game.position()
                .turn()
                .fold_wb([white, black], [black, white])
        })
    }

    /// Returns the network's input for games, i64 [B, words].
    pub fn rows(&self, games: &[Game]) -> Tensor {
        let inputs = games.iter().map(|game| self.format.encode(game).0);
        let inputs: Vec<Input> = inputs.collect();
        torch::rows(&inputs, self.words.as_deref()).expect("rows of one width")
    }

    /// Returns the index of each square in the board that the network sees.
    pub fn seen(&self, game: &Game) -> [usize; 64] {
        let (_, transform) = self.format.encode(game);
        let turn = game.position().turn();
        Square::ALL.map(|square| {
            let oriented = turn.fold_wb(square, square.flip_vertical());
            let seen = Bitboard(transform.squares(Bitboard::from(oriented).0));
            seen.first().map_or(0, usize::from)
        })
    }

    /// Returns the policy indices of the legal moves, in order.
    pub fn indices(&self, game: &Game) -> Vec<i64> {
        let (_, transform) = self.format.encode(game);
        let turn = game.position().turn();
        let moves = game.position().legal_moves();
        let index = moves
            .iter()
            .map(|&mv| transform.index(policy_index(mv, turn)));
        index.map(i64::from).collect()
    }

    /// Runs the network's forward pass with these weights.
    pub fn forward(&self, weights: &Weights, positions: Positions, tap: Tap) -> Outputs {
        let wanted = self.wanted();
        let pass = Pass {
            positions,
            wanted,
            tap,
        };
        self.network.architecture.forward(weights, &pass)
    }

    /// Evaluates games, some of which may be over.
    pub fn evaluate(&self, games: &[Game]) -> Result<Vec<Evaluated>, ExplainError> {
        self.evaluate_with(&self.network.weights, games)
    }

    /// Evaluates games like [`Evaluator::evaluate`], but with other weights of the same shapes.
    pub fn evaluate_with(
        &self,
        weights: &Weights,
        games: &[Game],
    ) -> Result<Vec<Evaluated>, ExplainError> {
        let _guard = tch::no_grad_guard();
        let mut evaluated = Vec::with_capacity(games.len());
        for games in games.chunks(BATCH) {
            let rows = self.rows(games);
            let outputs = self.forward(weights, Positions::Rows(&rows), Tap::default());
            let indices: Vec<Vec<i64>> = games.iter().map(|game| self.indices(game)).collect();
            evaluated.extend(self.read(&outputs, &indices)?);
        }
        Ok(evaluated)
    }

    /// Evaluates the game's position and keeps the inner tensors.
    pub fn look_inside(&self, game: &Game) -> Result<Inside, ExplainError> {
        let _guard = tch::no_grad_guard();
        let row = self.rows(std::slice::from_ref(game));
        let taps = Taps::default();
        let weights = &self.network.weights;
        let outputs = self.forward(weights, Positions::Rows(&row), Tap::into(&taps));
        let indices = self.indices(game);
        let mut evaluated = self.read(&outputs, std::slice::from_ref(&indices))?;
        Ok(Inside {
            evaluated: evaluated.remove(0),
            row,
            seen: self.seen(game),
            indices,
            taps: taps.into_tensors(),
        })
    }

    /// Collects the [`Taps`] of these games' positions.
    pub fn taps(&self, games: &[Game]) -> BTreeMap<String, Tensor> {
        let rows = self.rows(games);
        let taps = Taps::default();
        let weights = &self.network.weights;
        self.forward(weights, Positions::Rows(&rows), Tap::into(&taps));
        taps.into_tensors()
    }

    /// Converts outputs to evaluations. `indices` are the policy indices of each position's legal
    /// moves.
    pub fn read(
        &self,
        outputs: &Outputs,
        indices: &[Vec<i64>],
    ) -> Result<Vec<Evaluated>, ExplainError> {
        let (policy, wdl) = (floats(outputs.policy()), floats(outputs.wdl()));
        let [q, error] = self.value.map_or([None, None], |value| value.map(Some));
        let scalars = [q, Some(Output::MovesLeft), error];
        let scalars = scalars.map(|output| outputs.get(output?).map(floats));
        let width = policy.len() / indices.len().max(1);
        let evaluated = indices.iter().enumerate().map(|(number, indices)| {
            let wdl = [0, 1, 2].map(|part| wdl[3 * number + part]);
            let scalars = scalars.each_ref().map(|it| Some(it.as_ref()?[number]));
            let logits = &policy[number * width..][..width];
            let mut policy: Vec<f32> = indices.iter().map(|&at| logits[at as usize]).collect();
            softmax(&mut policy, 1.0);
            let value = Value::of_outputs(wdl, scalars);
            let value = value.filter(|_| policy.iter().all(|share| share.is_finite()));
            let value =
                value.ok_or_else(|| ExplainError::NotFinite(self.network.about.name.clone()))?;
            let evaluation = Evaluation {
                q: value.q,
                wdl: value.wdl(),
                moves_left: scalars[1].map(|_| value.moves_left),
                error: scalars[2].map(|_| value.error),
            };
            Ok(Evaluated { evaluation, policy })
        });
        evaluated.collect()
    }

    /// Returns the expected results of positions, as a tensor `[B]` with gradients.
    pub fn q(&self, outputs: &Outputs) -> Tensor {
        match self.value.and_then(|[value, _]| outputs.get(value)) {
            Some(q) => q.shallow_clone(),
            None => {
                let wdl = outputs.wdl().softmax(-1, Kind::Float);
                wdl.select(1, 0) - wdl.select(1, 2)
            }
        }
    }
}
