//! Residual towers, with batch norms as the file has them.

use super::{Reference, Squares, dense};
use crate::interop_lc0::protobuf::Message;

impl Reference {
    pub fn tower(&self, planes: &Squares) -> Squares {
        let act = self.activation();
        let mut x = conv3(&self.weights.at(1), planes);
        x.iter_mut().flatten().for_each(|x| *x = act(*x));
        for block in self.weights.all(2) {
            let mut y = conv3(&block.at(1), &x);
            y.iter_mut().flatten().for_each(|y| *y = act(*y));
            let mut y = conv3(&block.at(2), &y);
            if let Some(unit) = block.get(3) {
                let channels = y[0].len();
                let mean: Vec<f64> = (0..channels)
                    .map(|c| y.iter().map(|square| square[c]).sum::<f64>() / 64.0)
                    .collect();
                let mut hidden = dense(&unit.tensor(1), &unit.tensor(2), &mean);
                hidden.iter_mut().for_each(|x| *x = act(*x));
                let both = dense(&unit.tensor(3), &unit.tensor(4), &hidden);
                for square in &mut y {
                    for (c, y) in square.iter_mut().enumerate() {
                        *y = *y / (1.0 + (-both[c]).exp()) + both[channels + c];
                    }
                }
            }
            for (x, y) in x.iter_mut().flatten().zip(y.iter().flatten()) {
                *x = act(*x + y);
            }
        }
        x
    }
}

/// What a convolution's batch norm makes of the sum of an output channel.
fn norm(block: &Message) -> impl Fn(usize, f64) -> f64 {
    let [biases, means, variances, gammas, betas] = [2, 3, 4, 5, 6].map(|tag| block.tensor(tag));
    let or =
        |list: &Vec<f64>, index: usize, default: f64| list.get(index).copied().unwrap_or(default);
    move |channel, sum| {
        let sum = sum + or(&biases, channel, 0.0);
        if means.is_empty() {
            return sum;
        }
        let deviation = (variances[channel] + 1e-5).sqrt();
        (sum - means[channel]) / deviation * or(&gammas, channel, 1.0) + or(&betas, channel, 0.0)
    }
}

/// A 3 × 3 convolution and its batch norm.
pub fn conv3(block: &Message, x: &Squares) -> Squares {
    let weights = block.tensor(1);
    let inputs = x[0].len();
    let outputs = weights.len() / inputs / 9;
    let norm = norm(block);
    // Weights by tap, so that the inner loop runs through memory.
    let mut taps = vec![vec![0.0; inputs]; 9 * outputs];
    for output in 0..outputs {
        for input in 0..inputs {
            for tap in 0..9 {
                taps[output * 9 + tap][input] = weights[(output * inputs + input) * 9 + tap];
            }
        }
    }
    (0..64i32)
        .map(|square| {
            (0..outputs)
                .map(|output| {
                    let mut sum = 0.0;
                    for (rank, file) in (-1..2).flat_map(|rank| (-1..2).map(move |f| (rank, f))) {
                        let (r, f) = (square / 8 + rank, square % 8 + file);
                        if (0..8).contains(&r) && (0..8).contains(&f) {
                            let tap = (rank + 1) * 3 + file + 1;
                            let weights = &taps[output * 9 + tap as usize];
                            let x = &x[(r * 8 + f) as usize];
                            sum += weights.iter().zip(x).map(|(w, x)| w * x).sum::<f64>();
                        }
                    }
                    norm(output, sum)
                })
                .collect()
        })
        .collect()
}

/// A 1 × 1 convolution and its batch norm.
pub fn conv1(block: &Message, x: &Squares) -> Squares {
    let weights = block.tensor(1);
    let norm = norm(block);
    let sums = x.iter().map(|x| dense(&weights, &[], x));
    sums.map(|sums| {
        sums.into_iter()
            .enumerate()
            .map(|(c, sum)| norm(c, sum))
            .collect()
    })
    .collect()
}
