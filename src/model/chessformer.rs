//! The whole network: embedding, encoder, heads.

use super::attacks::{self, AttackBias, AttackLogits, Attacked, Attacks, BoardAttacks};
use super::attention::Attention;
use super::bitboards;
use super::config::{ConfigError, ModelConfig, PositionConfig};
use super::embedding::{Embedding, FeedForward, PIECES, features, features_of_planes};
use super::heads::{
    MovesLeftHead, PolicyHead, ResultHead, RewardHead, RewardOutputs, policy_gather,
};
use super::layers::{Linear, dense_mish};
use super::parameters::{Builder, Dense, Parameter, Weights, initialise};
use super::position::{Gab, displacements};
use super::size::{Part, Size};
use tch::{Device, Tensor};

/// What a network says of B positions; logits and rewards are f32 and for the
/// side to move.
#[derive(Debug)]
pub struct Outputs {
    /// Policy logits [B, 1858]; illegal moves are not masked.
    pub policy: Tensor,
    /// Logits of the softened policy [B, 1858], if the network has that head
    /// and it was asked for.
    pub policy_soft: Option<Tensor>,
    /// Logits of the optimistic policy [B, 1858], likewise.
    pub policy_optimistic: Option<Tensor>,
    /// Logits of win, draw and loss [B, 3].
    pub wdl: Tensor,
    /// The reward that a search would find.
    pub q: RewardOutputs,
    /// The reward a few moves on.
    pub short_term: RewardOutputs,
    /// Plies to the end of the game, f32 `[B]`.
    pub moves_left: Tensor,
}

/// Which of the heads that a network need not have are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heads {
    /// [`Outputs::policy_soft`].
    pub soft: bool,
    /// [`Outputs::policy_optimistic`].
    pub optimistic: bool,
}

/// Index tensors that the forward pass reads. They are no parameters: their
/// type never changes, and in an exported network they are buffers.
#[derive(Debug)]
pub(super) struct Constants {
    /// u8 0…7.
    pub shifts: Tensor,
    /// i64 [1858]: see [`policy_gather`].
    pub policy: Tensor,
    /// i64 [4096]: see [`displacements`].
    pub displacements: Tensor,
    /// Where the network is told of attacks.
    pub attacks: Option<Attacks>,
}

impl Constants {
    fn new(config: &ModelConfig, device: Device) -> Constants {
        Constants {
            shifts: bitboards::shifts().to_device(device),
            policy: Tensor::from_slice(&policy_gather()).to_device(device),
            displacements: Tensor::from_slice(&displacements()).to_device(device),
            attacks: (config.attacks || config.attack_bias).then(|| Attacks::new(device)),
        }
    }
}

/// One encoder layer: attention and feed-forward, each normalised after its
/// residual (post-LN).
#[derive(Debug)]
struct EncoderLayer {
    attention: Attention,
    feed_forward: FeedForward,
}

/// The structure of a network. Its tensors are [`Weights`].
#[derive(Debug)]
pub struct Chessformer {
    config: ModelConfig,
    parameters: Vec<Parameter>,
    size: Size,
    constants: Constants,
    embedding: Embedding,
    attack_bias: Option<AttackBias>,
    layers: Vec<EncoderLayer>,
    policy_embedding: Linear,
    policy: PolicyHead,
    policy_soft: Option<PolicyHead>,
    policy_optimistic: Option<PolicyHead>,
    result: ResultHead,
    q: RewardHead,
    short_term: RewardHead,
    moves_left: MovesLeftHead,
}

impl Chessformer {
    /// Builds the structure that `config` describes, for weights on `device`.
    ///
    /// # Errors
    /// [`ConfigError`] if the sizes do not fit each other.
    pub fn new(config: &ModelConfig, device: Device) -> Result<Chessformer, ConfigError> {
        config.check()?;
        let width = config.width;
        // DeepNorm's gains for an encoder of N layers: α = (2N)^¼ on the residual,
        // here 1/α on the other branch as Lc0 does, and β = (8N)^−¼ at the start.
        let depth = config.layers as f64;
        let gains = ((2.0 * depth).powf(-0.25), (8.0 * depth).powf(-0.25));
        let mut builder = Builder::default();
        if config.attacks || config.attack_bias {
            builder.count_macs(attacks::MACS);
        }
        let embedding = Embedding::build(&mut builder, config, gains);
        let (attack_bias, layers) = builder.scope("encoder", |builder| {
            let attack_bias = config
                .attack_bias
                .then(|| AttackBias::build(builder, config.heads));
            let generator = match config.position {
                PositionConfig::Gab { generator, .. } => {
                    Some(Gab::build_generator(builder, generator))
                }
                _ => None,
            };
            let layers = (0..config.layers)
                .map(|layer| {
                    builder.scope(layer.to_string(), |builder| EncoderLayer {
                        attention: builder.scope("attention", |builder| {
                            Attention::build(builder, config, gains, layer, generator)
                        }),
                        feed_forward: builder.scope("feed_forward", |builder| {
                            FeedForward::build(builder, config, config.feed_forward, gains)
                        }),
                    })
                })
                .collect();
            (attack_bias, layers)
        });
        let (policy_embedding, policies) = builder.scope("policy", |builder| {
            let embedding = builder.linear("embedding", Dense::per_token(width, width), Part::Main);
            let vanilla = PolicyHead::build(builder, "vanilla", config, Part::Main);
            let mut other = |is_wanted: bool, name| {
                is_wanted.then(|| PolicyHead::build(builder, name, config, Part::Other))
            };
            let soft = other(config.soft_policy, "soft");
            let optimistic = other(config.optimistic_policy, "optimistic");
            (embedding, (vanilla, soft, optimistic))
        });
        let (policy, policy_soft, policy_optimistic) = policies;
        let (result, q, short_term) = builder.scope("value", |builder| {
            let result = ResultHead::build(builder, config);
            let q = RewardHead::build(builder, "q", config);
            (result, q, RewardHead::build(builder, "short_term", config))
        });
        let moves_left = MovesLeftHead::build(&mut builder, config);
        let (parameters, size) = builder.finish();
        Ok(Chessformer {
            config: config.clone(),
            parameters,
            size,
            constants: Constants::new(config, device),
            embedding,
            attack_bias,
            layers,
            policy_embedding,
            policy,
            policy_soft,
            policy_optimistic,
            result,
            q,
            short_term,
            moves_left,
        })
    }

    pub(super) fn constants(&self) -> &Constants {
        &self.constants
    }

    /// What it was built from.
    #[must_use]
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Its parameters, in the order of its weights.
    #[must_use]
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// How large it is.
    #[must_use]
    pub fn size(&self) -> Size {
        self.size
    }

    /// Fresh parameters, end to end in one f32 vector on the CPU; decided by
    /// libtorch's seed alone.
    pub fn initial_weights(&self) -> Tensor {
        initialise(&self.parameters)
    }

    /// Evaluates `rows`, i64 [B, WIDTH] (or what of it is read, [B, 110]) as [`crate::encode::Input`] lays them out.
    /// `heads` asks for outputs that not every network has.
    #[must_use]
    pub fn forward(&self, weights: &Weights, rows: &Tensor, heads: Heads) -> Outputs {
        let is_fused = |layer: &EncoderLayer| layer.attention.is_fused(weights);
        let (tokens, attacks) = match self.layers.first().is_some_and(is_fused) {
            true => self.embed_fused(weights, rows),
            false => {
                let like = &weights.tensors()[0];
                self.embed(weights, &features(rows, &self.constants.shifts, like))
            }
        };
        self.forward_tokens(weights, tokens, attacks.as_ref(), heads)
    }

    /// Evaluates planes [B, 112, 8, 8] as Lc0 fills them in input format 1.
    pub(super) fn forward_planes(
        &self,
        weights: &Weights,
        planes: &Tensor,
        heads: Heads,
    ) -> Outputs {
        let (tokens, attacks) = self.embed(weights, &features_of_planes(planes));
        self.forward_tokens(weights, tokens, attacks.as_ref(), heads)
    }

    /// Tokens [B, 64, width] of features, and what attacks add to logits, by
    /// operators that can be exported.
    fn embed(&self, weights: &Weights, features: &Tensor) -> (Tensor, Option<AttackLogits>) {
        let attacks = self.constants.attacks.as_ref();
        let attacks = attacks.map(|attacks| attacks.on(features.narrow(2, 0, PIECES)));
        let attacked = attacks.as_ref().filter(|_| self.config.attacks);
        let attacked = attacked.map(Attacked::squares);
        let tokens = self.embedding.forward(weights, features, attacked.as_ref());
        let logits = self.attack_bias.zip(attacks.as_ref());
        let logits = logits.map(|(bias, attacks)| bias.forward(weights, attacks));
        (tokens, logits)
    }

    /// The same of rows, for fused blocks.
    fn embed_fused(&self, weights: &Weights, rows: &Tensor) -> (Tensor, Option<AttackLogits>) {
        let attacks = self.constants.attacks.as_ref();
        let attacks = attacks.map(|_| BoardAttacks::of(rows));
        let attacked = attacks.as_ref().filter(|_| self.config.attacks);
        let attacked = attacked.map(|attacks| &attacks.squares);
        let tokens = self.embedding.forward_fused(weights, rows, attacked);
        let tokens = tokens.unwrap_or_else(|| {
            let like = &weights.tensors()[0];
            let features = features(rows, &self.constants.shifts, like);
            let attacked = attacked.map(|attacked| attacked.type_as(like));
            self.embedding
                .forward(weights, &features, attacked.as_ref())
        });
        let logits = self.attack_bias.zip(attacks);
        let logits = logits.map(|(bias, attacks)| bias.of_pairs(weights, attacks.pairs));
        (tokens, logits)
    }

    fn forward_tokens(
        &self,
        weights: &Weights,
        tokens: Tensor,
        attacks: Option<&AttackLogits>,
        heads: Heads,
    ) -> Outputs {
        let constants = &self.constants;
        let mut x = tokens;
        for layer in &self.layers {
            x = layer
                .attention
                .forward(weights, &x, &constants.displacements, attacks);
            x = layer.feed_forward.forward(weights, &x);
        }
        let layers = [
            &self.policy_embedding,
            self.result.squares(),
            self.q.squares(),
            self.short_term.squares(),
            self.moves_left.squares(),
        ];
        let [moves, result, q, short_term, moves_left] = dense_mish(weights, &x, layers);
        let policy = |head: &PolicyHead| head.forward(weights, &moves, &constants.policy);
        Outputs {
            policy: policy(&self.policy),
            policy_soft: self.policy_soft.as_ref().filter(|_| heads.soft).map(policy),
            policy_optimistic: self
                .policy_optimistic
                .as_ref()
                .filter(|_| heads.optimistic)
                .map(policy),
            wdl: self.result.forward(weights, &result),
            q: self.q.forward(weights, &q),
            short_term: self.short_term.forward(weights, &short_term),
            moves_left: self.moves_left.forward(weights, &moves_left),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Game;
    use crate::encode::{Input, WIDTH};
    use crate::model::PRESETS;
    use tch::Kind;

    fn rows() -> Tensor {
        let mut game = Game::default();
        let mut words: Vec<i64> = Vec::new();
        for mv in ["e2e4", "e7e5", "g1f3"] {
            words.extend(bytemuck::cast_slice::<u64, i64>(
                Input::encode(&game).words(),
            ));
            game.play(game.parse_move(mv).unwrap());
        }
        Tensor::from_slice(&words).view([-1, WIDTH as i64])
    }

    /// The planes as Lc0 defines them, computed square by square.
    #[test]
    fn features_are_lc0s_planes() {
        let rows = rows();
        let shifts = bitboards::shifts();
        let like = Tensor::zeros([1], (Kind::Float, Device::Cpu));
        let features = features(&rows, &shifts, &like);
        assert_eq!(features.size(), [3, 64, 112]);
        let at = |position, square, plane| features.double_value(&[position, square, plane]);
        for square in 0..64 {
            assert_eq!(
                at(0, square, 0),
                f64::from(u8::from((8..16).contains(&square)))
            );
            assert_eq!(at(1, square, 108), 1.0);
            assert_eq!(at(0, square, 108), 0.0);
            assert_eq!(at(2, square, 111), 1.0);
            assert_eq!(at(2, square, 107), 1.0);
        }
        assert_eq!(at(1, 4, 5), 1.0);
        assert_eq!(at(1, 36, 6), 1.0);
    }

    #[test]
    fn sizes_are_the_papers() {
        let size = |name: &str| {
            let config = ModelConfig::preset(name).unwrap();
            Chessformer::new(&config, Device::Cpu).unwrap().size()
        };
        let within = |value: i64, target: f64, tolerance: f64| {
            let off = (value as f64 / target - 1.0).abs();
            assert!(
                off <= tolerance,
                "{value} is {:.1} % off {target}",
                off * 100.0
            );
        };
        for name in ["cf-6m-gab", "cf-6m-shaw"] {
            within(size(name).parameters, 6e6, 0.1);
            within(size(name).macs, 214e6, 0.02);
        }
        for name in ["cf-240m-gab", "cf-240m-shaw"] {
            within(size(name).parameters, 243e6, 0.02);
            within(size(name).macs, 12.8e9, 0.02);
        }
    }

    #[test]
    fn names_are_unique_and_counts_add_up() {
        for name in PRESETS {
            let config = ModelConfig::preset(name).unwrap();
            let model = Chessformer::new(&config, Device::Cpu).unwrap();
            let mut names: Vec<&str> = model.parameters().iter().map(|p| p.name.as_str()).collect();
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "{name}");
            let sum: i64 = model.parameters().iter().map(Parameter::count).sum();
            assert_eq!(sum, model.size().parameters);
        }
    }

    #[test]
    fn every_position_encoding_evaluates_and_learns() {
        let positions = [
            PositionConfig::Absolute,
            PositionConfig::Relative,
            PositionConfig::Shaw,
            PositionConfig::Gab {
                compress: 4,
                hidden: 16,
                generator: 8,
            },
        ];
        for position in positions {
            let mut config = ModelConfig::preset("cf-1m-gab").unwrap();
            config.layers = 2;
            config.width = 32;
            config.optimistic_policy = true;
            config.position = position;
            let model = Chessformer::new(&config, Device::Cpu).unwrap();
            tch::manual_seed(1);
            let flat = model.initial_weights().set_requires_grad(true);
            let weights = Weights::from_flat(&flat, model.parameters());
            let all = Heads {
                soft: true,
                optimistic: true,
            };
            let outputs = model.forward(&weights, &rows(), all);
            assert_eq!(outputs.policy.size(), [3, 1858]);
            assert_eq!(outputs.q.categorical.size(), [3, 32]);
            let loss = outputs
                .policy
                .log_softmax(-1, None::<Kind>)
                .mean(None::<Kind>)
                + outputs.policy_soft.unwrap().square().mean(None::<Kind>)
                + outputs
                    .policy_optimistic
                    .unwrap()
                    .square()
                    .mean(None::<Kind>)
                + outputs.wdl.square().mean(None::<Kind>)
                + (outputs.q.scalar + outputs.q.error).mean(None::<Kind>)
                + outputs.q.categorical.square().mean(None::<Kind>)
                + (outputs.short_term.scalar + outputs.short_term.error).mean(None::<Kind>)
                + outputs.short_term.categorical.square().mean(None::<Kind>)
                + outputs.moves_left.mean(None::<Kind>);
            loss.backward();
            let gradient = Weights::from_flat(&flat.grad(), model.parameters());
            for (parameter, gradient) in model.parameters().iter().zip(gradient.tensors()) {
                let reached = gradient.abs().sum(None::<Kind>).double_value(&[]);
                assert!(reached > 0.0, "{:?}: {}", config.position, parameter.name);
            }
        }
    }

    #[test]
    fn moves_left_can_be_learnt_from_anywhere() {
        let model = Chessformer::new(&ModelConfig::preset("cf-1m-gab").unwrap(), Device::Cpu);
        let model = model.unwrap();
        let flat = model.initial_weights();
        let (mut start, mut bias) = (0, None);
        for parameter in model.parameters() {
            if parameter.name == "moves_left.plies.bias" {
                bias = Some(start);
            }
            start += parameter.count();
        }
        // Far below zero a softplus is flat to the last bit.
        let bias = bias.unwrap();
        let _ = flat.narrow(0, bias, 1).fill_(-1000.0);
        let flat = flat.set_requires_grad(true);
        let plies = |flat: &Tensor| {
            let weights = Weights::from_flat(flat, model.parameters());
            model
                .forward(&weights, &rows(), Heads::default())
                .moves_left
        };
        let learning = plies(&flat);
        let playing = tch::no_grad(|| plies(&flat));
        assert_eq!(learning.max().double_value(&[]), 0.0);
        assert!(learning.equal(&playing));
        learning.sum(None::<Kind>).backward();
        assert!(flat.grad().double_value(&[bias]) > 0.1);
    }
}
