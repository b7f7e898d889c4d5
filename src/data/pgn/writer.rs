//! Annotated games as PGN, in the form that `--evals chooser` reads: a score refers
//! to the move that it follows and to the position before it.

use std::fmt::Write;

use shakmaty::fen::Fen;
use shakmaty::san::SanPlus;
use shakmaty::{CastlingMode, Chess, Color, EnPassantMode, Move, Position};

use crate::chess::Game;
use crate::data::record::Eval;
use crate::data::sample::Wdl;

/// A move with an engine's score.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The move and the play expected after it; never empty.
    pub moves: Vec<Move>,
    /// Its score, from White's view.
    pub eval: Eval,
    /// Depth of the search in plies.
    pub depth: u32,
}

/// A game with engine scores for some of its positions.
#[derive(Clone, Debug)]
pub struct AnnotatedGame {
    /// The game to its end.
    pub game: Game,
    /// The scored moves of the position before each of its moves, the best first; the
    /// list may be shorter than the game.
    pub judged: Vec<Vec<Judged>>,
    /// The result for White, if the game came to one.
    pub result: Option<Wdl>,
    /// A remark after the last move.
    pub comment: Option<String>,
    /// Tags beside FEN, SetUp, Variant and Result.
    pub tags: Vec<(&'static str, String)>,
}

impl AnnotatedGame {
    /// The game as PGN, ending in an empty line.
    ///
    /// If the best move was played, its score follows it. Otherwise the best move is a
    /// variation of `line` plies with the score, and the move played has none. Other
    /// scored moves are variations of one move each.
    #[must_use]
    pub fn to_pgn(&self, line: usize) -> String {
        let mut text = String::new();
        let start = &self.game.plies()[0].position;
        for (name, value) in &self.tags {
            tag(&mut text, name, value);
        }
        if self.game.mode() == CastlingMode::Chess960 {
            tag(&mut text, "Variant", "Chess960");
        }
        if !self.game.from_initial_position() {
            let fen = Fen::from_position(start, EnPassantMode::Legal);
            tag(&mut text, "FEN", &fen.to_string());
            tag(&mut text, "SetUp", "1");
        }
        let result = match self.result {
            Some(Wdl::Win) => "1-0",
            Some(Wdl::Draw) => "1/2-1/2",
            Some(Wdl::Loss) => "0-1",
            None => "*",
        };
        tag(&mut text, "Result", result);
        text.push('\n');
        let mut movetext = Movetext {
            text,
            follows_move: false,
        };
        let played = self.game.plies().windows(2);
        for (ply, pair) in played.enumerate() {
            let Some(mv) = pair[1].played else { continue };
            let judged = self.judged.get(ply).map_or(&[][..], Vec::as_slice);
            movetext.ply(&pair[0].position, mv, judged, line.max(1));
        }
        let mut text = movetext.text;
        if let Some(comment) = &self.comment {
            let _ = write!(text, "{{{}}} ", comment.replace(['{', '}'], " "));
        }
        text.push_str(result);
        text.push_str("\n\n");
        text
    }
}

fn tag(text: &mut String, name: &str, value: &str) {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
    let value = value.replace(['\n', '\r'], " ");
    // Writing to a string cannot fail.
    let _ = writeln!(text, "[{name} \"{value}\"]");
}

struct Movetext {
    text: String,
    /// Whether Black's next move needs no number.
    follows_move: bool,
}

impl Movetext {
    fn ply(&mut self, position: &Chess, played: Move, judged: &[Judged], line: usize) {
        let mut others = judged;
        self.mv(&mut position.clone(), played);
        if let Some(best) = judged.first()
            && best.moves[0] == played
        {
            self.eval(best);
            others = &judged[1..];
        }
        for other in others {
            self.text.push('(');
            self.follows_move = false;
            let is_best = std::ptr::eq(other, &raw const judged[0]);
            let mut position = position.clone();
            for (number, &mv) in other.moves.iter().enumerate() {
                if number >= if is_best { line } else { 1 } {
                    break;
                }
                self.mv(&mut position, mv);
                if number == 0 {
                    self.eval(other);
                }
            }
            self.text.truncate(self.text.trim_end().len());
            self.text.push_str(") ");
            self.follows_move = false;
        }
    }

    fn mv(&mut self, position: &mut Chess, mv: Move) {
        let number = position.fullmoves();
        let _ = match position.turn() {
            Color::White => write!(self.text, "{number}. "),
            Color::Black if self.follows_move => Ok(()),
            Color::Black => write!(self.text, "{number}... "),
        };
        let san = SanPlus::from_move_and_play_unchecked(position, mv);
        let _ = write!(self.text, "{san} ");
        self.follows_move = true;
    }

    fn eval(&mut self, judged: &Judged) {
        let depth = judged.depth;
        let _ = match judged.eval {
            Eval::Centipawns(centipawns) => {
                let pawns = f64::from(centipawns) / 100.0;
                write!(self.text, "{{[%eval {pawns:.2},{depth}]}} ")
            }
            Eval::Mate(moves) => write!(self.text, "{{[%eval #{moves},{depth}]}} "),
        };
        self.follows_move = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::pgn::parse_game;

    fn play(fen: Option<&str>, moves: &str) -> Game {
        let mut game = match fen {
            Some(fen) => Game::from_fen(fen, CastlingMode::Standard).unwrap(),
            None => Game::default(),
        };
        for mv in moves.split_whitespace() {
            game.play(game.parse_move(mv).unwrap());
        }
        game
    }

    fn judged(game: &Game, ply: usize, moves: &str, eval: Eval) -> Judged {
        let mut game = game.clone();
        game.truncate(ply + 1);
        let mut judged = Vec::new();
        for mv in moves.split_whitespace() {
            judged.push(game.parse_move(mv).unwrap());
            game.play(judged[judged.len() - 1]);
        }
        Judged {
            moves: judged,
            eval,
            depth: 9,
        }
    }

    #[test]
    fn scores_stand_where_a_chooser_writes_them() {
        let game = play(None, "e2e4 e7e5 g1f3");
        let annotated = AnnotatedGame {
            judged: vec![
                vec![judged(&game, 0, "e2e4", Eval::Centipawns(30))],
                vec![
                    judged(&game, 1, "c7c5 g1f3 d7d6", Eval::Centipawns(-5)),
                    judged(&game, 1, "e7e5 g1f3", Eval::Mate(-3)),
                ],
            ],
            game,
            result: Some(Wdl::Loss),
            comment: Some("a {trap}".to_owned()),
            tags: vec![("Event", "a \"b\"".to_owned())],
        };
        let text = annotated.to_pgn(2);
        let expected = "[Event \"a \\\"b\\\"\"]\n[Result \"0-1\"]\n\n\
                        1. e4 {[%eval 0.30,9]} 1... e5 (1... c5 {[%eval -0.05,9]} 2. Nf3) \
                        (1... e5 {[%eval #-3,9]}) 2. Nf3 {a  trap } 0-1\n\n";
        assert_eq!(text, expected);
        let record = parse_game(text.as_bytes()).unwrap();
        let shape: Vec<_> = record.nodes.iter().map(|n| (n.depth, n.eval)).collect();
        let centipawns = |value| Some(Eval::Centipawns(value));
        let expected = [
            (0, centipawns(30)),
            (0, None),
            (1, centipawns(-5)),
            (1, None),
            (1, Some(Eval::Mate(-3))),
            (0, None),
        ];
        assert_eq!(shape, expected);
        assert_eq!(record.result, Some(Wdl::Loss));
    }

    #[test]
    fn games_of_chess960_keep_their_start() {
        let fen = "1rk3r1/pppppppp/8/8/8/8/PPPPPPPP/1RK3R1 b KQkq - 0 1";
        let game = play(Some(fen), "c8g8 c1b1");
        let annotated = AnnotatedGame {
            game,
            judged: Vec::new(),
            result: None,
            comment: None,
            tags: Vec::new(),
        };
        let text = annotated.to_pgn(1);
        assert!(text.contains("[Variant \"Chess960\"]"), "{text}");
        assert!(text.contains("1... O-O 2. O-O-O *"), "{text}");
        let record = parse_game(text.as_bytes()).unwrap();
        assert_eq!(record.fen.as_deref(), Some(fen));
        assert_eq!(record.nodes.len(), 2);
    }
}
