//! The embeddings of tokens and of game conditions.

use crate::encode::{GameEnd, UCI_MOVES, Vocabulary, uci_parts};
use crate::network::parameters::{Builder, Initial, Slot, Weights};
use tch::{Device, Kind, Tensor};

/// Initial standard deviation of embeddings, as in GPT-2.
const DEVIATION: f64 = 0.02;
/// Number of tokens that are not moves.
const OTHERS: i64 = 2 + GameEnd::ALL.len() as i64;
/// Range of ratings that the embedding distinguishes. Ratings outside the range are clamped.
const RATINGS: [f64; 2] = [500.0, 3000.0];

/// The embedding of tokens.
#[derive(Debug)]
pub(super) enum TokenEmbedding {
    /// A separate vector for each token.
    Whole(Slot),
    /// The vector of a move is the sum of the vectors of its origin square, destination square and
    /// promotion.
    Parts {
        from: Slot,
        to: Slot,
        promotion: Slot,
        others: Slot,
        /// i64 [3, 1968]: the parts of each move.
        parts: Tensor,
    },
}

impl TokenEmbedding {
    pub fn build(
        builder: &mut Builder,
        vocabulary: &Vocabulary,
        width: i64,
        device: Device,
    ) -> TokenEmbedding {
        builder.scope("embedding", |builder| {
            let mut add =
                |name: &str, rows| builder.add(name, &[rows, width], Initial::Normal(DEVIATION));
            match vocabulary {
                Vocabulary::San(_) => {
                    TokenEmbedding::Whole(add("weight", vocabulary.size() as i64))
                }
                Vocabulary::Uci => TokenEmbedding::Parts {
                    from: add("from", 64),
                    to: add("to", 64),
                    promotion: add("promotion", 5),
                    others: add("others", OTHERS),
                    parts: uci_table().to_device(device),
                },
            }
        })
    }

    /// Returns the vectors of all tokens, [vocabulary, width].
    pub fn table(&self, weights: &Weights) -> Tensor {
        match self {
            TokenEmbedding::Whole(slot) => weights[*slot].shallow_clone(),
            TokenEmbedding::Parts {
                from,
                to,
                promotion,
                others,
                parts,
            } => {
                let part = |slot: Slot, row| weights[slot].index_select(0, &parts.select(0, row));
                let moves = part(*from, 0) + part(*to, 1) + part(*promotion, 2);
                Tensor::cat(&[&moves, &weights[*others]], 0)
            }
        }
    }

    /// Returns the parts of each move, which network files store.
    pub fn parts(&self) -> Option<&Tensor> {
        match self {
            TokenEmbedding::Whole(_) => None,
            TokenEmbedding::Parts { parts, .. } => Some(parts),
        }
    }
}

fn uci_table() -> Tensor {
    let moves = (0..UCI_MOVES as u16).filter_map(uci_parts);
    let rows: Vec<i64> = moves
        .flat_map(|(from, to, promotion)| [from as i64, to as i64, promotion as i64])
        .collect();
    Tensor::from_slice(&rows)
        .view([-1, 3])
        .transpose(0, 1)
        .contiguous()
}

/// The embedding of a game's conditions, which is added to every token.
#[derive(Debug)]
pub(super) struct ConditionEmbedding {
    /// White's and Black's vectors [3, width], for a low, a high and an unknown rating.
    ratings: [Slot; 2],
    /// [4, width]: unknown result, White wins, draw, Black wins.
    result: Slot,
}

impl ConditionEmbedding {
    pub fn build(builder: &mut Builder, width: i64) -> ConditionEmbedding {
        builder.scope("conditions", |builder| {
            let mut add =
                |name, rows| builder.add(name, &[rows, width], Initial::Normal(DEVIATION));
            ConditionEmbedding {
                ratings: [add("white", 3), add("black", 3)],
                result: add("result", 4),
            }
        })
    }

    /// Returns the vectors [B, T, width] for ratings f32 [B, T, 2], which are 0 if unknown, and
    /// results i64 [B, T]. If T is 1, the conditions apply to all tokens.
    pub fn of(&self, weights: &Weights, ratings: &Tensor, results: &Tensor) -> Tensor {
        let [low, high] = RATINGS;
        let kind = weights.kind();
        let share = (ratings - low) / (high - low);
        let share = share.clamp(0.0, 1.0);
        let known = ratings.gt(0.0).to_kind(Kind::Float);
        let of_player = |player: usize| {
            let pick = |tensor: &Tensor| tensor.select(-1, player as i64);
            let (share, known) = (pick(&share), pick(&known));
            // Weights of the three vectors.
            let mixture = [(1.0 - &share) * &known, &share * &known, 1.0 - &known];
            let mixture = Tensor::stack(&mixture, -1).to_kind(kind);
            mixture.matmul(&weights[self.ratings[player]])
        };
        let result = Tensor::embedding(&weights[self.result], results, -1, false, false);
        of_player(0) + of_player(1) + result
    }
}
