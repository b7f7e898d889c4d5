//! Growth of a single parameter.

use super::tokens::{self, copies};
use crate::network::chessformer::{ModelConfig, PositionConfig};
use tch::{Kind, Tensor};

/// Why a network cannot start from another.
#[derive(Debug, thiserror::Error)]
pub enum GrowError {
    /// They are of different kinds.
    #[error("the networks differ in `model.{0}`: growing leaves it as it is")]
    Kind(&'static str),
    /// A tensor's shape does not match its network's sizes.
    #[error("`{0}` does not fit its own network's sizes: the file is damaged")]
    Shape(String),
    /// It would have to shrink.
    #[error("`{0}` is larger in the network to start from: networks grow, but do not shrink")]
    Smaller(String),
}

/// Returns `old` in the shape of `fresh`; the parent module describes the new entries.
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
        // Other buckets stand for other values.
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

/// Returns a parameter's axes, with heads and squares separate.
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

/// Returns whether a parameter's new entries start at zero: weights that write token features,
/// and weights that read new units.
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

/// Repeats GAB's jointly normalised features until they fill the new sizes, which preserves mean
/// and variance. The weights that read the summary's copies get different shares, so that the
/// copies learn different things.
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

/// Compensates for the change of scale by the new sizes.
fn rescale(name: &str, grown: &Tensor, from: &ModelConfig, to: &ModelConfig) {
    let wider = (to.width as f64 / from.width as f64).sqrt();
    let wider_heads = (to.head_width() as f64 / from.head_width() as f64).sqrt();
    let mut grown = grown.shallow_clone();
    if name.ends_with("attention.norm.weight") || name.ends_with("feed_forward.norm.weight") {
        if copies(from, to).is_none() {
            // The mean square is over more features, and the new ones are zero.
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

/// Rescales queries whose heads have grown wider; `axis` is the head axis. Products are divided
/// by a larger root, and the new features must not add to them.
fn rescale_query(query: &Tensor, axis: i64, factor: f64, from: &ModelConfig) {
    let mut old_heads = query.narrow(axis, 0, from.heads);
    old_heads *= factor;
    let width = old_heads.size()[axis as usize + 1];
    let mut new = old_heads.narrow(axis + 1, from.head_width(), width - from.head_width());
    let _ = new.zero_();
}
