//! A review as data, from which pages, PGN, puzzles and JSON are made.

use super::curve::Evaluation;
use super::facts::Reasons;
use super::marks::{Mark, MateEvent};
use super::people::{RATINGS, Shares};
use super::phase::Phase;
use super::rating::{LogLikelihood, Rating};
use serde::{Deserialize, Serialize};
use shakmaty::Color;

/// A reviewed game.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Report {
    /// The network that searched.
    pub network: String,
    /// The network that knows people's moves.
    pub people: Option<String>,
    /// Visits of each position.
    pub nodes: u64,
    /// The game.
    pub game: GameReport,
    /// White's part.
    pub white: SideReport,
    /// Black's part.
    pub black: SideReport,
    /// The side from which it is shown: that of the player it is for.
    pub side: Option<Side>,
    /// The ratings that curves are of.
    #[cfg_attr(test, schema(value_type = Vec<u16>))]
    pub ratings: [u16; RATINGS.len()],
    /// The position that the game begins from.
    pub start: StartReport,
    /// The moves.
    pub plies: Vec<PlyReport>,
}

impl Report {
    /// Returns a side's part of the report.
    #[must_use]
    pub fn of(&self, side: Color) -> &SideReport {
        side.fold_wb(&self.white, &self.black)
    }

    /// Returns the report without the data that only its page shows: lines, shares and words.
    #[must_use]
    pub fn without_lines(mut self) -> Report {
        for ply in &mut self.plies {
            (ply.best, ply.reply, ply.shares) = (None, None, None);
            ply.words.clear();
        }
        self
    }

    /// Returns whether the review is for this side, or for both.
    #[must_use]
    pub fn is_for(&self, side: Side) -> bool {
        self.side.is_none_or(|own| own == side)
    }
}

/// A side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// White.
    White,
    /// Black.
    Black,
}

impl From<Side> for Color {
    fn from(side: Side) -> Color {
        Color::from_white(side == Side::White)
    }
}

impl From<Color> for Side {
    fn from(color: Color) -> Side {
        color.fold_wb(Side::White, Side::Black)
    }
}

/// A game as its tags describe it, and how far it was read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct GameReport {
    /// The tags of the PGN.
    #[cfg_attr(test, schema(value_type = Vec<Vec<String>>))]
    pub tags: Vec<(String, String)>,
    /// `1-0`, `0-1`, `1/2-1/2` or `*`.
    pub result: String,
    /// The code of the opening.
    pub eco: Option<String>,
    /// The opening's name.
    pub opening: Option<String>,
    /// Plies after which the game left the table of openings.
    pub book_plies: usize,
    /// Remarks on the whole: a game that was not read to its end, or not searched.
    pub warnings: Vec<String>,
    /// The game's ending by rule, if any.
    pub ending: Option<String>,
    /// Draws that could be claimed.
    pub draws: Vec<DrawReport>,
}

/// A draw that a player could claim.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct DrawReport {
    /// Plies played until then.
    pub ply: usize,
    /// Whether the game ended by it.
    pub claimed: bool,
    /// A sentence.
    pub text: String,
}

/// One side's part in a game.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct SideReport {
    /// The player's name.
    pub name: Option<String>,
    /// The rating in the PGN.
    pub rating: Option<u16>,
    /// Moves that were judged.
    pub moves: usize,
    /// Accuracy in percent.
    pub accuracy: Option<f64>,
    /// Accuracy in the opening, the middlegame and the endgame.
    pub by_phase: [Option<f64>; 3],
    /// Numbers of marks.
    pub blunders: usize,
    /// `?`
    pub mistakes: usize,
    /// `?!`
    pub inaccuracies: usize,
    /// `!`
    pub good: usize,
    /// Forced mates that were missed.
    pub missed_mates: usize,
    /// Forced mates that were allowed.
    pub allowed_mates: usize,
    /// The rating at which the moves are likeliest.
    pub estimate: Option<Rating>,
    /// The logarithm of the moves' likelihood by rating.
    #[cfg_attr(test, schema(value_type = Option<Vec<f64>>))]
    pub log_likelihood: Option<LogLikelihood>,
}

/// The position that a game begins from.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct StartReport {
    /// The position.
    pub fen: String,
    /// White's expected score in percent.
    pub win: Option<f64>,
}

/// A move of the game.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct PlyReport {
    /// Its number in plies, from 1.
    pub ply: usize,
    /// Its number as it is written: `12.` or `12...`
    pub number: String,
    /// Its player.
    pub side: Side,
    /// The move.
    #[serde(flatten)]
    pub mv: MoveReport,
    /// The position after it.
    pub fen: String,
    /// The phase that it is played in.
    pub phase: Phase,
    /// The seconds that the mover has left.
    pub clock: Option<f64>,
    /// White's expected score in percent after it.
    pub win: Option<f64>,
    /// White's score after it; `None` where the game is over, or nothing is known.
    pub evaluation: Option<Evaluation>,
    /// The percentage points of the expected score that it loses.
    pub loss: Option<f64>,
    /// Its accuracy in percent.
    pub accuracy: Option<f64>,
    /// Its mark.
    pub mark: Option<Mark>,
    /// The fate of a mate.
    pub mate: Option<MateEvent>,
    /// The best line, where another move was played.
    pub best: Option<LineReport>,
    /// The line that answers it, where it has a bad mark.
    pub reply: Option<LineReport>,
    /// The score of the second-best move, from the mover's view.
    pub second: Option<Evaluation>,
    /// Shares of players by rating.
    pub shares: Option<Shares>,
    /// Those in words.
    pub words: Vec<String>,
    /// Why, where it has a bad mark.
    pub reasons: Reasons,
}

/// A move, as a page shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct MoveReport {
    /// In SAN.
    pub san: String,
    /// In UCI notation.
    pub uci: String,
    /// The square that it leaves.
    pub from: String,
    /// The square that it reaches: the king's, where it castles.
    pub to: String,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct LineReport {
    /// White's score.
    pub evaluation: Evaluation,
    /// Its moves.
    pub moves: Vec<LineMove>,
}

/// A move of a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct LineMove {
    /// Its number, as that of a move of the game.
    pub number: String,
    /// The move.
    #[serde(flatten)]
    pub mv: MoveReport,
    /// The pieces after it: the first field of a FEN.
    pub board: String,
}

/// Formats a score from White's view for people, such as `+0.35` or `#-3`.
#[must_use]
pub fn written(evaluation: Evaluation) -> String {
    match evaluation {
        Evaluation::Mate(moves) => format!("#{moves}"),
        Evaluation::Centipawns(centipawns) => format!("{:+.2}", f64::from(centipawns) / 100.0),
    }
}
