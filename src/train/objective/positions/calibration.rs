//! Measures the calibration of the value heads for reliability diagrams.

use super::{PositionObjective, PositionSamples};
use crate::network::{Output, Outputs};
use crate::train::distributed::{GroupError, World};
use crate::train::objective::{Diagnostics, totals};
use serde_json::{Map, Value, json};
use tch::{Device, Kind, Tensor};

/// Number of bins of equal width.
const BINS: i64 = 10;

/// The predictions: the probabilities of the three results, and the value q.
const NAMES: [&str; 4] = ["win", "draw", "loss", "q"];

/// Sums for each prediction and bin, on the device.
#[derive(Debug)]
pub(in crate::train) struct Calibration {
    /// The sums, f32 [4 · bins, 3]: weight, weighted prediction, weighted truth.
    sums: Tensor,
}

impl Diagnostics<PositionObjective> for Calibration {
    fn new(device: Device) -> Calibration {
        let shape = [NAMES.len() as i64 * BINS, 3];
        Calibration {
            sums: Tensor::zeros(shape, (Kind::Float, device)),
        }
    }

    /// Adds a batch. Predicted probabilities are compared with the results, and the predicted q
    /// with the data's q. Samples without the target are skipped.
    fn add(&mut self, outputs: &Outputs, samples: &PositionSamples) {
        let targets = &samples.targets;
        let results = outputs.wdl().softmax(-1, Kind::Float);
        let known = targets.result.ge(0).to_kind(Kind::Float) * &targets.weight;
        for result in 0..3 {
            let truth = targets.result.eq(result).to_kind(Kind::Float);
            let predicted = results.select(1, result);
            self.sort(result, &predicted, &predicted, &truth, &known);
        }
        let Some(predicted) = outputs.get(Output::Q) else {
            return;
        };
        let predicted = predicted.to_kind(Kind::Float);
        let known = targets.q.isnan().logical_not().to_kind(Kind::Float) * &targets.weight;
        let truth = targets.q.nan_to_num(0.0, None, None);
        let share = (&predicted + 1.0) / 2.0;
        self.sort(3, &share, &predicted, &truth, &known);
    }

    /// Returns an entry `calibration` with the bins of each prediction, from low to high. A bin
    /// contains the weight of its samples, their mean prediction and their mean target; an empty
    /// bin is `null`. Predictions without targets are omitted.
    fn finish(&self, world: &World) -> Result<Map<String, Value>, GroupError> {
        let sums = totals(&self.sums, world, "summing what was predicted")?;
        let bins = |sums: &[f32]| -> Vec<Value> {
            sums.chunks(3)
                .map(|sums| (f64::from(sums[0]), f64::from(sums[1]), f64::from(sums[2])))
                .map(|(weight, predicted, truth)| {
                    if weight > 0.0 {
                        json!([weight, predicted / weight, truth / weight])
                    } else {
                        Value::Null
                    }
                })
                .collect()
        };
        let named: Map<String, Value> = NAMES
            .iter()
            .zip(sums.chunks(3 * BINS as usize))
            .map(|(name, sums)| ((*name).to_owned(), bins(sums)))
            .filter(|(_, bins)| bins.iter().any(|bin| !bin.is_null()))
            .map(|(name, bins)| (name, Value::Array(bins)))
            .collect();
        Ok([("calibration".to_owned(), Value::Object(named))]
            .into_iter()
            .collect())
    }
}

impl Calibration {
    /// Sorts predictions into bins by `share`, which is in 0…1. All vectors are f32 `[B]`.
    fn sort(
        &mut self,
        row: i64,
        share: &Tensor,
        predicted: &Tensor,
        truth: &Tensor,
        weight: &Tensor,
    ) {
        let bin = (share * BINS as f64)
            .clamp(0.0, BINS as f64 - 1.0)
            .to_kind(Kind::Int64)
            + row * BINS;
        let columns = [weight.shallow_clone(), predicted * weight, truth * weight];
        let _ = self.sums.index_add_(0, &bin, &Tensor::stack(&columns, 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predictions_fall_into_their_bins() {
        let mut calibration = Calibration::new(Device::Cpu);
        let floats = |values: [f32; 3]| Tensor::from_slice(&values);
        let predicted = floats([0.72, 0.78, 1.0]);
        let (truth, weight) = (floats([1.0, 0.0, 1.0]), floats([1.0, 1.0, 0.5]));
        calibration.sort(0, &predicted, &predicted, &truth, &weight);
        let found = calibration.finish(&World::alone()).unwrap();
        let found = found["calibration"].as_object().unwrap();
        assert_eq!(found.keys().collect::<Vec<_>>(), ["win"]);
        let bins = found["win"].as_array().unwrap();
        let filled: Vec<usize> = (0..bins.len())
            .filter(|&bin| !bins[bin].is_null())
            .collect();
        assert_eq!(filled, [7, 9]);
        let numbers: Vec<f64> = (0..3).map(|i| bins[7][i].as_f64().unwrap()).collect();
        assert!((numbers[1] - 0.75).abs() < 1e-6, "{numbers:?}");
        assert_eq!((numbers[0], numbers[2]), (2.0, 0.5));
        assert_eq!(bins[9][0], 0.5);
    }
}
