//! ONNX inside a weights file of Lc0's.

use super::OnnxError;
use super::builder::data_type;
use super::family::Opened;
use super::write::{Function, PLANES, encode};
use crate::encode::InputFormat;
use crate::interop::lc0::container;
use crate::interop::lc0::schema::{
    EngineVersion, Format, MAGIC, MovesLeft, Net, NetworkFormat, OnnxModel, Output, Policy,
    Structure, Value,
};
use crate::nn::Metadata;
use crate::nn::torch::ExportPrecision;
use tch::{Kind, Tensor};

/// The first Lc0 that evaluates ONNX.
const MIN_VERSION: EngineVersion = EngineVersion {
    major: Some(0),
    minor: Some(28),
    patch: Some(0),
};

/// The names of the outputs where Lc0's own converter puts them.
pub(super) const POLICY: &str = "/output/policy";
pub(super) const WDL: &str = "/output/wdl";
pub(super) const VALUE: &str = "/output/value";
pub(super) const MOVES_LEFT: &str = "/output/mlh";

/// Says a network file in ONNX inside a `.pb.gz` that Lc0's ONNX backends play.
///
/// Lc0 ranks moves by win minus loss: where another head ranks them here, win
/// and loss are moved so that their difference is that head's.
///
/// # Errors
/// [`OnnxError`] if `file` is none of our network files or cannot be expressed.
pub fn wrap_in_lc0(file: &[u8], precision: ExportPrecision) -> Result<Vec<u8>, OnnxError> {
    let opened = Opened::new(file)?;
    let metadata = &opened.metadata;
    let format = metadata.format();
    let input = match format {
        Some(InputFormat::Maia3) | None => return Err(OnnxError::InputFormat),
        Some(format) => format.number() as i32,
    };
    let has_moves_left = metadata.output("moves_left").is_some();
    let mut outputs = vec![POLICY, WDL];
    outputs.extend(has_moves_left.then_some(MOVES_LEFT));
    let function = Function {
        inputs: opened.inputs(),
        tensors: opened.tensors(),
        outputs,
        forward: &|given| outputs_of_lc0(metadata, &opened.forward(given)),
    };
    let model = encode(&function.model(precision)?)?;
    let name = |name: &str| Some(name.to_owned());
    Ok(container::pack(&Net {
        magic: Some(MAGIC),
        license: Some(metadata.licence.clone()),
        min_version: Some(MIN_VERSION),
        format: Some(Format {
            network_format: Some(NetworkFormat {
                input: Some(input),
                output: Some(Output::Wdl as i32),
                network: Some(Structure::Onnx as i32),
                // Whatever the network has, the policy comes in its final order.
                policy: Some(Policy::Classical as i32),
                value: Some(Value::Wdl as i32),
                moves_left: has_moves_left.then_some(MovesLeft::V1 as i32),
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

/// What Lc0 wants of the outputs of a network file: the policy's logits, the
/// probabilities of win, draw and loss, and plies [B, 1].
fn outputs_of_lc0(metadata: &Metadata, outputs: &[Tensor]) -> Vec<Tensor> {
    let output = |name: &str| metadata.output(name).map(|place| &outputs[place]);
    let policy = output("policy").into_iter().map(Tensor::shallow_clone);
    let wdl = output("wdl").map(|wdl| {
        let wdl = wdl.softmax(-1, None::<Kind>);
        match metadata.search_value.as_str() {
            "wdl" => wdl,
            head => output(head).map_or(wdl.shallow_clone(), |q| with_result(&wdl, q)),
        }
    });
    let moves_left = output("moves_left").map(|plies| plies.unsqueeze(1));
    policy.chain(wdl).chain(moves_left).collect()
}

/// Probabilities [B, 3] whose win minus loss is `q` `[B]`, and whose draw is that
/// of `wdl` as far as there is room for it.
fn with_result(wdl: &Tensor, q: &Tensor) -> Tensor {
    let draw = wdl.select(1, 1).minimum(&(-q.abs() + 1.0));
    let decided = -&draw + 1.0;
    let win = (&decided + q) * 0.5;
    let loss = (&decided - q) * 0.5;
    Tensor::stack(&[win, draw, loss], 1)
}
