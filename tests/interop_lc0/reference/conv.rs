//! Residual towers, using the batch norms in the file.

use super::{Reference, Squares, dense, dense_each, product};
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

/// Applies a convolution's batch norm to the sum of an output channel.
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
    let norm = norm(block);
    // The inputs that the kernel's taps read around each square; 0 outside the board.
    let mut seen = vec![0.0; 64 * inputs * 9];
    for (square, seen) in seen.chunks_mut(inputs * 9).enumerate() {
        let (rank, file) = (square as i32 / 8, square as i32 % 8);
        for tap in 0..9 {
            let (rank, file) = (rank + tap / 3 - 1, file + tap % 3 - 1);
            if (0..8).contains(&rank) && (0..8).contains(&file) {
                for (input, &x) in x[(rank * 8 + file) as usize].iter().enumerate() {
                    seen[input * 9 + tap as usize] = x;
                }
            }
        }
    }
    let sums = product(&weights, &seen, inputs * 9);
    let normed = |sums: &[f64]| {
        sums.iter()
            .enumerate()
            .map(|(c, &sum)| norm(c, sum))
            .collect()
    };
    sums.chunks(sums.len() / 64).map(normed).collect()
}

/// A 1 × 1 convolution and its batch norm.
pub fn conv1(block: &Message, x: &Squares) -> Squares {
    let norm = norm(block);
    let mut sums = dense_each(&block.tensor(1), &[], x);
    for square in &mut sums {
        for (channel, sum) in square.iter_mut().enumerate() {
            *sum = norm(channel, *sum);
        }
    }
    sums
}
