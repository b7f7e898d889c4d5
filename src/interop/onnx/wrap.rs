//! Writes ONNX inside an Lc0 weights file.

use super::OnnxError;
use super::builder::data_type;
use super::write::{Function, encode, tensors};
use crate::encode::InputFormat;
use crate::interop::lc0::container;
use crate::interop::lc0::schema::{
    EngineVersion, Format, MAGIC, MovesLeftFormat, Net, NetworkFormat, NetworkStructure, OnnxModel,
    OutputFormat, PolicyFormat, ValueFormat,
};
use crate::network::{Network, Output, Outputs, PLANES, Positions};
use crate::torch::ExportPrecision;
use tch::{Kind, Tensor};

/// The first Lc0 version that evaluates ONNX.
const MIN_VERSION: EngineVersion = EngineVersion {
    major: Some(0),
    minor: Some(28),
    patch: Some(0),
};

/// The output names of Lc0's own converter.
const POLICY: &str = "/output/policy";
const WDL: &str = "/output/wdl";
const MOVES_LEFT: &str = "/output/mlh";

/// Writes a network as ONNX inside a `.pb.gz` for Lc0's ONNX backends.
///
/// Lc0's search uses the difference between the win and loss probabilities. If the search should
/// use the value of another head of this network, these probabilities are adjusted so that their
/// difference equals that value.
///
/// # Errors
/// [`OnnxError`] if the network cannot be expressed.
pub fn wrap_in_lc0(network: &Network, precision: ExportPrecision) -> Result<Vec<u8>, OnnxError> {
    let interface = network.architecture.interface();
    let input = match InputFormat::from_number(interface.format) {
        Some(InputFormat::Maia3) | None => return Err(OnnxError::InputFormat),
        Some(format) => format.number() as i32,
    };
    let has_moves_left = interface.outputs.contains(&Output::MovesLeft);
    let mut outputs = vec![POLICY, WDL];
    outputs.extend(has_moves_left.then_some(MOVES_LEFT));
    let function = Function {
        inputs: interface.planes,
        tensors: tensors(network),
        outputs,
        forward: &|given| {
            let outputs = interface.outputs.iter().copied();
            let tensors = network.forward(Positions::Planes(given));
            outputs_of_lc0(&network.about.search_value, outputs.zip(tensors).collect())
        },
    };
    let model = encode(&function.model(precision)?)?;
    let name = |name: &str| Some(name.to_owned());
    Ok(container::pack(&Net {
        magic: Some(MAGIC),
        license: Some(network.about.licence.clone()),
        min_version: Some(MIN_VERSION),
        format: Some(Format {
            network_format: Some(NetworkFormat {
                input: Some(input),
                output: Some(OutputFormat::Wdl as i32),
                network: Some(NetworkStructure::Onnx as i32),
                // For every network, the policy is already in Lc0's final order.
                policy: Some(PolicyFormat::Classical as i32),
                value: Some(ValueFormat::Wdl as i32),
                moves_left: has_moves_left.then_some(MovesLeftFormat::V1 as i32),
                ..NetworkFormat::default()
            }),
            ..Format::default()
        }),
        onnx_model: Some(OnnxModel {
            model: Some(model.into()),
            data_type: Some(data_type(precision).into()),
            input_planes: name(PLANES),
            output_policy: name(POLICY),
            output_wdl: name(WDL),
            output_value: None,
            output_mlh: has_moves_left.then_some(MOVES_LEFT.to_owned()),
        }),
        ..Net::default()
    }))
}

/// Returns the outputs that Lc0 reads: policy logits, win, draw and loss probabilities, and plies
/// [B, 1].
fn outputs_of_lc0(search_value: &str, outputs: Outputs) -> Vec<Tensor> {
    let wdl = outputs.wdl().softmax(-1, None::<Kind>);
    let ranks = Output::from_name(search_value).filter(|&output| output != Output::Wdl);
    let wdl = match ranks.and_then(|output| outputs.get(output)) {
        Some(q) => with_result(&wdl, q),
        None => wdl,
    };
    let moves_left = outputs.get(Output::MovesLeft);
    let moves_left = moves_left.map(|plies| plies.unsqueeze(1));
    let always = [outputs.policy().shallow_clone(), wdl];
    always.into_iter().chain(moves_left).collect()
}

/// Returns win, draw and loss probabilities [B, 3] such that win minus loss is `q` `[B]`. The draw
/// probability of `wdl` is kept as far as `q` allows.
fn with_result(wdl: &Tensor, q: &Tensor) -> Tensor {
    let draw = wdl.select(1, 1).minimum(&(-q.abs() + 1.0));
    let decided = -&draw + 1.0;
    let win = (&decided + q) * 0.5;
    let loss = (&decided - q) * 0.5;
    Tensor::stack(&[win, draw, loss], 1)
}
