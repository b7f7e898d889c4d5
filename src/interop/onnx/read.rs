//! Reads ONNX network files.

use super::schema::ModelProto;
use super::{OnnxError, leela2onnx};
use crate::encode::InputFormat;
use crate::interop::lc0::schema::{EngineVersion, Net};
use crate::interop::lc0::summary::licence;
use crate::interop::lc0::{Lc0Error, Lc0Summary, container};
use crate::network::{About, Architecture, Lc0, Network};
use prost::Message;

/// Maximum number of message fields in a file. Known networks have about ten thousand fields. The
/// limit is necessary because a field of two bytes takes a hundred bytes in memory.
const MOST_FIELDS: usize = 1_000_000;
/// Numbers of the fields whose messages contain lists: the graph of a model; the nodes, tensors,
/// inputs and outputs of the graph; and the attributes of nodes.
const LISTS: [&[u32]; 3] = [&[7], &[1, 5, 11, 12], &[5]];

/// Reads a network of Lc0's family from an ONNX file written by Lc0's `leela2onnx`, or from an Lc0
/// weights file that contains such a model.
///
/// # Errors
/// [`OnnxError`] if the file is of a different kind or damaged.
pub fn read(file: &[u8]) -> Result<Network, OnnxError> {
    let (network, _) = open(file, container::open_known)?;
    Ok(Network {
        architecture: network.architecture,
        weights: network.weights,
        about: network.about,
    })
}

/// Describes the network of Lc0's family in an ONNX file.
///
/// # Errors
/// [`OnnxError`], as for [`read`].
pub fn summary(file: &[u8]) -> Result<Lc0Summary, OnnxError> {
    let (network, min_version) = open(file, container::open)?;
    Ok(Lc0Summary {
        model: network.architecture.config.clone(),
        size: network.architecture.size(),
        min_version: min_version.map(|version| version.to_string()),
        licence: network.about.licence,
        training: network.about.training,
    })
}

/// Returns the network in a file. If it is inside an Lc0 file, also returns the oldest Lc0 that can
/// read that file.
fn open(
    file: &[u8],
    open: fn(&[u8]) -> Result<Net, Lc0Error>,
) -> Result<(Network<Lc0>, Option<EngineVersion>), OnnxError> {
    if !container::is_weights_file(file) {
        let format = InputFormat::Classical;
        return Ok((network(file, format, "unknown".to_owned())?, None));
    }
    let net = open(file)?;
    let format = net.format.and_then(|format| format.network_format);
    let format = u32::try_from(format.unwrap_or_default().input()).ok();
    let format = format.and_then(InputFormat::from_number);
    let format = format.filter(|format| *format != InputFormat::Maia3);
    let held = net.onnx_model.as_ref();
    let held = held.and_then(|held| held.model.as_ref());
    let held = held.ok_or(OnnxError::NoModel)?;
    let network = network(held, format.ok_or(OnnxError::InputFormat)?, licence(&net))?;
    Ok((network, net.min_version))
}

fn network(bytes: &[u8], format: InputFormat, licence: String) -> Result<Network<Lc0>, OnnxError> {
    let mut left = MOST_FIELDS;
    // An error here is ignored, because truncated messages also fail to decode below.
    let counted = count(bytes, &LISTS, &mut left);
    if left == 0 && counted.is_ok() {
        return Err(OnnxError::TooManyFields);
    }
    let model = ModelProto::decode(bytes)?;
    let graph = model.graph.as_ref().ok_or(OnnxError::NoModel)?;
    if model.producer_name == env!("CARGO_PKG_NAME") {
        return Err(OnnxError::Own);
    }
    let (architecture, weights) = leela2onnx::convert(graph, format.number())?;
    let training = serde_json::json!({ "format": "ONNX", "producer": model.producer_name });
    Ok(Network {
        architecture: Box::new(architecture),
        weights,
        about: About::imported(training, licence),
    })
}

/// Subtracts the number of fields of a message from `left` and, recursively, the numbers of fields
/// of the messages in its `lists`.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interop::onnx::schema::{GraphProto, NodeProto, TensorProto};
    use crate::interop::onnx::write::encode;
    use crate::network::Positions;
    use proptest::prelude::*;
    use tch::{Device, Kind, Tensor};

    /// A tower that contains each kind of part, written by Lc0's converter.
    const TOWER: &[u8] = include_bytes!("../../../tests/fuzz/corpus/onnx/tower.onnx");

    fn tower() -> ModelProto {
        ModelProto::decode(TOWER).unwrap()
    }

    /// Returns the error for the tower after this change.
    fn error(change: impl Fn(&mut GraphProto)) -> String {
        let mut model = tower();
        change(model.graph.as_mut().unwrap());
        let error = read(&encode(&model).unwrap()).unwrap_err().to_string();
        assert!(!error.contains('\n'), "{error}");
        error
    }

    fn node<'a>(graph: &'a mut GraphProto, name: &str) -> &'a mut NodeProto {
        let mut nodes = graph.node.iter_mut();
        nodes.find(|node| node.output[0] == name).unwrap()
    }

    fn tensor<'a>(graph: &'a mut GraphProto, name: &str) -> &'a mut TensorProto {
        let mut tensors = graph.initializer.iter_mut();
        tensors.find(|tensor| tensor.name == name).unwrap()
    }

    #[test]
    fn a_tower_of_the_converter_is_one_of_lc0s() {
        let network = read(TOWER).unwrap();
        assert!(network.downcast::<Lc0>().is_some());
        let planes = Tensor::zeros([2, 112, 8, 8], (Kind::Float, Device::Cpu));
        let outputs = network.forward(Positions::Planes(&[planes]));
        assert_eq!(outputs[0].size(), [2, 1858]);
        let summary = summary(TOWER).unwrap();
        assert_eq!(summary.model.tower.unwrap().blocks, 1);
        assert_eq!(summary.min_version, None);
    }

    #[test]
    fn what_lc0_would_compute_otherwise_is_refused() {
        type Change<'a> = &'a dyn Fn(&mut GraphProto);
        let cases: [(Change, &str); 9] = [
            (
                &|graph| tensor(graph, "/const/mapping_table").raw_data[0] ^= 1,
                "its tensor /const/mapping_table holds other numbers",
            ),
            (
                &|graph| tensor(graph, "/value/dense2/matmul/w").name.push('2'),
                "it has no tensor /value/dense2/matmul/w",
            ),
            (
                &|graph| {
                    let mut another = tensor(graph, "/value/dense2/add/w").clone();
                    another.name = "/value/dense3/add/w".to_owned();
                    graph.initializer.push(another);
                },
                "its tensor /value/dense3/add/w has no place",
            ),
            (
                &|graph| tensor(graph, "/block0/conv2/se/matmul1/w").dims.reverse(),
                "its tensor /block0/conv2/se/matmul1/w has the shape",
            ),
            (
                &|graph| node(graph, "/block0/conv1/relu").op_type = "LeakyRelu".to_owned(),
                "its node /block0/conv1/relu is LeakyRelu",
            ),
            (
                &|graph| node(graph, "/value/dense1/relu").output[0] = "/value/dense1/mish".into(),
                "its node /value/dense1/mish is Relu",
            ),
            (
                &|graph| {
                    graph
                        .node
                        .retain(|node| node.output[0] != "/mlh/dense1/relu")
                },
                "the activation at /mlh/dense1 differs",
            ),
            (
                &|graph| node(graph, "/output/value").op_type = "Sigmoid".to_owned(),
                "its output /output/value is not an Lc0 output",
            ),
            (&|graph| drop(graph.output.pop()), "it lacks an output"),
        ];
        for (change, reason) in cases {
            let message = error(change);
            let start = "not ONNX as written by Lc0's leela2onnx, which alone is supported: ";
            assert!(message.starts_with(start), "{message}");
            assert!(message.contains(reason), "{message}");
        }
    }

    #[test]
    fn what_is_no_such_file_is_named() {
        let message = error(|graph| tensor(graph, "/inputconv/w/bias").data_location = 1);
        assert!(message.contains("another file"), "{message}");
        let own = ModelProto {
            producer_name: "tessera".to_owned(),
            ..tower()
        };
        let message = read(&encode(&own).unwrap()).unwrap_err().to_string();
        assert!(message.contains("the network file (.pt) that"), "{message}");
        let none = ModelProto {
            graph: None,
            ..tower()
        };
        let message = read(&encode(&none).unwrap()).unwrap_err().to_string();
        assert!(message.contains("no graph"), "{message}");
        let message = read(b"1. e4 e5").unwrap_err().to_string();
        assert!(message.contains("not an ONNX file"), "{message}");
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
            let mut file = TOWER.to_vec();
            for (place, bit) in flips {
                let place = (place * file.len() as f64) as usize;
                file[place] ^= 1 << bit;
            }
            // In half of the cases, damage the end of the file, which follows all tensors.
            if cut < 0.5 {
                file.truncate((cut * 2.0 * file.len() as f64) as usize);
            }
            if let Ok(network) = read(&file) {
                let planes = Tensor::zeros([1, 112, 8, 8], (Kind::Float, Device::Cpu));
                prop_assert!(network.forward(Positions::Planes(&[planes])).len() > 2);
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
