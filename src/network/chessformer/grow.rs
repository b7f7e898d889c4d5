//! Starts a network from a trained network that may be smaller.
//!
//! If the architectures are equal, everything is copied. A larger network starts as the same
//! function wherever possible. Its new parts initially change nothing but can learn (in the spirit
//! of Net2Net, Chen et al. 2016):
//!
//! - **Layers** are copies of old layers that follow their originals, with zero outputs. In a
//!   post-LN encoder such a layer is two norms, and a norm does nothing to normalised input: the
//!   gain of the norm before the new layers moves to the last norm among them. The outputs of old
//!   layers are scaled for DeepNorm's gain, which depends on the depth. This is exact.
//! - **Width**, with root-mean-square norms: new token features start at zero, as do the weights
//!   that write them, while the weights that read them start random. Gains shrink by the square
//!   root of the ratio of the widths, because the mean square is taken over more features. This is
//!   exact. Layer norms also subtract the mean, so with them the features are copied, which is
//!   exact if the new width is a multiple of the old width. With other widths, the network only
//!   starts near the old network.
//! - **Attacks** and **ratings** that the old network did not read have zero weights at first.
//! - **Heads** and hidden units are added with zero output weights. GAB normalises all of its heads
//!   together. Its growth is exact if the number of heads, the width of its summary and the width
//!   of its generator are multiples of the old values, otherwise approximate.

mod fit;
mod tokens;

use crate::network::config::chessformer::ModelConfig;
use crate::network::parameters::{Parameter, Weights};
use std::mem::discriminant;
use tch::{Kind, Tensor};

pub use fit::GrowError;

/// Substrings of the names of parameters that read attacks or ratings.
const TOLD: [&str; 2] = [".attacks", ".ratings."];

/// Returns weights, concatenated f32 on the CPU, with which a network of architecture `to` starts
/// from a network of architecture `from` with the tensors `named`. New `parameters` take their
/// `fresh` values.
///
/// # Errors
/// [`GrowError`] if `to` does not contain `from`.
pub fn grow(
    from: &ModelConfig,
    named: &[(String, Tensor)],
    to: &ModelConfig,
    fresh: &Weights,
    parameters: &[Parameter],
) -> Result<Tensor, GrowError> {
    check(from, to)?;
    let depth = Depth {
        from: from.layers,
        to: to.layers,
    };
    let parts = parameters.iter().zip(fresh.tensors());
    let grown = parts
        .map(|(parameter, fresh)| {
            let (source, role) = depth.source(&parameter.name);
            let fitted = match named.iter().find(|(name, _)| *name == source) {
                Some((name, old)) => fit::fit(name, &old.to_kind(Kind::Float), fresh, from, to)?,
                // Weights for inputs that the old network does not read start at zero.
                None if TOLD.iter().any(|part| parameter.name.contains(part)) => fresh.zeros_like(),
                // The old network does not have this head.
                None => fresh.copy(),
            };
            Ok(depth.adapt(parameter, role, fitted).reshape([-1]))
        })
        .collect::<Result<Vec<Tensor>, GrowError>>()?;
    Ok(Tensor::cat(&grown, 0))
}

fn check(from: &ModelConfig, to: &ModelConfig) -> Result<(), GrowError> {
    if from.norm != to.norm {
        return Err(GrowError::Kind("norm"));
    }
    if discriminant(&from.position) != discriminant(&to.position) {
        return Err(GrowError::Kind("position"));
    }
    if discriminant(&from.embedding) != discriminant(&to.embedding) {
        return Err(GrowError::Kind("embedding"));
    }
    for (name, before, after) in [
        ("model.attacks", from.attacks, to.attacks),
        ("model.attack_bias", from.attack_bias, to.attack_bias),
        ("model.elo", from.elo, to.elo),
    ] {
        if before && !after {
            return Err(GrowError::Smaller(name.to_owned()));
        }
    }
    if from.layers > to.layers {
        return Err(GrowError::Smaller("layers".to_owned()));
    }
    Ok(())
}

/// The number of layers before and after.
#[derive(Clone, Copy, Debug)]
struct Depth {
    from: i64,
    to: i64,
}

/// The role of a new layer among the layers that come from the same old layer.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Role {
    is_added: bool,
    is_last: bool,
}

impl Depth {
    /// Returns the index of the old layer from which a new layer comes.
    fn origin(self, layer: i64) -> i64 {
        layer * self.from / self.to
    }

    /// Returns a parameter's name in the old network, and the role of its layer, if any.
    fn source(self, name: &str) -> (String, Option<Role>) {
        let parts = name
            .strip_prefix("encoder.")
            .and_then(|rest| rest.split_once('.'));
        let layer = parts.and_then(|(layer, rest)| Some((layer.parse::<i64>().ok()?, rest)));
        let Some((layer, rest)) = layer else {
            return (name.to_owned(), None);
        };
        let origin = self.origin(layer);
        let role = Role {
            is_added: layer > 0 && self.origin(layer - 1) == origin,
            is_last: self.origin(layer + 1) != origin,
        };
        (format!("encoder.{origin}.{rest}"), Some(role))
    }

    /// Makes an added layer the identity, and preserves the function of an old layer.
    fn adapt(self, parameter: &Parameter, role: Option<Role>, tensor: Tensor) -> Tensor {
        let name = parameter.name.as_str();
        let is_output = name.contains("attention.output.") || name.contains("feed_forward.narrow.");
        let is_last_norm = name.contains("feed_forward.norm.");
        let is_norm = is_last_norm || name.contains("attention.norm.");
        let neutral = || {
            if name.ends_with(".weight") {
                tensor.ones_like()
            } else {
                tensor.zeros_like()
            }
        };
        match role {
            Some(role) if is_output && role.is_added => tensor.zeros_like(),
            // The last norm of such layers takes the old layer's gain.
            Some(role) if is_norm && (role.is_added || is_last_norm) => {
                if is_last_norm && role.is_last {
                    tensor
                } else {
                    neutral()
                }
            }
            _ if is_output => tensor * (self.to as f64 / self.from as f64).powf(0.25),
            _ => tensor,
        }
    }
}

#[cfg(test)]
mod tests;
