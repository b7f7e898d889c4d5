//! A network of ours that Lc0's own format can express.

use std::path::Path;
use tch::{Device, Kind, Tensor};
use tessera::model::{Chessformer, Export, ModelConfig, NormKind, export};
use tessera::nn::torch::ExportPrecision;

/// Writes one with random weights.
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
    let how = Export {
        name: "plain".to_owned(),
        precision,
        search_value: "q".to_owned(),
        training: serde_json::Value::Null,
        licence: "GPL-3.0-or-later".to_owned(),
    };
    export(&model, &(initial + noise * 0.01), &how, path).unwrap();
}
