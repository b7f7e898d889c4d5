//! Policy, value and moves-left heads.

use super::attention::Stack;
use super::conv::{conv1, conv3};
use super::{Reference, Squares, activation, dense, dense_each, softmax};
use crate::interop_lc0::protobuf::Message;
use shakmaty::Role;
use std::collections::HashMap;
use tessera::encode::from_square_to_square;

/// A policy move: origin, target, and the promotion other than to a knight.
type Move = (usize, usize, Option<Role>);

impl Reference {
    pub fn policy(&self, x: &Squares, has_attention: bool) -> Vec<f64> {
        let heads = self.weights.get(45);
        // Field numbers in files with several heads, and in files with a single head.
        let (head, tags) = match &heads {
            Some(heads) => (heads.at(3), [3, 4, 5, 6, 7, 8, 9, 10, 11]),
            None => (self.weights.clone(), [17, 18, 19, 20, 22, 21, 24, 11, 3]),
        };
        let [
            wq,
            bq,
            wk,
            bk,
            promotion,
            encoder,
            headcount,
            conv_first,
            conv_last,
        ] = tags;
        let shared = heads.as_ref().filter(|heads| heads.get(1).is_some());
        let (embedding, w, b) = match (shared, &heads) {
            (Some(shared), _) => (shared, 1, 2),
            (None, Some(_)) => (&head, 1, 2),
            (None, None) => (&self.weights, 4, 5),
        };
        let act = self.activation();
        match self.format.number(4) {
            0 | 1 => {
                let mut y = conv1(&head.at(conv_last), x);
                y.iter_mut().flatten().for_each(|y| *y = act(*y));
                dense(&embedding.tensor(w), &embedding.tensor(b), &by_channel(&y))
            }
            2 => {
                let mut y = conv3(&head.at(conv_first), x);
                y.iter_mut().flatten().for_each(|y| *y = act(*y));
                let y = conv3(&head.at(conv_last), &y);
                let channels = channels();
                let entry = |mv: &Move| y[mv.0][channels[&(steps(mv.0, mv.1), mv.2)]];
                moves().iter().map(entry).collect()
            }
            _ => {
                let act = if has_attention { act } else { activation(6) };
                let (w, b) = (embedding.tensor(w), embedding.tensor(b));
                let mut tokens = dense_each(&w, &b, x);
                tokens.iter_mut().flatten().for_each(|x| *x = act(*x));
                let stack = Stack {
                    heads: head.number(headcount) as usize,
                    alpha: 1.0,
                    epsilon: 1e-6,
                    smolgen: |x| x,
                    feed_forward: activation(6),
                };
                for layer in head.all(encoder) {
                    self.layer(&layer, &stack, &mut tokens);
                }
                let (wq, bq) = (head.tensor(wq), head.tensor(bq));
                let (wk, bk) = (head.tensor(wk), head.tensor(bk));
                let query = dense_each(&wq, &bq, &tokens);
                let key = dense_each(&wk, &bk, &tokens);
                let promotion = head.tensor(promotion);
                let entry = |&(from, to, piece): &Move| {
                    let product: f64 = query[from].iter().zip(&key[to]).map(|(q, k)| q * k).sum();
                    let pair = product / (query[from].len() as f64).sqrt();
                    let row = match piece {
                        None => return pair,
                        Some(Role::Queen) => 0,
                        Some(Role::Rook) => 1,
                        Some(_) => 2,
                    };
                    let offsets = dense(&promotion, &[], &key[to]);
                    pair + offsets[row] + offsets[3]
                };
                moves().iter().map(entry).collect()
            }
        }
    }

    /// Returns a value head's outputs, from the tags of its fields.
    fn value(&self, head: &Message, tags: [u32; 7], x: &Squares, has_attention: bool) -> Vec<f64> {
        let [squares_w, squares_b, conv, w1, b1, w2, b2] = tags;
        let act = self.activation();
        let flat = if has_attention {
            let (w, b) = (head.tensor(squares_w), head.tensor(squares_b));
            dense_each(&w, &b, x)
                .into_iter()
                .flatten()
                .map(act)
                .collect()
        } else {
            let mut y = conv1(&head.at(conv), x);
            y.iter_mut().flatten().for_each(|y| *y = act(*y));
            by_channel(&y)
        };
        let hidden = dense(&head.tensor(w1), &head.tensor(b1), &flat);
        let hidden: Vec<f64> = hidden.into_iter().map(act).collect();
        dense(&head.tensor(w2), &head.tensor(b2), &hidden)
    }

    pub fn winner(&self, x: &Squares, has_attention: bool) -> [f64; 3] {
        let outputs = match self.weights.get(44) {
            Some(heads) => self.value(&heads.at(1), [1, 2, 11, 3, 4, 5, 6], x, has_attention),
            None => self.value(&self.weights, [29, 30, 6, 7, 8, 9, 10], x, has_attention),
        };
        match outputs[..] {
            [value] => {
                let q = value.tanh();
                [(1.0 + q) / 2.0, 0.0, (1.0 - q) / 2.0]
            }
            _ => softmax(&outputs).try_into().unwrap(),
        }
    }

    pub fn q(&self, x: &Squares) -> Option<f64> {
        let head = self.weights.get(44)?.get(2)?;
        let outputs = self.value(&head, [1, 2, 11, 3, 4, 5, 6], x, true);
        Some(match outputs[..] {
            [value] => value.tanh(),
            _ => {
                let wdl = softmax(&outputs);
                wdl[0] - wdl[2]
            }
        })
    }

    pub fn moves_left(&self, x: &Squares, has_attention: bool) -> Option<f64> {
        (self.format.number(6) == 1).then(|| {
            let tags = [31, 32, 12, 13, 14, 15, 16];
            self.value(&self.weights, tags, x, has_attention)[0].max(0.0)
        })
    }
}

fn moves() -> Vec<Move> {
    (0..1858).filter_map(from_square_to_square).collect()
}

fn steps(from: usize, to: usize) -> (i32, i32) {
    let (from, to) = (from as i32, to as i32);
    (to % 8 - from % 8, to / 8 - from / 8)
}

/// Returns the channel of each direction of movement, in Lc0's order.
fn channels() -> HashMap<((i32, i32), Option<Role>), usize> {
    let mut ways = Vec::new();
    for direction in [
        (0, 1),
        (1, 1),
        (1, 0),
        (1, -1),
        (0, -1),
        (-1, -1),
        (-1, 0),
        (-1, 1),
    ] {
        ways.extend((1..8).map(|n| ((n * direction.0, n * direction.1), None)));
    }
    for knight in [
        (1, 2),
        (2, 1),
        (2, -1),
        (1, -2),
        (-1, -2),
        (-2, -1),
        (-2, 1),
        (-1, 2),
    ] {
        ways.push((knight, None));
    }
    for file in [-1, 0, 1] {
        for piece in [Role::Rook, Role::Bishop, Role::Queen] {
            ways.push(((file, 1), Some(piece)));
        }
    }
    ways.into_iter()
        .enumerate()
        .map(|(channel, way)| (way, channel))
        .collect()
}

fn by_channel(x: &Squares) -> Vec<f64> {
    let channels = x[0].len();
    (0..channels)
        .flat_map(|channel| x.iter().map(move |square| square[channel]))
        .collect()
}
