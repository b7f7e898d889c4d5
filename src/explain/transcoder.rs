//! Sparse transcoders, which represent the computation of a feed-forward block by a few features at
//! a time.
//!
//! A transcoder (Dunefsky, Chlenski and Nanda, "Transcoders Find Interpretable LLM Feature
//! Circuits", 2024) computes a block's output from the block's input through a wide layer that
//! keeps only the k greatest activations of each square (top-k: Gao et al., "Scaling and evaluating
//! sparse autoencoders", 2024). Three kinds of evidence show the meaning of a feature: the
//! positions that activate it most, the puzzle themes that it predicts, and the network's outputs
//! without it.

mod effects;
mod file;
mod fit;
mod report;
mod themes;

pub use file::{Strongest, TranscoderAbout, TranscoderError};
pub use fit::{FitSettings, fit};
pub use report::{ActiveFeature, TranscoderReport};
pub use themes::{LabelledGame, MOTIFS, ThemeFeature, predict_themes};

use super::ExplainError;
use super::evaluator::Evaluator;
use crate::chess::Game;
use tch::{Kind, Tensor};

/// Number of positions whose activations are computed together.
const BATCH: usize = 32;

/// A transcoder of one layer's feed-forward block.
#[derive(Debug)]
pub struct Transcoder {
    /// The transcoder's source and quality.
    pub about: TranscoderAbout,
    /// [width, features].
    encoder: Tensor,
    /// `[features]`.
    encoder_bias: Tensor,
    /// [features, width].
    decoder: Tensor,
    /// `[width]`.
    decoder_bias: Tensor,
}

impl Transcoder {
    /// Returns the activations [N, features] of tokens [N, width]. All activations of a token
    /// except its k greatest are zero.
    fn encode(&self, tokens: &Tensor) -> Tensor {
        let all = tokens.matmul(&self.encoder) + &self.encoder_bias;
        greatest(&all, self.about.top_k)
    }

    /// Returns the block's output [N, width] as reconstructed from activations [N, features].
    fn decode(&self, activations: &Tensor) -> Tensor {
        activations.matmul(&self.decoder) + &self.decoder_bias
    }

    /// Returns the activations [games, 64, features], in the order of the squares that the network
    /// sees.
    fn activations(&self, evaluator: &Evaluator, games: &[Game]) -> Result<Tensor, ExplainError> {
        let mut found = Vec::new();
        for games in games.chunks(BATCH) {
            let [input, _] = block(evaluator, games, self.about.layer)?;
            let active = self.encode(&input);
            found.push(active.view([games.len() as i64, 64, -1]));
        }
        Ok(Tensor::cat(&found, 0))
    }
}

/// Keeps the k largest values of each row, as far as they are positive, and sets all others to
/// zero.
fn greatest(rows: &Tensor, k: usize) -> Tensor {
    let (values, places) = rows.topk(k as i64, -1, true, false);
    rows.zeros_like().scatter(-1, &places, &values.relu())
}

/// Returns the input and the output [64 · games, width] of a layer's feed-forward block. Layers are
/// numbered from 1.
fn block(evaluator: &Evaluator, games: &[Game], layer: usize) -> Result<[Tensor; 2], ExplainError> {
    let taps = evaluator.taps(games);
    let part = |name: &str| {
        let tokens = taps
            .get(&block_name(layer, name))
            .ok_or(ExplainError::NoLayer(layer))?;
        let width = tokens.size()[2];
        Ok(tokens.to_kind(Kind::Float).contiguous().view([-1, width]))
    };
    Ok([part("input")?, part("output")?])
}

/// Returns the tap name of a part of a layer's feed-forward block. Layers are numbered from 1.
fn block_name(layer: usize, part: &str) -> String {
    format!("encoder.{}.feed_forward.{part}", layer.wrapping_sub(1))
}
