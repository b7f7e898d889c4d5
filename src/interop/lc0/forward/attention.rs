//! Attention bodies: tokens from squares, and encoder layers over them.

use super::Pass;
use crate::interop::lc0::config::{Activation, AttentionBody, EncoderConfig, SquareEmbedding};
use crate::interop::lc0::fields::PIECES;
use tch::Tensor;

/// What smolgen's norms and those of dense embeddings add to the variance.
const EPSILON: f64 = 1e-3;
/// What the norms of all other layers add.
const SMALL_EPSILON: f64 = 1e-6;

/// How encoder layers of one stack are computed.
struct Style<'a> {
    config: &'a EncoderConfig,
    /// Scale of what a layer adds to its input.
    gain: f64,
    /// What norms add to the variance.
    epsilon: f64,
    smolgen_activation: Activation,
    feed_forward_activation: Activation,
}

impl Pass<'_> {
    /// Tokens [B, 64, width] from planes or from what a tower made of them.
    pub(super) fn attention_body(&self, body: &AttentionBody, x: &Tensor) -> Tensor {
        let is_dense = matches!(body.embedding, SquareEmbedding::Dense { .. });
        let style = Style {
            config: &body.encoder,
            // DeepNorm's, on the branch instead of the residual.
            gain: (2.0 * body.encoder.layers as f64).powf(-0.25),
            epsilon: if is_dense { EPSILON } else { SMALL_EPSILON },
            smolgen_activation: body.smolgen_activation,
            feed_forward_activation: body.feed_forward_activation,
        };
        let tokens = self.embedding(body, &style, x);
        self.encoder("", &style, tokens)
    }

    fn embedding(&self, body: &AttentionBody, style: &Style, x: &Tensor) -> Tensor {
        let wide = match body.embedding {
            SquareEmbedding::Tower => x.shallow_clone(),
            SquareEmbedding::Map => {
                let reach = self.constants.reach.as_ref().expect("made for maps");
                // Spread by adding: a size of the batch would be traced as a constant.
                let zeros = x.narrow(1, 0, 1).narrow(2, 0, 1).zeros_like();
                Tensor::cat(&[x, &(zeros + reach.type_as(x))], 2)
            }
            SquareEmbedding::Dense { board, .. } => {
                let pieces = x.narrow(2, 0, PIECES).flatten(1, 2);
                let seen = self.dense("embedding.board", &pieces);
                Tensor::cat(&[x, &seen.view([-1, 64, board])], 2)
            }
        };
        let projected = self.dense("embedding.project", &wide);
        let mut tokens = self.config.activation.forward(&projected);
        let is_dense = matches!(body.embedding, SquareEmbedding::Dense { .. });
        if is_dense {
            tokens = self.norm("embedding.norm", &tokens, EPSILON);
        }
        if body.gates {
            let gate = |name| self.weight(name).transpose(0, 1);
            tokens = tokens * gate("embedding.multiply") + gate("embedding.add");
        }
        if is_dense {
            tokens = self.feed_forward("embedding", style, &tokens);
        }
        tokens
    }

    /// The encoder layers of a policy, which came before those of bodies.
    pub(super) fn policy_encoder(&self, path: &str, config: &EncoderConfig, x: Tensor) -> Tensor {
        let (_, feed_forward_activation) = self.config.policy_activations();
        let body = self.config.attention.as_ref();
        let style = Style {
            config,
            gain: 1.0,
            epsilon: SMALL_EPSILON,
            smolgen_activation: body.map_or(Activation::None, |body| body.smolgen_activation),
            feed_forward_activation,
        };
        self.encoder(path, &style, x)
    }

    fn encoder(&self, path: &str, style: &Style, mut x: Tensor) -> Tensor {
        for layer in 0..style.config.layers {
            let path = format!("{path}encoder.{layer}");
            x = self.attention(&path, style, &x);
            x = self.feed_forward(&path, style, &x);
        }
        x
    }

    /// Multi-head attention, its residual and its norm.
    fn attention(&self, path: &str, style: &Style, x: &Tensor) -> Tensor {
        let heads = style.config.heads;
        let depth = style.config.attention / heads;
        let at = |name: &str| format!("{path}.attention.{name}");
        let split = |name: &str| {
            let all = self.dense(&at(name), x).view([-1, 64, heads, depth]);
            all.transpose(1, 2)
        };
        let [query, key, value] = ["query", "key", "value"].map(split);
        let bias = style.config.smolgen.is_some().then(|| {
            let biases = self.biases(path, style, x);
            biases.view([-1, heads, 64, 64])
        });
        let seen = Tensor::scaled_dot_product_attention(
            &query, &key, &value, bias, 0.0, false, None, false,
        );
        let joined = seen.transpose(1, 2).reshape([-1, 64, heads * depth]);
        let y = self.dense_scaled(&at("output"), &joined, style.gain);
        self.norm(&at("norm"), &(x + y), style.epsilon)
    }

    /// Smolgen: biases [B · heads, 64, 64] from tokens.
    fn biases(&self, path: &str, style: &Style, x: &Tensor) -> Tensor {
        let at = |name: &str| format!("{path}.smolgen.{name}");
        let activation = style.smolgen_activation;
        let squares = x.linear(self.weight(&at("squares.weight")), None::<&Tensor>);
        let summary = activation.forward(&self.dense(&at("summary"), &squares.flatten(1, 2)));
        let summary = self.norm(&at("summary_norm"), &summary, EPSILON);
        let heads = activation.forward(&self.dense(&at("heads"), &summary));
        let heads = self.norm(&at("heads_norm"), &heads, EPSILON);
        let generator = self.weight("smolgen.weight");
        heads
            .view([-1, generator.size()[1]])
            .linear(generator, None::<&Tensor>)
            .view([-1, 64, 64])
    }

    /// A feed-forward block, its residual and its norm.
    fn feed_forward(&self, path: &str, style: &Style, x: &Tensor) -> Tensor {
        let at = |name: &str| format!("{path}.feed_forward.{name}");
        let activation = style.feed_forward_activation;
        let hidden = activation.forward(&self.dense(&at("widen"), x));
        let y = self.dense_scaled(&at("narrow"), &hidden, style.gain);
        self.norm(&at("norm"), &(x + y), style.epsilon)
    }
}
