//! A Maia-3 network: its sizes, its weights, and what can be done with it.

use super::Maia3Error;
use super::config::Maia3Config;
use super::forward::Structure;
use crate::encode::{HISTORY, InputFormat};
use crate::nn::metadata::{CONTRACT, Metadata};
use crate::nn::torch::{ExportPrecision, Script, ScriptError};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use tch::{Device, Kind, Tensor};

/// The words of a row that are not bitboards, in their order.
const SCALARS: [&str; 2] = ["self_elo", "opponent_elo"];
/// What the forward pass returns, in its order.
const OUTPUTS: [&str; 2] = ["policy", "wdl"];
/// What a file's metadata calls networks like these.
pub(super) const FAMILY: &str = "maia3";

/// A Maia-3 network.
#[derive(Debug)]
pub struct Maia3Network {
    config: Maia3Config,
    structure: Structure,
    parameters: Vec<(String, Tensor)>,
    licence: String,
    training: Value,
}

impl Maia3Network {
    /// A network of these sizes with these tensors, in any order and with others
    /// among them.
    ///
    /// # Errors
    /// [`Maia3Error`] if the sizes do not fit each other or the tensors.
    pub fn new(
        config: Maia3Config,
        tensors: impl IntoIterator<Item = (String, Tensor)>,
        licence: String,
        training: Value,
    ) -> Result<Maia3Network, Maia3Error> {
        config.check()?;
        let mut tensors: BTreeMap<String, Tensor> = tensors.into_iter().collect();
        let mut parameters = Vec::new();
        for (name, shape) in config.parameters() {
            let tensor = tensors.remove(&name);
            let tensor = tensor.ok_or_else(|| Maia3Error::Missing(name.clone()))?;
            expect(&name, &tensor.size(), &shape)?;
            let tensor = tensor.detach().to_device(Device::Cpu).to_kind(Kind::Float);
            parameters.push((name, tensor));
        }
        Ok(Maia3Network {
            structure: Structure::new(&config),
            config,
            parameters,
            licence,
            training,
        })
    }

    /// A network from what a TorchScript file says of itself and holds: the way
    /// back from [`Maia3Network::write_torchscript`].
    ///
    /// # Errors
    /// [`Maia3Error`] if it is of another family or its tensors do not fit.
    pub fn from_torchscript(
        metadata: &Metadata,
        tensors: impl IntoIterator<Item = (String, Tensor)>,
    ) -> Result<Maia3Network, Maia3Error> {
        let architecture = &metadata.architecture;
        if architecture["family"] != FAMILY {
            return Err(Maia3Error::Family(architecture["family"].to_string()));
        }
        let config = Maia3Config::deserialize(&architecture["model"])
            .map_err(|error| Maia3Error::Description(error.to_string()))?;
        let (licence, training) = (metadata.licence.clone(), metadata.training.clone());
        Maia3Network::new(config, tensors, licence, training)
    }

    /// Its sizes.
    #[must_use]
    pub fn config(&self) -> &Maia3Config {
        &self.config
    }

    /// Its parameters by name, f32 on the CPU.
    pub fn parameters(&self) -> &[(String, Tensor)] {
        &self.parameters
    }

    /// Evaluates `rows`, i64 [B, 104 + 2]: bitboards of the last eight positions
    /// as Maia-3 sees them ([`InputFormat::Maia3`]), then the ratings of the mover
    /// and of the opponent. Returns policy logits f32 [B, 1858] and logits of
    /// win, draw and loss, f32 [B, 3].
    #[must_use]
    pub fn forward(&self, rows: &Tensor) -> Vec<Tensor> {
        let tensors = self.parameters.iter().map(|(_, tensor)| tensor);
        let weights: Vec<Tensor> = tensors.map(Tensor::shallow_clone).collect();
        self.structure.forward(&weights, rows)
    }

    /// The same from planes [B, 104, 8, 8], the bitboards of rows bit by bit, and
    /// the ratings [B, 2] of the mover and of the opponent.
    #[must_use]
    pub fn forward_planes(&self, planes: &Tensor, ratings: &Tensor) -> Vec<Tensor> {
        let tensors = self.parameters.iter().map(|(_, tensor)| tensor);
        let weights: Vec<Tensor> = tensors.map(Tensor::shallow_clone).collect();
        self.structure.forward_planes(&weights, planes, ratings)
    }

    /// Tensors besides the parameters that the forward pass reads, by name.
    pub(in crate::interop) fn buffers(&self) -> Vec<(String, Tensor)> {
        self.structure.buffers()
    }

    /// Writes it as one TorchScript file, all of it or nothing, its parameters
    /// under the names they have in checkpoints, and returns what the file says
    /// of itself.
    ///
    /// # Errors
    /// [`ScriptError`] if libtorch or the file system refuse.
    pub fn write_torchscript(
        &self,
        name: &str,
        precision: ExportPrecision,
        path: &Path,
    ) -> Result<Metadata, ScriptError> {
        let size = self.config.size();
        let metadata = Metadata {
            contract: CONTRACT,
            name: name.to_owned(),
            architecture: json!({
                "family": FAMILY,
                "model": self.config,
                "macs_total": size.macs_total,
                "precision": precision,
            }),
            input_format: InputFormat::Maia3.number(),
            // What a row holds; the network may read less of it.
            history: HISTORY as u32,
            scalars: SCALARS.map(str::to_owned).to_vec(),
            outputs: OUTPUTS.map(str::to_owned).to_vec(),
            search_value: "wdl".to_owned(),
            parameters: size.parameters.unsigned_abs(),
            macs: size.macs.unsigned_abs(),
            training: self.training.clone(),
            licence: self.licence.clone(),
            hash: String::new(),
        };
        let script = Script {
            parameters: &self.parameters,
            buffers: &self.structure.buffers(),
            forward: &|weights, rows| self.structure.forward(weights, rows),
        };
        script.write(metadata, precision, path)
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
