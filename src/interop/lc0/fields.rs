//! Where each tensor of a network stands in Lc0's messages, what we call it and
//! which shape it has: one table for reading and writing.

mod heads;

use super::Lc0Error;
use super::config::{AttentionBody, EncoderConfig, Lc0Config, SmolgenConfig, SquareEmbedding};
use super::schema::{self, ConvBlock, EncoderLayer, Layer, SeUnit, Smolgen, Weights};
pub(super) use heads::{policy_head, value_head};

/// Input planes.
pub(super) const PLANES: i64 = 112;
/// Piece planes of the current position, which the dense embedding reads.
pub(super) const PIECES: i64 = 12;

/// What is known of a tensor before it is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field<'a> {
    pub name: &'a str,
    pub shape: &'a [i64],
    /// Rows of a position that it is multiplied with: [`SQUARES`] or [`BOARD`]
    /// for most; 0 for what is added.
    pub rows: i64,
}

/// A layer looks at each square by itself.
const SQUARES: i64 = 64;
/// A layer looks at the board as a whole.
const BOARD: i64 = 1;

/// Called with what is known of a tensor and its place.
pub(super) type Visit<'a> = dyn FnMut(Field, &mut Option<Layer>) -> Result<(), Lc0Error> + 'a;

type Visited = Result<(), Lc0Error>;

/// Visits every tensor of a network that `config` describes, making the
/// messages that hold them where they are missing.
///
/// # Errors
/// The first of `visit`.
pub(super) fn visit_fields(
    config: &Lc0Config,
    weights: &mut Weights,
    visit: &mut Visit,
) -> Visited {
    let mut walk = Walk {
        path: String::new(),
        visit,
    };
    walk.weights(config, weights)
}

struct Walk<'a, 'b> {
    path: String,
    visit: &'a mut Visit<'b>,
}

impl Walk<'_, '_> {
    fn within(&mut self, name: &str, body: impl FnOnce(&mut Self) -> Visited) -> Visited {
        let length = self.path.len();
        self.path.push_str(name);
        self.path.push('.');
        let done = body(self);
        self.path.truncate(length);
        done
    }

    fn tensor(
        &mut self,
        name: &str,
        shape: &[i64],
        rows: i64,
        place: &mut Option<Layer>,
    ) -> Visited {
        let name = &format!("{}{name}", self.path);
        (self.visit)(Field { name, shape, rows }, place)
    }

    fn dense(
        &mut self,
        name: &str,
        (output, input): (i64, i64),
        rows: i64,
        weight: &mut Option<Layer>,
        bias: &mut Option<Layer>,
    ) -> Visited {
        self.within(name, |walk| {
            walk.tensor("weight", &[output, input], rows, weight)?;
            walk.tensor("bias", &[output], 0, bias)
        })
    }

    fn norm(
        &mut self,
        name: &str,
        width: i64,
        gammas: &mut Option<Layer>,
        betas: &mut Option<Layer>,
    ) -> Visited {
        self.within(name, |walk| {
            walk.tensor("weight", &[width], 0, gammas)?;
            walk.tensor("bias", &[width], 0, betas)
        })
    }

    fn convolution(
        &mut self,
        name: &str,
        (output, input): (i64, i64),
        block: &mut Option<ConvBlock>,
    ) -> Visited {
        let block = block.get_or_insert_default();
        self.within(name, |walk| {
            let shape = [output, input, 3, 3];
            walk.tensor("weight", &shape, SQUARES, &mut block.weights)?;
            walk.tensor("bias", &[output], 0, &mut block.biases)
        })
    }

    fn weights(&mut self, config: &Lc0Config, weights: &mut Weights) -> Visited {
        if let Some(tower) = config.tower {
            let filters = tower.filters;
            self.convolution("input", (filters, PLANES), &mut weights.input)?;
            weights
                .residual
                .resize_with(tower.blocks as usize, Default::default);
            for (number, block) in weights.residual.iter_mut().enumerate() {
                self.within(&format!("body.{number}"), |walk| {
                    walk.convolution("conv1", (filters, filters), &mut block.conv1)?;
                    walk.convolution("conv2", (filters, filters), &mut block.conv2)?;
                    let Some(squeeze) = tower.squeeze else {
                        return Ok(());
                    };
                    let SeUnit { w1, b1, w2, b2 } = block.se.get_or_insert_default();
                    walk.dense("squeeze", (squeeze, filters), BOARD, w1, b1)?;
                    walk.dense("excite", (2 * filters, squeeze), BOARD, w2, b2)
                })?;
            }
        }
        if let Some(body) = &config.attention {
            let input = config.tower.map_or(PLANES, |tower| tower.filters);
            self.within("embedding", |walk| walk.embedding(body, input, weights))?;
            if let Some(smolgen) = body.encoder.smolgen {
                let shape = [64 * 64, smolgen.generator];
                let rows = body.encoder.layers * body.encoder.heads;
                self.tensor("smolgen.weight", &shape, rows, &mut weights.smolgen_w)?;
            }
            weights.headcount = Some(body.encoder.heads as u32);
            self.encoder(&body.encoder, body.width, &mut weights.encoder)?;
        }
        let policies = &mut **weights.policy_heads.get_or_insert_default();
        self.within("policy", |walk| walk.policies(config, policies))?;
        let values = &mut **weights.value_heads.get_or_insert_default();
        self.within("value", |walk| walk.values(config, values))?;
        self.within("moves_left", |walk| walk.moves_left(config, weights))
    }

    fn embedding(&mut self, body: &AttentionBody, input: i64, weights: &mut Weights) -> Visited {
        let Weights {
            ip_emb_preproc_w,
            ip_emb_preproc_b,
            ip_emb_w,
            ip_emb_b,
            ip_emb_ln_gammas,
            ip_emb_ln_betas,
            ip_mult_gate,
            ip_add_gate,
            ip_emb_ffn,
            ip_emb_ffn_ln_gammas,
            ip_emb_ffn_ln_betas,
            ..
        } = weights;
        let width = body.width;
        let extra = match body.embedding {
            SquareEmbedding::Tower => 0,
            SquareEmbedding::Map => 64,
            SquareEmbedding::Dense { board, .. } => {
                let shape = (64 * board, 64 * PIECES);
                self.dense("board", shape, BOARD, ip_emb_preproc_w, ip_emb_preproc_b)?;
                board
            }
        };
        let project = (width, input + extra);
        self.dense("project", project, SQUARES, ip_emb_w, ip_emb_b)?;
        if body.gates {
            self.tensor("multiply", &[width, 64], 0, ip_mult_gate)?;
            self.tensor("add", &[width, 64], 0, ip_add_gate)?;
        }
        let SquareEmbedding::Dense { feed_forward, .. } = body.embedding else {
            return Ok(());
        };
        self.norm("norm", width, ip_emb_ln_gammas, ip_emb_ln_betas)?;
        let block = ip_emb_ffn.get_or_insert_default();
        self.within("feed_forward", |walk| {
            walk.feed_forward(width, feed_forward, block)?;
            walk.norm("norm", width, ip_emb_ffn_ln_gammas, ip_emb_ffn_ln_betas)
        })
    }

    fn encoder(
        &mut self,
        config: &EncoderConfig,
        width: i64,
        layers: &mut Vec<EncoderLayer>,
    ) -> Visited {
        layers.resize_with(config.layers as usize, Default::default);
        for (number, layer) in layers.iter_mut().enumerate() {
            self.within(&format!("encoder.{number}"), |walk| {
                walk.layer(config, width, layer)
            })?;
        }
        Ok(())
    }

    fn layer(&mut self, config: &EncoderConfig, width: i64, layer: &mut EncoderLayer) -> Visited {
        let attention = config.attention;
        let EncoderLayer {
            mha,
            ln1_gammas,
            ln1_betas,
            ffn,
            ln2_gammas,
            ln2_betas,
        } = layer;
        let mha = mha.get_or_insert_default();
        self.within("attention", |walk| {
            let (input, output) = ((attention, width), (width, attention));
            walk.dense("query", input, SQUARES, &mut mha.q_w, &mut mha.q_b)?;
            walk.dense("key", input, SQUARES, &mut mha.k_w, &mut mha.k_b)?;
            walk.dense("value", input, SQUARES, &mut mha.v_w, &mut mha.v_b)?;
            let (weight, bias) = (&mut mha.dense_w, &mut mha.dense_b);
            walk.dense("output", output, SQUARES, weight, bias)?;
            walk.norm("norm", width, ln1_gammas, ln1_betas)
        })?;
        if let Some(smolgen) = config.smolgen {
            let message = mha.smolgen.get_or_insert_default();
            self.within("smolgen", |walk| {
                walk.smolgen(smolgen, config.heads, width, message)
            })?;
        }
        self.within("feed_forward", |walk| {
            walk.feed_forward(width, config.feed_forward, ffn.get_or_insert_default())?;
            walk.norm("norm", width, ln2_gammas, ln2_betas)
        })
    }

    fn feed_forward(&mut self, width: i64, wide: i64, block: &mut schema::Ffn) -> Visited {
        let schema::Ffn {
            dense1_w,
            dense1_b,
            dense2_w,
            dense2_b,
        } = block;
        self.dense("widen", (wide, width), SQUARES, dense1_w, dense1_b)?;
        self.dense("narrow", (width, wide), SQUARES, dense2_w, dense2_b)
    }

    fn smolgen(
        &mut self,
        config: SmolgenConfig,
        heads: i64,
        width: i64,
        message: &mut Smolgen,
    ) -> Visited {
        let SmolgenConfig {
            compress,
            hidden,
            generator,
        } = config;
        let Smolgen {
            compress: squares,
            dense1_w,
            dense1_b,
            ln1_gammas,
            ln1_betas,
            dense2_w,
            dense2_b,
            ln2_gammas,
            ln2_betas,
        } = message;
        let wide = heads * generator;
        self.tensor("squares.weight", &[compress, width], SQUARES, squares)?;
        let summary = (hidden, 64 * compress);
        self.dense("summary", summary, BOARD, dense1_w, dense1_b)?;
        self.norm("summary_norm", hidden, ln1_gammas, ln1_betas)?;
        self.dense("heads", (wide, hidden), BOARD, dense2_w, dense2_b)?;
        self.norm("heads_norm", wide, ln2_gammas, ln2_betas)
    }
}
