//! The enumerations that describe a file's network, with defaults for older files.

use super::Lc0Error;
use super::layer::Lc0Encoding;
use super::schema::{
    ActivationFunction, DefaultActivation, Encoding, EngineVersion, Format, InputEmbedding,
    MovesLeftFormat, Net, NetworkFormat, NetworkStructure, OutputFormat, PolicyFormat, ValueFormat,
};
use super::sizes::Sizes;
use super::tensors::Tensors;
use crate::network::Activation;
use crate::network::lc0::{
    AttentionBody, Lc0Config, PolicyHead, PolicyHeadConfig, SquareEmbedding, ValueHead,
};

/// Lc0's input formats, by number.
const INPUT_FORMATS: [i32; 7] = [1, 2, 3, 4, 5, 132, 133];

/// The network that a file's format describes.
#[derive(Clone, Copy, Debug)]
pub(in crate::interop) struct Kind {
    pub input_format: u32,
    pub attention_body: bool,
    pub policy: PolicyFormat,
    pub wdl: bool,
    pub moves_left: bool,
    pub activation: Activation,
    pub smolgen_activation: Activation,
    pub feed_forward_activation: Activation,
    pub embedding: InputEmbedding,
}

impl Kind {
    /// Returns a file's format, with the same defaults for older files as in Lc0.
    ///
    /// # Errors
    /// [`Lc0Error::Onnx`] and [`Lc0Error::Unsupported`].
    pub(super) fn of(net: &Net, tensors: &Tensors) -> Result<Kind, Lc0Error> {
        check_encoding(net)?;
        let format = net.format.and_then(|format| format.network_format);
        let mut format = format.unwrap_or(NetworkFormat {
            input: Some(1),
            network: Some(NetworkStructure::Classical as i32),
            ..NetworkFormat::default()
        });
        let structure = format.network.unwrap_or_default();
        let mut structure = NetworkStructure::try_from(structure)
            .map_err(|_| unsupported("network structure", structure))?;
        match structure {
            NetworkStructure::Onnx => return Err(Lc0Error::Onnx),
            NetworkStructure::Unknown => return Err(unsupported("network structure", 0)),
            NetworkStructure::Classical | NetworkStructure::Se => {
                format.set_policy(PolicyFormat::Classical);
                format.set_value(ValueFormat::Classical);
            }
            NetworkStructure::SeWithHeads if tensors.number("encoder") > 0 => {
                structure = NetworkStructure::AttentionBody;
                if tensors.count("smolgen.weight") > 0 {
                    format.set_ffn_activation(ActivationFunction::Relu2);
                    format.set_smolgen_activation(ActivationFunction::Swish);
                }
            }
            _ => {}
        }
        let attention_body = matches!(
            structure,
            NetworkStructure::AttentionBody
                | NetworkStructure::AttentionBodyManyHeads
                | NetworkStructure::AttentionBodyManyHeadsLegacy
        );
        if structure == NetworkStructure::AttentionBody {
            if tensors.has_any("policy.") && tensors.has_any("value.") {
                format.set_input_embedding(InputEmbedding::PeDense);
            } else if format.input_embedding.is_none() {
                format.set_input_embedding(InputEmbedding::PeMap);
            }
        }
        let input = format.input.unwrap_or_default();
        if !INPUT_FORMATS.contains(&input) {
            return Err(unsupported("input format", input));
        }
        let _: OutputFormat = known("output format", format.output)?;
        let policy = known("policy format", format.policy)?;
        if policy == PolicyFormat::Unknown {
            return Err(unsupported("policy format", 0));
        }
        let wdl = match known("value format", format.value)? {
            ValueFormat::Wdl => true,
            ValueFormat::Classical => false,
            other => return Err(unsupported("value format", other as i32)),
        };
        let activation = match known("default activation", format.default_activation)? {
            DefaultActivation::Relu => Activation::Relu,
            DefaultActivation::Mish => Activation::Mish,
        };
        let moves_left: MovesLeftFormat = known("moves left format", format.moves_left)?;
        let special = |what, number| -> Result<Activation, Lc0Error> {
            Ok(activation_of(known(what, number)?)?.unwrap_or(activation))
        };
        Ok(Kind {
            input_format: input.unsigned_abs(),
            attention_body,
            policy,
            wdl,
            moves_left: moves_left == MovesLeftFormat::V1,
            activation,
            smolgen_activation: special("smolgen activation", format.smolgen_activation)?,
            feed_forward_activation: special("feed-forward activation", format.ffn_activation)?,
            embedding: known("input embedding", format.input_embedding)?,
        })
    }
}

/// Rejects unknown encodings of the weights. Since Lc0 0.33, each layer states its own encoding.
/// Before, the file stated one encoding for all layers, and Lc0 read only LINEAR16.
fn check_encoding(net: &Net) -> Result<(), Lc0Error> {
    let asked = net.min_version.unwrap_or_default();
    let encoding = net.format.and_then(|format| format.weights_encoding);
    match encoding.filter(|&encoding| encoding != Encoding::Linear16 as i32) {
        Some(other) if asked.is_known_to((0, 32)) => Err(unsupported("weights encoding", other)),
        _ => Ok(()),
    }
}

/// Returns the enumeration's variant with this number; a missing field counts as 0.
fn known<T: TryFrom<i32>>(what: &str, number: Option<i32>) -> Result<T, Lc0Error> {
    let number = number.unwrap_or_default();
    T::try_from(number).map_err(|_| unsupported(what, number))
}

fn unsupported(what: &str, number: i32) -> Lc0Error {
    Lc0Error::Unsupported(format!("{what} {number}"))
}

/// Activations by their numbers in Lc0, except for the default.
const ACTIVATIONS: [(ActivationFunction, Activation); 8] = [
    (ActivationFunction::Mish, Activation::Mish),
    (ActivationFunction::Relu, Activation::Relu),
    (ActivationFunction::None, Activation::None),
    (ActivationFunction::Tanh, Activation::Tanh),
    (ActivationFunction::Sigmoid, Activation::Sigmoid),
    (ActivationFunction::Selu, Activation::Selu),
    (ActivationFunction::Swish, Activation::Swish),
    (ActivationFunction::Relu2, Activation::Relu2),
];

fn activation_of(function: ActivationFunction) -> Result<Option<Activation>, Lc0Error> {
    let mut known = ACTIVATIONS.iter();
    match known.find(|(theirs, _)| *theirs == function) {
        None if function == ActivationFunction::Softmax => {
            Err(Lc0Error::Unsupported("softmax as an activation".to_owned()))
        }
        found => Ok(found.map(|(_, ours)| *ours)),
    }
}

fn function_of(activation: Activation) -> Result<ActivationFunction, Lc0Error> {
    let mut known = ACTIVATIONS.iter();
    let found = known.find(|(_, ours)| *ours == activation);
    let found = found.map(|(theirs, _)| *theirs);
    found.ok_or_else(|| Lc0Error::Inexpressible("GELU".to_owned()))
}

/// Returns whether older versions of Lc0 can also read the heads of a network, that is, whether it
/// has one policy head and one value head without optional parts.
pub(super) fn has_single_heads(config: &Lc0Config) -> bool {
    let mut policies = config.policy.heads.keys();
    let mut values = config.value.iter();
    matches!(
        (policies.next(), policies.next()),
        (Some(PolicyHead::Vanilla), None)
    ) && matches!(
        (values.next(), values.next()),
        (Some((ValueHead::Winner, head)), None) if !head.error && head.buckets.is_none()
    )
}

/// Returns the file's description of a network with this `config`, and the oldest Lc0 that can read
/// it.
pub(super) fn format_of(
    config: &Lc0Config,
    encoding: Lc0Encoding,
) -> Result<(Format, EngineVersion), Lc0Error> {
    let default = match config.activation {
        Activation::Relu => DefaultActivation::Relu,
        Activation::Mish => DefaultActivation::Mish,
        other => {
            let what = format!("{other:?} as the default activation");
            return Err(Lc0Error::Inexpressible(what));
        }
    };
    let single = has_single_heads(config);
    let structure = match (&config.attention, &config.tower) {
        (Some(_), _) if single => NetworkStructure::AttentionBody,
        (Some(_), _) => NetworkStructure::AttentionBodyManyHeads,
        (None, Some(tower)) if tower.squeeze.is_some() => NetworkStructure::SeWithHeads,
        (None, _) => NetworkStructure::ClassicalWithHeads,
    };
    let policy = match config.policy.heads.values().next() {
        Some(PolicyHeadConfig::Classical { .. }) => PolicyFormat::Classical,
        Some(PolicyHeadConfig::Convolutional { .. }) => PolicyFormat::Convolution,
        Some(PolicyHeadConfig::Attention { .. }) => PolicyFormat::Attention,
        None => PolicyFormat::Unknown,
    };
    let wdl = config
        .value
        .get(&ValueHead::Winner)
        .is_none_or(|head| head.wdl);
    let body = config.attention.as_ref();
    let embedding = body.map(|body| match body.embedding {
        SquareEmbedding::Tower | SquareEmbedding::Map => InputEmbedding::PeMap,
        SquareEmbedding::Dense { .. } => InputEmbedding::PeDense,
    });
    let function = |activation: fn(&AttentionBody) -> Activation| {
        let function = body.map(|body| function_of(activation(body)));
        Ok::<_, Lc0Error>(function.transpose()?.map(|function| function as i32))
    };
    let format = NetworkFormat {
        input: Some(config.input_format as i32),
        output: Some(if wdl {
            OutputFormat::Wdl
        } else {
            OutputFormat::Classical
        } as i32),
        network: Some(structure as i32),
        policy: Some(policy as i32),
        value: Some(if wdl {
            ValueFormat::Wdl
        } else {
            ValueFormat::Classical
        } as i32),
        moves_left: config.moves_left.map(|_| MovesLeftFormat::V1 as i32),
        default_activation: Some(default as i32),
        smolgen_activation: function(|body| body.smolgen_activation)?,
        ffn_activation: function(|body| body.feed_forward_activation)?,
        input_embedding: embedding.map(|embedding| embedding as i32),
    };
    // The minor version of Lc0 that introduced each feature.
    let minor = [
        (true, 21),
        (config.input_format == 3, 25),
        (matches!(config.input_format, 4 | 132), 26),
        (matches!(config.input_format, 5 | 133), 27),
        (default == DefaultActivation::Mish, 29),
        (body.is_some() || policy == PolicyFormat::Attention, 30),
        (!single, 31),
        (encoding != Lc0Encoding::Linear16, 33),
    ];
    let needed = minor.iter().filter(|(is_used, _)| *is_used);
    let format = Format {
        weights_encoding: Some(Encoding::Linear16 as i32),
        network_format: Some(format),
    };
    let version = EngineVersion {
        major: Some(0),
        minor: needed.map(|&(_, minor)| minor).max(),
        patch: Some(0),
    };
    Ok((format, version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_stated_format() {
        let of = |minor, weights_encoding: Encoding, output| {
            let format = NetworkFormat {
                input: Some(1),
                output,
                network: Some(NetworkStructure::SeWithHeads as i32),
                policy: Some(PolicyFormat::Convolution as i32),
                value: Some(ValueFormat::Wdl as i32),
                ..NetworkFormat::default()
            };
            let net = Net {
                min_version: Some(EngineVersion {
                    major: Some(0),
                    minor: Some(minor),
                    patch: Some(0),
                }),
                format: Some(Format {
                    weights_encoding: Some(weights_encoding as i32),
                    network_format: Some(format),
                }),
                ..Net::default()
            };
            Kind::of(&net, &Tensors::default())
        };
        let wdl = Some(OutputFormat::Wdl as i32);
        of(21, Encoding::Linear16, wdl).unwrap();
        of(33, Encoding::Float16, wdl).unwrap();
        let refused = [
            (of(30, Encoding::Float16, wdl), "weights encoding 2"),
            (of(30, Encoding::Linear16, Some(7)), "output format 7"),
        ];
        for (kind, reason) in refused {
            let error = kind.unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
