//! Folds batch norms into the preceding convolutions, as Lc0 does.

use super::Lc0Error;
use super::layer::Lc0Encoding;
use super::schema::Layer;
use super::tensors::Tensors;

/// Epsilon of batch norms.
const EPSILON: f32 = 1e-5;

/// Folds all batch norms into their convolutions.
///
/// # Errors
/// [`Lc0Error::Shape`] if the tensors of a batch norm do not fit its convolution.
pub(super) fn fold_batch_norms(tensors: &mut Tensors) -> Result<(), Lc0Error> {
    let names = tensors.layers.keys();
    let convolutions = names.filter_map(|name| name.strip_suffix(".bn_means"));
    let convolutions: Vec<String> = convolutions.map(str::to_owned).collect();
    convolutions.iter().try_for_each(|name| fold(name, tensors))
}

fn fold(name: &str, tensors: &mut Tensors) -> Result<(), Lc0Error> {
    let mut take = |part| numbers(tensors.layers.remove(&format!("{name}.{part}")));
    let Some(means) = take("bn_means")? else {
        return Ok(());
    };
    let Some(mut weights) = take("weight")? else {
        return Ok(());
    };
    let channels = means.len();
    // In old networks, batch norms have neither gammas nor betas.
    let mut or = |part, default| -> Result<Vec<f32>, Lc0Error> {
        Ok(take(part)?.unwrap_or_else(|| vec![default; channels]))
    };
    let mut biases = or("bias", 0.0)?;
    let betas = or("bn_betas", 0.0)?;
    let gammas = or("bn_gammas", 1.0)?;
    let variances = or("bn_stddivs", 0.0)?;
    for (part, numbers) in [
        ("bias", &biases),
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
    for (part, numbers) in [("weight", weights), ("bias", biases)] {
        let layer = Layer::encode(&numbers, Lc0Encoding::Float32);
        tensors.layers.insert(format!("{name}.{part}"), layer);
    }
    Ok(())
}

/// Returns the values of a layer, or `None` if the layer is missing or empty.
fn numbers(layer: Option<Layer>) -> Result<Option<Vec<f32>>, Lc0Error> {
    let Some(layer) = layer.filter(|layer| layer.count() > 0) else {
        return Ok(None);
    };
    layer.decode().map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(parts: &[(&str, &[f32])]) -> Tensors {
        let layers = parts.iter().map(|(part, numbers)| {
            let layer = Layer::encode(numbers, Lc0Encoding::Float32);
            (format!("body.3.conv1.{part}"), layer)
        });
        Tensors {
            layers: layers.collect(),
            ..Tensors::default()
        }
    }

    fn folded(mut block: Tensors) -> (Vec<f32>, Vec<f32>) {
        fold_batch_norms(&mut block).unwrap();
        assert_eq!(block.layers.len(), 2);
        let [weights, biases] = ["weight", "bias"].map(|part| {
            let layer = &block.layers[&format!("body.3.conv1.{part}")];
            layer.decode().unwrap()
        });
        (weights, biases)
    }

    #[test]
    fn a_batch_norm_scales_weights_and_shifts_biases() {
        let (weights, biases) = folded(block(&[
            ("weight", &[1.0, 2.0, 3.0, 4.0]),
            ("bn_means", &[1.0, -1.0]),
            ("bn_stddivs", &[4.0 - EPSILON, 1.0 - EPSILON]),
            ("bn_gammas", &[2.0, 1.0]),
            ("bn_betas", &[0.5, 0.0]),
        ]));
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
        let (weights, biases) = folded(block(&[
            ("weight", &[1.0, 2.0]),
            ("bias", &[3.0]),
            ("bn_means", &[1.0]),
            ("bn_stddivs", &[1.0 - EPSILON]),
        ]));
        assert!((weights[1] - 2.0).abs() < 1e-6 && (biases[0] - 2.0).abs() < 1e-6);
    }

    #[test]
    fn parts_that_do_not_fit_are_named() {
        let mut block = block(&[
            ("weight", &[1.0, 2.0]),
            ("bn_means", &[1.0, 2.0]),
            ("bn_stddivs", &[1.0]),
        ]);
        let error = fold_batch_norms(&mut block).unwrap_err();
        assert!(error.to_string().contains("body.3.conv1.bn_stddivs"));
    }
}
