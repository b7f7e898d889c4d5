//! Optimizers over the flat vector of all parameters.
//!
//! An optimizer is a list of rules. The first rule, NAdam or plain gradient descent, computes the
//! step of every parameter. The second rule, if any, replaces the steps of the hidden matrices,
//! which are identified by their [`ParameterGroup`](crate::network::ParameterGroup). Before the
//! rules run, the gradient is set to zero for frozen parameters and clipped. After the rules,
//! weight decay is added, and the steps of frozen parameters are set to zero.

mod masks;
mod matrices;
mod muon;
mod nadam;
mod rule;
mod sgd;
mod soap;

pub(super) use rule::Memory;

use super::config::{OptimizerConfig, OptimizerKind};
use super::parts::parts;
use super::threads::Threads;
use crate::network::Parameter;
use masks::{decay, learned, rates};
use muon::Muon;
use nadam::Nadam;
use rule::Rule;
use sgd::Sgd;
use soap::Soap;
use tch::{Device, Kind, Tensor};

/// Added to the gradient's norm before dividing by it, as in PyTorch.
const CLIP_EPSILON: f64 = 1e-6;

/// The rules and their state. The caller sets the learning rate.
#[derive(Debug)]
pub(super) struct Optimizer {
    rules: Vec<Box<dyn Rule>>,
    clip_norm: f64,
    /// The weight decay of each parameter; `None` if nothing decays.
    decay: Option<Tensor>,
    /// The learning-rate factor of each parameter; `None` if all are equal.
    rates: Option<Tensor>,
    /// 1 for each trained parameter and 0 for each frozen one; `None` if none is frozen.
    learned: Option<Tensor>,
    /// The number of steps taken.
    pub steps: u64,
}

impl Optimizer {
    /// Returns an optimizer that has not taken a step yet, for vectors with the dtype and device in
    /// `options`. Parameters whose names match one of `frozen` are not trained.
    pub fn new(
        config: &OptimizerConfig,
        frozen: &[String],
        parameters: &[Parameter],
        options: (Kind, Device),
    ) -> Optimizer {
        let mut rules: Vec<Box<dyn Rule>> = match config.kind {
            OptimizerKind::Sgd => vec![Box::new(Sgd)],
            _ => vec![Box::new(Nadam::new(config, parameters, options))],
        };
        match config.kind {
            OptimizerKind::Nadam | OptimizerKind::Sgd => {}
            OptimizerKind::Muon => rules.push(Box::new(Muon::new(config, parameters, options))),
            OptimizerKind::Soap => rules.push(Box::new(Soap::new(config, parameters, options))),
        }
        let (kind, device) = options;
        let send = |vector: Tensor| vector.to_kind(kind).to_device(device);
        Optimizer {
            rules,
            clip_norm: config.clip_norm,
            decay: decay(config, parameters).map(send),
            rates: rates(config, parameters).map(send),
            learned: learned(frozen, parameters).map(send),
            steps: 0,
        }
    }

    /// Returns the state of the rules, for a checkpoint.
    pub fn memory(&self) -> Memory {
        let own = self.rules.iter().flat_map(|rule| rule.memory());
        own.map(|(name, tensor)| (name, tensor.copy())).collect()
    }

    /// Resumes after `steps` steps with the state from [`Optimizer::memory`]. If a different
    /// optimizer wrote the state, the missing tensors start at zero.
    pub fn restore(&mut self, steps: u64, memory: &Memory) {
        self.steps = steps;
        for (name, mut own) in self.rules.iter().flat_map(|rule| rule.memory()) {
            let known = memory.iter().find(|(known, _)| *known == name);
            match known.filter(|(_, known)| known.size() == own.size()) {
                Some((_, known)) => own.copy_(known),
                None => _ = own.zero_(),
            }
        }
    }

    /// Takes one step on all threads: updates `flat` with `gradient`, both `[parameters]`. Returns
    /// the gradient's norm before clipping. The norm is a tensor, so that the caller need not wait
    /// for the device.
    pub fn step(
        &mut self,
        flat: &mut Tensor,
        gradient: &Tensor,
        rate: f64,
        threads: &Threads,
    ) -> Tensor {
        self.steps += 1;
        let gradient = match &self.learned {
            Some(learned) => gradient * learned,
            None => gradient.shallow_clone(),
        };
        let norm = gradient.norm();
        let gradient = if self.clip_norm > 0.0 {
            let scale: Tensor =
                ((&norm + CLIP_EPSILON).reciprocal() * self.clip_norm).clamp_max(1.0);
            gradient * scale
        } else {
            gradient
        };
        let mut direction = gradient.empty_like();
        for rule in &mut self.rules {
            rule.direct(&gradient, &mut direction, self.steps, threads);
        }
        let items = parts(flat).map(|part| {
            let of = |mask: &Option<Tensor>| mask.as_ref().map(|mask| part.of(mask));
            let vectors = (part.of(flat), part.of(&direction));
            let masks = [&self.decay, &self.learned, &self.rates];
            (vectors, masks.map(of))
        });
        threads.map(
            items.collect(),
            |((mut flat, mut direction), [decay, learned, rates])| {
                if let Some(decay) = decay {
                    direction += decay * &flat;
                }
                if let Some(learned) = learned {
                    // Parameters that were frozen in the middle of a run still have momentum.
                    direction *= learned;
                }
                if let Some(rates) = rates {
                    direction *= rates;
                }
                flat -= direction * rate;
            },
        );
        norm
    }
}

#[cfg(test)]
mod tests;
