//! Files that hold networks in ONNX.

use super::OnnxError;
use super::interface::{Interface, describe, metadata};
use super::schema::{GraphProto, ModelProto};
use super::{leela2onnx, tensor};
use crate::interop::lc0::schema::{EngineVersion, Net};
use crate::interop::lc0::{Lc0Error, container};
use crate::network::graph::GraphConfig;
use crate::network::{About, Architecture, Evaluator, Graph, Network};
use prost::Message;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use tch::Tensor;

/// Fields of messages that a file may have, at most. Two bytes become a hundred in
/// memory; the networks of the field have some ten thousand.
const MOST_FIELDS: usize = 1_000_000;
/// The fields whose messages hold lists: a model's graph; nodes, tensors, inputs
/// and outputs; attributes.
const LISTS: [&[u32]; 3] = [&[7], &[1, 5, 11, 12], &[5]];

/// Reads a network from ONNX: what Lc0's `leela2onnx` or [`super::write`] made, or
/// a weights file of Lc0's that has it inside.
///
/// What the converter made of Lc0's own weights becomes a network of their family
/// again; all else is a graph. The network is tried on a few positions: what comes
/// back can be evaluated.
///
/// # Errors
/// [`OnnxError`] if it is none, is damaged, lies in several files, or has
/// operators other than those of the field's networks.
pub fn read(file: &[u8]) -> Result<Network, OnnxError> {
    let (graph, _) = read_graph(file, container::open_known)?;
    Ok(leela2onnx::recognise(&graph).unwrap_or(graph))
}

/// The same as a graph, whatever it is, and the oldest Lc0 that reads the file around it,
/// which is opened so.
fn read_graph(
    file: &[u8],
    open: fn(&[u8]) -> Result<Net, Lc0Error>,
) -> Result<(Network, Option<EngineVersion>), OnnxError> {
    if !container::is_weights_file(file) {
        return Ok((model(file, &Interface::of_lc0())?, None));
    }
    let net = open(file)?;
    let held = net.onnx_model.as_ref();
    let held = held.and_then(|held| held.model.as_ref());
    let network = model(held.ok_or(OnnxError::NoModel)?, &interface(&net))?;
    Ok((network, net.min_version))
}

fn model(bytes: &[u8], interface: &Interface) -> Result<Network, OnnxError> {
    let mut left = MOST_FIELDS;
    // What ends early here does so below as well.
    let counted = count(bytes, &LISTS, &mut left);
    if left == 0 && counted.is_ok() {
        return Err(OnnxError::TooManyFields);
    }
    network(&ModelProto::decode(bytes)?, interface)
}

/// A network of a model, tried on two positions.
fn network(model: &ModelProto, interface: &Interface) -> Result<Network, OnnxError> {
    let graph = model.graph.as_ref().ok_or(OnnxError::NoModel)?;
    let metadata = metadata(model);
    let mut config = describe(model, graph, interface, metadata.as_ref())?;
    let tensors = take_tensors(graph, &mut config)?;
    let (graph, weights) = Graph::from_tensors(config, tensors)?;
    let about = match metadata {
        Some(metadata) => About::of(&metadata),
        None => About {
            name: String::new(),
            search_value: "wdl".to_owned(),
            training: serde_json::json!({ "format": "ONNX", "producer": model.producer_name }),
            licence: interface.licence.clone().unwrap_or("unknown".to_owned()),
        },
    };
    Ok(Network {
        architecture: Box::new(graph),
        weights,
        about,
    })
}

/// The tensors that the graph reads, by the names that `config` is told of them.
fn take_tensors(
    graph: &GraphProto,
    config: &mut GraphConfig,
) -> Result<Vec<(String, Tensor)>, OnnxError> {
    let inputs = config.nodes.iter().flat_map(|node| &node.inputs);
    let used: BTreeSet<String> = inputs.cloned().collect();
    let constants = graph.node.iter().filter(|node| node.op_type == "Constant");
    let constants = constants.filter_map(|node| {
        let mut attributes = node.attribute.iter();
        let value = attributes.find_map(|attribute| attribute.t.as_ref())?;
        Some((node.output.first()?, value))
    });
    let initializers = graph.initializer.iter();
    let initializers = initializers.map(|tensor| (&tensor.name, tensor));
    let mut tensors = Vec::new();
    for (name, proto) in initializers.chain(constants) {
        if !used.contains(name) || config.tensors.contains_key(name) {
            continue;
        }
        let tensor = tensor::read(proto).map_err(|source| OnnxError::Tensor {
            name: name.clone(),
            source,
        })?;
        let stored = stored_name(name, config.tensors.len());
        tensors.push((stored.clone(), tensor));
        config.tensors.insert(name.clone(), stored);
    }
    Ok(tensors)
}

/// A name that a TorchScript module can have for a tensor: its own as far as
/// that is possible.
fn stored_name(name: &str, number: usize) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let plain: String = name.chars().take(100).map(plain).collect();
    format!("tensor_{}_{number}", plain.trim_matches('_'))
}

/// What a file of ONNX says of its network.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OnnxSummary {
    /// The version of ONNX's operators.
    pub operator_set: i64,
    /// How often each operator is at work.
    pub operators: BTreeMap<String, usize>,
    /// How Lc0 fills the planes: the number of its input format.
    pub input_format: u32,
    /// The oldest Lc0 that reads the file, if it is one of Lc0's around a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_version: Option<String>,
    /// The outputs, by their names in the metadata of a network file.
    pub outputs: Vec<String>,
    /// Parameters.
    pub parameters: i64,
    /// Multiply–accumulates of one evaluation.
    pub macs: i64,
    /// Licence of the weights as the file states it, or `unknown`.
    pub licence: String,
    /// What is known of where the network is from.
    pub training: serde_json::Value,
}

/// Says what a file of ONNX is.
///
/// # Errors
/// [`OnnxError`], as for [`read`].
pub fn summary(file: &[u8]) -> Result<OnnxSummary, OnnxError> {
    let (network, min_version) = read_graph(file, container::open)?;
    let graph: &Graph = network.downcast().expect("what was read");
    let mut operators = BTreeMap::new();
    for node in &graph.model().nodes {
        *operators.entry(node.operator.clone()).or_default() += 1;
    }
    let outputs = graph.interface().outputs.into_iter();
    Ok(OnnxSummary {
        operator_set: graph.model().operator_set,
        operators,
        input_format: graph.model().input_format,
        min_version: min_version.map(|version| version.to_string()),
        outputs: outputs.map(|output| output.name().to_owned()).collect(),
        parameters: graph.size().parameters,
        macs: graph.size().macs,
        licence: network.about.licence,
        training: network.about.training,
    })
}

/// Takes the fields of a message from what is `left`, and those of the messages
/// in its `lists`, and so on below them.
fn count(message: &[u8], lists: &[&[u32]], left: &mut usize) -> Result<(), Lc0Error> {
    container::fields(message, &mut |tag, content| {
        *left = left.saturating_sub(1);
        match lists {
            _ if *left == 0 => Ok(()),
            [here, below @ ..] if here.contains(&tag) => count(content, below, left),
            _ => Ok(()),
        }
    })
}

/// The names that a weights file gives.
fn interface(net: &Net) -> Interface {
    let format = net.format.and_then(|format| format.network_format);
    let format = format.unwrap_or_default().input();
    let names = net.onnx_model.clone().unwrap_or_default();
    let usual = Interface::of_lc0();
    Interface {
        planes: names.input_planes.unwrap_or(usual.planes),
        input_format: u32::try_from(format).unwrap_or_default(),
        policy: names.output_policy,
        wdl: names.output_wdl,
        value: names.output_value,
        moves_left: names.output_mlh,
        licence: net.license.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interop::onnx::schema::{NodeProto, StringStringEntryProto, TensorProto};
    use crate::interop::onnx::wrap::{POLICY, WDL};
    use crate::interop::onnx::write::{Function, encode};
    use crate::network::{Output, PLANES, Positions};
    use crate::nn::torch::ExportPrecision;
    use proptest::prelude::*;
    use tch::{Kind, Tensor};

    /// A tiny network with a bit of everything.
    fn tiny() -> ModelProto {
        tch::manual_seed(3);
        let options = (Kind::Float, tch::Device::Cpu);
        let weight = Tensor::randn([3, 64], options);
        let kernel = Tensor::randn([2, 112, 3, 3], options) * 0.01;
        let norm = Tensor::ones([64], options);
        let tensors = [&weight, &kernel, &norm].map(Tensor::shallow_clone);
        let names = ["weight", "kernel", "norm"].map(str::to_owned);
        let function = Function {
            inputs: vec![(PLANES, vec![112, 8, 8])],
            tensors: names.into_iter().zip(tensors).collect(),
            outputs: vec![POLICY, WDL],
            forward: &|given| {
                let planes = &given[0];
                let policy = planes.flatten(1, 3).narrow(1, 0, 1858);
                let seen = planes
                    .conv2d(&kernel, None::<Tensor>, 1, 1, 1, 1)
                    .mish()
                    .flatten(2, 3);
                let parts = seen.chunk(2, 1);
                let mixed = Tensor::cat(&[&parts[0] + &parts[1], seen], 1).mean_dim(
                    [1i64].as_slice(),
                    false,
                    None::<Kind>,
                );
                let wdl = mixed
                    .rms_norm([64], Some(&norm), 1e-6)
                    .linear(&weight, None::<&Tensor>)
                    .softmax(-1, None::<Kind>);
                vec![policy, wdl]
            },
        };
        function.model(ExportPrecision::F32).unwrap()
    }

    fn error(change: impl Fn(&mut ModelProto)) -> String {
        let mut model = tiny();
        change(&mut model);
        let error = read(&encode(&model).unwrap()).unwrap_err().to_string();
        assert!(!error.contains('\n'), "{error}");
        error
    }

    fn graph(model: &mut ModelProto) -> &mut crate::interop::onnx::schema::GraphProto {
        model.graph.as_mut().unwrap()
    }

    fn node<'a>(model: &'a mut ModelProto, operator: &str) -> &'a mut NodeProto {
        let mut nodes = graph(model).node.iter_mut();
        nodes.find(|node| node.op_type == operator).unwrap()
    }

    #[test]
    fn a_network_evaluates_in_batches_of_any_size() {
        let network = read(&encode(&tiny()).unwrap()).unwrap();
        let outputs = network.architecture.interface().outputs;
        assert_eq!(outputs, [Output::Policy, Output::Wdl]);
        // A convolution and a dense layer.
        assert_eq!(network.architecture.size().macs, 64 * 2 * 112 * 9 + 64 * 3);
        let planes = Tensor::rand([5, 112, 8, 8], (Kind::Float, tch::Device::Cpu));
        let all = network.forward(Positions::Planes(&[planes.shallow_clone()]));
        assert_eq!(all[1].size(), [5, 3]);
        for position in 0..5 {
            let one = network.forward(Positions::Planes(&[planes.narrow(0, position, 1)]));
            for (one, all) in one.iter().zip(&all) {
                let off = (one - all.narrow(0, position, 1)).abs().max();
                assert!(off.double_value(&[]) < 1e-5);
            }
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let message = error(|model| node(model, "Conv").op_type = "NonMaxSuppression".to_owned());
        assert!(
            message.contains("NonMaxSuppression") && message.contains("Conv_"),
            "{message}"
        );
        let message = error(|model| node(model, "MatMul").input[0] = "nowhere".to_owned());
        assert!(message.contains("nowhere"), "{message}");
        let message = error(|model| {
            let tensor = &mut graph(model).initializer[0];
            tensor.data_location = 1;
            tensor.external_data = vec![StringStringEntryProto {
                key: "location".to_owned(),
                value: "weights.bin".to_owned(),
            }];
        });
        assert!(message.contains("weights.bin"), "{message}");
        let value = "no output for the value (wdl or value), its outputs are";
        for (names, missing) in [
            (&[POLICY][..], value),
            (&["policy"], value),
            (
                &[WDL],
                "no output for the policy, its outputs are /output/wdl:",
            ),
            (
                &["value"],
                "no output for the policy, its outputs are value:",
            ),
            (
                &["a", "b"],
                "the policy and the value (wdl or value), its outputs are a, b:",
            ),
            (&[], "its outputs are none:"),
        ] {
            let message = error(|model| {
                let outputs = &mut graph(model).output;
                outputs.truncate(names.len());
                for (output, name) in outputs.iter_mut().zip(names) {
                    (*name).clone_into(&mut output.name);
                }
            });
            assert!(message.contains(missing), "{names:?}: {message}");
            assert!(
                message.contains("Lc0 calls them /output/policy"),
                "{message}"
            );
        }
        let message = error(|model| model.opset_import[0].version = 99);
        assert!(message.contains("99"), "{message}");
        let message = error(|model| {
            let twice = graph(model).node[0].clone();
            graph(model).node.push(twice);
        });
        assert!(message.contains("two nodes"), "{message}");
        let message = error(|model| model.graph = None);
        assert!(message.contains("no graph"), "{message}");
        let message = read(b"1. e4 e5").unwrap_err().to_string();
        assert!(message.contains("no ONNX file"), "{message}");
    }

    #[test]
    fn greed_is_refused_before_it_is_served() {
        // A sum that doubles forty times, and a tensor of a terabyte.
        let message = error(|model| {
            for step in 0..40 {
                let input = match step {
                    0 => PLANES.to_owned(),
                    step => format!("double{}", step - 1),
                };
                graph(model).node.insert(
                    step,
                    NodeProto {
                        input: vec![input.clone(), input],
                        output: vec![format!("double{step}")],
                        op_type: "Concat".to_owned(),
                        attribute: vec![crate::interop::onnx::builder::int("axis", 1)],
                        ..NodeProto::default()
                    },
                );
            }
        });
        assert!(message.contains("memory"), "{message}");
        let message = error(|model| {
            graph(model).initializer.push(TensorProto {
                dims: vec![3],
                data_type: 7,
                name: "sizes".to_owned(),
                int64_data: vec![1 << 20, 1 << 20, 1],
                ..TensorProto::default()
            });
            graph(model).node.insert(
                0,
                NodeProto {
                    input: vec!["norm".to_owned(), "sizes".to_owned()],
                    output: vec!["huge".to_owned()],
                    op_type: "Expand".to_owned(),
                    ..NodeProto::default()
                },
            );
        });
        assert!(message.contains("memory"), "{message}");
        let flood = [vec![0x3a, 0x80, 0x89, 0x7a], [0x0a, 0].repeat(1_000_000)].concat();
        assert!(matches!(
            read(&flood).unwrap_err(),
            OnnxError::TooManyFields
        ));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn damage_is_survived(
            cut in 0.0..1.0f64,
            flips in prop::collection::vec((0.0..1.0f64, 0..8u32), 0..4),
        ) {
            let mut file = encode(&tiny()).unwrap();
            for (place, bit) in flips {
                let place = (place * file.len() as f64) as usize;
                file[place] ^= 1 << bit;
            }
            // Half of the damage near the end, behind all tensors or before.
            if cut < 0.5 {
                file.truncate((cut * 2.0 * file.len() as f64) as usize);
            }
            if let Ok(network) = read(&file) {
                let planes = Tensor::zeros([1, 112, 8, 8], (Kind::Float, tch::Device::Cpu));
                prop_assert_eq!(network.forward(Positions::Planes(&[planes])).len(), 2);
            }
        }

        #[test]
        fn no_file_is_too_odd_to_refuse(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(read(&bytes).is_err());
        }

        #[test]
        fn lengths_that_reach_beyond_the_file_are_refused(length in any::<u64>()) {
            let mut file = vec![0x3a];
            prost::encoding::encode_varint(length.max(1), &mut file);
            prop_assert!(read(&file).is_err());
        }
    }
}
