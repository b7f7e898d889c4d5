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
    /// The judge, which is the external engine whose scores are used, by its own name.
    pub judge: Option<String>,
    /// The network of Tessera's own search, if there is no judge.
    pub network: Option<String>,
    /// The network that predicts human moves.
    pub people: Option<String>,
    /// Nodes searched per position, by the judge or the network. A judge that this program runs
    /// searches positions around doubtful moves with more.
    pub nodes: u64,
    /// A sentence on how often the marks are right, if no judge gave the scores.
    pub reliability: Option<String>,
    /// The game.
    pub game: GameReport,
    /// White's part of the report.
    pub white: SideReport,
    /// Black's part of the report.
    pub black: SideReport,
    /// The side from whose view the review is shown, which is that of the reviewed player.
    pub side: Option<Side>,
    /// The ratings to which the entries of every curve belong.
    #[cfg_attr(test, schema(value_type = Vec<u16>))]
    pub ratings: [u16; RATINGS.len()],
    /// The position from which the game begins.
    pub start: StartReport,
    /// The moves.
    pub plies: Vec<PlyReport>,
}

impl Report {
    /// Returns a side's part of the report.
    pub fn of(&self, side: Color) -> &SideReport {
        side.fold_wb(&self.white, &self.black)
    }

    /// Says how far a bad move lowered its player's winning chances, if they are known.
    pub fn fall(&self, ply: &PlyReport) -> Option<String> {
        let before = match ply.ply {
            1 => self.start.win,
            place => self.plies[place - 2].win,
        };
        let own = |win: f64| match ply.side {
            Side::White => win.round(),
            Side::Black => (100.0 - win).round(),
        };
        let (before, after) = (own(before?), own(ply.win?));
        let whose = match ply.side {
            Side::White => "White's",
            Side::Black => "Black's",
        };
        let is_bad = ply.mark.is_some_and(Mark::is_bad) && after < before;
        is_bad.then(|| format!("{whose} winning chances fell from {before} % to {after} %."))
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

    /// Returns a sentence that names the origin of the scores.
    pub fn origin(&self) -> String {
        let by = self.judge.as_ref().or(self.network.as_ref());
        let by = by.map_or("unknown", String::as_str);
        let nodes = self.nodes;
        format!("Scores by {by}, {nodes} nodes a position.")
    }

    /// Returns whether the review is for this side, or for both.
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
    /// The ECO code of the opening.
    pub eco: Option<String>,
    /// The opening's name.
    pub opening: Option<String>,
    /// Number of plies that the game followed the opening table.
    pub book_plies: usize,
    /// Remarks on the whole review, for example that the game was not read to its end, or not
    /// searched.
    pub warnings: Vec<String>,
    /// The rule that ended the game, if any.
    pub ending: Option<String>,
    /// Draws that could be claimed.
    pub draws: Vec<DrawReport>,
}

/// A draw that a player could claim.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct DrawReport {
    /// Number of plies played before it could be claimed.
    pub ply: usize,
    /// Whether the game ended with this draw.
    pub claimed: bool,
    /// A sentence.
    pub text: String,
}

/// One side's part of a game's report.
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
    /// Accuracy in the opening, the middlegame and the endgame, in percent.
    pub by_phase: [Option<f64>; 3],
    /// Number of moves marked `??`.
    pub blunders: usize,
    /// Number of moves marked `?`.
    pub mistakes: usize,
    /// Number of moves marked `?!`.
    pub inaccuracies: usize,
    /// Number of moves marked `!`.
    pub good: usize,
    /// Number of forced mates that the side missed.
    pub missed_mates: usize,
    /// Number of forced mates that the side allowed.
    pub allowed_mates: usize,
    /// The rating at which the moves are likeliest.
    pub estimate: Option<Rating>,
    /// The logarithm of the moves' likelihood at each rating.
    #[cfg_attr(test, schema(value_type = Option<Vec<f64>>))]
    pub log_likelihood: Option<LogLikelihood>,
}

/// The position from which a game begins.
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
    /// Its ply number, from 1.
    pub ply: usize,
    /// Its move number as in PGN: `12.` or `12...`
    pub number: String,
    /// The side that played it.
    pub side: Side,
    /// The move.
    #[serde(flatten)]
    pub mv: MoveReport,
    /// The position after it.
    pub fen: String,
    /// The phase of the game in which it was played.
    pub phase: Phase,
    /// The time that the mover has left, in seconds.
    pub clock: Option<f64>,
    /// White's expected score in percent after it.
    pub win: Option<f64>,
    /// White's score after it; absent if the game is over or the score is unknown.
    pub evaluation: Option<Evaluation>,
    /// The expected score that it loses, in percentage points.
    pub loss: Option<f64>,
    /// Its accuracy in percent.
    pub accuracy: Option<f64>,
    /// Its mark.
    pub mark: Option<Mark>,
    /// A forced mate that a move missed or allowed.
    pub mate: Option<MateEvent>,
    /// The best line, if a different move was played.
    pub best: Option<LineReport>,
    /// The line that answers it, if it has a bad mark.
    pub reply: Option<LineReport>,
    /// The score of the second-best move, from the mover's view.
    pub second: Option<Evaluation>,
    /// The shares of players who would play it, and the best move, by rating.
    pub shares: Option<Shares>,
    /// The shares in words.
    pub words: Vec<String>,
    /// The reasons for a bad mark, if it has one.
    pub reasons: Reasons,
}

/// A move as shown on the page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct MoveReport {
    /// The move in SAN.
    pub san: String,
    /// The move in UCI notation.
    pub uci: String,
    /// The square that the piece leaves.
    pub from: String,
    /// The square that the piece reaches; when castling, the king's.
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
    /// Its move number as in PGN: `12.` or `12...`
    pub number: String,
    /// The move.
    #[serde(flatten)]
    pub mv: MoveReport,
    /// The pieces on the board after it, as the first field of a FEN.
    pub board: String,
}

/// Formats a score from White's view for people, such as `+0.35` or `#-3`.
pub fn written(evaluation: Evaluation) -> String {
    match evaluation {
        Evaluation::Mate(moves) => format!("#{moves}"),
        Evaluation::Centipawns(centipawns) => format!("{:+.2}", f64::from(centipawns) / 100.0),
    }
}
