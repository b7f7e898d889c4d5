//! Grows a single parameter.

use super::tokens::{self, copies};
use crate::network::chessformer::{ModelConfig, PositionConfig};
use tch::{Kind, Tensor};

/// Why a network cannot start from another.
#[derive(Debug, thiserror::Error)]
pub enum GrowError {
    /// The networks are of different kinds.
    #[error("the networks differ in `model.{0}`: growing cannot change it")]
    Kind(&'static str),
    /// A tensor's shape does not match its network's sizes.
    #[error("`{0}` does not fit its own network's sizes: the file is damaged")]
    Shape(String),
    /// The parameter would have to shrink.
    #[error("`{0}` is larger in the network to start from: networks grow, but do not shrink")]
    Smaller(String),
}

/// Returns `old` in the shape of `fresh`. The parent module describes the initial values of new
/// entries.
pub(super) fn fit(
    name: &str,
    old: &Tensor,
    fresh: &Tensor,
    from: &ModelConfig,
    to: &ModelConfig,
) -> Result<Tensor, GrowError> {
    let shape = layout(name, &old.size(), from);
    if shape.iter().product::<i64>() != old.numel() as i64 {
        return Err(GrowError::Shape(name.to_owned()));
    }
    let old = tile(name, &old.view(shape.as_slice()), to);
    let after = layout(name, &fresh.size(), to);
    if old.size().len() != after.len() || old.size().iter().zip(&after).any(|(old, new)| old > new)
    {
        return Err(GrowError::Smaller(name.to_owned()));
    }
    if name.contains(".categorical.") && from.buckets != to.buckets {
        // With a different number of buckets, each bucket stands for different values.
        return Ok(fresh.copy());
    }
    let grown = if starts_at_zero(name) {
        fresh.zeros_like()
    } else {
        fresh.copy()
    };
    let grown = grown.view(after.as_slice());
    let old = match copies(from, to) {
        Some(copies) => tokens::copy(name, &old, copies, &fresh.view(after.as_slice())),
        None => old,
    };
    let mut same = (0..)
        .zip(&old.size())
        .fold(grown.shallow_clone(), |part, (axis, &size)| {
            part.narrow(axis, 0, size)
        });
    same.copy_(&old);
    rescale(name, &grown, from, to);
    Ok(grown.reshape(fresh.size()))
}

/// Returns the axis lengths of a parameter, with separate axes for heads and for squares.
fn layout(name: &str, shape: &[i64], config: &ModelConfig) -> Vec<i64> {
    let (heads, head_width) = (config.heads, config.head_width());
    let (first, last) = (shape[0], shape[shape.len() - 1]);
    if name.ends_with("attention.query_key.weight") {
        vec![2, heads, head_width, last]
    } else if name.ends_with("attention.value.weight") {
        vec![heads, head_width, last]
    } else if name.ends_with("attention.output.weight") || is_shaw(name) {
        vec![first, heads, head_width]
    } else if name.ends_with("position.heads.weight") {
        vec![heads, first / heads, last]
    } else if name.contains("position.heads") {
        vec![heads, first / heads]
    } else if name.ends_with("position.summary.weight") || name.ends_with(".hidden.weight") {
        vec![first, 64, last / 64]
    } else if name.ends_with("embedding.board.weight") {
        vec![64, first / 64, last]
    } else if name.ends_with("embedding.board.bias") {
        vec![64, first / 64]
    } else {
        shape.to_vec()
    }
}

fn is_shaw(name: &str) -> bool {
    ["query", "key", "value"]
        .iter()
        .any(|table| name.ends_with(&format!("position.{table}")))
}

/// Returns whether a parameter's new entries start at zero. This holds for weights that write token
/// features and for weights that read new units.
fn starts_at_zero(name: &str) -> bool {
    let parts = [
        "attention.output.",
        "feed_forward.narrow.",
        "embedding.project.",
        ".attacks",
        "embedding.add",
        "embedding.ratings.",
        "position.offset",
        "position.summary.",
        "policy.embedding.",
        ".query.",
        ".promotion.",
        "gab_generator",
        ".hidden.weight",
        ".wdl.",
        ".scalar.",
        ".categorical.",
        ".error.",
        ".plies.",
    ];
    parts.iter().any(|part| name.contains(part))
}

/// Repeats the features that GAB normalises together until they fill the new sizes, which preserves
/// their mean and variance. The weights that read copies of a summary feature get different shares
/// of the old weight, so that the copies learn different things.
fn tile(name: &str, old: &Tensor, to: &ModelConfig) -> Tensor {
    let PositionConfig::Gab {
        hidden, generator, ..
    } = to.position
    else {
        return old.shallow_clone();
    };
    let repeat = |tensor: &Tensor, axis: i64, size: i64| {
        let count = tensor.size()[axis as usize];
        let places = Tensor::arange(size, (Kind::Int64, tensor.device())).remainder(count);
        tensor.index_select(axis, &places)
    };
    if name.contains("position.summary") {
        return repeat(old, 0, hidden);
    }
    let is_heads = name.ends_with("position.heads.weight");
    if !is_heads && !name.ends_with("position.heads.bias") {
        return old.shallow_clone();
    }
    let tiled = repeat(&repeat(old, 0, to.heads), 1, generator);
    if !is_heads {
        return tiled;
    }
    let count = old.size()[2];
    let shares: Vec<f32> = (0..hidden)
        .map(|place| {
            let copies = (hidden - place % count + count - 1) / count;
            (2 * (place / count + 1)) as f32 / (copies * (copies + 1)) as f32
        })
        .collect();
    repeat(&tiled, 2, hidden) * Tensor::from_slice(&shares)
}

/// Compensates for changes of scale that the new sizes cause.
fn rescale(name: &str, grown: &Tensor, from: &ModelConfig, to: &ModelConfig) {
    let wider = (to.width as f64 / from.width as f64).sqrt();
    let wider_heads = (to.head_width() as f64 / from.head_width() as f64).sqrt();
    let mut grown = grown.shallow_clone();
    if name.ends_with("attention.norm.weight") || name.ends_with("feed_forward.norm.weight") {
        if copies(from, to).is_none() {
            // The mean square is taken over more features, and the new ones are zero.
            grown /= wider;
        }
    } else if name.starts_with("policy.") && name.contains(".query.") {
        grown *= wider;
    } else if name.ends_with("attention.query_key.weight") {
        rescale_query(&grown.select(0, 0), 0, wider_heads, from);
    } else if name.ends_with("position.query") {
        rescale_query(&grown, 1, wider_heads, from);
    }
}

/// Rescales the old heads' queries if heads have become wider. `axis` is the axis of the heads. The
/// attention logits are divided by the square root of the larger width, and the new features must
/// not contribute to them.
fn rescale_query(query: &Tensor, axis: i64, factor: f64, from: &ModelConfig) {
    let mut old_heads = query.narrow(axis, 0, from.heads);
    old_heads *= factor;
    let width = old_heads.size()[axis as usize + 1];
    let mut new = old_heads.narrow(axis + 1, from.head_width(), width - from.head_width());
    let _ = new.zero_();
}
