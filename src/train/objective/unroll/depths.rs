//! Measures a validation's metrics by depth, including the accuracy of the imagined boards.
//!
//! `depths` contains a row for each depth, which is the number of moves since the encoded position,
//! starting at zero. Values are means over the positions that have the target, or `null` without
//! such positions. `copy_squares` is the accuracy of copying the first board.

use super::{OWN, UnrollObjective, UnrollOutputs, UnrollSamples, prior};
use crate::network::Output;
use crate::train::config::UnrollConfig;
use crate::train::distributed::{GroupError, World};
use crate::train::objective::{Diagnostics, sum, totals};
use serde_json::{Map, Value, json};
use tch::{Device, Kind, Tensor};

/// Number of different depths.
const ROWS: i64 = UnrollConfig::MOST as i64 + 1;

/// The metrics, each as a sum and its divisor.
const NAMES: [&str; 17] = [
    "boards_exact",
    "squares",
    "copy_squares",
    "changed_squares",
    "illegal_mass",
    "illegal_choice",
    "policy_accuracy",
    "value_error",
    "same_choice",
    "value_drift",
    "legal_precision",
    "legal_recall",
    "end_precision",
    "end_recall",
    "latent_error",
    "feature_spread",
    "constant_features",
];

/// A feature counts as nearly constant if its standard deviation is below this share of the mean
/// standard deviation.
const NEAR_CONSTANT: f64 = 0.01;

/// The sums by depth, on the device.
#[derive(Debug)]
pub(in crate::train) struct Depths {
    /// The sums, f32 [17, 17, 2]: for each depth and metric, the value and the divisor.
    sums: Tensor,
}

impl Diagnostics<UnrollObjective> for Depths {
    fn new(device: Device) -> Depths {
        let shape = [ROWS, NAMES.len() as i64, 2];
        Depths {
            sums: Tensor::zeros(shape, (Kind::Float, device)),
        }
    }

    fn add(&mut self, outputs: &UnrollOutputs, samples: &UnrollSamples) {
        let depth = samples.plies() + 1;
        let by_depth = |tensor: &Tensor| tensor.to_kind(Kind::Float).view([-1, depth]);
        let heads = samples.weights.size()[0] - OWN.len() as i64;
        let own = |place: i64| samples.weights.get(heads + place);
        let (playing, end_known, there, foretold) = (own(0), own(1), own(3), own(4));

        let guessed = outputs.rules.board.argmax(-1, false);
        let right = guessed.eq_tensor(&samples.board);
        let same = samples.changed.logical_not();
        let exact = by_depth(&right.all_dim(-1, false));
        let changed_right = by_depth(&sum(&right.logical_and(&samples.changed)));

        let legal = &samples.targets.legal;
        let policy = outputs.outputs.policy();
        let prior = prior(&outputs.outputs, &outputs.rules);
        let illegal = prior.softmax(-1, Kind::Float) * legal.logical_not();
        let choice = prior.argmax(-1, false);
        let is_legal = legal.gather(1, &choice.unsqueeze(1), false).squeeze_dim(1);
        let held_legal = outputs.rules.legality.gt(0.0);
        let legal_found = by_depth(&sum(&held_legal.logical_and(legal)));
        let held_over = outputs.rules.end.gt(0.0);
        let over_found = by_depth(&held_over.logical_and(&samples.ended));

        let mut measured = vec![
            (exact, there.shallow_clone()),
            (by_depth(&sum(&right)), &there * 64.0),
            (by_depth(&sum(&same)), &there * 64.0),
            (changed_right, &there * by_depth(&sum(&samples.changed))),
            (by_depth(&sum(&illegal)), playing.shallow_clone()),
            (by_depth(&is_legal.logical_not()), playing.shallow_clone()),
        ];
        let targets = &samples.targets;
        // Only legal moves count, because players choose among these.
        let best = |logits: &Tensor| targets.masked(logits).argmax(-1, false);
        let chosen = best(policy);
        let is_target = chosen.eq_tensor(&targets.policy.argmax(-1, false));
        let has_policy = targets.policy.any_dim(-1, false);
        let found = outputs.outputs.get(Output::Q);
        let error = found.map(|q| (q - targets.q.nan_to_num(0.0, None, None)).abs());
        let error = error.unwrap_or_else(|| targets.q.zeros_like());
        let has_value = targets.q.isnan().logical_not();
        measured.extend([
            (by_depth(&is_target), &there * by_depth(&has_policy)),
            (by_depth(&error), &there * by_depth(&has_value)),
        ]);
        let nothing = || (there.zeros_like(), there.zeros_like());
        match &outputs.truth {
            None => measured.extend([nothing(), nothing()]),
            Some(truth) => {
                let same = chosen.eq_tensor(&best(truth.policy()));
                let q = [&outputs.outputs, truth].map(|of| of.get(Output::Q));
                let drift = match q {
                    [Some(found), Some(true_one)] => (found - true_one).abs(),
                    _ => same.zeros_like(),
                };
                measured.extend([
                    (by_depth(&same), playing.shallow_clone()),
                    (by_depth(&drift), there.shallow_clone()),
                ]);
            }
        }
        measured.extend([
            (
                legal_found.shallow_clone(),
                &playing * by_depth(&sum(&held_legal)),
            ),
            (legal_found, &playing * by_depth(&sum(legal))),
            (
                over_found.shallow_clone(),
                &end_known * by_depth(&held_over),
            ),
            (over_found, &end_known * by_depth(&samples.ended)),
            (by_depth(&outputs.latent), foretold),
        ]);
        // The divisor also masks the value.
        let columns = measured.iter().map(|(value, of)| {
            let counted = value * of.gt(0.0).to_kind(Kind::Float);
            let totals = [counted, of.shallow_clone()];
            let totals = totals.map(|it| it.sum_dim_intlist([0i64].as_slice(), false, Kind::Float));
            Tensor::stack(&totals, 1)
        });
        let mut columns: Vec<Tensor> = columns.collect();
        columns.extend(spread(&outputs.latents, depth));
        let mut part = self.sums.narrow(0, 0, depth);
        part += Tensor::stack(&columns, 1);
    }

    fn finish(&self, world: &World) -> Result<Map<String, Value>, GroupError> {
        let sums = totals(&self.sums, world, "summing what was imagined")?;
        let rows = sums
            .chunks(2 * NAMES.len())
            .enumerate()
            .map(|(depth, sums)| {
                let shares = NAMES.iter().zip(sums.chunks(2)).map(|(name, sums)| {
                    let share = f64::from(sums[0]) / f64::from(sums[1]);
                    let share = (sums[1] > 0.0).then_some(share);
                    ((*name).to_owned(), json!(share))
                });
                let mut row: Map<String, Value> = shares.collect();
                row.insert("depth".to_owned(), json!(depth));
                (sums[1] > 0.0).then_some(Value::Object(row))
            });
        let rows: Vec<Value> = rows.flatten().collect();
        Ok([("depths".to_owned(), Value::Array(rows))]
            .into_iter()
            .collect())
    }
}

/// Returns two metrics for each depth: the mean of the features' standard deviations over squares
/// and positions, and the share of nearly constant features. Both are [D + 1, 2], multiplied by the
/// number of positions, which is the divisor.
fn spread(latents: &Tensor, depth: i64) -> [Tensor; 2] {
    let latents = latents.to_kind(Kind::Float);
    let [_, squares, width] = latents.size()[..] else {
        unreachable!("latents have three dimensions");
    };
    let by_depth = latents.view([-1, depth, squares, width]);
    let count = by_depth.size()[0];
    let deviations =
        by_depth
            .transpose(0, 1)
            .flatten(1, 2)
            .std_dim([1i64].as_slice(), false, false);
    let mean = deviations.mean_dim([1i64].as_slice(), true, Kind::Float);
    let constant = deviations
        .lt_tensor(&(&mean * NEAR_CONSTANT))
        .to_kind(Kind::Float)
        .mean_dim([1i64].as_slice(), false, Kind::Float);
    [mean.squeeze_dim(1), constant].map(|value| {
        let of = value.ones_like() * count as f64;
        Tensor::stack(&[value * count as f64, of], 1)
    })
}
