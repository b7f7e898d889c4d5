//! The Chessformer family: transformers that read the board as 64 tokens.
//!
//! Architecture and heads follow the appendix of "Mastering Chess with a
//! Transformer Model" (Monroe and Chalmers, 2024); the geometric attention bias
//! (GAB, Lc0's smolgen) follows "Chessformer: A Unified Architecture for Chess
//! Modeling" (2026); the global board embedding follows the first paper's
//! published training code.

mod attacks;
mod embedding;
mod folded;
#[cfg(test)]
mod fused_tests;
mod grow;
pub(super) mod heads;
pub(super) mod layers;
mod position;
mod ratings;

pub use super::config::chessformer::{
    ConfigError, EmbeddingConfig, ModelConfig, NormKind, PRESETS, PositionConfig,
};
pub use grow::{GrowError, grow};
pub use heads::bucket_of;
pub(crate) use heads::{MOVES_LEFT_FEATURES, MOVES_LEFT_SCALE, policy_gather};

use super::architecture::{
    Architecture, Evaluator, Interface, NotAnEvaluator, Pass, Positions, Structure,
};
use super::bitboards;
use super::config::ArchitectureConfig;
use super::encoder::{
    AttackLogits, Board, EncoderLayer, PositionEncoding, displacements, encode, without_head,
};
use super::evaluator;
use super::exported::ExportedProgram;
use super::layers::{Linear, dense_mish};
use super::outputs::{Output, OutputSet, Outputs};
use super::parameters::{Builder, Dense, Slot, Weights};
use super::size::Part;
use super::taps::Tap;
use crate::encode::{InputFormat, RATINGS, SCALARS};
use attacks::{AttackBias, Attacked, Attacks, BoardAttacks};
use embedding::{Embedding, PIECES, features, features_of_planes};
use heads::{MovesLeftHead, PolicyHead, ResultHead, RewardHead};
use layers::Gains;
use tch::{Device, Tensor};

/// The number of [`SCALARS`] that a Chessformer without ratings reads: castling rights, the side to
/// move and the 50-move rule. A Chessformer with ratings reads all.
const UNRATED_SCALARS: usize = 6;

/// The index tensors that the forward pass reads. They are not parameters: their dtype never
/// changes, and an exported network stores them as buffers.
#[derive(Debug)]
struct Constants {
    /// u8 0…7.
    shifts: Tensor,
    /// i64 [1858], from [`policy_gather`].
    policy: Tensor,
    /// i64 [4096], from [`displacements`].
    displacements: Tensor,
    /// Present if the network reads attacks.
    attacks: Option<Attacks>,
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

/// The structure of a Chessformer. Its tensors are stored in [`Weights`].
#[derive(Debug)]
pub struct Chessformer {
    /// The network's configuration.
    pub config: ModelConfig,
    structure: Structure,
    constants: Constants,
    embedding: Embedding,
    attack_bias: Option<AttackBias>,
    /// The encoder layers.
    pub(super) layers: Vec<EncoderLayer>,
    policy_embedding: Linear,
    policy: PolicyHead,
    policy_soft: Option<PolicyHead>,
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
        let gains = Gains::of(config.layers);
        let mut builder = Builder::default();
        if config.attacks || config.attack_bias {
            builder.count_macs(attacks::MACS);
        }
        let embedding = Embedding::build(&mut builder, config, gains);
        let encoder = |builder: &mut Builder| {
            let attack_bias = config
                .attack_bias
                .then(|| AttackBias::build(builder, config.heads));
            let generator = match config.position {
                PositionConfig::Gab { generator, .. } => {
                    Some(position::build_generator(builder, generator))
                }
                _ => None,
            };
            let layers = (0..config.layers)
                .map(|layer| {
                    builder.scope(layer.to_string(), |builder| EncoderLayer {
                        attention: builder.scope("attention", |builder| {
                            layers::attention(builder, config, gains, layer, generator)
                        }),
                        feed_forward: builder.scope("feed_forward", |builder| {
                            layers::feed_forward(builder, config, config.feed_forward, gains)
                        }),
                    })
                })
                .collect();
            (attack_bias, layers)
        };
        let (attack_bias, layers) = builder.hidden(|builder| builder.scope("encoder", encoder));
        let policies = |builder: &mut Builder| {
            let embedding = builder.linear("embedding", Dense::per_token(width, width), Part::Main);
            let vanilla = PolicyHead::build(builder, "vanilla", config, Part::Main);
            let soft = config
                .soft_policy
                .then(|| PolicyHead::build(builder, "soft", config, Part::Other));
            (embedding, vanilla, soft)
        };
        let (policy_embedding, policy, policy_soft) =
            builder.hidden(|builder| builder.scope("policy", policies));
        let (result, q, short_term) = builder.scope("value", |builder| {
            let result = ResultHead::build(builder, config);
            let q = RewardHead::build(builder, "q", config);
            (result, q, RewardHead::build(builder, "short_term", config))
        });
        let moves_left = MovesLeftHead::build(&mut builder, config);
        let stated = ArchitectureConfig::Chessformer {
            model: config.clone(),
        };
        Ok(Chessformer {
            config: config.clone(),
            structure: Structure::new(stated, builder),
            constants: Constants::new(config, device),
            embedding,
            attack_bias,
            layers,
            policy_embedding,
            policy,
            policy_soft,
            result,
            q,
            short_term,
            moves_left,
        })
    }

    /// Embeds features. Returns tokens [B, 64, width] and the attack bias of the attention logits,
    /// using only operators that can be exported. `ratings` [B, 2] are the mover's and the
    /// opponent's.
    fn embed(
        &self,
        weights: &Weights,
        features: &Tensor,
        ratings: Option<&Tensor>,
    ) -> (Tensor, Option<AttackLogits>) {
        let attacks = self.constants.attacks.as_ref();
        let attacks = attacks.map(|attacks| attacks.on(features.narrow(2, 0, PIECES)));
        let attacked = attacks.as_ref().filter(|_| self.config.attacks);
        let attacked = attacked.map(Attacked::squares);
        let tokens = self
            .embedding
            .forward(weights, features, attacked.as_ref(), ratings);
        let logits = self.attack_bias.zip(attacks.as_ref());
        let logits = logits.map(|(bias, attacks)| bias.forward(weights, attacks));
        (tokens, logits)
    }

    /// Embeds rows and looks up attacks in their bitboards. Lookups can be neither traced nor
    /// differentiated.
    fn embed_rows(&self, weights: &Weights, rows: &Tensor) -> (Tensor, Option<AttackLogits>) {
        let attacks = self.constants.attacks.as_ref();
        let attacks = attacks.map(|_| BoardAttacks::of(rows));
        let attacked = attacks.as_ref().filter(|_| self.config.attacks);
        let attacked = attacked.map(|attacks| &attacks.squares);
        let ratings = self.ratings(rows);
        let ratings = ratings.as_ref();
        let tokens = self
            .embedding
            .forward_fused(weights, rows, attacked, ratings);
        let tokens = tokens.unwrap_or_else(|| {
            let like = &weights.tensors()[0];
            let features = features(rows, &self.constants.shifts, like);
            let attacked = attacked.map(|attacked| attacked.type_as(like));
            self.embedding
                .forward(weights, &features, attacked.as_ref(), ratings)
        });
        let logits = self.attack_bias.zip(attacks);
        let shifts = &self.constants.shifts;
        let logits = logits.map(|(bias, attacks)| match self.is_fused(weights) {
            true => bias.of_pairs(weights, attacks.pairs),
            false => bias.of_bits(weights, &attacks.pairs, shifts),
        });
        (tokens, logits)
    }

    /// Returns the positions' tokens [B, 64, width] before the first layer, and the attack bias of
    /// all layers' logits.
    pub(super) fn embedded(
        &self,
        weights: &Weights,
        positions: Positions,
        tap: &Tap,
    ) -> (Tensor, Option<AttackLogits>) {
        let (tokens, attacks) = match positions {
            Positions::Rows(rows)
                if !tap.is_open() && (self.is_fused(weights) || weights.are_frozen()) =>
            {
                self.embed_rows(weights, rows)
            }
            Positions::Rows(rows) => {
                let features = features(rows, &self.constants.shifts, &weights.tensors()[0]);
                self.embed(weights, &features, self.ratings(rows).as_ref())
            }
            Positions::Planes(planes) => {
                let features = features_of_planes(&planes[0]);
                let ratings = (planes.len() > 2).then(|| Tensor::stack(&planes[1..3], 1));
                self.embed(weights, &features, ratings.as_ref())
            }
        };
        tap.give("embedding", &tokens);
        if tap.is_open()
            && let Some(AttackLogits::Biases(biases)) = &attacks
        {
            let biases = biases.view([-1, self.config.heads, 64, 64]);
            tap.give("attacks", &biases);
        }
        (tokens, attacks)
    }

    /// Returns the inputs other than tokens that every layer reads.
    pub(super) fn board<'a>(&'a self, attacks: Option<&'a AttackLogits>) -> Board<'a> {
        Board {
            displacements: Some(&self.constants.displacements),
            attacks,
        }
    }

    /// Returns policy logits f32 [B, 1858] from the tokens after the last layer.
    pub(super) fn moves(&self, weights: &Weights, x: &Tensor) -> Tensor {
        let [moves] = dense_mish(weights, x, [&self.policy_embedding]);
        self.policy.forward(weights, &moves, &self.constants.policy)
    }

    /// Returns the players' ratings i64 [B, 2] from rows, or `None` if the network does not read
    /// them.
    fn ratings(&self, rows: &Tensor) -> Option<Tensor> {
        let place = RATINGS as i64;
        self.config.elo.then(|| rows.narrow(1, place, 2))
    }

    /// Returns the positions' tokens [B, 64, width] after the last layer, for [`Evaluator::read`].
    pub(super) fn tokens(&self, weights: &Weights, positions: Positions, tap: &Tap) -> Tensor {
        let (tokens, attacks) = self.embedded(weights, positions, tap);
        let board = self.board(attacks.as_ref());
        encode(&self.layers, weights, tokens, board, tap)
    }

    /// Returns the `wanted` outputs, computed from tokens [B, 64, width].
    pub(super) fn read_tokens(&self, weights: &Weights, x: &Tensor, wanted: OutputSet) -> Outputs {
        let mut outputs = Outputs::default();
        let policies = [
            (Output::Policy, Some(&self.policy)),
            (Output::PolicySoft, self.policy_soft.as_ref()),
        ];
        let policies = policies
            .into_iter()
            .filter_map(|(output, head)| Some((output, head?)))
            .filter(|(output, _)| wanted.contains(*output));
        let layers = [
            &self.policy_embedding,
            &self.result.summary.squares,
            &self.q.summary.squares,
            &self.short_term.summary.squares,
            &self.moves_left.summary.squares,
        ];
        let [moves, result, q, short_term, moves_left] = dense_mish(weights, x, layers);
        for (output, head) in policies {
            outputs.set(
                output,
                head.forward(weights, &moves, &self.constants.policy),
            );
        }
        outputs.set(Output::Wdl, self.result.forward(weights, &result));
        let rewards = [
            (
                &self.q,
                q,
                [Output::Q, Output::QError, Output::QCategorical],
            ),
            (
                &self.short_term,
                short_term,
                [
                    Output::ShortTerm,
                    Output::ShortTermError,
                    Output::ShortTermCategorical,
                ],
            ),
        ];
        for (head, squares, parts) in rewards {
            let is_wanted = parts.map(|output| wanted.contains(output));
            let found = head.forward(weights, &squares, is_wanted);
            for (output, tensor) in parts.into_iter().zip(found) {
                if let Some(tensor) = tensor {
                    outputs.set(output, tensor);
                }
            }
        }
        let moves_left = self.moves_left.forward(weights, &moves_left);
        outputs.set(Output::MovesLeft, moves_left);
        outputs
    }

    /// Returns the weights that generate the attention biases of all layers, or `None` without GAB.
    pub(super) fn generator(&self) -> Option<Slot> {
        match &self.layers.first()?.attention.position {
            PositionEncoding::Gab(gab) => Some(gab.generator),
            _ => None,
        }
    }

    /// Returns i64 [1858], from [`policy_gather`].
    pub(super) fn policy_places(&self) -> &Tensor {
        &self.constants.policy
    }

    /// Returns whether the encoder layers use fused kernels.
    fn is_fused(&self, weights: &Weights) -> bool {
        let first = self.layers.first();
        first.is_some_and(|layer| layer.attention.is_fused(weights))
    }
}

impl Architecture for Chessformer {
    fn structure(&self) -> &Structure {
        &self.structure
    }

    fn constants(&self) -> Vec<(&str, &Tensor)> {
        let constants = &self.constants;
        let mut named = vec![
            ("shifts", &constants.shifts),
            ("policy_gather", &constants.policy),
            ("displacements", &constants.displacements),
        ];
        if let Some(attacks) = &constants.attacks {
            named.extend([
                ("attack_ways", &attacks.ways),
                ("attack_between", &attacks.between),
                ("attack_features", &attacks.features),
                ("attack_movers", &attacks.movers),
            ]);
        }
        named
    }

    fn into_evaluator(self: Box<Self>) -> Result<Box<dyn Evaluator>, NotAnEvaluator> {
        Ok(self)
    }

    fn exported(&self) -> ExportedProgram<'_> {
        evaluator::exported(self)
    }
}

impl Evaluator for Chessformer {
    fn interface(&self) -> Interface {
        Interface {
            format: InputFormat::Classical.number(),
            scalars: match self.config.elo {
                true => SCALARS.to_vec(),
                false => SCALARS[..UNRATED_SCALARS].to_vec(),
            },
            outputs: self.exported_outputs(),
            planes: Interface::lc0_planes(),
        }
    }

    fn has(&self, output: Output) -> bool {
        match output {
            Output::PolicySoft => self.policy_soft.is_some(),
            _ => true,
        }
    }

    fn forward(&self, weights: &Weights, pass: &Pass) -> Outputs {
        let x = self.tokens(weights, pass.positions, &pass.tap);
        self.read(weights, &x, pass)
    }

    fn read(&self, weights: &Weights, tokens: &Tensor, pass: &Pass) -> Outputs {
        self.read_tokens(weights, tokens, pass.wanted)
    }

    fn without_head(&self, weights: &Weights, layer: usize, head: usize) -> Option<Weights> {
        without_head(&self.layers, weights, layer, head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Game;
    use crate::encode::{Input, WIDTH};
    use crate::network::Parameter;
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

    fn evaluate(model: &Chessformer, weights: &Weights) -> Outputs {
        let rows = rows();
        let positions = Positions::Rows(&rows);
        model.forward(weights, &Pass::new(positions, OutputSet::all()))
    }

    /// Computes Lc0's planes by definition, square by square.
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
            config.position = position;
            let model = Chessformer::new(&config, Device::Cpu).unwrap();
            tch::manual_seed(1);
            let flat = model.initial_weights().set_requires_grad(true);
            let weights = Weights::from_flat(&flat, model.parameters());
            let outputs = evaluate(&model, &weights);
            assert_eq!(outputs.policy().size(), [3, 1858]);
            assert_eq!(outputs.get(Output::QCategorical).unwrap().size(), [3, 32]);
            let losses = Output::ALL.map(|output| {
                let tensor = outputs.get(output).unwrap();
                match output {
                    Output::Policy => tensor.log_softmax(-1, None::<Kind>).mean(None::<Kind>),
                    _ if tensor.dim() == 2 => tensor.square().mean(None::<Kind>),
                    _ => tensor.mean(None::<Kind>),
                }
            });
            let loss: Tensor = losses.into_iter().reduce(|sum, loss| sum + loss).unwrap();
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
        // In floating point, a softplus is flat far below zero.
        let bias = bias.unwrap();
        let _ = flat.narrow(0, bias, 1).fill_(-1000.0);
        let flat = flat.set_requires_grad(true);
        let plies = |flat: &Tensor| {
            let weights = Weights::from_flat(flat, model.parameters());
            let mut outputs = evaluate(&model, &weights);
            outputs.take(Output::MovesLeft).unwrap()
        };
        let learning = plies(&flat);
        let playing = tch::no_grad(|| plies(&flat));
        assert_eq!(learning.max().double_value(&[]), 0.0);
        assert!(learning.equal(&playing));
        learning.sum(None::<Kind>).backward();
        assert!(flat.grad().double_value(&[bias]) > 0.1);
    }
}
