//! A Maia-3 network: its sizes, its weights, and what can be done with it.

use super::Maia3Error;
use super::config::Maia3Config;
use super::forward::Structure;
use crate::encode::{HISTORY, InputFormat};
use crate::nn::metadata::{CONTRACT, Metadata};
use crate::nn::torch::{ExportPrecision, Script, ScriptError};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use tch::{Device, Kind, Tensor};

/// The words of a row that are not bitboards, in their order.
const SCALARS: [&str; 2] = ["self_elo", "opponent_elo"];
/// What the forward pass returns, in its order.
const OUTPUTS: [&str; 2] = ["policy", "wdl"];
/// What a file's metadata calls networks like these.
const FAMILY: &str = "maia3";
/// What SPDX calls a licence of which nothing is said: checkpoints name none.
const LICENCE: &str = "NOASSERTION";

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
    /// A network from its parameters by name, which may be more than it has.
    ///
    /// # Errors
    /// [`Maia3Error`] if the sizes do not fit each other or the parameters.
    pub fn new(
        config: Maia3Config,
        mut parameters: BTreeMap<String, Tensor>,
    ) -> Result<Maia3Network, Maia3Error> {
        config.check()?;
        let (names, weights) = config
            .parameters()
            .into_iter()
            .map(|(name, shape)| {
                let tensor = parameters.remove(&name);
                let tensor = tensor.ok_or_else(|| Maia3Error::Missing(name.clone()))?;
                expect(&name, &tensor.size(), &shape)?;
                let tensor = tensor.to_device(Device::Cpu).to_kind(Kind::Float);
                Ok((name, tensor))
            })
            .collect::<Result<Vec<_>, Maia3Error>>()?
            .into_iter()
            .unzip();
        Ok(Maia3Network {
            structure: Structure::new(&config),
            names,
            weights,
            notes: Map::new(),
            ignored: Vec::new(),
            config,
        })
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

    /// What there is to say of it: sizes, formats, cost, and what else its
    /// checkpoint held.
    #[must_use]
    pub fn summary(&self) -> Value {
        let macs = self.config.macs();
        json!({
            "family": FAMILY,
            "published_as": self.config.preset_name(),
            "model": self.config,
            "input_format": InputFormat::Maia3.number(),
            "scalars": SCALARS,
            "outputs": OUTPUTS,
            "parameters": self.count(),
            "macs": macs.main,
            "macs_total": macs.total,
            "training": self.notes,
            "ignored": self.ignored,
        })
    }

    /// Writes it as a network of the engine's, its parameters under the names
    /// they have in checkpoints. The metadata comes back as the file's `meta()`
    /// says it.
    ///
    /// # Errors
    /// [`ScriptError`] if libtorch or the file system refuse.
    pub fn write(
        &self,
        name: &str,
        precision: ExportPrecision,
        path: &Path,
    ) -> Result<Metadata, ScriptError> {
        let parameters = self.parameters();
        let parameters = parameters.map(|(name, tensor)| (name.to_owned(), tensor.shallow_clone()));
        let script = Script {
            parameters: parameters.collect(),
            buffers: self.structure.buffers(),
            forward: &|weights, rows| self.structure.forward(weights, rows),
        };
        script.write(self.metadata(name, precision), precision, path)
    }

    fn count(&self) -> u64 {
        self.weights
            .iter()
            .map(|tensor| tensor.numel() as u64)
            .sum()
    }

    fn metadata(&self, name: &str, precision: ExportPrecision) -> Metadata {
        let macs = self.config.macs();
        Metadata {
            contract: CONTRACT,
            name: name.to_owned(),
            architecture: json!({
                "family": FAMILY,
                "model": self.config,
                "macs_total": macs.total,
                "precision": precision,
            }),
            input_format: InputFormat::Maia3.number(),
            // What a row holds; the network may read less of it.
            history: HISTORY as u32,
            scalars: SCALARS.map(str::to_owned).to_vec(),
            outputs: OUTPUTS.map(str::to_owned).to_vec(),
            search_value: "wdl".to_owned(),
            parameters: self.count(),
            macs: macs.main.unsigned_abs(),
            training: Value::Object(self.notes.clone()),
            licence: LICENCE.to_owned(),
            hash: String::new(),
        }
    }
}

/// Checks a parameter's shape.
pub(super) fn expect(name: &str, found: &[i64], expected: &[i64]) -> Result<(), Maia3Error> {
    if found == expected {
        return Ok(());
    }
    Err(Maia3Error::Shape {
        name: name.to_owned(),
        found: found.to_vec(),
        expected: expected.to_vec(),
    })
}
