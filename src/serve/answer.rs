//! Responses. All values are for the side to move in the requested position; each response states
//! which side that is.

use super::players::Answer;
use crate::chess::{Ending, Game, after, fen};
use crate::play::{self, MoveStatistics, Report, centipawns};
use serde::Serialize;
use shakmaty::san::{San, SanPlus, Suffix};
use shakmaty::{Chess, Color, Move, MoveList, Position};
use std::time::Duration;
#[cfg(test)]
use utoipa::ToSchema;

/// The perspective of all values.
pub(super) const PERSPECTIVE: &str = "side_to_move";

/// A move in both notations.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(super) struct PlayedMove {
    /// The move in UCI notation, such as e2e4. Castling is e1g1 and, in Chess960, king takes rook.
    uci: String,
    /// The move in standard algebraic notation.
    san: String,
}

impl PlayedMove {
    pub(super) fn of(game: &Game, position: &Chess, mv: Move) -> PlayedMove {
        PlayedMove {
            uci: game.format_move(mv),
            san: SanPlus::from_move(position.clone(), mv).to_string(),
        }
    }

    /// Returns one of a position's legal moves in both notations. All legal moves are known, so
    /// only checking moves have to be played.
    pub(super) fn among(game: &Game, legal: &MoveList, mv: Move) -> PlayedMove {
        let after = after(game.position(), mv);
        let suffix = match after.is_check() {
            false => None,
            true if after.legal_moves().is_empty() => Some(Suffix::Checkmate),
            true => Some(Suffix::Check),
        };
        let san = San::disambiguate(mv, legal);
        PlayedMove {
            uci: game.format_move(mv),
            san: SanPlus { san, suffix }.to_string(),
        }
    }
}

/// Returns successive moves from the game's last position.
pub(super) fn played(game: &Game, moves: &[Move]) -> Vec<PlayedMove> {
    let mut position = game.position().clone();
    let mut played = Vec::with_capacity(moves.len());
    for &mv in moves {
        if !position.is_legal(mv) {
            break;
        }
        played.push(PlayedMove::of(game, &position, mv));
        position.play_unchecked(mv);
    }
    played
}

/// Probabilities of the results, for the side to move.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(super) struct Wdl {
    win: f32,
    draw: f32,
    loss: f32,
}

impl From<[f32; 3]> for Wdl {
    fn from([win, draw, loss]: [f32; 3]) -> Wdl {
        Wdl { win, draw, loss }
    }
}

/// A line's score for the side to move. Exactly one field in addition to `value` is present.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(super) struct Score {
    /// Expected result, W − L, in −1…1.
    value: f32,
    /// Centipawns, as chess programs display them.
    #[serde(skip_serializing_if = "Option::is_none")]
    cp: Option<i32>,
    /// Mate in N moves; negative if the side to move is mated.
    #[serde(skip_serializing_if = "Option::is_none")]
    mate: Option<i32>,
    /// The result given by an endgame tablebase.
    #[serde(skip_serializing_if = "Option::is_none")]
    tablebase: Option<&'static str>,
}

impl From<play::Score> for Score {
    fn from(score: play::Score) -> Score {
        match score {
            play::Score::Expected(value) => Score {
                value,
                cp: Some(centipawns(value)),
                ..Score::default()
            },
            play::Score::Mate(moves) => Score {
                value: if moves > 0 { 1.0 } else { -1.0 },
                mate: Some(moves),
                ..Score::default()
            },
            play::Score::Tablebase { won } => Score {
                value: if won { 1.0 } else { -1.0 },
                tablebase: Some(if won { "win" } else { "loss" }),
                ..Score::default()
            },
        }
    }
}

/// A line.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(super) struct Line {
    score: Score,
    wdl: Wdl,
    /// Plies to the end of the game, if the network predicts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    moves_left: Option<f32>,
    moves: Vec<PlayedMove>,
}

/// The position that the response describes.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(super) struct Asked {
    fen: String,
    /// The side to move.
    #[cfg_attr(test, schema(value_type = String))]
    turn: &'static str,
    /// The perspective of all values, which is always the side to move.
    #[cfg_attr(test, schema(value_type = String))]
    perspective: &'static str,
    /// How the game ended, if it is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schema(value_type = Option<String>))]
    ending: Option<&'static str>,
}

impl Asked {
    pub(super) fn of(game: &Game) -> Asked {
        Asked {
            fen: fen(game.position()),
            turn: match game.position().turn() {
                Color::White => "white",
                Color::Black => "black",
            },
            perspective: PERSPECTIVE,
            ending: game.ending().map(|ending| match ending {
                Ending::Checkmate => "checkmate",
                Ending::Stalemate => "stalemate",
                Ending::InsufficientMaterial => "insufficient_material",
                Ending::Repetition => "repetition",
                Ending::FiftyMoves => "fifty_moves",
            }),
        }
    }
}

/// The result of a search.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(super) struct Thought {
    /// Mean depth of the tree's leaves, in plies.
    depth: u32,
    /// Depth of the tree's deepest leaf, in plies.
    seldepth: u32,
    /// Number of nodes in the tree.
    nodes: u64,
    /// Nodes per second; absent if all nodes are from earlier searches.
    #[serde(skip_serializing_if = "Option::is_none")]
    nps: Option<u64>,
    time_ms: u64,
    /// The lines, best first.
    lines: Vec<Line>,
}

impl Thought {
    pub(super) fn of(report: &Report, game: &Game) -> Thought {
        Thought {
            depth: report.depth,
            seldepth: report.selective_depth,
            nodes: report.nodes,
            nps: report.nodes_per_second(),
            time_ms: report.elapsed.as_millis() as u64,
            lines: report
                .lines
                .iter()
                .map(|line| Line {
                    score: line.score.into(),
                    wdl: line.wdl.into(),
                    moves_left: line.moves_left,
                    moves: played(game, &line.moves),
                })
                .collect(),
        }
    }
}

/// A root move's statistics.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(super) struct Statistics {
    #[serde(flatten)]
    mv: PlayedMove,
    visits: u64,
    /// Prior probability from the network.
    prior: f32,
    /// Expected result, W − L, in −1…1, if the move has been visited or proven.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<f32>,
}

impl Statistics {
    fn of(of: &MoveStatistics, game: &Game) -> Statistics {
        Statistics {
            mv: PlayedMove::of(game, game.position(), of.mv),
            visits: of.visits,
            prior: of.prior,
            value: of.is_known().then_some(of.q),
        }
    }
}

/// A player's response.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(super) struct MoveAnswer {
    #[serde(flatten)]
    asked: Asked,
    /// The move; absent if the game is over.
    #[serde(rename = "move")]
    best: Option<PlayedMove>,
    /// The expected reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    ponder: Option<PlayedMove>,
    #[serde(flatten)]
    thought: Thought,
    /// The moves considered, best first.
    statistics: Vec<Statistics>,
    /// Time that a person of this rating might take for the move, in milliseconds; at most a tenth
    /// of the clock. Only from the agent `human` with a clock. The server does not wait that long.
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_ms: Option<u64>,
    /// Remarks, for example on networks that were loaded or are missing, or on ratings that the
    /// network does not use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

impl MoveAnswer {
    pub(super) fn of(Answer { choice, notes }: Answer, game: &Game) -> MoveAnswer {
        let position = game.position();
        let after = choice
            .best
            .and_then(|best| position.clone().play(best).ok());
        let ponder = after.and_then(|after| {
            let reply = choice.ponder.filter(|&reply| after.is_legal(reply))?;
            Some(PlayedMove::of(game, &after, reply))
        });
        MoveAnswer {
            asked: Asked::of(game),
            best: choice.best.map(|mv| PlayedMove::of(game, position, mv)),
            ponder,
            thought: Thought::of(&choice.report, game),
            statistics: choice
                .statistics
                .iter()
                .map(|of| Statistics::of(of, game))
                .collect(),
            thinking_ms: None,
            notes,
        }
    }

    /// Adds the time that a person might take.
    pub(super) fn taking(self, time: Option<Duration>) -> MoveAnswer {
        let thinking_ms = time.map(|time| time.as_millis() as u64);
        MoveAnswer {
            thinking_ms,
            ..self
        }
    }
}

/// The state of an analysis so far.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(super) struct Progress {
    #[serde(flatten)]
    asked: Asked,
    #[serde(flatten)]
    thought: Thought,
}

impl Progress {
    pub(super) fn of(report: &Report, game: &Game) -> Progress {
        Progress {
            asked: Asked::of(game),
            thought: Thought::of(report, game),
        }
    }
}

/// A network's evaluation.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(super) struct EvalAnswer {
    #[serde(flatten)]
    pub(super) asked: Asked,
    /// The network's name.
    pub(super) network: String,
    /// Expected result, W − L, in −1…1, if the network has a value head.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) value: Option<f32>,
    /// The value in centipawns, as chess programs display it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cp: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) wdl: Option<Wdl>,
    /// Plies to the end of the game, if the network predicts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) moves_left: Option<f32>,
    /// The legal moves, likeliest first.
    pub(super) policy: Vec<Prior>,
}

/// A move and its probability.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(super) struct Prior {
    #[serde(flatten)]
    pub(super) mv: PlayedMove,
    pub(super) prior: f32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use shakmaty::CastlingMode;

    #[test]
    fn legal_moves_are_written_as_any() {
        for fen in [
            "r3k2r/pPppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
            "6k1/5ppp/8/8/1N3N2/8/1N6/K2RR3 w - - 0 1",
            "k7/8/1K6/8/8/8/8/7R w - - 0 1",
            "8/8/8/2k5/3pP3/8/8/4K3 b - e3 0 1",
        ] {
            let game = Game::from_fen(fen, CastlingMode::Standard).unwrap();
            let legal = game.position().legal_moves();
            for &mv in &legal {
                let [one, other] = [
                    PlayedMove::among(&game, &legal, mv),
                    PlayedMove::of(&game, game.position(), mv),
                ];
                assert_eq!((one.uci, one.san), (other.uci, other.san));
            }
        }
    }
}
