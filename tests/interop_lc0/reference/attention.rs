//! Attention bodies.

use super::{Reference, Squares, activation, dense, dense_each, softmax};
use crate::interop_lc0::protobuf::Message;

/// The parameters that all layers in a stack share.
pub struct Stack {
    pub heads: usize,
    pub alpha: f64,
    pub epsilon: f64,
    pub smolgen: fn(f64) -> f64,
    pub feed_forward: fn(f64) -> f64,
}

impl Reference {
    /// Returns the activation that this field of the format names, or the default activation.
    fn special(&self, tag: u32) -> fn(f64) -> f64 {
        match self.format.number(tag) {
            0 => self.activation(),
            number => activation(number),
        }
    }

    pub fn body_activations(&self) -> [fn(f64) -> f64; 2] {
        [self.special(8), self.special(9)]
    }

    pub fn attention_body(&self, x: &Squares) -> Squares {
        let weights = &self.weights;
        let layers = weights.all(27);
        let is_dense = self.format.number(10) == 2;
        let has_tower = !weights.all(2).is_empty();
        let [smolgen, feed_forward] = self.body_activations();
        let stack = Stack {
            heads: weights.number(28) as usize,
            alpha: (2.0 * layers.len() as f64).powf(-0.25),
            epsilon: if is_dense { 1e-3 } else { 1e-6 },
            smolgen,
            feed_forward,
        };
        let mut wide = x.clone();
        if is_dense {
            let pieces: Vec<f64> = x.iter().flat_map(|square| square[..12].to_vec()).collect();
            let seen = dense(&weights.tensor(37), &weights.tensor(38), &pieces);
            let each = seen.len() / 64;
            for (square, x) in wide.iter_mut().enumerate() {
                x.extend(&seen[square * each..][..each]);
            }
        } else if !has_tower {
            for (square, x) in wide.iter_mut().enumerate() {
                x.extend((0..64).map(|other| reach(square as i32, other)));
            }
        }
        let act = self.activation();
        let (embedding, bias) = (weights.tensor(25), weights.tensor(26));
        let mut tokens = dense_each(&embedding, &bias, &wide);
        tokens.iter_mut().flatten().for_each(|x| *x = act(*x));
        if is_dense {
            let (gammas, betas) = (weights.tensor(39), weights.tensor(40));
            tokens
                .iter_mut()
                .for_each(|x| norm(x, &gammas, &betas, 1e-3));
        }
        let (multiply, add) = (weights.tensor(33), weights.tensor(34));
        if !multiply.is_empty() {
            for (square, token) in tokens.iter_mut().enumerate() {
                for (feature, x) in token.iter_mut().enumerate() {
                    let place = feature * 64 + square;
                    *x = *x * multiply[place] + add[place];
                }
            }
        }
        if is_dense {
            let norms = (weights.tensor(42), weights.tensor(43));
            feed_forward_block(&weights.at(41), &norms, &stack, &mut tokens);
        }
        for layer in layers {
            self.layer(&layer, &stack, &mut tokens);
        }
        tokens
    }

    pub fn layer(&self, layer: &Message, stack: &Stack, tokens: &mut Squares) {
        let mha = layer.at(1);
        let project =
            |w: u32| -> Squares { dense_each(&mha.tensor(w), &mha.tensor(w + 1), tokens) };
        let [query, key, value] = [1, 3, 5].map(project);
        let width = query[0].len();
        let depth = width / stack.heads;
        let generated = mha
            .get(9)
            .map(|smolgen| self.smolgen(&smolgen, stack, tokens));
        let mut seen = vec![vec![0.0; width]; 64];
        for head in 0..stack.heads {
            let part = head * depth..(head + 1) * depth;
            for from in 0..64 {
                let logits: Vec<f64> = (0..64)
                    .map(|to| {
                        let product: f64 = query[from][part.clone()]
                            .iter()
                            .zip(&key[to][part.clone()])
                            .map(|(q, k)| q * k)
                            .sum();
                        let bias = generated
                            .as_ref()
                            .map_or(0.0, |all| all[head][from * 64 + to]);
                        product / (depth as f64).sqrt() + bias
                    })
                    .collect();
                for (to, weight) in softmax(&logits).into_iter().enumerate() {
                    for feature in part.clone() {
                        seen[from][feature] += weight * value[to][feature];
                    }
                }
            }
        }
        let (gammas, betas) = (layer.tensor(2), layer.tensor(3));
        let added = dense_each(&mha.tensor(7), &mha.tensor(8), &seen);
        for (x, y) in tokens.iter_mut().zip(added) {
            x.iter_mut().zip(y).for_each(|(x, y)| *x += stack.alpha * y);
            norm(x, &gammas, &betas, stack.epsilon);
        }
        let norms = (layer.tensor(5), layer.tensor(6));
        feed_forward_block(&layer.at(4), &norms, stack, tokens);
    }

    /// Returns the attention biases of each head, 64 × 64 values.
    fn smolgen(&self, smolgen: &Message, stack: &Stack, tokens: &Squares) -> Vec<Vec<f64>> {
        let flat = dense_each(&smolgen.tensor(1), &[], tokens).concat();
        let stage = |x: &[f64], first: u32| -> Vec<f64> {
            let [w, b, gammas, betas] = [0, 1, 2, 3].map(|offset| smolgen.tensor(first + offset));
            let mut y: Vec<f64> = dense(&w, &b, x).into_iter().map(stack.smolgen).collect();
            norm(&mut y, &gammas, &betas, 1e-3);
            y
        };
        let hidden = stage(&flat, 2);
        let all = stage(&hidden, 6);
        let heads = all.chunks(all.len() / stack.heads);
        let heads: Squares = heads.map(<[f64]>::to_vec).collect();
        dense_each(&self.weights.tensor(35), &[], &heads)
    }
}

fn feed_forward_block(
    block: &Message,
    norms: &(Vec<f64>, Vec<f64>),
    stack: &Stack,
    tokens: &mut Squares,
) {
    let [w1, b1, w2, b2] = [1, 2, 3, 4].map(|tag| block.tensor(tag));
    let mut hidden = dense_each(&w1, &b1, tokens);
    let act = stack.feed_forward;
    hidden.iter_mut().flatten().for_each(|x| *x = act(*x));
    let added = dense_each(&w2, &b2, &hidden);
    for (x, y) in tokens.iter_mut().zip(added) {
        x.iter_mut().zip(y).for_each(|(x, y)| *x += stack.alpha * y);
        norm(x, &norms.0, &norms.1, stack.epsilon);
    }
}

fn norm(x: &mut [f64], gammas: &[f64], betas: &[f64], epsilon: f64) {
    let count = x.len() as f64;
    let mean = x.iter().sum::<f64>() / count;
    let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
    for ((x, gamma), beta) in x.iter_mut().zip(gammas).zip(betas) {
        *x = (*x - mean) / (variance + epsilon).sqrt() * gamma + beta;
    }
}

fn reach(from: i32, to: i32) -> f64 {
    let files = (from % 8 - to % 8).abs();
    let ranks = (from / 8 - to / 8).abs();
    if from == to {
        -1.0
    } else if files == 0 || ranks == 0 || files == ranks || files * ranks == 2 {
        1.0
    } else {
        0.0
    }
}
