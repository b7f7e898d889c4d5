//! The sizes of a network, read off its tensors: a file states none of them.

use super::Lc0Error;
use super::fields::{policy_head, value_head};
use super::format::Kind;
use super::schema::{self, ConvBlock, EncoderLayer, InputEmbedding, Layer, Policy, Weights};
use crate::network::lc0::{
    AttentionBody, EncoderConfig, Lc0Config, MovesLeftConfig, PolicyConfig, PolicyHead,
    PolicyHeadConfig, SmolgenConfig, SquareEmbedding, Tower, ValueHead, ValueHeadConfig,
};
use std::collections::BTreeMap;

/// What a file's network is; its heads stand where files with many have them.
///
/// Sizes come from the tensors that have nothing but them, biases mostly. That
/// the other tensors fit is for their reader to find out.
///
/// # Errors
/// [`Lc0Error`] naming what is missing, or unknown to us.
pub(super) fn infer(kind: &Kind, weights: &mut Weights) -> Result<Lc0Config, Lc0Error> {
    let tower = tower(weights)?;
    let attention = match kind.attention_body {
        true => Some(attention_body(kind, tower.as_ref(), weights)?),
        false => None,
    };
    if tower.is_none() && attention.is_none() {
        return Err(Lc0Error::Missing("body".to_owned()));
    }
    let policy = policies(kind, weights)?;
    let value = values(kind, weights)?;
    let moves_left = match kind.moves_left {
        true => Some(moves_left(kind, weights)?),
        false => None,
    };
    let config = Lc0Config {
        input_format: kind.input_format,
        activation: kind.activation,
        tower,
        attention,
        policy,
        value,
        moves_left,
    };
    config.check()?;
    Ok(config)
}

/// How many numbers a tensor holds; 0 if there is none.
fn count(layer: &Option<Layer>) -> i64 {
    layer.as_ref().map_or(0, Layer::count)
}

/// The same of a tensor that must be there.
fn needed(name: &str, layer: &Option<Layer>) -> Result<i64, Lc0Error> {
    match count(layer) {
        0 => Err(Lc0Error::Missing(name.to_owned())),
        count => Ok(count),
    }
}

/// Channels that a convolution makes.
fn channels(name: &str, block: &Option<ConvBlock>) -> Result<i64, Lc0Error> {
    let block = block.as_ref();
    let of = |layer: fn(&ConvBlock) -> &Option<Layer>| block.map_or(0, |b| count(layer(b)));
    match of(|block| &block.biases).max(of(|block| &block.bn_means)) {
        0 => Err(Lc0Error::Missing(name.to_owned())),
        channels => Ok(channels),
    }
}

fn tower(weights: &Weights) -> Result<Option<Tower>, Lc0Error> {
    let Some(first) = weights.residual.first() else {
        return Ok(None);
    };
    let has_squeeze = first.se.is_some();
    if weights
        .residual
        .iter()
        .any(|block| block.se.is_some() != has_squeeze)
    {
        let what = "squeeze-and-excitation units in some blocks only";
        return Err(Lc0Error::Unsupported(what.to_owned()));
    }
    let squeeze = match &first.se {
        Some(unit) => Some(needed("body.0.squeeze.bias", &unit.b1)?),
        None => None,
    };
    Ok(Some(Tower {
        blocks: weights.residual.len() as i64,
        filters: channels("input", &weights.input)?,
        squeeze,
    }))
}

fn attention_body(
    kind: &Kind,
    tower: Option<&Tower>,
    weights: &Weights,
) -> Result<AttentionBody, Lc0Error> {
    let width = needed("embedding.project.bias", &weights.ip_emb_b)?;
    let embedding = match (tower, kind.embedding) {
        (None, InputEmbedding::PeMap) => SquareEmbedding::Map,
        (None, InputEmbedding::PeDense) => SquareEmbedding::Dense {
            board: needed("embedding.board.bias", &weights.ip_emb_preproc_b)? / 64,
            feed_forward: {
                let block = weights.ip_emb_ffn.as_ref();
                let bias = block.map_or(&None, |block| &block.dense1_b);
                needed("embedding.feed_forward.widen.bias", bias)?
            },
        },
        (None, InputEmbedding::None) => {
            let what = "an attention body without an input embedding";
            return Err(Lc0Error::Unsupported(what.to_owned()));
        }
        (Some(_), InputEmbedding::PeDense) => {
            let what = "a dense embedding after a residual tower";
            return Err(Lc0Error::Unsupported(what.to_owned()));
        }
        (Some(_), _) => SquareEmbedding::Tower,
    };
    let gates = [&weights.ip_mult_gate, &weights.ip_add_gate].map(|gate| count(gate) > 0);
    if gates[0] != gates[1] {
        let what = "one of the two embedding gates";
        return Err(Lc0Error::Unsupported(what.to_owned()));
    }
    let heads = weights.headcount.unwrap_or_default();
    let encoder = encoder("encoder", &weights.encoder, heads, width)?;
    Ok(AttentionBody {
        width,
        embedding,
        gates: gates[0],
        encoder,
        smolgen_activation: kind.smolgen_activation,
        feed_forward_activation: kind.feed_forward_activation,
    })
}

fn encoder(
    path: &str,
    layers: &[EncoderLayer],
    heads: u32,
    width: i64,
) -> Result<EncoderConfig, Lc0Error> {
    let at = |name: &str| format!("{path}.0.{name}");
    let Some(attention) = layers.first().and_then(|layer| layer.mha.as_ref()) else {
        return Err(Lc0Error::Missing(at("attention")));
    };
    for layer in layers {
        let Some(other) = &layer.mha else { continue };
        if [&other.rpe_q, &other.rpe_k, &other.rpe_v]
            .iter()
            .any(|rpe| rpe.is_some())
        {
            let what = "relative position encodings, which Lc0 does not read either";
            return Err(Lc0Error::Unsupported(what.to_owned()));
        }
        if other.smolgen.is_some() != attention.smolgen.is_some() {
            let what = "smolgen in some layers only";
            return Err(Lc0Error::Unsupported(what.to_owned()));
        }
    }
    let wide = needed(&at("attention.query.bias"), &attention.q_b)?;
    let heads = i64::from(heads);
    if heads < 1 {
        return Err(Lc0Error::Missing(at("headcount")));
    }
    let smolgen = match &attention.smolgen {
        None => None,
        Some(smolgen) => Some(SmolgenConfig {
            compress: needed(&at("smolgen.squares.weight"), &smolgen.compress)? / width,
            hidden: needed(&at("smolgen.summary.bias"), &smolgen.dense1_b)?,
            generator: needed(&at("smolgen.heads.bias"), &smolgen.dense2_b)? / heads,
        }),
    };
    let block = layers[0]
        .ffn
        .as_ref()
        .map_or(&None, |block| &block.dense1_b);
    Ok(EncoderConfig {
        layers: layers.len() as i64,
        heads,
        attention: wide,
        feed_forward: needed(&at("feed_forward.widen.bias"), block)?,
        smolgen,
    })
}

fn policies(kind: &Kind, weights: &mut Weights) -> Result<PolicyConfig, Lc0Error> {
    let all = weights.policy_heads.get_or_insert_default();
    let shared = Some(count(&all.ip_pol_b)).filter(|&width| width > 0);
    let mut heads = BTreeMap::new();
    for name in PolicyHead::ALL {
        let Some(head) = policy_head(all, name) else {
            continue;
        };
        if let Some(config) = policy(kind, head, shared, name)? {
            heads.insert(name, config);
        }
    }
    if heads.is_empty() {
        return Err(Lc0Error::Missing("policy".to_owned()));
    }
    Ok(PolicyConfig {
        embedding: shared.filter(|_| kind.policy == Policy::Attention),
        heads,
    })
}

/// A policy's sizes; `None` if the head is empty.
fn policy(
    kind: &Kind,
    head: &schema::PolicyHead,
    shared: Option<i64>,
    name: PolicyHead,
) -> Result<Option<PolicyHeadConfig>, Lc0Error> {
    let at = |part: &str| format!("policy.{}.{part}", name.name());
    let convolution = || channels(&at("conv"), &head.policy).ok();
    Ok(match kind.policy {
        Policy::Classical => convolution().map(|channels| PolicyHeadConfig::Classical { channels }),
        Policy::Convolution => {
            convolution().map(|channels| PolicyHeadConfig::Convolutional { channels })
        }
        Policy::Attention if count(&head.ip2_pol_b) > 0 => {
            let embedding = Some(count(&head.ip_pol_b)).filter(|&width| width > 0);
            let Some(width) = embedding.or(shared) else {
                return Err(Lc0Error::Missing(at("embedding.bias")));
            };
            let encoder = match head.pol_encoder.as_slice() {
                [] => None,
                layers => {
                    let heads = head.pol_headcount.unwrap_or_default();
                    Some(encoder(&at("encoder"), layers, heads, width)?)
                }
            };
            Some(PolicyHeadConfig::Attention {
                embedding,
                encoder,
                width: count(&head.ip2_pol_b),
            })
        }
        _ => None,
    })
}

fn values(
    kind: &Kind,
    weights: &mut Weights,
) -> Result<BTreeMap<ValueHead, ValueHeadConfig>, Lc0Error> {
    let all = weights.value_heads.get_or_insert_default();
    let mut heads = BTreeMap::new();
    for name in ValueHead::ALL {
        let Some(head) = value_head(all, name) else {
            continue;
        };
        if count(&head.ip1_val_b) == 0 {
            continue;
        }
        let at = |part: &str| format!("value.{}.{part}", name.name());
        let outputs = needed(&at("output.bias"), &head.ip2_val_b)?;
        if outputs != 1 && outputs != 3 || name == ValueHead::Winner && (outputs == 3) != kind.wdl {
            let what = format!("a value of {outputs} outputs as its head `{}`", name.name());
            return Err(Lc0Error::Unsupported(what));
        }
        let config = ValueHeadConfig {
            features: match kind.attention_body {
                true => needed(&at("squares.bias"), &head.ip_val_b)?,
                false => channels(&at("squares"), &head.value)?,
            },
            hidden: count(&head.ip1_val_b),
            wdl: outputs == 3,
            error: count(&head.ip_val_err_b) > 0,
            buckets: Some(count(&head.ip_val_cat_b)).filter(|&buckets| buckets > 0),
        };
        heads.insert(name, config);
    }
    match heads.is_empty() {
        true => Err(Lc0Error::Missing("value".to_owned())),
        false => Ok(heads),
    }
}

fn moves_left(kind: &Kind, weights: &Weights) -> Result<MovesLeftConfig, Lc0Error> {
    Ok(MovesLeftConfig {
        features: match kind.attention_body {
            true => needed("moves_left.squares.bias", &weights.ip_mov_b)?,
            false => channels("moves_left.squares", &weights.moves_left)?,
        },
        hidden: needed("moves_left.hidden.bias", &weights.ip1_mov_b)?,
    })
}
