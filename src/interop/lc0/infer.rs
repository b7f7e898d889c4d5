//! Infers a network's sizes from its tensors, because files do not state them.

use super::Lc0Error;
use super::format::Kind;
use super::schema::{InputEmbedding, PolicyFormat};
use super::sizes::Sizes;
use crate::network::lc0::{
    AttentionBody, EncoderConfig, Lc0Config, MovesLeftConfig, PolicyConfig, PolicyHead,
    PolicyHeadConfig, SmolgenConfig, SquareEmbedding, Tower, ValueHead, ValueHeadConfig,
};
use clap::ValueEnum;
use std::collections::BTreeMap;

/// Returns the architecture of a network of this kind with these tensors.
///
/// Each size is derived from a tensor whose only dimension is that size, usually a bias. The other
/// tensors are checked when they are read.
///
/// # Errors
/// [`Lc0Error`], which names the missing or unknown part.
pub(in crate::interop) fn infer(kind: &Kind, sizes: &impl Sizes) -> Result<Lc0Config, Lc0Error> {
    let tower = tower(sizes)?;
    let attention = match kind.attention_body {
        true => Some(attention_body(kind, tower.is_some(), sizes)?),
        false => None,
    };
    if tower.is_none() && attention.is_none() {
        return Err(Lc0Error::Missing("body".to_owned()));
    }
    let policy = policies(kind, sizes)?;
    let value = values(kind, sizes)?;
    let moves_left = match kind.moves_left {
        true => Some(MovesLeftConfig {
            features: features(kind, "moves_left.squares", sizes)?,
            hidden: sizes.needed("moves_left.hidden.bias")?,
        }),
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

fn unsupported<T>(what: impl Into<String>) -> Result<T, Lc0Error> {
    Err(Lc0Error::Unsupported(what.into()))
}

/// Returns the number of features per square that a head reads.
fn features(kind: &Kind, squares: &str, sizes: &impl Sizes) -> Result<i64, Lc0Error> {
    match kind.attention_body {
        true => sizes.needed(&format!("{squares}.bias")),
        false => sizes.channels(squares),
    }
}

fn tower(sizes: &impl Sizes) -> Result<Option<Tower>, Lc0Error> {
    let blocks = sizes.number("body");
    if blocks == 0 {
        return Ok(None);
    }
    let squeeze = |block: i64| sizes.optional(&format!("body.{block}.squeeze.bias"));
    if (0..blocks).any(|block| squeeze(block).is_some() != squeeze(0).is_some()) {
        return unsupported("squeeze-and-excitation units in some blocks only");
    }
    Ok(Some(Tower {
        blocks,
        filters: sizes.channels("input")?,
        squeeze: squeeze(0),
    }))
}

fn attention_body(
    kind: &Kind,
    has_tower: bool,
    sizes: &impl Sizes,
) -> Result<AttentionBody, Lc0Error> {
    let width = sizes.needed("embedding.project.bias")?;
    let embedding = match (has_tower, kind.embedding) {
        (false, InputEmbedding::PeMap) => SquareEmbedding::Map,
        (false, InputEmbedding::PeDense) => SquareEmbedding::Dense {
            board: sizes.needed("embedding.board.bias")? / 64,
            feed_forward: sizes.needed("embedding.feed_forward.widen.bias")?,
        },
        (false, InputEmbedding::None) => {
            return unsupported("an attention body without an input embedding");
        }
        (true, InputEmbedding::PeDense) => {
            return unsupported("a dense embedding after a residual tower");
        }
        (true, _) => SquareEmbedding::Tower,
    };
    let gates = ["multiply", "add"].map(|gate| sizes.count(&format!("embedding.{gate}")) > 0);
    if gates[0] != gates[1] {
        return unsupported("one of the two embedding gates");
    }
    Ok(AttentionBody {
        width,
        embedding,
        gates: gates[0],
        encoder: encoder("encoder", sizes.number("heads"), width, sizes)?,
        smolgen_activation: kind.smolgen_activation,
        feed_forward_activation: kind.feed_forward_activation,
    })
}

fn encoder(
    path: &str,
    heads: i64,
    width: i64,
    sizes: &impl Sizes,
) -> Result<EncoderConfig, Lc0Error> {
    let layers = sizes.number(path);
    let at = |name: &str| format!("{path}.0.{name}");
    let has = |layer: i64, name: &str| sizes.count(&format!("{path}.{layer}.{name}")) > 0;
    let has_smolgen = |layer| has(layer, "smolgen.squares.weight");
    for layer in 0..layers {
        if ["rpe_q", "rpe_k", "rpe_v"]
            .iter()
            .any(|rpe| has(layer, rpe))
        {
            return unsupported("relative position encodings, which Lc0 does not read either");
        }
        if has_smolgen(layer) != has_smolgen(0) {
            return unsupported("smolgen in some layers only");
        }
    }
    let attention = sizes.needed(&at("attention.query.bias"))?;
    if heads < 1 {
        return Err(Lc0Error::Missing(at("headcount")));
    }
    let smolgen = match has_smolgen(0) {
        false => None,
        true => Some(SmolgenConfig {
            compress: sizes.needed(&at("smolgen.squares.weight"))? / width,
            hidden: sizes.needed(&at("smolgen.summary.bias"))?,
            generator: sizes.needed(&at("smolgen.heads.bias"))? / heads,
        }),
    };
    Ok(EncoderConfig {
        layers,
        heads,
        attention,
        feed_forward: sizes.needed(&at("feed_forward.widen.bias"))?,
        smolgen,
    })
}

fn policies(kind: &Kind, sizes: &impl Sizes) -> Result<PolicyConfig, Lc0Error> {
    let shared = sizes.optional("policy.embedding.bias");
    let mut heads = BTreeMap::new();
    for &name in PolicyHead::value_variants() {
        if let Some(config) = policy(kind, shared, &format!("policy.{}", name.name()), sizes)? {
            heads.insert(name, config);
        }
    }
    if heads.is_empty() {
        return Err(Lc0Error::Missing("policy".to_owned()));
    }
    Ok(PolicyConfig {
        embedding: shared.filter(|_| kind.policy == PolicyFormat::Attention),
        heads,
    })
}

/// Returns a policy's sizes, or `None` if the head is empty.
fn policy(
    kind: &Kind,
    shared: Option<i64>,
    path: &str,
    sizes: &impl Sizes,
) -> Result<Option<PolicyHeadConfig>, Lc0Error> {
    let at = |part: &str| format!("{path}.{part}");
    let channels = |module| sizes.channels(&at(module)).ok();
    Ok(match kind.policy {
        PolicyFormat::Classical => {
            channels("squares").map(|channels| PolicyHeadConfig::Classical { channels })
        }
        PolicyFormat::Convolution => {
            channels("conv2").map(|channels| PolicyHeadConfig::Convolutional { channels })
        }
        PolicyFormat::Attention if sizes.count(&at("query.bias")) > 0 => {
            let embedding = sizes.optional(&at("embedding.bias"));
            let Some(width) = embedding.or(shared) else {
                return Err(Lc0Error::Missing(at("embedding.bias")));
            };
            let encoder = match sizes.number(&at("encoder")) {
                0 => None,
                _ => {
                    let heads = sizes.number(&at("heads"));
                    Some(encoder(&at("encoder"), heads, width, sizes)?)
                }
            };
            Some(PolicyHeadConfig::Attention {
                embedding,
                encoder,
                width: sizes.count(&at("query.bias")),
            })
        }
        _ => None,
    })
}

fn values(
    kind: &Kind,
    sizes: &impl Sizes,
) -> Result<BTreeMap<ValueHead, ValueHeadConfig>, Lc0Error> {
    let mut heads = BTreeMap::new();
    for &name in ValueHead::value_variants() {
        let at = |part: &str| format!("value.{}.{part}", name.name());
        let Some(hidden) = sizes.optional(&at("hidden.bias")) else {
            continue;
        };
        let outputs = sizes.needed(&at("output.bias"))?;
        if outputs != 1 && outputs != 3 || name == ValueHead::Winner && (outputs == 3) != kind.wdl {
            let head = name.name();
            return unsupported(format!("a value of {outputs} outputs as its head `{head}`"));
        }
        let config = ValueHeadConfig {
            features: features(kind, &at("squares"), sizes)?,
            hidden,
            wdl: outputs == 3,
            error: sizes.count(&at("error.bias")) > 0,
            buckets: sizes.optional(&at("categorical.bias")),
        };
        heads.insert(name, config);
    }
    match heads.is_empty() {
        true => Err(Lc0Error::Missing("value".to_owned())),
        false => Ok(heads),
    }
}
