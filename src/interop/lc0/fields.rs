//! Where each tensor of a network stands in Lc0's messages, and what we call it:
//! one table for reading and writing.

mod heads;

use super::Lc0Error;
use super::schema::{self, ConvBlock, EncoderLayer, Layer, SeUnit, Smolgen, Weights};
use crate::network::lc0::{AttentionBody, EncoderConfig, Lc0Config, SquareEmbedding};
pub(super) use heads::{policy_head, value_head};

/// Called with a tensor's name and its place.
pub(super) type Visit<'a> = dyn FnMut(&str, &mut Option<Layer>) -> Result<(), Lc0Error> + 'a;

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

    fn tensor(&mut self, name: &str, place: &mut Option<Layer>) -> Visited {
        (self.visit)(&format!("{}{name}", self.path), place)
    }

    /// Weights and biases, of dense layers, convolutions or norms.
    fn pair(
        &mut self,
        name: &str,
        weight: &mut Option<Layer>,
        bias: &mut Option<Layer>,
    ) -> Visited {
        self.within(name, |walk| {
            walk.tensor("weight", weight)?;
            walk.tensor("bias", bias)
        })
    }

    fn convolution(&mut self, name: &str, block: &mut Option<ConvBlock>) -> Visited {
        let block = block.get_or_insert_default();
        self.pair(name, &mut block.weights, &mut block.biases)
    }

    fn weights(&mut self, config: &Lc0Config, weights: &mut Weights) -> Visited {
        if let Some(tower) = config.tower {
            self.convolution("input", &mut weights.input)?;
            weights
                .residual
                .resize_with(tower.blocks as usize, Default::default);
            for (number, block) in weights.residual.iter_mut().enumerate() {
                self.within(&format!("body.{number}"), |walk| {
                    walk.convolution("conv1", &mut block.conv1)?;
                    walk.convolution("conv2", &mut block.conv2)?;
                    if tower.squeeze.is_none() {
                        return Ok(());
                    }
                    let SeUnit { w1, b1, w2, b2 } = block.se.get_or_insert_default();
                    walk.pair("squeeze", w1, b1)?;
                    walk.pair("excite", w2, b2)
                })?;
            }
        }
        if let Some(body) = &config.attention {
            self.within("embedding", |walk| walk.embedding(body, weights))?;
            if body.encoder.smolgen.is_some() {
                self.tensor("smolgen.weight", &mut weights.smolgen_w)?;
            }
            weights.headcount = Some(body.encoder.heads as u32);
            self.encoder(&body.encoder, &mut weights.encoder)?;
        }
        let policies = &mut **weights.policy_heads.get_or_insert_default();
        self.within("policy", |walk| walk.policies(config, policies))?;
        let values = &mut **weights.value_heads.get_or_insert_default();
        self.within("value", |walk| walk.values(config, values))?;
        self.within("moves_left", |walk| walk.moves_left(config, weights))
    }

    fn embedding(&mut self, body: &AttentionBody, weights: &mut Weights) -> Visited {
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
        let is_dense = matches!(body.embedding, SquareEmbedding::Dense { .. });
        if is_dense {
            self.pair("board", ip_emb_preproc_w, ip_emb_preproc_b)?;
        }
        self.pair("project", ip_emb_w, ip_emb_b)?;
        if body.gates {
            self.tensor("multiply", ip_mult_gate)?;
            self.tensor("add", ip_add_gate)?;
        }
        if !is_dense {
            return Ok(());
        }
        self.pair("norm", ip_emb_ln_gammas, ip_emb_ln_betas)?;
        let block = ip_emb_ffn.get_or_insert_default();
        self.within("feed_forward", |walk| {
            walk.feed_forward(block)?;
            walk.pair("norm", ip_emb_ffn_ln_gammas, ip_emb_ffn_ln_betas)
        })
    }

    fn encoder(&mut self, config: &EncoderConfig, layers: &mut Vec<EncoderLayer>) -> Visited {
        layers.resize_with(config.layers as usize, Default::default);
        for (number, layer) in layers.iter_mut().enumerate() {
            self.within(&format!("encoder.{number}"), |walk| {
                walk.layer(config, layer)
            })?;
        }
        Ok(())
    }

    fn layer(&mut self, config: &EncoderConfig, layer: &mut EncoderLayer) -> Visited {
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
            walk.pair("query", &mut mha.q_w, &mut mha.q_b)?;
            walk.pair("key", &mut mha.k_w, &mut mha.k_b)?;
            walk.pair("value", &mut mha.v_w, &mut mha.v_b)?;
            walk.pair("output", &mut mha.dense_w, &mut mha.dense_b)?;
            walk.pair("norm", ln1_gammas, ln1_betas)
        })?;
        if config.smolgen.is_some() {
            let message = mha.smolgen.get_or_insert_default();
            self.within("smolgen", |walk| walk.smolgen(message))?;
        }
        self.within("feed_forward", |walk| {
            walk.feed_forward(ffn.get_or_insert_default())?;
            walk.pair("norm", ln2_gammas, ln2_betas)
        })
    }

    fn feed_forward(&mut self, block: &mut schema::Ffn) -> Visited {
        let schema::Ffn {
            dense1_w,
            dense1_b,
            dense2_w,
            dense2_b,
        } = block;
        self.pair("widen", dense1_w, dense1_b)?;
        self.pair("narrow", dense2_w, dense2_b)
    }

    fn smolgen(&mut self, message: &mut Smolgen) -> Visited {
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
        self.tensor("squares.weight", squares)?;
        self.pair("summary", dense1_w, dense1_b)?;
        self.pair("summary_norm", ln1_gammas, ln1_betas)?;
        self.pair("heads", dense2_w, dense2_b)?;
        self.pair("heads_norm", ln2_gammas, ln2_betas)
    }
}
