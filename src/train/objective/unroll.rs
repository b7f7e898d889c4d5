//! The objective of world models: to represent positions and to predict the effects of moves.
//!
//! The network encodes a position and steps through the moves played from there, using only its
//! latents. After every move, the encoder's heads are trained on the targets of the true position,
//! and the rule heads on the rules. The targets for the latents are the latents that the averaged
//! weights compute for the true position, as in UniZero and EfficientZero. Each step halves the
//! gradient that flows back through it, as in MuZero.

mod depths;
mod samples;
#[cfg(test)]
mod tests;

use super::positions::learned_outputs;
use super::positions::loss::{self, Softening};
use super::{Group, Objective, Term, build, classification, sum};
use crate::data::examples::UnrollExamples;
use crate::data::loader::BatchOf;
use crate::encode::{InputFormat, POLICY_SIZE, SQUARE_CLASSES};
use crate::network::world::RuleLogits;
use crate::network::{Architecture, Output, OutputSet, Outputs, Parameter, Weights, WorldModel};
use crate::train::config::{TrainConfig, UnrollConfig};
use crate::train::error::TrainError;
use depths::Depths;
use samples::{Boards, UnrollSamples};
use tch::{Device, Kind, Reduction, Tensor};

/// The terms that follow those of the encoder's heads, in order.
const OWN: [&str; 7] = [
    "illegal",
    "end",
    "legality",
    "board",
    "latent",
    "board_accuracy",
    "changed_accuracy",
];

/// The objective of a world model.
#[derive(Debug)]
pub(in crate::train) struct UnrollObjective {
    model: WorldModel,
    device: Device,
    /// The dtype in which the network computes.
    kind: Kind,
    unroll: UnrollConfig,
    softening: Softening,
    /// The outputs of the encoder's heads that are trained.
    wanted: OutputSet,
    boards: Boards,
    /// The averaged weights, which compute the target latents.
    target: Option<Weights>,
    /// Number of moves that are currently unrolled.
    plies: usize,
    /// Whether to evaluate the true positions as well, to compare them with the imagined ones.
    compares: bool,
}

/// A network's outputs for B examples with D moves each, which have N = B · (D + 1) latent boards.
#[derive(Debug)]
pub(in crate::train) struct UnrollOutputs {
    /// The outputs of the encoder's heads.
    outputs: Outputs,
    rules: RuleLogits,
    /// Mean squared difference between the normalised latents and their targets, f32 `[N]`; 0
    /// before the first move.
    latent: Tensor,
    /// The latents [N, squares, width].
    latents: Tensor,
    /// The outputs of the encoder's heads for the true positions, if these are evaluated.
    truth: Option<Outputs>,
}

/// Returns latents [N, squares, width] normalised for comparison, f32: the features of each square
/// have mean 0 and variance 1.
fn normalised(latents: &Tensor) -> Tensor {
    let width = latents.size()[2];
    let none = None::<&Tensor>;
    latents
        .to_kind(Kind::Float)
        .layer_norm([width], none, none, 1e-5, true)
}

/// Returns the logits [N, 1858] of the prior that a search in imagination uses: the policy, with
/// each move weighted by the probability that the move is legal. No gradient flows from the prior
/// into the predicted legality.
fn prior(outputs: &Outputs, rules: &RuleLogits) -> Tensor {
    outputs.policy() + rules.legality.detach().log_sigmoid()
}

/// Returns the latents unchanged; their gradient is halved.
fn halved(latents: &Tensor) -> Tensor {
    latents * 0.5 + latents.detach() * 0.5
}

impl UnrollObjective {
    /// Returns the tokens and latents that the averaged weights compute for input rows, without
    /// gradient.
    fn target_of(&self, rows: &Tensor) -> [Tensor; 2] {
        let target = self.target.as_ref().expect("begun");
        let represent = || {
            let tokens = self.model.encode(target, rows).detach();
            let latents = self.model.fuse(target, &tokens).detach();
            [tokens, latents]
        };
        match self.device {
            // On the CPU, the blocks must use the kernels that support gradients.
            Device::Cpu => represent(),
            _ => tch::no_grad(represent),
        }
    }
}

impl Objective for UnrollObjective {
    type Examples = UnrollExamples;
    type Samples = UnrollSamples;
    type Outputs = UnrollOutputs;
    type Diagnostics = Depths;

    fn terms(config: &TrainConfig) -> Vec<Term> {
        let unroll = &config.unroll;
        let weights = [
            unroll.illegal,
            unroll.end,
            unroll.legality,
            unroll.board,
            unroll.latent,
            0.0,
            0.0,
        ];
        let own = OWN.into_iter().zip(weights);
        let own = own.map(|(name, weight)| Term { name, weight });
        let heads = loss::terms(&config.loss, None).into_iter();
        heads.chain(own).collect()
    }

    /// Returns three groups: the losses of the encoder's heads, of the rules and of the latents.
    fn balanced(config: &TrainConfig) -> Vec<Group> {
        if !config.unroll.harmony {
            return Vec::new();
        }
        let heads = loss::terms(&config.loss, None).into_iter();
        let heads = heads.map(|term| term.name).collect();
        let [illegal, end, legality, board, latent, ..] = OWN;
        let rules = vec![illegal, end, legality, board];
        let groups = [
            ("heads", heads),
            ("rules", rules),
            ("latents", vec![latent]),
        ];
        groups.map(|(name, terms)| Group { name, terms }).into()
    }

    fn new(config: &TrainConfig, device: Device) -> Result<UnrollObjective, TrainError> {
        Ok(UnrollObjective {
            compares: false,
            ..UnrollObjective::for_validation(config, device)?
        })
    }

    fn for_validation(config: &TrainConfig, device: Device) -> Result<UnrollObjective, TrainError> {
        let model: WorldModel = build(&config.architecture()?, device)?;
        Ok(UnrollObjective {
            wanted: learned_outputs(&model, &config.loss),
            model,
            device,
            kind: config.precision.kind(),
            unroll: config.unroll.clone(),
            softening: Softening::of(&config.loss, None),
            boards: Boards::new(device),
            target: None,
            plies: config.unroll.plies,
            compares: true,
        })
    }

    fn replica(&self) -> Result<UnrollObjective, TrainError> {
        Ok(UnrollObjective {
            model: build(&self.model.config(), self.device)?,
            unroll: self.unroll.clone(),
            boards: Boards::new(self.device),
            target: None,
            ..*self
        })
    }

    fn begin(&mut self, steps: u64, average: &Tensor) {
        let representing = self.model.representing();
        let count = representing.iter().map(Parameter::count).sum();
        let average = average.detach().narrow(0, 0, count).to_kind(self.kind);
        // The copy is a leaf of autograd.
        let average = average.copy().set_requires_grad(self.device == Device::Cpu);
        self.target = Some(Weights::from_flat(&average, representing));
        self.plies = match self.compares {
            true => self.unroll.plies,
            false => self.unroll.plies_at(steps),
        };
    }

    fn examples(&self, _config: &TrainConfig) -> UnrollExamples {
        UnrollExamples {
            format: InputFormat::Classical,
            plies: self.unroll.plies,
        }
    }

    fn parameters(&self) -> &[Parameter] {
        self.model.parameters()
    }

    fn prepare(
        &self,
        batch: BatchOf<UnrollExamples>,
    ) -> Result<(UnrollSamples, Tensor), TrainError> {
        let samples = UnrollSamples::upload(
            &batch.columns,
            self.plies,
            &self.boards,
            self.wanted,
            self.device,
        );
        let by_sample = sum(&samples.weights);
        Ok((samples, by_sample))
    }

    fn forward(&self, weights: &Weights, samples: &UnrollSamples) -> UnrollOutputs {
        let plies = samples.plies();
        let rows = samples.rows.unflatten(0, [-1, plies + 1]);
        let mut past = self.model.past();
        let first = self.model.encode(weights, &rows.select(1, 0));
        let mut latents = vec![self.model.fuse(weights, &first)];
        for ply in 0..plies {
            let before = halved(&latents[ply as usize]);
            let moves = samples.moves.select(1, ply);
            latents.push(self.model.step(weights, &before, &moves, &mut past));
        }
        let stepped = Tensor::stack(&latents, 1);
        let true_rows = rows.narrow(1, 1, plies).flatten(0, 1);
        let [true_tokens, target] = self.target_of(&true_rows);
        let off = normalised(&stepped.narrow(1, 1, plies).flatten(0, 1)) - normalised(&target);
        let off = off
            .square()
            .mean_dim([1i64, 2].as_slice(), false, Kind::Float)
            .unflatten(0, [-1, plies]);
        // Before the first move, there is nothing to predict.
        let latent = off.constant_pad_nd([1, 0]).flatten(0, 1);
        let tokens = self.model.expand_all(weights, &first, &stepped);
        UnrollOutputs {
            outputs: self.model.evaluate(weights, &tokens, self.wanted),
            rules: self.model.rules(weights, &tokens),
            truth: self.compares.then(|| {
                let later = true_tokens.to_kind(first.kind());
                let later = later.unflatten(0, [-1, plies]);
                let all = Tensor::cat(&[first.unsqueeze(1), later], 1).flatten(0, 1);
                let wanted = [Output::Policy, Output::Q].into_iter().collect();
                self.model.evaluate(weights, &all, wanted)
            }),
            latent,
            latents: stepped.flatten(0, 1),
        }
    }

    fn values(&self, outputs: &UnrollOutputs, samples: &UnrollSamples) -> Vec<Tensor> {
        let mut values = loss::values(&outputs.outputs, &samples.targets, None, self.softening);
        let rules = &outputs.rules;
        let binary = |logits: &Tensor, target: &Tensor| {
            let none = None::<&Tensor>;
            logits.binary_cross_entropy_with_logits(
                &target.to_kind(Kind::Float),
                none,
                none,
                Reduction::None,
            )
        };
        let board = classification(&rules.board, &samples.board);
        let is_right = rules.board.argmax(-1, false).eq_tensor(&samples.board);
        let changed = &samples.changed;
        let changed_right = sum(&is_right.logical_and(changed)) / sum(changed).clamp_min(1.0);
        // The total probability of the legal moves under the prior.
        let prior = prior(&outputs.outputs, rules);
        let of_all = prior.logsumexp([-1i64].as_slice(), false);
        let of_legal = samples
            .targets
            .masked(&prior)
            .logsumexp([-1i64].as_slice(), false);
        values.extend([
            of_all - of_legal,
            binary(&rules.end, &samples.ended),
            sum(&binary(&rules.legality, &samples.targets.legal)),
            sum(&board),
            outputs.latent.shallow_clone(),
            is_right.all_dim(-1, false).to_kind(Kind::Float),
            changed_right,
        ]);
        debug_assert_eq!(rules.legality.size()[1], POLICY_SIZE as i64);
        debug_assert_eq!(rules.board.size()[2], SQUARE_CLASSES as i64);
        // The value of a term for an example is the mean over the positions that have the target.
        let plies = samples.plies();
        let values = values.iter().zip(samples.weights.unbind(0));
        values
            .map(|(value, weights)| {
                let weighted = value.view([-1, plies + 1]) * &weights;
                let total = sum(&weights).clamp_min(1e-6);
                sum(&weighted) / total
            })
            .collect()
    }
}
