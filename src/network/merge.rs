//! Averages the weights of several networks.
//!
//! Branches of one run are so similar that the mean of their weights is a network as good as each
//! of them, or better (Wortsman et al., "Model soups", 2022). The mean of networks with different
//! initial weights is useless.

use super::file::Network;
use super::parameters::Weights;
use crate::torch::tensor_hash;
use serde_json::{Value, json};
use std::fmt::Display;
use tch::{Kind, Tensor};

/// A network to merge with others.
#[derive(Debug)]
pub struct Part {
    /// The name of the network's file, for error messages.
    pub source: String,
    /// The network.
    pub network: Network,
    /// The network's relative weight in the mean.
    pub weight: f64,
}

/// Why networks cannot be merged.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum MergeError {
    /// A weight is negative, infinite or NaN. The fields are the part and the weight.
    #[error("the weight of {0} is {1}, but must be 0 or more")]
    Weight(String, f64),
    /// All weights are zero, or there are no networks.
    #[error("the weights add up to {0}: at least one must be above 0")]
    Sum(f64),
    /// Two networks differ in a property that must be equal.
    #[error("{other} cannot be merged with {first}: {difference}")]
    Differs {
        /// The first network.
        first: String,
        /// The network that differs from it.
        other: String,
        /// The property that differs.
        difference: Difference,
    },
    /// A parameter is infinite or NaN. The fields are the part and the parameter's name.
    #[error("{0} cannot be merged: its parameter `{1}` is not finite")]
    NotFinite(String, String),
}

/// Returns a network called `name` whose weights are the mean of the parts' weights. The parts must
/// have the same architecture, search value and licence. The training record lists the records of
/// all parts. Its sample count is the maximum over the parts, because mergeable networks are
/// branches of one run.
///
/// # Errors
/// [`MergeError`], which states which part does not fit and why.
pub fn merge(name: String, mut parts: Vec<Part>) -> Result<Network, MergeError> {
    for part in &parts {
        if !part.weight.is_finite() || part.weight < 0.0 {
            return Err(MergeError::Weight(part.source.clone(), part.weight));
        }
        expect_like(&parts[0], part)?;
    }
    let total: f64 = parts.iter().map(|part| part.weight).sum();
    if !total.is_finite() || total <= 0.0 {
        return Err(MergeError::Sum(total));
    }
    for part in &mut parts {
        part.weight /= total;
    }
    let weights = mean(&parts)?;
    let training = said_of(&parts);
    let mut merged = parts.swap_remove(0).network;
    merged.weights = weights;
    // It was fitted to one network's policy.
    merged.about.correction = None;
    merged.about.name = name;
    merged.about.training = training;
    Ok(merged)
}

/// Returns the weighted mean, accumulated in double precision. The parts' weights must sum to 1.
fn mean(parts: &[Part]) -> Result<Weights, MergeError> {
    let parameters = parts[0].network.architecture.parameters().iter();
    let means = parameters.enumerate().map(|(place, parameter)| {
        let mut sum: Option<Tensor> = None;
        for part in parts {
            let tensor = &part.network.weights.tensors()[place];
            if tensor.isfinite().all().int64_value(&[]) == 0 {
                let name = parameter.name.clone();
                return Err(MergeError::NotFinite(part.source.clone(), name));
            }
            let share = tensor.to_kind(Kind::Double) * part.weight;
            sum = Some(match sum {
                Some(sum) => sum + share,
                None => share,
            });
        }
        Ok(sum.expect("a part").to_kind(Kind::Float))
    });
    Ok(Weights::new(means.collect::<Result<_, _>>()?))
}

/// Returns the training record of the merged network, which lists its parts.
fn said_of(parts: &[Part]) -> Value {
    let merged = parts.iter().map(|part| {
        let Network { about, .. } = &part.network;
        let tensors = part.network.parameters().into_iter();
        json!({
            "name": about.name,
            "weight": part.weight,
            // A file that stores the part in f32 has the same hash.
            "hash": tensor_hash(tensors.chain(part.network.architecture.buffers())),
            "training": about.training,
        })
    });
    let samples = parts.iter();
    let samples = samples.filter_map(|part| part.network.about.training["samples"].as_u64());
    json!({
        "merged": merged.collect::<Vec<_>>(),
        "samples": samples.max(),
        "note": "",
    })
}

/// Rejects a part that differs from the first in anything other than its tensors.
fn expect_like(first: &Part, other: &Part) -> Result<(), MergeError> {
    match difference(&first.network, &other.network) {
        None => Ok(()),
        Some(difference) => Err(MergeError::Differs {
            first: first.source.clone(),
            other: other.source.clone(),
            difference,
        }),
    }
}

/// A difference between two networks.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("its {what} is {found} in place of {expected}")]
pub struct Difference {
    what: String,
    found: String,
    expected: String,
}

impl Difference {
    /// Compares two values, and returns `None` if they are equal.
    fn of<T: PartialEq + Display>(what: &str, expected: T, found: T) -> Option<Difference> {
        (expected != found).then(|| Difference {
            what: what.to_owned(),
            found: found.to_string(),
            expected: expected.to_string(),
        })
    }
}

fn difference(first: &Network, other: &Network) -> Option<Difference> {
    let describe = |network: &Network| {
        serde_json::to_value(network.architecture.config()).expect("plain data")
    };
    let (one, two) = (&first.about, &other.about);
    difference_of_values("", &describe(first), &describe(other))
        .or_else(|| {
            Difference::of(
                "output that ranks moves",
                &one.search_value,
                &two.search_value,
            )
        })
        .or_else(|| Difference::of("licence", &one.licence, &two.licence))
}

/// Returns the first difference between two architecture descriptions.
fn difference_of_values(path: &str, expected: &Value, found: &Value) -> Option<Difference> {
    let below = |key: &str| match path {
        "" => key.to_owned(),
        _ => format!("{path}.{key}"),
    };
    match (expected, found) {
        _ if expected == found => None,
        (Value::Object(one), Value::Object(two)) => {
            // If the family differs, so do most other keys, so the family is compared first.
            let all = one.keys().chain(two.keys()).map(String::as_str);
            ["family"].into_iter().chain(all).find_map(|key| {
                let [one, two] = [one, two].map(|fields| fields.get(key).unwrap_or(&Value::Null));
                difference_of_values(&below(key), one, two)
            })
        }
        (Value::Array(one), Value::Array(two)) if one.len() == two.len() => {
            let mut pairs = one.iter().zip(two).enumerate();
            pairs.find_map(|(place, (one, two))| {
                difference_of_values(&below(&place.to_string()), one, two)
            })
        }
        _ => Difference::of(&format!("`{path}`"), brief(expected), brief(found)),
    }
}

/// Formats a value for a message.
fn brief(value: &Value) -> String {
    match value {
        Value::Array(values) => format!("a list of {}", values.len()),
        Value::Object(_) => "there".to_owned(),
        Value::Null => "none".to_owned(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::chessformer::{ModelConfig, PositionConfig};
    use crate::network::{About, Architecture, Chessformer};
    use tch::Device;

    fn model(width: i64) -> Chessformer {
        let mut config = ModelConfig::preset("cf-1m-gab").unwrap();
        (config.layers, config.width, config.heads) = (1, width, 2);
        config.position = PositionConfig::Absolute;
        Chessformer::new(&config, Device::Cpu).unwrap()
    }

    /// Returns a network with all parameters equal to `value`.
    fn part(source: &str, width: i64, value: f64, weight: f64) -> Part {
        let model = model(width);
        let flat = model.initial_weights().full_like(value);
        let about = About {
            correction: None,
            name: format!("{source}-net"),
            search_value: "q".to_owned(),
            training: json!({ "samples": 100.0 * value, "steps": 7 }),
            licence: "GPL-3.0-or-later".to_owned(),
        };
        Part {
            source: source.to_owned(),
            network: Network::new(Box::new(model), &flat, about),
            weight,
        }
    }

    fn values(network: &Network) -> Vec<f64> {
        let tensors = network.weights.tensors().iter();
        let ends = tensors.flat_map(|tensor| [tensor.min(), tensor.max()]);
        ends.map(|end| end.double_value(&[])).collect()
    }

    #[test]
    fn weights_are_averaged_by_their_shares_and_the_parts_are_told_of() {
        let mut parts = vec![part("a", 16, 1.0, 1.0), part("b", 16, 5.0, 3.0)];
        for part in &mut parts {
            part.network.about.training["samples"] = (part.weight as u64 * 10).into();
        }
        let merged = merge("ab".to_owned(), parts).unwrap();
        assert!(values(&merged).iter().all(|&value| value == 4.0));
        let About {
            name,
            search_value,
            training,
            ..
        } = &merged.about;
        assert_eq!((name.as_str(), search_value.as_str()), ("ab", "q"));
        assert_eq!(training["samples"], 30);
        let told = training["merged"].as_array().unwrap();
        let said = |key: &str| {
            told.iter()
                .map(|part| part[key].clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(said("name"), ["a-net", "b-net"]);
        assert_eq!(said("weight"), [0.25, 0.75]);
        assert_eq!(told[1]["training"]["steps"], 7);
        assert_ne!(told[0]["hash"], told[1]["hash"]);
    }

    #[test]
    fn a_network_merged_with_itself_stays_what_it_is() {
        let model = model(16);
        tch::manual_seed(3);
        let flat = model.initial_weights();
        let parts = [0.1, 0.7, 0.9].map(|weight| {
            let mut part = part("a", 16, 1.0, weight);
            part.network.weights = Weights::from_flat(&flat, model.parameters());
            part
        });
        let merged = merge("a".to_owned(), parts.into()).unwrap();
        let expected = Weights::from_flat(&flat, model.parameters());
        for (found, expected) in merged.weights.tensors().iter().zip(expected.tensors()) {
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn names_the_mismatch_of_networks() {
        let refused = |other: Part| {
            let error = merge("ab".to_owned(), vec![part("a", 16, 1.0, 1.0), other]);
            error.unwrap_err().to_string()
        };
        let changed = |change: fn(&mut Part)| {
            let mut other = part("b", 16, 1.0, 1.0);
            change(&mut other);
            refused(other)
        };
        for (message, expected) in [
            (
                refused(part("b", 32, 1.0, 1.0)),
                "b cannot be merged with a: its `model.width` is 32 in place of 16",
            ),
            (
                changed(|b| b.network.about.search_value = "wdl".to_owned()),
                "its output that ranks moves is wdl in place of q",
            ),
            (
                changed(|b| b.network.about.licence = "CC0-1.0".to_owned()),
                "its licence is CC0-1.0 in place of GPL-3.0-or-later",
            ),
            (changed(|b| b.weight = -1.0), "the weight of b is -1"),
            (changed(|b| b.weight = f64::NAN), "the weight of b is NaN"),
            (
                changed(|b| {
                    let _ = b.network.weights.tensors()[3]
                        .shallow_clone()
                        .fill_(f64::NAN);
                }),
                "is not finite",
            ),
        ] {
            assert!(message.contains(expected), "{message}");
        }
        let nothing = vec![part("a", 16, 1.0, 0.0), part("b", 16, 1.0, 0.0)];
        for parts in [Vec::new(), nothing] {
            let error = merge("ab".to_owned(), parts).unwrap_err();
            assert_eq!(error, MergeError::Sum(0.0));
        }
        // Parts with weight zero have no effect.
        let parts = vec![part("a", 16, 2.0, 1.0), part("b", 16, 3.0, 0.0)];
        let merged = merge("ab".to_owned(), parts).unwrap();
        assert!(values(&merged).iter().all(|&value| value == 2.0));
    }
}
