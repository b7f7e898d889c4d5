//! Explanations of a network's view of a position.
//!
//! An [`Explanation`] contains everything that can be drawn on a board: the policy and the value
//! after each move, attention maps and their components, the outputs read off after each layer, and
//! the attribution of a move and of the value to the squares. [`search`] adds the first plies of a
//! search. [`page`] creates a page of explanations, and [`pictures`] creates SVG files. [`denoise`]
//! shows the denoising steps of a network that predicts futures, and [`read_game`] shows how a
//! move-token model reads a game.
//!
//! The eager network computes everything in f32. Squares are numbered from a1 (0) and b1 (1) to h8
//! (63), whichever side is to move. Values are those of the side to move.

mod ablation;
mod attention;
mod denoising;
mod evaluator;
mod fingerprint;
mod gradients;
mod head_effects;
mod heads;
mod lens;
mod lookahead;
mod occlusion;
mod page;
mod picture;
mod reading;
mod relations;
mod search;
#[cfg(test)]
mod tests;
mod transcoder;

pub use attention::{Attention, AttentionLayer, SQUARES};
pub use denoising::{
    Denoising, DenoisingStep, Frame, ImaginedMove, ReadMove, denoise, denoising_page,
};
pub use evaluator::Evaluation;
pub use gradients::{Attribution, Gradients};
pub use head_effects::{HeadEffect, head_effects};
pub use heads::{Ablation, Head, RelationScore, SampleAblation};
pub use lens::{Lens, LensAbout, LensDistance, LensError, LensLayer, LensReport, fit_lens};
pub use lookahead::Lookahead;
pub use occlusion::{Occluded, Occlusion};
pub use page::{LARGEST_PAGE, RenderedPage, page};
pub use picture::pictures;
pub use reading::{KnownBoard, NextToken, ReadLayer, Reading, read_game, reading_page};
pub use relations::Relation;
pub use search::{SearchReport, SearchedMove, search};
pub use transcoder::{
    ActiveFeature, FitSettings, LabelledGame, MOTIFS, Strongest, ThemeFeature, Transcoder,
    TranscoderAbout, TranscoderError, TranscoderReport, fit, predict_themes,
};

use crate::chess::{Ending, Game, fen};
use crate::network::{Network, Output};
use evaluator::Evaluator;
use serde::Serialize;
use shakmaty::san::SanPlus;
use shakmaty::{Move, Position};

/// A network's view of one position.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// The network's name.
    pub network: String,
    /// The ratings of the side to move and of the opponent, or 0 if unknown. `None` if the network
    /// does not read ratings.
    pub ratings: Option<[u16; 2]>,
    /// The position.
    pub fen: String,
    /// The network's evaluation of the position.
    pub evaluation: Evaluation,
    /// The legal moves, most probable first.
    pub moves: Vec<MoveReport>,
    /// The values after the best moves, compared with the evaluation.
    pub lookahead: Lookahead,
    /// The move that the attributions and ablations explain.
    pub chosen: usize,
    /// Attention maps, if the network has attention.
    pub attention: Option<Attention>,
    /// The outputs that a tuned lens reads off after each layer, if one belongs to the network.
    pub lens: Option<LensReport>,
    /// The effect of removing each piece.
    pub occlusion: Occlusion,
    /// Integrated gradients.
    pub gradients: Gradients,
    /// The attention heads, measured over the sample: how well their attention matches chess
    /// relations, and the effect of removing each head.
    pub heads: Vec<Head>,
    /// The result of a search, if requested.
    pub search: Option<SearchReport>,
    /// The features of a transcoder, if one is given.
    pub transcoder: Option<TranscoderReport>,
}

/// A legal move.
#[derive(Clone, Debug, Serialize)]
pub struct MoveReport {
    /// The move in UCI notation.
    pub uci: String,
    /// The move in standard algebraic notation.
    pub san: String,
    /// The origin square of the move.
    pub from: usize,
    /// The destination square of the piece. For castling, it is that of the king.
    pub to: usize,
    /// The move's policy probability among the legal moves.
    pub prior: f32,
    /// The expected result after the move, −1…1. If the move ends the game, it is exact.
    pub q: f32,
    /// The probabilities of win, draw and loss after the move.
    pub wdl: [f32; 3],
    /// The game's result, if the move ends the game.
    pub ending: Option<&'static str>,
}

/// Options of an explanation, in addition to the position.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The move that the attributions and ablations explain. If absent, they explain the most
    /// probable move.
    pub mv: Option<Move>,
    /// Positions over which attention is compared with chess relations and heads are ablated.
    pub sample: Vec<Game>,
}

/// Why a position cannot be explained.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// The position has no legal move to explain.
    #[error("the game is over in this position: {0}")]
    Over(&'static str),
    /// The network has no policy or no result output.
    #[error("the network has no output `{}`", .0.name())]
    Output(Output),
    /// The network uses an unknown input format.
    #[error("the network reads positions in format {0}, which is not supported")]
    Format(u32),
    /// The move to explain is illegal.
    #[error("the move to explain is not legal in this position")]
    Illegal,
    /// The game cannot be encoded.
    #[error("the network cannot read the game: {0}")]
    Unreadable(String),
    /// The network does not generate futures.
    #[error("the network imagines no future: it has no steps to show")]
    NoFutures,
    /// There are no positions for fitting, or no separate positions for evaluating the result.
    #[error("too few games: a fit needs positions, and positions of other games to measure it on")]
    NoPositions,
    /// There are too few positions for an average with an interval.
    #[error("too few positions: at least {0} are needed")]
    TooFewPositions(usize),
    /// The network has no attention, as in a convolutional tower.
    #[error("the network {0} has no attention to show")]
    NoAttention(String),
    /// The network has no such encoder layer.
    #[error("the network has no layer {0} with a feed-forward block")]
    NoLayer(usize),
    /// The network's layers are unknown.
    #[error("the network {0} has no layers after which a lens could read its tokens")]
    NoLayers(String),
    /// The transcoder or the lens cannot be fitted.
    #[error("cannot fit: {0}")]
    Fit(String),
    /// The network's outputs are NaN or infinite.
    #[error("the network `{0}` returned NaN or infinite values")]
    NotFinite(String),
}

/// Explains a position of a game.
///
/// # Errors
/// [`ExplainError`] if the game is over, or the network cannot play.
pub fn explain(
    network: &Network,
    game: &Game,
    settings: &Settings,
) -> Result<Explanation, ExplainError> {
    let moves = game.position().legal_moves();
    if moves.is_empty() {
        let ending = game.ending().map_or("no legal move", ending_name);
        return Err(ExplainError::Over(ending));
    }
    let evaluator = Evaluator::new(network)?;
    let inside = evaluator.look_inside(game)?;
    let priors = &inside.evaluated.policy;
    // All parts of the explanation list the moves in the order of the policy.
    let mut order: Vec<usize> = (0..moves.len()).collect();
    order.sort_by(|&a, &b| priors[b].total_cmp(&priors[a]));
    let chosen = match settings.mv {
        None => 0,
        Some(mv) => {
            let place = order.iter().position(|&place| moves[place] == mv);
            place.ok_or(ExplainError::Illegal)?
        }
    };
    let mv = moves[order[chosen]];
    let occlusion = occlusion::occlude(&evaluator, game, mv)?;
    let gradients = gradients::integrate(&evaluator, game, order[chosen])?;
    let mut heads = heads::score(&evaluator, &settings.sample)?;
    let sample = &settings.sample;
    ablation::ablate(&evaluator, game, order[chosen], sample, &mut heads)?;
    let moves = report_moves(&evaluator, game, &moves, &order, priors)?;
    Ok(Explanation {
        network: network.about.name.clone(),
        ratings: evaluator.ratings(game),
        fen: fen(game.position()),
        lookahead: Lookahead::new(inside.evaluated.evaluation.q, &moves),
        evaluation: inside.evaluated.evaluation,
        moves,
        chosen,
        attention: attention::maps(&inside),
        lens: lens::shipped(&evaluator, &inside, &order)?,
        occlusion,
        gradients,
        heads,
        search: None,
        transcoder: None,
    })
}

/// Returns the attention maps of the last position of a game.
///
/// # Errors
/// [`ExplainError`] if the network cannot play or has no attention.
pub fn attend(network: &Network, game: &Game) -> Result<Attention, ExplainError> {
    let inside = Evaluator::new(network)?.look_inside(game)?;
    let no_attention = || ExplainError::NoAttention(network.about.name.clone());
    attention::maps(&inside).ok_or_else(no_attention)
}

/// Describes the legal moves in the given `order`, with the value after each move.
fn report_moves(
    evaluator: &Evaluator,
    game: &Game,
    moves: &[Move],
    order: &[usize],
    priors: &[f32],
) -> Result<Vec<MoveReport>, ExplainError> {
    let after = order.iter().map(|&place| {
        let mut after = game.clone();
        after.play(moves[place]);
        after
    });
    let after: Vec<Game> = after.collect();
    let evaluated = evaluator.evaluate(&after)?;
    let reports = order.iter().zip(&after).zip(evaluated);
    Ok(reports
        .map(|((&place, after), evaluated)| {
            let mv = moves[place];
            let ending = after.ending();
            let [win, draw, loss] = match ending {
                Some(Ending::Checkmate) => [1.0, 0.0, 0.0],
                Some(_) => [0.0, 1.0, 0.0],
                None => {
                    let [win, draw, loss] = evaluated.evaluation.wdl;
                    [loss, draw, win]
                }
            };
            let q = ending.map_or(-evaluated.evaluation.q, |_| win - loss);
            MoveReport {
                uci: game.format_move(mv),
                san: SanPlus::from_move(game.position().clone(), mv).to_string(),
                from: mv.from().map_or(0, usize::from),
                to: target(mv),
                prior: priors[place],
                q,
                wdl: [win, draw, loss],
                ending: ending.map(ending_name),
            }
        })
        .collect())
}

/// Returns the square of the moved piece after the move. For castling, this is the king's square:
/// c1, g1, c8 or g8.
fn target(mv: Move) -> usize {
    match mv {
        Move::Castle { king, rook } => {
            let file = if rook > king { 6 } else { 2 };
            8 * (usize::from(king) / 8) + file
        }
        _ => usize::from(mv.to()),
    }
}

fn ending_name(ending: Ending) -> &'static str {
    match ending {
        Ending::Checkmate => "checkmate",
        Ending::Stalemate => "stalemate",
        Ending::InsufficientMaterial => "insufficient material",
        Ending::Repetition => "repetition",
        Ending::FiftyMoves => "fifty moves",
    }
}
