//! Batch norms, folded into the convolutions before them as Lc0 does.

use super::Lc0Error;
use super::fields::{policy_head, value_head};
use super::layer::Lc0Encoding;
use super::schema::{ConvBlock, Layer, Weights};
use crate::network::lc0::{PolicyHead, ValueHead};

/// What batch norms add to the variance.
const EPSILON: f32 = 1e-5;

/// Folds the batch norms of all convolutions.
///
/// # Errors
/// [`Lc0Error::Shape`] if the parts of one do not fit each other.
pub(super) fn fold_batch_norms(weights: &mut Weights) -> Result<(), Lc0Error> {
    fold("input", weights.input.as_mut())?;
    for (number, block) in weights.residual.iter_mut().enumerate() {
        fold(&format!("body.{number}.conv1"), block.conv1.as_mut())?;
        fold(&format!("body.{number}.conv2"), block.conv2.as_mut())?;
    }
    if let Some(heads) = &mut weights.policy_heads {
        for name in PolicyHead::ALL {
            if let Some(head) = policy_head(heads, name) {
                fold("policy.conv1", head.policy1.as_mut())?;
                fold("policy.conv2", head.policy.as_mut())?;
            }
        }
    }
    if let Some(heads) = &mut weights.value_heads {
        for name in ValueHead::ALL {
            if let Some(head) = value_head(heads, name) {
                fold("value", head.value.as_mut())?;
            }
        }
    }
    fold("moves_left", weights.moves_left.as_mut())
}

fn fold(name: &str, block: Option<&mut ConvBlock>) -> Result<(), Lc0Error> {
    let Some(block) = block else { return Ok(()) };
    let Some(means) = numbers(block.bn_means.take())? else {
        return Ok(());
    };
    let Some(mut weights) = numbers(block.weights.take())? else {
        return Ok(());
    };
    let channels = means.len();
    // Old networks have no gammas and betas.
    let or = |layer, default| -> Result<Vec<f32>, Lc0Error> {
        Ok(numbers(layer)?.unwrap_or_else(|| vec![default; channels]))
    };
    let mut biases = or(block.biases.take(), 0.0)?;
    let betas = or(block.bn_betas.take(), 0.0)?;
    let gammas = or(block.bn_gammas.take(), 1.0)?;
    let variances = or(block.bn_stddivs.take(), 0.0)?;
    for (part, numbers) in [
        ("biases", &biases),
        ("bn_betas", &betas),
        ("bn_gammas", &gammas),
        ("bn_stddivs", &variances),
    ] {
        if numbers.len() != channels {
            return Err(Lc0Error::Shape {
                name: format!("{name}.{part}"),
                found: numbers.len() as i64,
                shape: vec![channels as i64],
            });
        }
    }
    let inputs = (weights.len() / channels).max(1);
    for (channel, row) in weights.chunks_mut(inputs).take(channels).enumerate() {
        let gain = gammas[channel] * (1.0 / (variances[channel] + EPSILON).sqrt());
        row.iter_mut().for_each(|weight| *weight *= gain);
        biases[channel] = betas[channel] - gain * (means[channel] - biases[channel]);
    }
    block.weights = Some(Layer::encode(&weights, Lc0Encoding::Float32));
    block.biases = Some(Layer::encode(&biases, Lc0Encoding::Float32));
    Ok(())
}

/// The numbers of a layer that is there and not empty.
fn numbers(layer: Option<Layer>) -> Result<Option<Vec<f32>>, Lc0Error> {
    let Some(layer) = layer.filter(|layer| layer.count() > 0) else {
        return Ok(None);
    };
    layer.decode().map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(numbers: &[f32]) -> Option<Layer> {
        Some(Layer::encode(numbers, Lc0Encoding::Float32))
    }

    fn folded(mut block: ConvBlock) -> (Vec<f32>, Vec<f32>) {
        fold("test", Some(&mut block)).unwrap();
        let decode = |layer: Option<Layer>| layer.unwrap().decode().unwrap();
        assert!(block.bn_means.is_none() && block.bn_stddivs.is_none());
        (decode(block.weights), decode(block.biases))
    }

    #[test]
    fn a_batch_norm_scales_weights_and_shifts_biases() {
        let block = ConvBlock {
            weights: layer(&[1.0, 2.0, 3.0, 4.0]),
            biases: None,
            bn_means: layer(&[1.0, -1.0]),
            bn_stddivs: layer(&[4.0 - EPSILON, 1.0 - EPSILON]),
            bn_gammas: layer(&[2.0, 1.0]),
            bn_betas: layer(&[0.5, 0.0]),
        };
        let (weights, biases) = folded(block);
        let close = |found: &[f32], expected: &[f32]| {
            found
                .iter()
                .zip(expected)
                .all(|(a, b)| (a - b).abs() < 1e-6)
        };
        assert!(close(&weights, &[1.0, 2.0, 3.0, 4.0]), "{weights:?}");
        assert!(close(&biases, &[-0.5, 1.0]), "{biases:?}");
    }

    #[test]
    fn old_networks_have_biases_in_place_of_betas() {
        let block = ConvBlock {
            weights: layer(&[1.0, 2.0]),
            biases: layer(&[3.0]),
            bn_means: layer(&[1.0]),
            bn_stddivs: layer(&[1.0 - EPSILON]),
            ..ConvBlock::default()
        };
        let (weights, biases) = folded(block);
        assert!((weights[1] - 2.0).abs() < 1e-6 && (biases[0] - 2.0).abs() < 1e-6);
    }

    #[test]
    fn parts_that_do_not_fit_are_named() {
        let mut block = ConvBlock {
            weights: layer(&[1.0, 2.0]),
            bn_means: layer(&[1.0, 2.0]),
            bn_stddivs: layer(&[1.0]),
            ..ConvBlock::default()
        };
        let error = fold("body.3.conv1", Some(&mut block)).unwrap_err();
        assert!(error.to_string().contains("body.3.conv1.bn_stddivs"));
    }
}
