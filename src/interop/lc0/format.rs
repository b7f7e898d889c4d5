//! What a file says of its network in numbers, what older files leave unsaid,
//! and where heads stand in files with one of each kind.

use super::Lc0Error;
use super::layer::Lc0Encoding;
use super::schema::{
    self, ActivationFunction, DefaultActivation, Encoding, EngineVersion, Format, InputEmbedding,
    MovesLeft, Net, NetworkFormat, Output, Policy, Structure, Value, Weights,
};
use crate::network::Activation;
use crate::network::lc0::{
    AttentionBody, Lc0Config, PolicyHead, PolicyHeadConfig, SquareEmbedding, ValueHead,
};

/// Input formats that Lc0 has, by its numbers.
const INPUT_FORMATS: [i32; 7] = [1, 2, 3, 4, 5, 132, 133];

/// What a network is, as far as its format says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub input_format: u32,
    pub attention_body: bool,
    pub policy: Policy,
    pub wdl: bool,
    pub moves_left: bool,
    pub activation: Activation,
    pub smolgen_activation: Activation,
    pub feed_forward_activation: Activation,
    pub embedding: InputEmbedding,
}

impl Kind {
    /// What the format of a file says, completed for older files as Lc0 does.
    ///
    /// # Errors
    /// [`Lc0Error::Onnx`] and [`Lc0Error::Unsupported`].
    pub fn of(net: &Net, weights: &Weights) -> Result<Kind, Lc0Error> {
        check_encoding(net)?;
        let format = net.format.and_then(|format| format.network_format);
        let mut format = format.unwrap_or(NetworkFormat {
            input: Some(1),
            network: Some(Structure::Classical as i32),
            ..NetworkFormat::default()
        });
        let structure = format.network.unwrap_or_default();
        let mut structure = Structure::try_from(structure)
            .map_err(|_| unsupported("network structure", structure))?;
        match structure {
            Structure::Onnx => return Err(Lc0Error::Onnx),
            Structure::Unknown => return Err(unsupported("network structure", 0)),
            Structure::Classical | Structure::Se => {
                format.set_policy(Policy::Classical);
                format.set_value(Value::Classical);
            }
            Structure::SeWithHeads if !weights.encoder.is_empty() => {
                structure = Structure::AttentionBody;
                if weights.smolgen_w.is_some() {
                    format.set_ffn_activation(ActivationFunction::Relu2);
                    format.set_smolgen_activation(ActivationFunction::Swish);
                }
            }
            _ => {}
        }
        let attention_body = matches!(
            structure,
            Structure::AttentionBody
                | Structure::AttentionBodyManyHeads
                | Structure::AttentionBodyManyHeadsLegacy
        );
        if structure == Structure::AttentionBody {
            if weights.policy_heads.is_some() && weights.value_heads.is_some() {
                format.set_input_embedding(InputEmbedding::PeDense);
            } else if format.input_embedding.is_none() {
                format.set_input_embedding(InputEmbedding::PeMap);
            }
        }
        let input = format.input.unwrap_or_default();
        if !INPUT_FORMATS.contains(&input) {
            return Err(unsupported("input format", input));
        }
        let _: Output = known("output format", format.output)?;
        let policy = known("policy format", format.policy)?;
        if policy == Policy::Unknown {
            return Err(unsupported("policy format", 0));
        }
        let wdl = match known("value format", format.value)? {
            Value::Wdl => true,
            Value::Classical => false,
            other => return Err(unsupported("value format", other as i32)),
        };
        let activation = match known("default activation", format.default_activation)? {
            DefaultActivation::Relu => Activation::Relu,
            DefaultActivation::Mish => Activation::Mish,
        };
        let moves_left: MovesLeft = known("moves left format", format.moves_left)?;
        let special = |what, number| -> Result<Activation, Lc0Error> {
            Ok(activation_of(known(what, number)?)?.unwrap_or(activation))
        };
        Ok(Kind {
            input_format: input.unsigned_abs(),
            attention_body,
            policy,
            wdl,
            moves_left: moves_left == MovesLeft::V1,
            activation,
            smolgen_activation: special("smolgen activation", format.smolgen_activation)?,
            feed_forward_activation: special("feed-forward activation", format.ffn_activation)?,
            embedding: known("input embedding", format.input_embedding)?,
        })
    }
}

/// Refuses unknown encodings of the weights. Since Lc0 0.33 each layer states its own; before,
/// the file did, and Lc0 read LINEAR16 only.
fn check_encoding(net: &Net) -> Result<(), Lc0Error> {
    let asked = net.min_version.unwrap_or_default();
    let encoding = net.format.and_then(|format| format.weights_encoding);
    match encoding.filter(|&encoding| encoding != Encoding::Linear16 as i32) {
        Some(other) if asked.is_known_to((0, 32)) => Err(unsupported("weights encoding", other)),
        _ => Ok(()),
    }
}

/// An enumeration's value; fields that a file lacks are 0.
fn known<T: TryFrom<i32>>(what: &str, number: Option<i32>) -> Result<T, Lc0Error> {
    let number = number.unwrap_or_default();
    T::try_from(number).map_err(|_| unsupported(what, number))
}

fn unsupported(what: &str, number: i32) -> Lc0Error {
    Lc0Error::Unsupported(format!("{what} {number}"))
}

fn activation_of(function: ActivationFunction) -> Result<Option<Activation>, Lc0Error> {
    Ok(Some(match function {
        ActivationFunction::Default => return Ok(None),
        ActivationFunction::Mish => Activation::Mish,
        ActivationFunction::Relu => Activation::Relu,
        ActivationFunction::None => Activation::None,
        ActivationFunction::Tanh => Activation::Tanh,
        ActivationFunction::Sigmoid => Activation::Sigmoid,
        ActivationFunction::Selu => Activation::Selu,
        ActivationFunction::Swish => Activation::Swish,
        ActivationFunction::Relu2 => Activation::Relu2,
        ActivationFunction::Softmax => {
            return Err(Lc0Error::Unsupported("softmax as an activation".to_owned()));
        }
    }))
}

fn function_of(activation: Activation) -> Result<ActivationFunction, Lc0Error> {
    Ok(match activation {
        Activation::Mish => ActivationFunction::Mish,
        Activation::Relu => ActivationFunction::Relu,
        Activation::None => ActivationFunction::None,
        Activation::Tanh => ActivationFunction::Tanh,
        Activation::Sigmoid => ActivationFunction::Sigmoid,
        Activation::Selu => ActivationFunction::Selu,
        Activation::Swish => ActivationFunction::Swish,
        Activation::Relu2 => ActivationFunction::Relu2,
        Activation::Gelu => return Err(Lc0Error::Inexpressible("GELU".to_owned())),
    })
}

/// Whether older Lc0 reads the heads of such a network, too: one policy and one
/// value, neither with anything besides.
fn has_single_heads(config: &Lc0Config) -> bool {
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

/// What a file says of a network that `config` describes, and the oldest Lc0
/// that can read it.
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
        (Some(_), _) if single => Structure::AttentionBody,
        (Some(_), _) => Structure::AttentionBodyManyHeads,
        (None, Some(tower)) if tower.squeeze.is_some() => Structure::SeWithHeads,
        (None, _) => Structure::ClassicalWithHeads,
    };
    let policy = match config.policy.heads.values().next() {
        Some(PolicyHeadConfig::Classical { .. }) => Policy::Classical,
        Some(PolicyHeadConfig::Convolutional { .. }) => Policy::Convolution,
        Some(PolicyHeadConfig::Attention { .. }) => Policy::Attention,
        None => Policy::Unknown,
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
        output: Some(if wdl { Output::Wdl } else { Output::Classical } as i32),
        network: Some(structure as i32),
        policy: Some(policy as i32),
        value: Some(if wdl { Value::Wdl } else { Value::Classical } as i32),
        moves_left: config.moves_left.map(|_| MovesLeft::V1 as i32),
        default_activation: Some(default as i32),
        smolgen_activation: function(|body| body.smolgen_activation)?,
        ffn_activation: function(|body| body.feed_forward_activation)?,
        input_embedding: embedding.map(|embedding| embedding as i32),
    };
    // When each of these came to Lc0.
    let minor = [
        (true, 21),
        (config.input_format == 3, 25),
        (matches!(config.input_format, 4 | 132), 26),
        (matches!(config.input_format, 5 | 133), 27),
        (default == DefaultActivation::Mish, 29),
        (body.is_some() || policy == Policy::Attention, 30),
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

/// Moves the heads of a file with one policy and one value to where files with
/// many have them.
pub(super) fn gather_heads(weights: &mut Weights, policy: Policy) {
    if weights.policy_heads.is_none() {
        weights.policy_heads.get_or_insert_default().vanilla = Some(schema::PolicyHead {
            ip2_pol_w: weights.ip2_pol_w.take(),
            ip2_pol_b: weights.ip2_pol_b.take(),
            ip3_pol_w: weights.ip3_pol_w.take(),
            ip3_pol_b: weights.ip3_pol_b.take(),
            ip4_pol_w: weights.ip4_pol_w.take(),
            pol_encoder: std::mem::take(&mut weights.pol_encoder),
            pol_headcount: weights.pol_headcount.take(),
            policy1: weights.policy1.take(),
            policy: weights.policy.take(),
            ..Default::default()
        });
    }
    if weights.value_heads.is_none() {
        weights.value_heads.get_or_insert_default().winner = Some(schema::ValueHead {
            ip_val_w: weights.ip_val_w.take(),
            ip_val_b: weights.ip_val_b.take(),
            ip1_val_w: weights.ip1_val_w.take(),
            ip1_val_b: weights.ip1_val_b.take(),
            ip2_val_w: weights.ip2_val_w.take(),
            ip2_val_b: weights.ip2_val_b.take(),
            value: weights.value.take(),
            ..Default::default()
        });
    }
    let heads = weights.policy_heads.get_or_insert_default();
    heads.ip_pol_w = heads.ip_pol_w.take().or(weights.ip_pol_w.take());
    heads.ip_pol_b = heads.ip_pol_b.take().or(weights.ip_pol_b.take());
    let all = [
        &mut heads.vanilla,
        &mut heads.optimistic_st,
        &mut heads.soft,
        &mut heads.opponent,
    ];
    let mut present: Vec<_> = all.into_iter().flatten().collect();
    // The last layer of a classical policy shares a field with the embedding of
    // policies by attention.
    if policy == Policy::Classical {
        for head in present {
            head.ip_pol_w = head.ip_pol_w.take().or(heads.ip_pol_w.clone());
            head.ip_pol_b = head.ip_pol_b.take().or(heads.ip_pol_b.clone());
        }
        heads.ip_pol_w = None;
        heads.ip_pol_b = None;
    } else if let ([head], None) = (&mut present[..], &heads.ip_pol_w) {
        heads.ip_pol_w = head.ip_pol_w.take();
        heads.ip_pol_b = head.ip_pol_b.take();
    } else if present.iter().all(|head| head.ip_pol_w.is_some()) {
        heads.ip_pol_w = None;
        heads.ip_pol_b = None;
    }
}

/// The way back, where there is one of each kind.
pub(super) fn spread_heads(config: &Lc0Config, weights: &mut Weights) {
    if !has_single_heads(config) {
        return;
    }
    if let Some(heads) = weights.policy_heads.take() {
        let head = heads.vanilla.unwrap_or_default();
        weights.ip_pol_w = heads.ip_pol_w.or(head.ip_pol_w);
        weights.ip_pol_b = heads.ip_pol_b.or(head.ip_pol_b);
        weights.ip2_pol_w = head.ip2_pol_w;
        weights.ip2_pol_b = head.ip2_pol_b;
        weights.ip3_pol_w = head.ip3_pol_w;
        weights.ip3_pol_b = head.ip3_pol_b;
        weights.ip4_pol_w = head.ip4_pol_w;
        weights.pol_encoder = head.pol_encoder;
        weights.pol_headcount = head.pol_headcount;
        weights.policy1 = head.policy1;
        weights.policy = head.policy;
    }
    if let Some(heads) = weights.value_heads.take() {
        let head = heads.winner.unwrap_or_default();
        weights.ip_val_w = head.ip_val_w;
        weights.ip_val_b = head.ip_val_b;
        weights.ip1_val_w = head.ip1_val_w;
        weights.ip1_val_b = head.ip1_val_b;
        weights.ip2_val_w = head.ip2_val_w;
        weights.ip2_val_b = head.ip2_val_b;
        weights.value = head.value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_format_says_is_heeded() {
        let of = |minor, weights_encoding: Encoding, output| {
            let format = NetworkFormat {
                input: Some(1),
                output,
                network: Some(Structure::SeWithHeads as i32),
                policy: Some(Policy::Convolution as i32),
                value: Some(Value::Wdl as i32),
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
            Kind::of(&net, &Weights::default())
        };
        let wdl = Some(Output::Wdl as i32);
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
