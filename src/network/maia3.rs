//! Maia-3: networks that predict the moves of human players with a given rating.
//!
//! The networks are Chessformers by the Computational Social Science Lab in Toronto (Monroe,
//! Eilender, Chalmers, Tang and Anderson, "Chessformer: A Unified Architecture for Chess Modeling",
//! 2026), published as PyTorch checkpoints with about 3, 5, 23 and 79 million parameters. The
//! evaluation follows the program that was published with them (CSSLab/maia3).
//!
//! They read the last eight positions, each in the view of its mover, and both players' ratings.
//! They do not read castling rights, en passant, repetitions or the 50-move rule.
//!
//! In addition to moves and the result, a third head predicts how long a person would think about
//! the position (in units of 100 s). Search does not use this head, so it is not evaluated. Its
//! parameters are kept so that checkpoints survive a round trip unchanged.

mod policy;

pub(crate) use super::config::maia3::PIECES;
pub use super::config::maia3::{GabConfig, Maia3Config, Maia3ConfigError, PRESETS};

use super::architecture::{
    Architecture, Evaluator, Interface, NotAnEvaluator, PLANES, Pass, Positions, Structure,
};
use super::bitboards;
use super::config::ArchitectureConfig;
use super::config::maia3::PROMOTIONS;
use super::encoder::{
    Attention, Board, EncoderLayer, FeedForward, Gab, PositionEncoding, Projection, encode,
    without_head,
};
use super::evaluator;
use super::exported::ExportedProgram;
use super::layers::{Activation, Linear, Norm};
use super::outputs::{Output, Outputs};
use super::parameters::{Builder, Dense, Initial, Slot, Weights};
use super::size::Part;
use crate::encode::{BOARDS, InputFormat, PLANES_PER_BOARD};
use policy::Translation;
use tch::{Device, Kind, Tensor};

/// The rating at which only the vector `rating_low` counts. At a rating of 0, only the other vector
/// counts. Higher ratings are clamped.
const HIGHEST_RATING: i64 = 5000;

/// Epsilon of the norms. The values are PyTorch's defaults for centred norms and for
/// root-mean-square norms in f32.
const NORM_EPSILON: f64 = 1e-5;
const RMS_EPSILON: f64 = f32::EPSILON as f64;

/// The words of a row after its bitboards, in order.
const SCALARS: [&str; 2] = ["self_elo", "opponent_elo"];

/// The structure of a Maia-3 network. Its parameters are named as in the published checkpoints.
#[derive(Debug)]
pub struct Maia3 {
    /// The network's configuration.
    pub config: Maia3Config,
    structure: Structure,
    constants: Constants,
    /// The vector for the highest rating. The checkpoints also call it `low`.
    rating_low: Slot,
    rating_high: Slot,
    project: Linear,
    layers: Vec<EncoderLayer>,
    norm: Norm,
    board_norm: Norm,
    value_hidden: Linear,
    value: Linear,
    square_from: Linear,
    square_to: Linear,
    promotion: Linear,
}

/// Tensors that the forward pass reads in addition to parameters.
#[derive(Debug)]
struct Constants {
    /// u8 0…7.
    shifts: Tensor,
    /// i64 [12 · history]: the indices of the row's words that hold planes, in Maia-3's order.
    planes: Tensor,
    translation: Translation,
}

impl Constants {
    fn new(config: &Maia3Config, device: Device) -> Constants {
        // A row starts with the newest board, but Maia-3's input starts with the oldest.
        let planes: Vec<i64> = (0..config.history)
            .rev()
            .flat_map(|age| (0..PIECES).map(move |piece| age * PLANES_PER_BOARD as i64 + piece))
            .collect();
        Constants {
            shifts: bitboards::shifts().to_device(device),
            planes: Tensor::from_slice(&planes).to_device(device),
            translation: Translation::new(device),
        }
    }
}

impl Maia3 {
    /// Builds the structure that `config` describes, for weights on `device`.
    ///
    /// # Errors
    /// [`Maia3ConfigError`] if the sizes do not fit each other.
    pub fn new(config: &Maia3Config, device: Device) -> Result<Maia3, Maia3ConfigError> {
        config.check()?;
        let mut builder = Builder::default();
        let (width, hidden) = (config.width, config.hidden);
        let [rating_low, rating_high] = ["elo_embedding_low", "elo_embedding_high"].map(|name| {
            let name = format!("{name}.weight");
            builder.add(&name, &[1, config.rating], Initial::Normal(1.0))
        });
        let project = build_projection(&mut builder, config);
        let shape = [64 * 64, config.gab.generator];
        let deviation = (2.0 / (64 * 64 + config.gab.generator) as f64).sqrt();
        let initial = Initial::Normal(deviation);
        let generator = builder.add_matrix("gab_shared_weight", &shape, initial, true);
        let layers = (0..config.layers).map(|number| {
            builder.hidden(|builder| {
                builder.scope(format!("transformer.layers.{number}"), |builder| {
                    build_layer(builder, config, generator)
                })
            })
        });
        let layers = layers.collect();
        let norm = builder.norm("transformer.norm", width, true, NORM_EPSILON);
        let board_norm = builder.norm("last_ln", width, true, NORM_EPSILON);
        let value_hidden = Dense::per_board(width, hidden);
        let value_hidden = builder.linear("fc_value_hid", value_hidden, Part::Other);
        let value = builder.linear("fc_value", Dense::per_board(hidden, 3), Part::Other);
        // Parameters of the unused head must not count as operations.
        let unused = |input, output| Dense::per_board(input, output).with_rows(0);
        builder.linear("fc_ponder_hid", unused(width, hidden), Part::Other);
        builder.linear("fc_ponder", unused(hidden, 1), Part::Other);
        let square = Dense::per_token(width, hidden).without_bias();
        let promotion = Dense::per_token(hidden, PROMOTIONS)
            .with_rows(8)
            .without_bias()
            .outer();
        let [square_from, square_to] = ["proj_sq_from", "proj_sq_to"]
            .map(|name| builder.hidden(|builder| builder.linear(name, square, Part::Main)));
        let promotion = builder.linear("promo_bias_proj", promotion, Part::Other);
        builder.count_macs(64 * 64 * hidden);
        let stated = ArchitectureConfig::Maia3 {
            model: config.clone(),
        };
        Ok(Maia3 {
            constants: Constants::new(config, device),
            config: config.clone(),
            structure: Structure::new(stated, builder),
            rating_low,
            rating_high,
            project,
            layers,
            norm,
            board_norm,
            value_hidden,
            value,
            square_from,
            square_to,
            promotion,
        })
    }

    /// Returns tokens [B, 64, width] from the pieces on the squares [B, 64, 12 · history] and the
    /// players' ratings [B, 2].
    fn tokens(&self, weights: &Weights, squares: &Tensor, ratings: &Tensor) -> Tensor {
        let planes = self.config.planes();
        let weight = &weights[self.project.weight];
        let players = [0, 1].map(|player| self.rating(weights, &ratings.narrow(1, player, 1)));
        // Ratings are the same on every square, so they are projected only once per board.
        let players = Tensor::cat(&players, 1).linear(
            &weight.narrow(1, planes, 2 * self.config.rating),
            self.project.bias.map(|bias| &weights[bias]),
        );
        let squares = squares.linear(&weight.narrow(1, 0, planes), None::<&Tensor>);
        squares + players.unsqueeze(1)
    }

    /// Returns the embedding [B, rating] of ratings [B, 1].
    fn rating(&self, weights: &Weights, ratings: &Tensor) -> Tensor {
        let (low, high) = (&weights[self.rating_low], &weights[self.rating_high]);
        let share = ratings.clamp(0, HIGHEST_RATING).to_kind(Kind::Float) / HIGHEST_RATING as f64;
        let share = share.type_as(low);
        &share * low + (1.0 - &share) * high
    }

    /// Returns logits of the moves in Maia-3's encoding, [B, 4352].
    fn moves(&self, weights: &Weights, x: &Tensor) -> Tensor {
        let root = (self.config.hidden as f64).sqrt();
        let from = self.square_from.forward(weights, x);
        let to = self.square_to.forward(weights, x);
        let pairs = from.bmm(&to.transpose(1, 2)) / root;
        let pieces = self.promotion.forward(weights, &to.narrow(1, 56, 8));
        let pieces = (pieces * root).unsqueeze(1);
        let promotions = pairs.narrow(1, 48, 8).narrow(2, 56, 8).unsqueeze(3) + pieces;
        Tensor::cat(&[pairs.flatten(1, 2), promotions.flatten(1, 3)], 1)
    }
}

/// Builds the projection from a square's pieces and the players' ratings to a token.
fn build_projection(builder: &mut Builder, config: &Maia3Config) -> Linear {
    let (planes, ratings, width) = (config.planes(), 2 * config.rating, config.width);
    // Pieces are projected once per square, but ratings only once per board.
    builder.count_macs((64 * planes + ratings) * width);
    let dense = Dense::per_token(planes + ratings, width).with_rows(0);
    builder.linear("token_projection", dense, Part::Other)
}

fn build_layer(builder: &mut Builder, config: &Maia3Config, generator: Slot) -> EncoderLayer {
    let (width, heads) = (config.width, config.heads);
    let (projection, output, gab) = builder.scope("self_attn", |builder| {
        let deviation = (2.0 / (4 * width) as f64).sqrt();
        let joint = builder.add_matrix(
            "mha.in_proj_weight",
            &[3 * width, width],
            Initial::Normal(deviation),
            false,
        );
        builder.count(Part::Main, 64 * 3 * width * width);
        let square = Dense::per_token(width, width).without_bias();
        let joint = Linear {
            weight: joint,
            bias: None,
        };
        let output = builder.linear("mha.out_proj", square, Part::Main);
        (joint, output, build_gab(builder, config, generator))
    });
    builder.count_macs(2 * 64 * 64 * width);
    let wide = config.feed_forward;
    let widen = builder.linear("linear1", Dense::per_token(width, wide), Part::Main);
    let narrow = builder.linear("linear2", Dense::per_token(wide, width), Part::Main);
    let [norm1, norm2] =
        ["norm1", "norm2"].map(|name| builder.norm(name, width, false, RMS_EPSILON));
    EncoderLayer {
        attention: Attention {
            heads,
            head_width: width / heads,
            residual_gain: 1.0,
            projection: Projection::Joint(projection),
            output,
            norm: norm1,
            position: PositionEncoding::Gab(gab),
        },
        feed_forward: FeedForward {
            widen,
            activation: Activation::Gelu,
            narrow,
            norm: norm2,
            residual_gain: 1.0,
        },
    }
}

fn build_gab(builder: &mut Builder, config: &Maia3Config, generator: Slot) -> Gab {
    let (width, gab) = (config.width, &config.gab);
    let generated = config.heads * gab.generator;
    let squares = gab.compress.map(|compress| {
        let dense = Dense::per_token(width, compress);
        builder.linear("sm1", dense, Part::Other)
    });
    let summarised = gab.compress.map_or(width, |compress| 64 * compress);
    builder.count_macs(generated * 64 * 64);
    Gab {
        wide: gab.generator,
        activation: Activation::Gelu,
        squares,
        summary: builder.linear("sm2", Dense::per_board(summarised, gab.hidden), Part::Other),
        summary_norm: builder.norm("ln1", gab.hidden, true, NORM_EPSILON),
        heads_of: builder.linear("sm3", Dense::per_board(gab.hidden, generated), Part::Other),
        heads_norm: builder.norm("ln2", generated, true, NORM_EPSILON),
        generator,
    }
}

impl Architecture for Maia3 {
    fn structure(&self) -> &Structure {
        &self.structure
    }

    fn constants(&self) -> Vec<(&str, &Tensor)> {
        let constants = &self.constants;
        vec![
            ("shifts", &constants.shifts),
            ("planes", &constants.planes),
            ("policy_gather", &constants.translation.gather),
            ("policy_choices", &constants.translation.choices),
        ]
    }

    fn into_evaluator(self: Box<Self>) -> Result<Box<dyn Evaluator>, NotAnEvaluator> {
        Ok(self)
    }

    fn exported(&self) -> ExportedProgram<'_> {
        evaluator::exported(self)
    }
}

impl Evaluator for Maia3 {
    fn interface(&self) -> Interface {
        Interface {
            format: InputFormat::Maia3.number(),
            scalars: SCALARS.to_vec(),
            outputs: vec![Output::Policy, Output::Wdl],
            // The row's bitboards as one plane each.
            planes: vec![
                (PLANES, vec![BOARDS as i64, 8, 8]),
                (SCALARS[0], vec![]),
                (SCALARS[1], vec![]),
            ],
        }
    }

    fn has(&self, output: Output) -> bool {
        matches!(output, Output::Policy | Output::Wdl)
    }

    fn forward(&self, weights: &Weights, pass: &Pass) -> Outputs {
        let constants = &self.constants;
        let (squares, ratings) = match pass.positions {
            Positions::Rows(rows) => {
                let boards = rows.index_select(1, &constants.planes);
                let like = &weights.tensors()[0];
                let squares = bitboards::squares(&boards, &constants.shifts, like);
                (squares, rows.narrow(1, BOARDS as i64, 2))
            }
            Positions::Planes(given) => {
                let boards = given[0].flatten(2, 3);
                let squares = boards.index_select(1, &constants.planes).transpose(1, 2);
                (squares, Tensor::stack(&given[1..], 1))
            }
        };
        let tokens = self.tokens(weights, &squares, &ratings);
        pass.tap.give("embedding", &tokens);
        let x = encode(&self.layers, weights, tokens, Board::default(), &pass.tap);
        self.read(weights, &x, pass)
    }

    fn read(&self, weights: &Weights, tokens: &Tensor, pass: &Pass) -> Outputs {
        let mut outputs = Outputs::default();
        let x = self.norm.forward(weights, tokens);
        if pass.wanted.contains(Output::Policy) {
            let translation = &self.constants.translation;
            let seen = match pass.positions {
                Positions::Rows(rows) => translation.seen(rows),
                Positions::Planes(planes) => translation.seen_in_planes(&planes[0].flatten(2, 3)),
            };
            let policy = translation.policy(&self.moves(weights, &x), &seen);
            outputs.set(Output::Policy, policy.to_kind(Kind::Float));
        }
        if pass.wanted.contains(Output::Wdl) {
            let board = x.mean_dim([1i64].as_slice(), false, None::<Kind>);
            let board = self.board_norm.forward(weights, &board);
            let hidden = self.value_hidden.forward(weights, &board).relu();
            // Maia-3's outputs are ordered loss, draw, win.
            let wdl = self.value.forward(weights, &hidden).flip([1]);
            outputs.set(Output::Wdl, wdl.to_kind(Kind::Float));
        }
        outputs
    }

    fn without_head(&self, weights: &Weights, layer: usize, head: usize) -> Option<Weights> {
        without_head(&self.layers, weights, layer, head)
    }
}
