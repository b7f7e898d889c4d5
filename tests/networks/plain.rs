//! One of our own networks, with an architecture that Lc0's own format can express.

use std::path::Path;
use tch::{Device, Kind, Tensor};
use tessera::network::chessformer::{ModelConfig, NormKind};
use tessera::network::{About, Architecture, Chessformer, Network};
use tessera::torch::ExportPrecision;

/// Writes such a network with random weights.
pub fn write(path: &Path, precision: ExportPrecision) {
    let config = ModelConfig {
        norm: NormKind::Layer,
        soft_policy: false,
        ..ModelConfig::preset("cf-1m-gab").unwrap()
    };
    let model = Chessformer::new(&config, Device::Cpu).unwrap();
    tch::manual_seed(5);
    let initial = model.initial_weights();
    let noise = Tensor::randn(initial.size(), (Kind::Float, Device::Cpu));
    let about = About {
        correction: None,
        name: "plain".to_owned(),
        search_value: "q".to_owned(),
        training: serde_json::Value::Null,
        licence: "GPL-3.0-or-later".to_owned(),
    };
    let network = Network::new(Box::new(model), &(initial + noise * 0.01), about);
    network.write(precision, path).unwrap();
}
