//! Fits a transcoder to a layer's feed-forward block.

use super::{BATCH, Strongest, Transcoder, TranscoderAbout, block, greatest};
use crate::chess::{Game, fen};
use crate::explain::ExplainError;
use crate::explain::evaluator::Evaluator;
use crate::explain::fingerprint::fingerprint;
use crate::network::Network;
use tch::nn::{Adam, Init, OptimizerConfig, VarStore};
use tch::{Device, Kind, Tensor};

/// Number of squares per optimizer step.
const STEP: i64 = 2048;
/// Fraction of the steps after which the learning rate starts to decay to zero.
const DECAY_FROM: f64 = 0.5;
/// Number of positions with the strongest activations that are stored per feature.
const STRONGEST: i64 = 3;

/// Settings for fitting a transcoder.
#[derive(Clone, Copy, Debug)]
pub struct FitSettings {
    /// The layer, numbered from 1.
    pub layer: usize,
    /// The number of features.
    pub features: usize,
    /// The maximum number of features that are active on a square.
    pub top_k: usize,
    /// Number of optimizer steps, of 2,048 squares each.
    pub steps: usize,
    /// Adam's peak learning rate.
    pub rate: f64,
    /// Seed for the initial weights and the choice of squares.
    pub seed: i64,
}

/// Fits a transcoder to a layer's feed-forward block over `positions`, and evaluates the transcoder
/// over `held_out`, preferably from other games. After every hundredth step, `tell` receives the
/// step and its mean squared error, in units of the output's variance.
///
/// # Errors
/// [`ExplainError`] if the network has no such layer, or if there are too few positions.
pub fn fit(
    network: &Network,
    positions: &[Game],
    held_out: &[Game],
    settings: &FitSettings,
    mut tell: impl FnMut(usize, f64),
) -> Result<Transcoder, ExplainError> {
    if positions.is_empty() || held_out.is_empty() {
        return Err(ExplainError::NoPositions);
    }
    let evaluator = Evaluator::new(network)?;
    let [input, output] = tch::no_grad(|| tokens(&evaluator, positions, settings.layer))?;
    let scales = [Scale::of(&input), Scale::of(&output)];
    let [input, output] = [scales[0].scaled(&input), scales[1].scaled(&output)];
    tch::manual_seed(settings.seed);
    let store = VarStore::new(Device::Cpu);
    let (width, features) = (input.size()[1], settings.features as i64);
    let normal = Init::Randn {
        mean: 0.0,
        stdev: 1.0 / (width as f64).sqrt(),
    };
    let root = store.root();
    let encoder = root.var("encoder", &[width, features], normal);
    let encoder_bias = root.zeros("encoder_bias", &[features]);
    let mut decoder = root.zeros("decoder", &[features, width]);
    let decoder_bias = root.zeros("decoder_bias", &[width]);
    // Initially, each feature writes the direction that it reads.
    tch::no_grad(|| decoder.copy_(&encoder.transpose(0, 1)));
    let optimizer = Adam::default().build(&store, settings.rate);
    let mut optimizer = optimizer.map_err(|error| ExplainError::Fit(error.to_string()))?;
    for step in 0..settings.steps {
        let left = 1.0 - step as f64 / settings.steps as f64;
        optimizer.set_lr(settings.rate * (left / (1.0 - DECAY_FROM)).min(1.0));
        let chosen = Tensor::randint(input.size()[0], [STEP], (Kind::Int64, Device::Cpu));
        let tokens = input.index_select(0, &chosen);
        let active = greatest(&(tokens.matmul(&encoder) + &encoder_bias), settings.top_k);
        let error = active.matmul(&decoder) + &decoder_bias - output.index_select(0, &chosen);
        let loss = error.square().mean(Kind::Float);
        optimizer.backward_step(&loss);
        if (step + 1) % 100 == 0 {
            tell(step + 1, loss.double_value(&[]));
        }
    }
    let _guard = tch::no_grad_guard();
    let [of_input, of_output] = &scales;
    let encoder = encoder.detach() / of_input.deviation;
    let mut transcoder = Transcoder {
        about: TranscoderAbout {
            network: network.about.name.clone(),
            weights: fingerprint(network),
            layer: settings.layer,
            features: settings.features,
            top_k: settings.top_k,
            positions: positions.len(),
            held_out: held_out.len(),
            explained_variance: 0.0,
            dead: 0.0,
            strongest: Vec::new(),
            themes: Vec::new(),
        },
        encoder_bias: encoder_bias.detach() - of_input.mean.matmul(&encoder),
        encoder,
        decoder: decoder.detach() * of_output.deviation,
        decoder_bias: decoder_bias.detach() * of_output.deviation + &of_output.mean,
    };
    let [input, output] = tokens(&evaluator, held_out, settings.layer)?;
    let active = transcoder.encode(&input);
    let error = &output - transcoder.decode(&active);
    let sum = |tensor: &Tensor| tensor.square().sum(Kind::Double).double_value(&[]);
    let spread = &output - output.mean_dim([0i64].as_slice(), true, None::<Kind>);
    transcoder.about.explained_variance = 1.0 - sum(&error) / sum(&spread);
    if !transcoder.about.explained_variance.is_finite() {
        return Err(ExplainError::NotFinite(network.about.name.clone()));
    }
    let active = active.view([held_out.len() as i64, 64, -1]);
    let alive = active.amax([0i64, 1].as_slice(), false).gt(0.0);
    let alive = alive.sum(Kind::Double).double_value(&[]);
    transcoder.about.dead = 1.0 - alive / settings.features as f64;
    transcoder.about.strongest = strongest(&evaluator, &active, held_out);
    Ok(transcoder)
}

/// Returns the input and the output [64 · positions, width] of the feed-forward block.
fn tokens(
    evaluator: &Evaluator,
    positions: &[Game],
    layer: usize,
) -> Result<[Tensor; 2], ExplainError> {
    let blocks = positions
        .chunks(BATCH)
        .map(|games| block(evaluator, games, layer));
    let blocks: Vec<[Tensor; 2]> = blocks.collect::<Result<_, _>>()?;
    Ok([0, 1].map(|side| {
        let parts: Vec<&Tensor> = blocks.iter().map(|block| &block[side]).collect();
        Tensor::cat(&parts, 0)
    }))
}

/// Returns the positions that activate each feature most. `active` are the activations [positions,
/// 64, features].
fn strongest(evaluator: &Evaluator, active: &Tensor, games: &[Game]) -> Vec<Vec<Strongest>> {
    let (by_position, squares) = active.max_dim(1, false);
    let count = STRONGEST.min(games.len() as i64);
    let (values, places) = by_position.topk(count, 0, true, true);
    let features = active.size()[2];
    let of_feature = |feature: i64| {
        let ranks = (0..count).map(|rank| {
            let place = places.int64_value(&[rank, feature]);
            let seen = squares.int64_value(&[place, feature]) as usize;
            let game = &games[place as usize];
            let on_board = evaluator.seen(game).iter().position(|&it| it == seen);
            Strongest {
                fen: fen(game.position()),
                square: on_board.unwrap_or_default(),
                activation: values.double_value(&[rank, feature]) as f32,
            }
        });
        ranks.filter(|it| it.activation > 0.0).collect()
    };
    (0..features).map(of_feature).collect()
}

/// The mean [width] and the standard deviation of tokens. Tokens are normalised with them, so that
/// one learning rate suits every layer.
struct Scale {
    mean: Tensor,
    deviation: f64,
}

impl Scale {
    fn of(tokens: &Tensor) -> Scale {
        let mean = tokens.mean_dim([0i64].as_slice(), false, None::<Kind>);
        let variance = (tokens - &mean).square().mean(Kind::Double);
        Scale {
            mean,
            deviation: variance
                .double_value(&[])
                .sqrt()
                .max(f64::from(f32::EPSILON)),
        }
    }

    fn scaled(&self, tokens: &Tensor) -> Tensor {
        (tokens - &self.mean) / self.deviation
    }
}
