//! The objective of future denoisers: the terms of positions, and the prediction of the masked
//! parts of the future boards and moves.
//!
//! In each sample's future, a share of the squares and moves is masked and predicted. The loss of
//! the masked targets is their cross-entropy, weighted by the diffusion time. The first move is
//! always masked and trained as the policy. Plies after the end of the game are also masked, but
//! are not targets.
//!
//! In some samples the first move is given, and may differ from the policy target. These samples
//! have no policy target; their value target is the value of the given move.
//!
//! In other samples, the input contains the network's own predicted future, as in play. They teach
//! the network to play even though its predicted future is often wrong.
//!
//! A validation evaluates the policy and the values with a fully masked future, as in single-step
//! play.

mod by_ply;
mod noise;
#[cfg(test)]
mod tests;

use super::positions::PositionSamples;
use super::{Narrow, Objective, PositionObjective, Term, build, classification, hits, send};
use crate::backend::Decoding;
use crate::data::examples::{Columns, HorizonColumns, HorizonExamples, PositionColumns};
use crate::data::loader::Batch;
use crate::network::diffusion::{DenoisedFuture, Diffusion, Futures, of_first_mover};
use crate::network::{Architecture, Outputs, Parameter, Weights, bitboards};
use crate::train::config::{DiffusionTraining, TrainConfig};
use crate::train::error::TrainError;
use by_ply::ByPly;
use noise::{Noise, Noised, Told};
use tch::{Device, Kind, Tensor};

/// The terms that follow those of positions, in order.
const TERMS: [&str; 6] = [
    "board",
    "future_move",
    "future_q",
    "board_accuracy",
    "changed_accuracy",
    "future_move_accuracy",
];

/// The value of each bit of a square's class, see [`crate::encode::Squares::words`].
const BITS: [f32; 4] = [1.0, 2.0, 4.0, 6.0];

/// The objective of a future denoiser.
#[derive(Debug)]
pub(in crate::train) struct HorizonObjective {
    model: Diffusion,
    /// The losses on the positions themselves.
    positions: PositionObjective,
    noise: Noise,
    /// Decoding settings for the network's own predicted futures.
    own: Decoding,
    device: Device,
    is_validation: bool,
    /// Whether future boards have value targets.
    learns_values: bool,
    /// Constants for [`bitboards::squares`] and for the classes, on the device.
    shifts: Tensor,
    bits: Tensor,
}

/// A batch of B positions with their futures, on the device.
#[derive(Debug)]
pub(in crate::train) struct HorizonSamples {
    positions: PositionSamples,
    future: Option<FutureSamples>,
}

/// The inputs and targets that concern the futures of B positions.
#[derive(Debug)]
struct FutureSamples {
    known: Futures,
    /// The classes of the squares, i64 [B, H, 64].
    squares: Tensor,
    /// The weight of each square in its sample's loss, f32 [B, H, 64].
    weight: Tensor,
    /// Whether a square is a target, f32 [B, H, 64].
    learned: Tensor,
    /// Whether a square differs from the present position, f32 [B, H, 64].
    changed: Tensor,
    /// The moves after the first, i64 [B, H − 1]; [`IGNORED`] if a move is not a target.
    moves: Tensor,
    /// The weight of each move in its sample's loss, f32 [B, 1].
    move_weight: Tensor,
    /// Whether a board exists at each ply, f32 [B, H].
    exists: Tensor,
    /// The board's value W − L from the perspective of its side to move, f32 [B, H]; 0 if unknown.
    q: Tensor,
    /// Whether each sample's input contains the network's predicted future, bool `[B]`; `None` if
    /// none of the inputs does.
    own: Option<Tensor>,
}

impl Narrow for HorizonSamples {
    fn narrow(&self, start: i64, count: i64) -> HorizonSamples {
        let part = |tensor: &Tensor| tensor.narrow(0, start, count);
        let future = self.future.as_ref().map(|future| FutureSamples {
            known: future.known.narrow(start, count),
            squares: part(&future.squares),
            weight: part(&future.weight),
            learned: part(&future.learned),
            changed: part(&future.changed),
            moves: part(&future.moves),
            move_weight: part(&future.move_weight),
            exists: part(&future.exists),
            q: part(&future.q),
            own: future.own.as_ref().map(part),
        });
        HorizonSamples {
            positions: self.positions.narrow(start, count),
            future,
        }
    }
}

/// A network's outputs for a batch.
#[derive(Debug)]
pub(in crate::train) struct HorizonOutputs {
    present: Outputs,
    /// The prediction from the partly masked future, used for training.
    future: Option<DenoisedFuture>,
    /// The calibrated prediction from a fully masked future, used for validation.
    unaided: Option<DenoisedFuture>,
}

impl HorizonObjective {
    /// Uploads the inputs and targets that concern the futures of a batch.
    fn upload(&self, noised: &Noised, q: &[f32]) -> FutureSamples {
        let horizon = self.model.config.horizon;
        // If there are no moves, the number of rows cannot be inferred.
        let rows = noised.noise.len() as i64;
        let integers = |values: &[i64], shape: &[i64]| send(values, self.device).view(shape);
        let floats = |values: &[f32]| send(values, self.device);
        let like = &self.bits;
        let expanded = |words: &[i64], count: i64| {
            let words = integers(words, &[-1, count]);
            bitboards::squares(&words, &self.shifts, like)
        };
        let of_boards = |words: &[i64]| expanded(words, horizon).transpose(1, 2);
        let learned = of_boards(&noised.learned);
        let changed = of_boards(&noised.changed);
        let squares = expanded(&noised.squares, 4).matmul(&self.bits);
        let squares = squares.to_kind(Kind::Int64).view([-1, horizon, 64]);
        let (boards, moves) = (floats(&noised.boards), floats(&noised.later_moves));
        let weight = floats(&noised.weight);
        let per = |count: &Tensor| &weight / count.clamp_min(1.0);
        let of_squares = (per(&boards) / 64.0).view([-1, 1, 1]);
        let plies = Tensor::arange(horizon, (Kind::Float, self.device));
        let q = floats(q).nan_to_num(0.0, None, None).unsqueeze(1);
        FutureSamples {
            known: Futures {
                pieces: integers(&noised.pieces, &[-1, horizon, 12]),
                marks: integers(&noised.marks, &[-1, horizon + 1, 6]),
                noise: floats(&noised.noise),
            },
            weight: &learned
                * (&changed * (self.model.config.changed as f64 - 1.0) + 1.0)
                * of_squares,
            squares,
            learned,
            changed,
            moves: integers(&noised.moves, &[rows, horizon - 1]),
            move_weight: per(&moves).unsqueeze(1),
            exists: plies.lt_tensor(&boards.unsqueeze(1)).to_kind(Kind::Float),
            q: q * of_first_mover(horizon, self.device),
            own: (self.noise.own > 0.0).then(|| {
                let mut is_own = vec![false; noised.noise.len()];
                noised
                    .own
                    .iter()
                    .for_each(|&row| is_own[row as usize] = true);
                send(&is_own, self.device)
            }),
        }
    }

    /// Returns the futures for the network's input: the true futures, partly masked, or the
    /// network's predictions in samples that use these.
    fn with_own(&self, weights: &Weights, rows: &Tensor, future: &FutureSamples) -> Futures {
        let known = future.known.narrow(0, rows.size()[0]);
        let own = future.own.as_ref().map(|own| own.nonzero().squeeze_dim(1));
        let Some(own) = own.filter(|own| own.size()[0] > 0) else {
            return known;
        };
        let rows = rows.index_select(0, &own);
        let imagined = tch::no_grad(|| self.model.imagine(weights, &rows, self.own));
        known.with(&own, &imagined)
    }
}

/// Removes the policy target of samples whose first move is given. If the given move is not the
/// target, also replaces the value target.
fn tell(columns: &mut PositionColumns, told: &[Told]) {
    if told.is_empty() {
        return;
    }
    let mut is_told = vec![false; columns.len()];
    for &Told { row, q } in told {
        is_told[row] = true;
        let Some(q) = q else { continue };
        columns.q[row] = q;
        columns.result[row] = -1;
        columns.short_term[row] = f32::NAN;
        columns.moves_left[row] = f32::NAN;
    }
    let policy = std::mem::take(&mut columns.policy);
    let entries = policy
        .row
        .iter()
        .zip(&policy.index)
        .zip(&policy.probability);
    for ((&row, &index), &probability) in entries.filter(|((row, _), _)| !is_told[**row as usize]) {
        columns.policy.row.push(row);
        columns.policy.index.push(index);
        columns.policy.probability.push(probability);
    }
}

/// Sums over all dimensions except the first, f32 `[B]`.
fn sum(tensor: &Tensor) -> Tensor {
    match tensor.size()[1..].iter().product::<i64>() {
        // With a horizon of one ply, there are no later moves to sum.
        0 => Tensor::zeros([tensor.size()[0]], (Kind::Float, tensor.device())),
        _ => tensor
            .flatten(1, -1)
            .sum_dim_intlist([1i64].as_slice(), false, Kind::Float),
    }
}

impl Objective for HorizonObjective {
    type Examples = HorizonExamples;
    type Samples = HorizonSamples;
    type Outputs = HorizonOutputs;
    type Diagnostics = ByPly;

    fn terms(config: &TrainConfig) -> Vec<Term> {
        let mut terms = PositionObjective::terms(config);
        let DiffusionTraining {
            board,
            future_move,
            future_q,
            ..
        } = config.diffusion;
        let weights = [board, future_move, future_q, 0.0, 0.0, 0.0];
        let own = TERMS.into_iter().zip(weights);
        terms.extend(own.map(|(name, weight)| Term { name, weight }));
        terms
    }

    fn new(config: &TrainConfig, device: Device) -> Result<HorizonObjective, TrainError> {
        let plain = HorizonObjective::for_validation(config, device)?;
        Ok(HorizonObjective {
            positions: PositionObjective::new(config, device)?,
            noise: Noise {
                seed: config.augment.seed,
                own: config.diffusion.own,
                told: config.diffusion.told,
                ..plain.noise
            },
            is_validation: false,
            ..plain
        })
    }

    fn for_validation(
        config: &TrainConfig,
        device: Device,
    ) -> Result<HorizonObjective, TrainError> {
        let positions = PositionObjective::for_validation(config, device)?;
        let training = &config.diffusion;
        let model: Diffusion = build(&config.architecture()?, device)?;
        Ok(HorizonObjective {
            noise: Noise::new(&model.config, training, 0),
            model,
            positions,
            own: Decoding::step_by_step(training.own_steps),
            device,
            is_validation: true,
            learns_values: training.future_q > 0.0,
            shifts: bitboards::shifts().to_device(device),
            bits: Tensor::from_slice(&BITS).to_device(device),
        })
    }

    fn replica(&self) -> Result<HorizonObjective, TrainError> {
        Ok(HorizonObjective {
            model: build(&self.model.config(), self.device)?,
            positions: self.positions.replica()?,
            shifts: self.shifts.copy(),
            bits: self.bits.copy(),
            ..*self
        })
    }

    fn examples(&self, config: &TrainConfig) -> HorizonExamples {
        HorizonExamples {
            positions: self.positions.examples(config),
            plies: self.model.config.horizon as usize,
        }
    }

    fn parameters(&self) -> &[Parameter] {
        self.model.parameters()
    }

    /// Prepares samples. In an accuracy, a sample's weight is the number of its target squares or
    /// target moves, so that the mean over samples is a mean over squares or moves.
    fn prepare(
        &self,
        batch: Batch<HorizonColumns>,
    ) -> Result<(HorizonSamples, Tensor), TrainError> {
        let noised = (self.model.config.horizon > 0).then(|| self.noise.apply(&batch));
        let Batch {
            columns,
            next,
            global_batch,
            first,
        } = batch;
        let mut columns = columns.positions;
        let future = noised.map(|noised| {
            tell(&mut columns, &noised.told);
            (self.upload(&noised, &columns.q), noised)
        });
        let learns_q = |q: &f32| f32::from(self.learns_values && !q.is_nan());
        let has_q: Vec<f32> = columns.q.iter().map(learns_q).collect();
        let (positions, weights) = self.positions.prepare(Batch {
            columns,
            next,
            global_batch,
            first,
        })?;
        let own = match &future {
            Some((future, noised)) => {
                let is_there = |counts: &[f32]| {
                    let counts = send(counts, self.device);
                    &positions.targets.weight * counts.gt(0.0).to_kind(Kind::Float)
                };
                [
                    is_there(&noised.boards),
                    is_there(&noised.later_moves),
                    is_there(&noised.boards) * send(&has_q, self.device),
                    sum(&future.learned),
                    sum(&(&future.learned * &future.changed)),
                    sum(&future.moves.ge(0)),
                ]
            }
            None => TERMS.map(|_| positions.targets.weight.zeros_like()),
        };
        let weights = Tensor::cat(&[weights, Tensor::stack(&own, 0)], 0);
        let future = future.map(|(future, _)| future);
        Ok((HorizonSamples { positions, future }, weights))
    }

    fn forward(&self, weights: &Weights, samples: &HorizonSamples) -> HorizonOutputs {
        let (rows, wanted) = (&samples.positions.rows, self.positions.wanted);
        let denoise = |futures: &Futures| {
            let with_values = self.learns_values;
            self.model
                .denoise(weights, rows, futures, wanted, with_values)
        };
        let Some(future) = &samples.future else {
            let present = self.positions.forward_rows(weights, rows);
            return HorizonOutputs {
                present,
                future: None,
                unaided: None,
            };
        };
        let aided = denoise(&self.with_own(weights, rows, future));
        let unaided = self
            .is_validation
            .then(|| denoise(&self.model.unknown(rows)));
        let calibration = || self.model.calibration(rows, self.model.config.horizon);
        let (present, unaided) = match unaided {
            Some(unaided) => (unaided.present, unaided.future),
            None => (aided.present, None),
        };
        HorizonOutputs {
            present,
            future: aided.future,
            unaided: unaided.map(|future| DenoisedFuture {
                squares: future.squares + calibration(),
                ..future
            }),
        }
    }

    fn values(&self, outputs: &HorizonOutputs, samples: &HorizonSamples) -> Vec<Tensor> {
        let mut values = self.positions.values(&outputs.present, &samples.positions);
        let (Some(imagined), Some(future)) = (&outputs.future, &samples.future) else {
            let none = samples.positions.targets.weight.zeros_like();
            values.extend(TERMS.map(|_| none.shallow_clone()));
            return values;
        };
        let mean =
            |hits: &Tensor, counted: &Tensor| sum(&(hits * counted)) / sum(counted).clamp_min(1.0);
        let squares = classification(&imagined.squares, &future.squares);
        let plies = self.model.config.horizon;
        let calibration = self.model.calibration(&samples.positions.rows, plies);
        let right = hits(&(&imagined.squares + calibration), &future.squares);
        let changed = &future.learned * &future.changed;
        let (moves, move_hits) = match &imagined.moves {
            Some(logits) => {
                let learned = future.moves.ge(0).to_kind(Kind::Float);
                let loss = classification(logits, &future.moves);
                let hits = hits(logits, &future.moves);
                (sum(&(loss * &future.move_weight)), mean(&hits, &learned))
            }
            None => {
                let none = samples.positions.targets.weight.zeros_like();
                (none.shallow_clone(), none)
            }
        };
        values.extend([
            sum(&(squares * &future.weight)),
            // Moves are weighted by the diffusion time, like squares.
            moves,
            match &imagined.q {
                Some(q) => mean(&(q - &future.q).square(), &future.exists),
                None => samples.positions.targets.weight.zeros_like(),
            },
            mean(&right, &future.learned),
            mean(&right, &changed),
            move_hits,
        ]);
        values
    }
}
