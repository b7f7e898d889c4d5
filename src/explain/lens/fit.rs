//! Fits a lens to a network.

use super::{AffineMap, Lens, LensAbout, LensDistance, heads, layers};
use crate::chess::Game;
use crate::explain::ExplainError;
use crate::explain::evaluator::Evaluator;
use crate::explain::fingerprint::fingerprint;
use crate::network::{Network, Outputs, Positions, Tap, Taps};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use shakmaty::Position;
use std::collections::BTreeMap;
use tch::nn::{Adam, OptimizerConfig, VarStore};
use tch::{Device, Kind, TchError, Tensor};

/// Number of positions per optimizer step.
const BATCH: usize = 64;
/// Number of positions whose tokens are in memory at a time. Evaluating a position takes longer than
/// learning from it, so each of them serves several steps.
const POOL: usize = 512;
/// Number of steps that choose their positions from the same pool.
const STEPS_PER_POOL: usize = 32;
/// Maximum number of positions to which the maps are fitted by least squares at the start.
const START: usize = 4096;
/// Added to the variances of the least squares, as a fraction of the tokens' mean variance.
const RIDGE: f64 = 1e-3;
/// Adam's peak learning rate, for maps between tokens of variance 1.
const RATE: f64 = 1e-3;
/// Fraction of the steps after which the learning rate starts to decay to zero.
const DECAY_FROM: f64 = 0.5;
/// Weight of the expected result's squared error, beside the divergences of the policy and of win,
/// draw and loss.
const Q_WEIGHT: f64 = 4.0;
/// Seed of the random choice of positions.
const SEED: u64 = 1;
/// Logit of illegal moves.
const ILLEGAL: f64 = -1e9;

/// Fits a lens to the network's outputs over `positions`, and measures it over `held_out`,
/// preferably from other games: by least squares to the last layer's tokens, then by `steps`
/// optimizer steps of 64 positions each. After every hundredth step, `tell` receives the step and
/// its mean divergence of the policies after all layers, in nats. Positions without a legal move are
/// skipped.
///
/// # Errors
/// [`ExplainError`] if the network's layers are unknown, or if there are too few positions.
pub fn fit_lens(
    network: &Network,
    positions: &[Game],
    held_out: &[Game],
    steps: usize,
    mut tell: impl FnMut(usize, f64),
) -> Result<Lens, ExplainError> {
    let [positions, held_out] = [positions, held_out].map(playable);
    if positions.is_empty() || held_out.is_empty() {
        return Err(ExplainError::NoPositions);
    }
    let evaluator = Evaluator::new(network)?;
    let store = VarStore::new(Device::Cpu);
    let maps = start(&evaluator, &positions, &store)?;
    let optimizer = Adam::default().build(&store, RATE);
    let mut optimizer = optimizer.map_err(failed)?;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let mut pool = None;
    for step in 0..steps {
        let left = 1.0 - step as f64 / steps as f64;
        optimizer.set_lr(RATE * (left / (1.0 - DECAY_FROM)).min(1.0));
        if step % STEPS_PER_POOL == 0 {
            let chosen = (0..POOL).map(|_| positions[random.random_range(0..positions.len())]);
            pool = Some(Seen::pool(&evaluator, &chosen.collect::<Vec<_>>())?);
        }
        let places = (0..BATCH).map(|_| random.random_range(0..POOL as i64));
        let places = Tensor::from_slice(&places.collect::<Vec<i64>>());
        let seen = pool
            .as_ref()
            .expect("filled at the first step")
            .select(&places);
        optimizer.zero_grad();
        let mut sum = 0.0;
        for (map, tokens) in maps.iter().zip(&seen.tokens) {
            let read = heads(&evaluator, &seen.rows, &map.apply(tokens));
            let policy = seen.policy_divergences(&read).mean(Kind::Float);
            let wdl = divergences(&seen.wdl, read.wdl()).mean(Kind::Float);
            let q = (evaluator.q(&read) - &seen.q).square().mean(Kind::Float);
            (&policy + wdl + Q_WEIGHT * q).backward();
            sum += policy.double_value(&[]);
        }
        optimizer.step();
        if (step + 1) % 100 == 0 {
            tell(step + 1, sum / maps.len() as f64);
        }
    }
    let _guard = tch::no_grad_guard();
    let maps = maps.iter().map(ScaledMap::stored);
    let maps: Vec<AffineMap> = maps.collect();
    let is_finite = |map: &AffineMap| {
        [&map.matrix, &map.bias].map(|it| it.isfinite().all().int64_value(&[])) == [1; 2]
    };
    if !maps.iter().all(is_finite) {
        return Err(ExplainError::NotFinite(network.about.name.clone()));
    }
    let [tuned, untuned] = measure(&evaluator, &maps, &held_out)?;
    Ok(Lens {
        about: LensAbout {
            network: network.about.name.clone(),
            weights: fingerprint(network),
            positions: positions.len(),
            held_out: held_out.len(),
            tuned,
            untuned,
        },
        maps,
    })
}

fn failed(error: TchError) -> ExplainError {
    ExplainError::Fit(error.to_string())
}

/// Returns the positions that have a legal move. The others have no policy.
fn playable(games: &[Game]) -> Vec<&Game> {
    let is_playable = |game: &&Game| !game.position().legal_moves().is_empty();
    games.iter().filter(is_playable).collect()
}

/// Positions with the network's tokens and outputs.
struct Seen {
    rows: Tensor,
    /// The tokens [B, 64, width] after the embedding and after each layer.
    tokens: Vec<Tensor>,
    /// The moves that are illegal, bool [B, moves].
    illegal: Tensor,
    /// The logarithms of the policy's probabilities [B, moves].
    policy: Tensor,
    /// The logarithms of the probabilities of win, draw and loss [B, 3].
    wdl: Tensor,
    /// The expected results `[B]`.
    q: Tensor,
}

impl Seen {
    fn new(evaluator: &Evaluator, games: &[&Game]) -> Result<Seen, ExplainError> {
        let _guard = tch::no_grad_guard();
        let games: Vec<Game> = games.iter().copied().cloned().collect();
        let rows = evaluator.rows(&games);
        let taps = Taps::default();
        let weights = &evaluator.network.weights;
        let outputs = evaluator.forward(weights, Positions::Rows(&rows), Tap::into(&taps));
        let taps: BTreeMap<String, Tensor> = taps.into_tensors();
        let tokens: Vec<Tensor> = layers(&taps)
            .into_iter()
            .map(Tensor::shallow_clone)
            .collect();
        if tokens.len() < 2 {
            return Err(ExplainError::NoLayers(evaluator.network.about.name.clone()));
        }
        let moves = outputs.policy().size()[1] as usize;
        let mut illegal = vec![true; games.len() * moves];
        for (game, illegal) in games.iter().zip(illegal.chunks_exact_mut(moves)) {
            for index in evaluator.indices(game) {
                illegal[index as usize] = false;
            }
        }
        let illegal = Tensor::from_slice(&illegal).view([-1, moves as i64]);
        let policy = outputs.policy().masked_fill(&illegal, ILLEGAL);
        Ok(Seen {
            rows,
            tokens,
            illegal,
            policy: policy.log_softmax(1, Kind::Float),
            wdl: outputs.wdl().log_softmax(1, Kind::Float),
            q: evaluator.q(&outputs),
        })
    }

    /// Evaluates more positions than fit into memory with all inner tensors.
    fn pool(evaluator: &Evaluator, games: &[&Game]) -> Result<Seen, ExplainError> {
        let parts = games.chunks(BATCH).map(|games| Seen::new(evaluator, games));
        let parts: Vec<Seen> = parts.collect::<Result<_, _>>()?;
        let joined = |field: &dyn Fn(&Seen) -> &Tensor| {
            Tensor::cat(&parts.iter().map(field).collect::<Vec<_>>(), 0)
        };
        let layers = 0..parts[0].tokens.len();
        Ok(Seen {
            rows: joined(&|it| &it.rows),
            tokens: layers
                .map(|layer| joined(&|it| &it.tokens[layer]))
                .collect(),
            illegal: joined(&|it| &it.illegal),
            policy: joined(&|it| &it.policy),
            wdl: joined(&|it| &it.wdl),
            q: joined(&|it| &it.q),
        })
    }

    /// Returns the positions with these indices, i64 `[N]`.
    fn select(&self, places: &Tensor) -> Seen {
        let of = |tensor: &Tensor| tensor.index_select(0, places);
        Seen {
            rows: of(&self.rows),
            tokens: self.tokens.iter().map(of).collect(),
            illegal: of(&self.illegal),
            policy: of(&self.policy),
            wdl: of(&self.wdl),
            q: of(&self.q),
        }
    }

    /// Returns the divergence of the network's policy from the policy in `read` for each position.
    fn policy_divergences(&self, read: &Outputs) -> Tensor {
        let read = read.policy().masked_fill(&self.illegal, ILLEGAL);
        divergences(&self.policy, &read)
    }
}

/// Returns the divergences `[B]` of distributions, given the logarithms of their probabilities
/// [B, N], from those with these logits [B, N].
fn divergences(logarithms: &Tensor, logits: &Tensor) -> Tensor {
    let terms = logarithms.exp() * (logarithms - logits.log_softmax(1, Kind::Float));
    terms.sum_dim_intlist([1i64].as_slice(), false, Kind::Float)
}

/// A map between normalised tokens. The scales let one learning rate suit every network.
struct ScaledMap {
    map: AffineMap,
    from: Scale,
    to: Scale,
}

impl ScaledMap {
    fn apply(&self, tokens: &Tensor) -> Tensor {
        let normal = (tokens - &self.from.mean) / self.from.deviation;
        self.map.apply(&normal) * self.to.deviation + &self.to.mean
    }

    /// Returns the map between the tokens themselves, rounded as in the file.
    fn stored(&self) -> AffineMap {
        let AffineMap { matrix, bias } = &self.map;
        let matrix = matrix.detach() * (self.to.deviation / self.from.deviation);
        let bias = bias.detach() * self.to.deviation + &self.to.mean;
        let rounded = |it: Tensor| it.to_kind(Kind::Half).to_kind(Kind::Float);
        AffineMap {
            bias: rounded(bias - self.from.mean.matmul(&matrix)),
            matrix: rounded(matrix),
        }
    }
}

/// The mean `[width]` and the standard deviation of tokens.
struct Scale {
    mean: Tensor,
    deviation: f64,
}

impl Scale {
    /// Returns the scale of `count` tokens, given their sum `[width]` and the sum of their squares.
    fn new(count: f64, sum: &Tensor, squares: f64) -> Scale {
        let mean = sum / count;
        let square = mean.square().mean(Kind::Double).double_value(&[]);
        let variance = squares / count / sum.size()[0] as f64 - square;
        Scale {
            mean: mean.to_kind(Kind::Float),
            deviation: variance.max(f64::from(f32::EPSILON)).sqrt(),
        }
    }
}

/// Sums over the tokens of a layer x and of the last layer y, in f64.
struct Sums {
    count: f64,
    x: Tensor,
    y: Tensor,
    xx: Tensor,
    xy: Tensor,
    yy: f64,
}

impl Sums {
    fn new(width: i64) -> Sums {
        let zeros = |shape: &[i64]| Tensor::zeros(shape, (Kind::Double, Device::Cpu));
        Sums {
            count: 0.0,
            x: zeros(&[width]),
            y: zeros(&[width]),
            xx: zeros(&[width, width]),
            xy: zeros(&[width, width]),
            yy: 0.0,
        }
    }

    fn add(&mut self, x: &Tensor, y: &Tensor) {
        let [x, y] = [x, y].map(|it| it.to_kind(Kind::Double).flatten(0, 1));
        let sum = |it: &Tensor| it.sum_dim_intlist([0i64].as_slice(), false, Kind::Double);
        self.count += x.size()[0] as f64;
        self.x += sum(&x);
        self.y += sum(&y);
        self.xx += x.transpose(0, 1).matmul(&x);
        self.xy += x.transpose(0, 1).matmul(&y);
        self.yy += y.square().sum(Kind::Double).double_value(&[]);
    }

    /// Returns the map from x to y by least squares, with its variables in `store`.
    fn solve(&self, store: &VarStore, layer: usize) -> Result<ScaledMap, ExplainError> {
        let width = self.x.size()[0];
        let squares = self.xx.diag(0).sum(Kind::Double).double_value(&[]);
        let from = Scale::new(self.count, &self.x, squares);
        let to = Scale::new(self.count, &self.y, self.yy);
        let [x, y] = [&self.x, &self.y].map(|sum| sum / self.count);
        let covariance = |products: &Tensor, other: &Tensor, scale: f64| {
            (products / self.count - x.outer(other)) / (from.deviation * scale)
        };
        let ridge = RIDGE * Tensor::eye(width, (Kind::Double, Device::Cpu));
        let xx = covariance(&self.xx, &x, from.deviation) + ridge;
        let xy = covariance(&self.xy, &y, to.deviation);
        let root = store.root() / layer as i64;
        let solved = Tensor::f_linalg_solve(&xx, &xy, true).map_err(failed)?;
        Ok(ScaledMap {
            map: AffineMap {
                matrix: root.var_copy("matrix", &solved.to_kind(Kind::Float)),
                bias: root.zeros("bias", &[width]),
            },
            from,
            to,
        })
    }
}

/// Returns the maps from the tokens after the embedding and after each layer except the last to
/// those after the last one, by least squares.
fn start(
    evaluator: &Evaluator,
    positions: &[&Game],
    store: &VarStore,
) -> Result<Vec<ScaledMap>, ExplainError> {
    let mut sums: Vec<Sums> = Vec::new();
    let every = positions.len().div_ceil(START);
    let games: Vec<&Game> = positions.iter().copied().step_by(every).collect();
    for games in games.chunks(BATCH) {
        let seen = Seen::new(evaluator, games)?;
        let (last, earlier) = seen.tokens.split_last().expect("at least two");
        if sums.is_empty() {
            let width = |tokens: &Tensor| Sums::new(tokens.size()[2]);
            sums = earlier.iter().map(width).collect();
        }
        for (sums, tokens) in sums.iter_mut().zip(earlier) {
            sums.add(tokens, last);
        }
    }
    let layers = sums.iter().enumerate();
    layers
        .map(|(layer, sums)| sums.solve(store, layer))
        .collect()
}

/// Returns the mean distances after each layer of what the heads read off from the network's
/// outputs, with the maps and without them.
fn measure(
    evaluator: &Evaluator,
    maps: &[AffineMap],
    games: &[&Game],
) -> Result<[Vec<LensDistance>; 2], ExplainError> {
    let nothing = LensDistance {
        divergence: 0.0,
        q: 0.0,
    };
    let mut found = [vec![nothing; maps.len()], vec![nothing; maps.len()]];
    let count = games.len() as f64;
    for games in games.chunks(BATCH) {
        let seen = Seen::new(evaluator, games)?;
        for (layer, (map, tokens)) in maps.iter().zip(&seen.tokens).enumerate() {
            let both = [map.apply(tokens), tokens.shallow_clone()];
            for (tokens, found) in both.iter().zip(&mut found) {
                let read = heads(evaluator, &seen.rows, tokens);
                let sum = |it: Tensor| it.sum(Kind::Double).double_value(&[]) / count;
                let q = evaluator.q(&read) - &seen.q;
                found[layer].divergence += sum(seen.policy_divergences(&read));
                found[layer].q += sum(q.abs());
            }
        }
    }
    match found
        .iter()
        .flatten()
        .all(|it| it.divergence.is_finite() && it.q.is_finite())
    {
        true => Ok(found),
        false => Err(ExplainError::NotFinite(
            evaluator.network.about.name.clone(),
        )),
    }
}
