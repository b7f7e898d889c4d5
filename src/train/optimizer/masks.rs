//! Vectors with one optimizer setting per element of the flat parameter vector.

use super::super::config::OptimizerConfig;
use crate::network::{Parameter, ParameterGroup};
use tch::{Device, Kind, Tensor};
use wildmatch::WildMatch;

/// Returns whether the parameter's name matches a pattern.
fn is_named(parameter: &Parameter, pattern: &str) -> bool {
    WildMatch::new(pattern).matches(&parameter.name)
}

/// Returns one value per parameter, repeated for each of its elements, f64 `[parameters]` on the
/// CPU.
fn spread(parameters: &[Parameter], value: impl Fn(&Parameter) -> f64) -> Tensor {
    let parts: Vec<Tensor> = parameters
        .iter()
        .map(|parameter| {
            let options = (Kind::Double, Device::Cpu);
            Tensor::full([parameter.count()], value(parameter), options)
        })
        .collect();
    Tensor::cat(&parts, 0)
}

/// Returns the weight decay of each parameter, or `None` if nothing decays.
pub(super) fn decay(config: &OptimizerConfig, parameters: &[Parameter]) -> Option<Tensor> {
    let of = |parameter: &Parameter| {
        let rules = &config.decay;
        let rule = rules.iter().find(|rule| is_named(parameter, &rule.pattern));
        match rule {
            Some(rule) => rule.weight_decay,
            None => match parameter.group {
                ParameterGroup::Hidden | ParameterGroup::Outer => config.weight_decay,
                ParameterGroup::Other => 0.0,
            },
        }
    };
    let any = parameters.iter().any(|parameter| of(parameter) != 0.0);
    any.then(|| spread(parameters, of))
}

/// Returns the learning-rate factor of each parameter, or `None` if all are equal.
pub(super) fn rates(config: &OptimizerConfig, parameters: &[Parameter]) -> Option<Tensor> {
    let of = |parameter: &Parameter| {
        let mut rules = config.rates.iter();
        let rule = rules.find(|rule| is_named(parameter, &rule.pattern));
        rule.map_or(1.0, |rule| rule.factor)
    };
    let any = parameters.iter().any(|parameter| of(parameter) != 1.0);
    any.then(|| spread(parameters, of))
}

/// Returns 1 for each trained parameter and 0 for each parameter that a pattern freezes, or `None`
/// if no parameter is frozen.
pub(super) fn learned(frozen: &[String], parameters: &[Parameter]) -> Option<Tensor> {
    let is_frozen = |parameter: &Parameter| {
        let mut patterns = frozen.iter();
        patterns.any(|pattern| is_named(parameter, pattern))
    };
    let any = parameters.iter().any(is_frozen);
    any.then(|| {
        spread(parameters, |parameter| {
            f64::from(u8::from(!is_frozen(parameter)))
        })
    })
}
