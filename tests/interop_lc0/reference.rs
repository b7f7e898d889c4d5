//! A reference implementation of Lc0 networks in f64. It starts from the bytes of a network's file
//! and is independent of the program's own reader and forward pass.

mod attention;
mod conv;
mod heads;

use super::protobuf::Message;
use flate2::read::GzDecoder;
use ndarray::ArrayView2;
use std::io::Read;
use tessera::encode::WIDTH;

/// Activations: a list of features for each square.
pub type Squares = Vec<Vec<f64>>;

/// A network's evaluation of a position.
#[derive(Debug)]
pub struct Evaluation {
    /// Logits of the 1858 policy entries.
    pub policy: Vec<f64>,
    /// Probabilities of win, draw and loss.
    pub wdl: [f64; 3],
    /// W − L of the head `q`, if present.
    pub q: Option<f64>,
    /// Plies to the end of the game, if the network predicts them.
    pub moves_left: Option<f64>,
}

pub struct Reference {
    pub weights: Message,
    /// The field `network_format`.
    pub format: Message,
}

impl Reference {
    /// Reads a network from its file, compressed or not.
    pub fn new(file: &[u8]) -> Reference {
        let mut bytes = Vec::new();
        if file[0] == 0x1f {
            GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
        } else {
            bytes.extend(file);
        }
        let net = Message::parse(&bytes);
        Reference {
            weights: net.at(10),
            format: net.at(4).at(2),
        }
    }

    pub fn evaluate(&self, words: &[u64; WIDTH]) -> Evaluation {
        let mut x = planes(words, self.format.number(1));
        let has_attention = matches!(self.format.number(3), 6 | 7);
        if !self.weights.all(2).is_empty() {
            x = self.tower(&x);
        }
        if has_attention {
            x = self.attention_body(&x);
        }
        Evaluation {
            policy: self.policy(&x, has_attention),
            wdl: self.winner(&x, has_attention),
            q: self.q(&x),
            moves_left: self.moves_left(&x, has_attention),
        }
    }

    /// Returns the default activation.
    fn activation(&self) -> fn(f64) -> f64 {
        activation(if self.format.number(7) == 1 { 1 } else { 2 })
    }
}

/// Returns the activation with this number in Lc0's format.
fn activation(number: u64) -> fn(f64) -> f64 {
    match number {
        1 => |x| x * x.exp().ln_1p().tanh(),
        2 => |x| x.max(0.0),
        3 => |x| x,
        6 => |x| {
            let scale = 1.050_700_987_355_480_5;
            if x > 0.0 {
                scale * x
            } else {
                scale * 1.673_263_242_354_377_2 * (x.exp() - 1.0)
            }
        },
        7 => |x| x / (1.0 + (-x).exp()),
        8 => |x| x.max(0.0) * x.max(0.0),
        other => panic!("activation {other}"),
    }
}

/// Returns the 112 planes of a row, by square.
fn planes(words: &[u64; WIDTH], format: u64) -> Squares {
    let bit = |word: u64, square: usize| (word >> square & 1) as f64;
    let scalar = |index: usize| words[104 + index];
    (0..64)
        .map(|square| {
            let mut x: Vec<f64> = (0..104).map(|plane| bit(words[plane], square)).collect();
            if format == 1 {
                x.extend((0..4).map(|right| f64::from(u8::from(scalar(right) != 0))));
            } else {
                x.extend([
                    bit(scalar(0) | scalar(2), square),
                    bit(scalar(1) | scalar(3), square),
                ]);
                x.extend([0.0, 0.0]);
            }
            let black = scalar(4) as f64;
            x.push(match format {
                1 | 2 => black,
                _ => bit(scalar(6) << 16, square),
            });
            let plies = scalar(5) as f64;
            x.push(if format >= 4 { plies / 100.0 } else { plies });
            x.push(if format >= 132 { black } else { 0.0 });
            x.push(1.0);
            x
        })
        .collect()
}

/// A dense layer: `weights` has one row per output.
pub fn dense(weights: &[f64], biases: &[f64], x: &[f64]) -> Vec<f64> {
    let mut sums = product(weights, x, x.len());
    for (sum, bias) in sums.iter_mut().zip(biases) {
        *sum += bias;
    }
    sums
}

/// Applies a dense layer to every square.
pub fn dense_each(weights: &[f64], biases: &[f64], x: &Squares) -> Squares {
    let inputs = x[0].len();
    let sums = product(weights, &x.concat(), inputs);
    let mut squares: Squares = sums
        .chunks(weights.len() / inputs)
        .map(<[f64]>::to_vec)
        .collect();
    for square in &mut squares {
        for (sum, bias) in square.iter_mut().zip(biases) {
            *sum += bias;
        }
    }
    squares
}

/// Multiplies rows of `inputs` values by rows of weights, and returns the sums of all outputs for
/// each row of `x`. It uses ndarray because the test build optimises ndarray's loops but not ours.
pub fn product(weights: &[f64], x: &[f64], inputs: usize) -> Vec<f64> {
    let rows =
        |numbers| ArrayView2::from_shape(((numbers as &[f64]).len() / inputs, inputs), numbers);
    let sums = rows(x).unwrap().dot(&rows(weights).unwrap().t());
    sums.into_iter().collect()
}

pub fn softmax(x: &[f64]) -> Vec<f64> {
    let top = x.iter().copied().fold(f64::MIN, f64::max);
    let powers: Vec<f64> = x.iter().map(|x| (x - top).exp()).collect();
    let total: f64 = powers.iter().sum();
    powers.into_iter().map(|power| power / total).collect()
}
