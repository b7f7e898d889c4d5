//! Measures the accuracy of predicted futures ply by ply, with fully masked futures as input.

use super::{HorizonObjective, HorizonOutputs, HorizonSamples};
use crate::network::diffusion::LONGEST_HORIZON;
use crate::train::distributed::{GroupError, World};
use crate::train::objective::positions::Calibration;
use crate::train::objective::{Diagnostics, hits, totals};
use serde_json::{Map, Value, json};
use tch::{Device, Kind, Tensor};

/// Counts per ply: boards, correct boards, correct squares, unchanged squares, changed squares,
/// correct changed squares, moves, correct moves. A square is changed if it differs from the
/// present position.
const FIELDS: usize = 8;

/// The counts by ply, and the calibration of the values.
#[derive(Debug)]
pub(in crate::train) struct ByPly {
    calibration: Calibration,
    /// The counts, f32 [longest horizon, fields].
    sums: Tensor,
}

impl Diagnostics<HorizonObjective> for ByPly {
    fn new(device: Device) -> ByPly {
        let shape = [LONGEST_HORIZON, FIELDS as i64];
        ByPly {
            calibration: Calibration::new(device),
            sums: Tensor::zeros(shape, (Kind::Float, device)),
        }
    }

    fn add(&mut self, outputs: &HorizonOutputs, samples: &HorizonSamples) {
        self.calibration.add(&outputs.present, &samples.positions);
        let (Some(imagined), Some(future)) = (&outputs.unaided, &samples.future) else {
            return;
        };
        // The counts are [B, H] and exclude boards that do not exist.
        let of_boards = |squares: &Tensor| {
            let sums = squares.sum_dim_intlist([2i64].as_slice(), false, Kind::Float);
            sums * &future.exists
        };
        let right = hits(&imagined.squares, &future.squares);
        let changed = &future.changed;
        let exact = of_boards(&right).eq(64.0).to_kind(Kind::Float);
        let none = future.exists.zeros_like();
        let (moves, right_moves) = match &imagined.moves {
            Some(logits) => {
                // The first move is measured as the policy. Given moves do not count.
                let first = none.narrow(1, 0, 1);
                let asked = future.moves.ge(0).to_kind(Kind::Float);
                let right = hits(logits, &future.moves);
                (
                    Tensor::cat(&[&first, &asked], 1),
                    Tensor::cat(&[&first, &right], 1),
                )
            }
            None => (none.shallow_clone(), none),
        };
        let fields = [
            future.exists.shallow_clone(),
            exact,
            of_boards(&right),
            of_boards(&(1.0 - changed)),
            of_boards(changed),
            of_boards(&(&right * changed)),
            moves,
            right_moves,
        ];
        let sums = Tensor::stack(&fields, 2);
        let sums = sums.sum_dim_intlist([0i64].as_slice(), false, Kind::Float);
        let mut of_plies = self.sums.narrow(0, 0, sums.size()[0]);
        of_plies += sums;
    }

    /// Returns the calibration of the values, and an entry `imagination` with one object per ply.
    /// The object contains the number of `boards`, the shares of fully correct boards (`exact`), of
    /// correct squares (`squares`), of squares that a copy of the present position would predict
    /// correctly (`copy`), of changed squares that are correct (`changed`), and the share of
    /// correct moves to these boards (`moves`).
    fn finish(&self, world: &World) -> Result<Map<String, Value>, GroupError> {
        let mut found = self.calibration.finish(world)?;
        let sums = totals(&self.sums, world, "summing what was imagined")?;
        // Where there is nothing to share, the quotient is NaN, which becomes null.
        let share = |part: f32, of: f32| json!(part / of);
        let plies = sums.chunks(FIELDS).filter(|row| row[0] + row[6] > 0.0);
        let plies: Vec<Value> = plies
            .map(|row| {
                json!({
                    "boards": row[0],
                    "exact": share(row[1], row[0]),
                    "squares": share(row[2], 64.0 * row[0]),
                    "copy": share(row[3], 64.0 * row[0]),
                    "changed": share(row[5], row[4]),
                    "moves": share(row[7], row[6]),
                })
            })
            .collect();
        if !plies.is_empty() {
            found.insert("imagination".to_owned(), plies.into());
        }
        Ok(found)
    }
}
