//! A Maia-3 network: its sizes, its weights, and what can be done with it.

use super::config::Maia3Config;
use super::forward::Structure;
use serde_json::{Map, Value};
use tch::Tensor;

/// The words of a row that are not bitboards, in their order.
const SCALARS: [&str; 2] = ["self_elo", "opponent_elo"];
/// What the forward pass returns, in its order.
const OUTPUTS: [&str; 2] = ["policy", "wdl"];

/// A Maia-3 network.
#[derive(Debug)]
pub struct Maia3Network {
    config: Maia3Config,
    structure: Structure,
    names: Vec<String>,
    weights: Vec<Tensor>,
    notes: Map<String, Value>,
    ignored: Vec<String>,
}

impl Maia3Network {
    /// `weights` are f32, in the order and shapes of the configuration's
    /// parameters.
    pub(super) fn new(config: Maia3Config, weights: Vec<Tensor>) -> Maia3Network {
        let names = config.parameters().into_iter().map(|(name, _)| name);
        Maia3Network {
            structure: Structure::new(&config),
            names: names.collect(),
            weights,
            notes: Map::new(),
            ignored: Vec::new(),
            config,
        }
    }

    /// Adds what else its checkpoint held: plain values such as the step of
    /// training, and the names of tensors that no Maia-3 network has.
    pub(super) fn with_surroundings(
        self,
        notes: Map<String, Value>,
        ignored: Vec<String>,
    ) -> Maia3Network {
        Maia3Network {
            notes,
            ignored,
            ..self
        }
    }

    /// Its sizes.
    #[must_use]
    pub fn config(&self) -> &Maia3Config {
        &self.config
    }

    /// Its parameters by name, f32 on the CPU.
    pub fn parameters(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.names.iter().map(String::as_str).zip(&self.weights)
    }

    /// Numbers and texts that stood beside the parameters, such as the step that
    /// training had come to.
    #[must_use]
    pub fn notes(&self) -> &Map<String, Value> {
        &self.notes
    }

    /// Names of tensors in its checkpoint that no Maia-3 network reads.
    #[must_use]
    pub fn ignored(&self) -> &[String] {
        &self.ignored
    }

    /// Evaluates `rows`, i64 [B, 104 + 2]: bitboards of the last eight positions
    /// as Maia-3 sees them (each by its own mover), then the ratings of the
    /// mover and of the opponent. Returns policy logits f32 [B, 1858] and logits
    /// of win, draw and loss, f32 [B, 3].
    #[must_use]
    pub fn forward(&self, rows: &Tensor) -> Vec<Tensor> {
        self.structure.forward(&self.weights, rows)
    }
}
