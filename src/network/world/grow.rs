//! Initialises a world model from a Chessformer.

use super::{WorldModel, WorldState};
use crate::network::architecture::Architecture;
use crate::network::chessformer::{self, GrowError, ModelConfig};
use crate::network::parameters::Weights;
use tch::Tensor;

/// Returns the weights, concatenated f32 on the CPU, of a world model that encodes positions and
/// plays like the Chessformer `from` with the tensors `named`. All other parameters have their
/// `fresh` values, except for the norm at the end of a step, which is a copy of the norm at the end
/// of the encoder.
///
/// # Errors
/// [`GrowError`] if the encoder cannot contain the Chessformer `from`.
pub fn grow(
    from: &ModelConfig,
    named: &[(String, Tensor)],
    to: &WorldModel,
    fresh: &Weights,
) -> Result<Tensor, GrowError> {
    let parameters = to.parameters();
    let encoder = to.encoder.parameters().len();
    let config = &to.config.encoder;
    let grown = chessformer::grow(from, named, config, fresh, &parameters[..encoder])?;
    let of_encoder = Weights::from_flat(&grown, &parameters[..encoder]);
    let norm = |layer: i64| format!("{layer}.feed_forward.norm.");
    let last = match to.config.state {
        WorldState::Squares => format!("dynamics.{}", norm(to.config.blocks - 1)),
        WorldState::Token => "fusion.expand.norm.".to_owned(),
        WorldState::Dit => "dynamics.norm.".to_owned(),
    };
    let rest = parameters.iter().zip(fresh.tensors()).skip(encoder);
    let rest = rest.map(|(parameter, fresh)| {
        let twin = parameter.name.strip_prefix(&last).and_then(|part| {
            let name = format!("encoder.{}{part}", norm(config.layers - 1));
            let place = parameters.iter().position(|other| other.name == name)?;
            of_encoder.tensors().get(place)
        });
        twin.unwrap_or(fresh).reshape([-1])
    });
    let parts: Vec<Tensor> = std::iter::once(grown.shallow_clone()).chain(rest).collect();
    Ok(Tensor::cat(&parts, 0))
}
