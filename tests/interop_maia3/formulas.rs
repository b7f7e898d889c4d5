//! Compares the network with Maia-3's formulas, computed in f64, one value at a time.

use super::checkpoint::Checkpoint;
use super::{
    Parameter, board, games, largest_difference, model, random_parameters, ratings, small,
};
use std::collections::HashMap;
use tessera::chess::Game;
use tessera::interop::maia3;
use tessera::network::maia3::Maia3Config;

/// A matrix, or a vector as a single row.
#[derive(Clone)]
struct Matrix {
    columns: usize,
    values: Vec<f64>,
}

impl Matrix {
    fn new(columns: usize, values: Vec<f64>) -> Matrix {
        Matrix { columns, values }
    }

    fn row(&self, index: usize) -> &[f64] {
        &self.values[index * self.columns..][..self.columns]
    }

    fn rows(&self) -> impl Iterator<Item = &[f64]> {
        self.values.chunks(self.columns)
    }

    /// Applies `change` to each row.
    fn map(&self, change: impl Fn(&[f64]) -> Vec<f64>) -> Matrix {
        let rows: Vec<Vec<f64>> = self.rows().map(change).collect();
        Matrix::new(rows[0].len(), rows.concat())
    }

    fn mean(&self) -> Vec<f64> {
        let sum = |column| self.rows().map(|row| row[column]).sum::<f64>();
        let count = self.rows().count() as f64;
        (0..self.columns)
            .map(|column| sum(column) / count)
            .collect()
    }
}

fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(l, r)| l * r).sum()
}

/// Computes the error function from its series, with an error of about 1e-15, for |x| < 5; returns
/// ±1 beyond that.
fn erf(x: f64) -> f64 {
    if x.abs() > 5.0 {
        return x.signum();
    }
    let (mut term, mut sum) = (x, x);
    for n in 1..150 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}

fn gelu(x: f64) -> f64 {
    x * (1.0 + erf(x / 2f64.sqrt())) / 2.0
}

struct Formulas<'a> {
    config: &'a Maia3Config,
    parameters: HashMap<&'a str, Matrix>,
}

impl<'a> Formulas<'a> {
    fn new(config: &'a Maia3Config, parameters: &'a [Parameter]) -> Formulas<'a> {
        let matrices = parameters.iter().map(|(name, shape, values)| {
            let columns = *shape.last().unwrap() as usize;
            let values = values.iter().copied().map(f64::from).collect();
            (name.as_str(), Matrix::new(columns, values))
        });
        Formulas {
            config,
            parameters: matrices.collect(),
        }
    }

    fn get(&self, name: &str) -> &Matrix {
        &self.parameters[name]
    }

    fn linear(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let bias = self.get(&format!("{name}.bias"));
        let product = self.product(&format!("{name}.weight"), x);
        product
            .iter()
            .zip(&bias.values)
            .map(|(x, b)| x + b)
            .collect()
    }

    fn product(&self, name: &str, x: &[f64]) -> Vec<f64> {
        self.get(name).rows().map(|row| dot(row, x)).collect()
    }

    fn norm(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let count = x.len() as f64;
        let mean = x.iter().sum::<f64>() / count;
        let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
        let weight = &self.get(&format!("{name}.weight")).values;
        let bias = &self.get(&format!("{name}.bias")).values;
        x.iter()
            .zip(weight.iter().zip(bias))
            .map(|(x, (w, b))| (x - mean) / (variance + 1e-5).sqrt() * w + b)
            .collect()
    }

    fn rms_norm(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let square = dot(x, x) / x.len() as f64;
        let weight = &self.get(name).values;
        let root = (square + f64::from(f32::EPSILON)).sqrt();
        x.iter().zip(weight).map(|(x, w)| x / root * w).collect()
    }

    fn rating(&self, rating: i64) -> Vec<f64> {
        let share = rating.clamp(0, 5000) as f64 / 5000.0;
        let low = &self.get("elo_embedding_low.weight").values;
        let high = &self.get("elo_embedding_high.weight").values;
        let mix = low.iter().zip(high);
        mix.map(|(l, h)| share * l + (1.0 - share) * h).collect()
    }

    fn tokens(&self, game: &Game, ratings: [i64; 2]) -> Matrix {
        let history = self.config.history as usize;
        let mut features = vec![vec![0.0; 12 * history]; 64];
        for age in 0..history {
            for (square, kind) in board(game, age) {
                features[square][12 * (history - 1 - age) + kind] = 1.0;
            }
        }
        let players = ratings.map(|rating| self.rating(rating)).concat();
        let width = self.config.width as usize;
        let tokens = features.into_iter().flat_map(|square| {
            self.linear("token_projection", &[square, players.clone()].concat())
        });
        Matrix::new(width, tokens.collect())
    }

    /// Returns the bias by head, query square and key square.
    fn biases(&self, path: &str, x: &Matrix) -> impl Fn(usize, usize, usize) -> f64 {
        let board = match self.config.gab.compress {
            Some(_) => x.map(|x| self.linear(&format!("{path}.sm1"), x)).values,
            None => x.mean(),
        };
        let activate = |x: Vec<f64>| x.into_iter().map(gelu).collect::<Vec<_>>();
        let summary = activate(self.linear(&format!("{path}.sm2"), &board));
        let summary = self.norm(&format!("{path}.ln1"), &summary);
        let heads = activate(self.linear(&format!("{path}.sm3"), &summary));
        let heads = self.norm(&format!("{path}.ln2"), &heads);
        let generator = self.get("gab_shared_weight").clone();
        move |head, query, key| {
            let part = &heads[head * generator.columns..][..generator.columns];
            dot(part, generator.row(query * 64 + key))
        }
    }

    fn attention(&self, path: &str, x: &Matrix) -> Matrix {
        let width = self.config.width as usize;
        let head_width = width / self.config.heads as usize;
        let projected = x.map(|x| self.product(&format!("{path}.mha.in_proj_weight"), x));
        let bias = self.biases(path, x);
        let mut seen = vec![0.0; 64 * width];
        for head in 0..self.config.heads as usize {
            let part = |which: usize, square: usize| {
                &projected.row(square)[which * width + head * head_width..][..head_width]
            };
            for query in 0..64 {
                let logit = |key| {
                    let product = dot(part(0, query), part(1, key));
                    product / (head_width as f64).sqrt() + bias(head, query, key)
                };
                let logits: Vec<f64> = (0..64).map(logit).collect();
                let top = logits.iter().copied().fold(f64::MIN, f64::max);
                let shares: Vec<f64> = logits.iter().map(|x| (x - top).exp()).collect();
                let sum: f64 = shares.iter().sum();
                for (key, share) in shares.iter().enumerate() {
                    let seen = &mut seen[query * width + head * head_width..];
                    for (seen, value) in seen.iter_mut().zip(part(2, key)) {
                        *seen += share / sum * value;
                    }
                }
            }
        }
        Matrix::new(width, seen).map(|x| self.product(&format!("{path}.mha.out_proj.weight"), x))
    }

    fn layer(&self, path: &str, x: &Matrix) -> Matrix {
        let add = |x: &Matrix, y: &Matrix| {
            let sum = x.values.iter().zip(&y.values).map(|(x, y)| x + y);
            Matrix::new(x.columns, sum.collect())
        };
        let x = add(x, &self.attention(&format!("{path}.self_attn"), x));
        let x = x.map(|x| self.rms_norm(&format!("{path}.norm1.weight"), x));
        let y = x.map(|x| {
            let hidden = self.linear(&format!("{path}.linear1"), x);
            let hidden: Vec<f64> = hidden.into_iter().map(gelu).collect();
            self.linear(&format!("{path}.linear2"), &hidden)
        });
        add(&x, &y).map(|x| self.rms_norm(&format!("{path}.norm2.weight"), x))
    }

    fn moves(&self, x: &Matrix) -> Vec<f64> {
        let root = (self.config.hidden as f64).sqrt();
        let from = x.map(|x| self.product("proj_sq_from.weight", x));
        let to = x.map(|x| self.product("proj_sq_to.weight", x));
        let pair = |a: usize, b: usize| dot(from.row(a), to.row(b)) / root;
        let mut moves = Vec::new();
        for a in 0..64 {
            moves.extend((0..64).map(|b| pair(a, b)));
        }
        for from_file in 0..8 {
            for to_file in 0..8 {
                let pieces = self.product("promo_bias_proj.weight", to.row(56 + to_file));
                let base = pair(48 + from_file, 56 + to_file);
                moves.extend(pieces.iter().map(|piece| base + piece * root));
            }
        }
        moves
    }

    /// Returns the logits of Maia-3's moves, and of loss, draw and win.
    fn outputs(&self, game: &Game, ratings: [i64; 2]) -> (Vec<f64>, Vec<f64>) {
        let mut x = self.tokens(game, ratings);
        for layer in 0..self.config.layers {
            x = self.layer(&format!("transformer.layers.{layer}"), &x);
        }
        let x = x.map(|x| self.norm("transformer.norm", x));
        let board = self.norm("last_ln", &x.mean());
        let hidden = self.linear("fc_value_hid", &board);
        let hidden: Vec<f64> = hidden.iter().map(|x| x.max(0.0)).collect();
        (self.moves(&x), self.linear("fc_value", &hidden))
    }
}

#[test]
fn a_network_follows_the_formulas() {
    let games = games(100);
    for (config, seed) in small().iter().zip(1..) {
        let parameters = random_parameters(config, seed);
        let network = maia3::read(&Checkpoint::new(&parameters).bytes()).unwrap();
        assert_eq!(model(&network), config);
        let formulas = Formulas::new(config, &parameters);
        let expected: Vec<_> = games
            .iter()
            .enumerate()
            .map(|(index, game)| formulas.outputs(game, ratings(index)))
            .collect();
        let off = largest_difference(&network, &games, &expected);
        assert!(off < 1e-4, "off by {off}");
    }
}

#[test]
fn networks_with_less_history_read_the_newest_boards() {
    let games = games(20);
    for history in [1, 3] {
        let config = Maia3Config {
            history,
            ..small()[0].clone()
        };
        let parameters = random_parameters(&config, 7);
        let network = maia3::read(&Checkpoint::new(&parameters).bytes()).unwrap();
        assert_eq!(model(&network), &config);
        let formulas = Formulas::new(&config, &parameters);
        let expected: Vec<_> = games
            .iter()
            .enumerate()
            .map(|(index, game)| formulas.outputs(game, ratings(index)))
            .collect();
        let off = largest_difference(&network, &games, &expected);
        assert!(off < 1e-4, "off by {off}");
    }
}
