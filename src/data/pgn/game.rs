//! The text of one game as a [`Record`].

use std::ops::ControlFlow;

use pgn_reader::{Outcome, RawComment, RawTag, Reader, SanPlus, Skip, Visitor};
use shakmaty::san::SanError;
use shakmaty::{CastlingMode, Chess, KnownOutcome, Position};

use crate::chess::Ratings;
use crate::chess::{FenError, Game};
use crate::data::legal::Legal;
use crate::data::record::{Node, Record};
use crate::data::sample::Wdl;
use crate::encode::policy_index;

use super::comment;
use super::expected::{Expected, MAX_DEPTH, weave};

/// Why a game was refused.
#[derive(Debug, thiserror::Error)]
pub enum GameError {
    /// The FEN tag is invalid.
    #[error(transparent)]
    Fen(#[from] FenError),
    /// The FEN tag is not text.
    #[error("the FEN tag is not UTF-8")]
    FenTag,
    /// The game is of a variant with other rules than chess.
    #[error("variant `{0}` is not chess")]
    Variant(String),
    /// A move cannot be played, or could be several.
    #[error(
        "`{san}` at ply {ply}{} is {}",
        if *.depth > 0 { " of a variation" } else { "" },
        match .source {
            SanError::IllegalSan => "not a legal move",
            SanError::AmbiguousSan => "ambiguous",
        }
    )]
    Move {
        /// Plies before the move, from 0.
        ply: usize,
        /// Nesting depth of its variation.
        depth: usize,
        /// The move as written.
        san: String,
        /// Which of the two it is.
        source: SanError,
    },
    /// A record numbers legal moves in a byte; only artificial positions have more.
    #[error("`{0}` is one of more than 256 legal moves")]
    Crowd(String),
    /// A variation comes before any move that it could replace.
    #[error("a variation stands before any move")]
    EarlyVariation,
    /// A variation ends that did not begin.
    #[error("a variation ends that did not begin")]
    LateEnd,
    /// Variations nest too deep.
    #[error("variations nest deeper than {MAX_DEPTH}")]
    TooDeep,
    /// The text contains no game.
    #[error("there is no game in the text")]
    Empty,
}

/// Reads the first game in `text`.
///
/// # Errors
/// [`GameError`] if the game cannot be played from its start to its end, the
/// variations included.
pub fn parse_game(text: &[u8]) -> Result<Record, GameError> {
    let mut reader = Reader::new(text);
    // Reading from memory cannot fail, so no game is all there can be.
    match reader.read_game(&mut RecordVisitor) {
        Ok(Some(record)) => record,
        Ok(None) | Err(_) => Err(GameError::Empty),
    }
}

struct RecordVisitor;

#[derive(Default)]
struct Tags {
    fen: Option<String>,
    result: Option<Wdl>,
    ratings: Ratings,
}

/// The record so far and its open lines, outermost first.
struct Movetext {
    record: Record,
    lines: Vec<Line>,
    comment: Vec<u8>,
    /// What engines expected at moves of the game's main line.
    expected: Vec<Expected>,
}

struct Line {
    position: Chess,
    /// The position before the line's latest move, once there is one.
    before: Option<Chess>,
    ply: usize,
    /// The latest move's place in the record.
    node: Option<usize>,
}

impl Visitor for RecordVisitor {
    type Tags = Tags;
    type Movetext = Movetext;
    type Output = Result<Record, GameError>;

    fn begin_tags(&mut self) -> ControlFlow<Self::Output, Tags> {
        ControlFlow::Continue(Tags::default())
    }

    fn tag(
        &mut self,
        tags: &mut Tags,
        name: &[u8],
        value: RawTag<'_>,
    ) -> ControlFlow<Self::Output> {
        match name {
            b"FEN" => match value.decode_utf8() {
                Ok(fen) => tags.fen = Some(fen.into_owned()),
                Err(_) => return ControlFlow::Break(Err(GameError::FenTag)),
            },
            b"Result" => tags.result = result(value.as_bytes()),
            b"WhiteElo" => tags.ratings.white = rating(&value.decode_utf8_lossy()),
            b"BlackElo" => tags.ratings.black = rating(&value.decode_utf8_lossy()),
            b"Variant" => {
                let variant = value.decode_utf8_lossy().into_owned();
                if !is_chess(&variant) {
                    return ControlFlow::Break(Err(GameError::Variant(variant)));
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn begin_movetext(&mut self, tags: Tags) -> ControlFlow<Self::Output, Movetext> {
        let position = match &tags.fen {
            None => Chess::default(),
            // Rights that only Chess960 has show in the FEN itself.
            Some(fen) => match Game::from_fen(fen, CastlingMode::Standard) {
                Ok(game) => game.position().clone(),
                Err(error) => return ControlFlow::Break(Err(error.into())),
            },
        };
        ControlFlow::Continue(Movetext {
            record: Record {
                fen: tags.fen.filter(|_| position != Chess::default()),
                result: tags.result,
                ratings: tags.ratings,
                ..Record::default()
            },
            lines: vec![Line {
                position,
                before: None,
                ply: 0,
                node: None,
            }],
            comment: Vec::new(),
            expected: Vec::new(),
        })
    }

    fn san(&mut self, text: &mut Movetext, san_plus: SanPlus) -> ControlFlow<Self::Output> {
        let depth = text.lines.len() - 1;
        let line = &mut text.lines[depth];
        let position = &line.position;
        let mv = match san_plus.san.to_move(position) {
            Ok(mv) => mv,
            Err(source) => {
                return ControlFlow::Break(Err(GameError::Move {
                    ply: line.ply,
                    depth,
                    san: san_plus.to_string(),
                    source,
                }));
            }
        };
        let turn = position.turn();
        let legal = Legal::of(&position.legal_moves(), turn);
        let ordinal = legal.ordinal(policy_index(mv, turn));
        let Ok(ordinal) = u8::try_from(ordinal) else {
            return ControlFlow::Break(Err(GameError::Crowd(san_plus.to_string())));
        };
        text.record.nodes.push(Node {
            ordinal,
            depth: depth as u8,
            starts_line: depth > 0 && line.node.is_none(),
            eval: None,
        });
        line.before = Some(line.position.clone());
        line.position.play_unchecked(mv);
        line.ply += 1;
        line.node = Some(text.record.nodes.len() - 1);
        ControlFlow::Continue(())
    }

    fn partial_comment(
        &mut self,
        text: &mut Movetext,
        comment: RawComment<'_>,
    ) -> ControlFlow<Self::Output> {
        text.comment.extend_from_slice(comment.as_bytes());
        ControlFlow::Continue(())
    }

    fn comment(
        &mut self,
        text: &mut Movetext,
        comment: RawComment<'_>,
    ) -> ControlFlow<Self::Output> {
        text.comment.extend_from_slice(comment.as_bytes());
        let depth = text.lines.len() - 1;
        let line = &text.lines[depth];
        if let (Some(node), Some(before)) = (line.node, &line.before) {
            let comment = String::from_utf8_lossy(&text.comment);
            let said = comment::read(&comment, before.turn());
            if let Some(eval) = said.eval {
                text.record.nodes[node].eval = Some(eval);
                if let Some(expected) = said.line.filter(|_| depth == 0) {
                    text.expected.push(Expected {
                        ply: line.ply - 1,
                        position: before.clone(),
                        eval,
                        line: expected.to_owned(),
                    });
                }
            }
        }
        text.comment.clear();
        ControlFlow::Continue(())
    }

    fn begin_variation(&mut self, text: &mut Movetext) -> ControlFlow<Self::Output, Skip> {
        if text.lines.len() > MAX_DEPTH {
            return ControlFlow::Break(Err(GameError::TooDeep));
        }
        let line = &text.lines[text.lines.len() - 1];
        let Some(position) = line.before.clone() else {
            return ControlFlow::Break(Err(GameError::EarlyVariation));
        };
        let ply = line.ply - 1;
        text.lines.push(Line {
            position,
            before: None,
            ply,
            node: None,
        });
        ControlFlow::Continue(Skip(false))
    }

    fn end_variation(&mut self, text: &mut Movetext) -> ControlFlow<Self::Output> {
        if text.lines.len() == 1 {
            return ControlFlow::Break(Err(GameError::LateEnd));
        }
        text.lines.pop();
        ControlFlow::Continue(())
    }

    fn outcome(&mut self, text: &mut Movetext, outcome: Outcome) -> ControlFlow<Self::Output> {
        if let Outcome::Known(known) = outcome {
            text.record.result = Some(match known {
                KnownOutcome::Draw => Wdl::Draw,
                KnownOutcome::Decisive { winner } => winner.fold_wb(Wdl::Win, Wdl::Loss),
            });
        }
        ControlFlow::Continue(())
    }

    fn end_game(&mut self, text: Movetext) -> Self::Output {
        let mut record = text.record;
        // Where there are variations, the lines of interest are among them.
        let has_variations = record.nodes.iter().any(|node| node.depth > 0);
        if !has_variations && !text.expected.is_empty() {
            record.nodes = weave(&record.nodes, &text.expected);
        }
        Ok(record)
    }
}

/// The result for White.
fn result(tag: &[u8]) -> Option<Wdl> {
    match tag {
        b"1-0" => Some(Wdl::Win),
        b"1/2-1/2" => Some(Wdl::Draw),
        b"0-1" => Some(Wdl::Loss),
        _ => None,
    }
}

/// The rating in a tag, which may be marked as provisional.
fn rating(tag: &str) -> Option<u16> {
    let digits = tag.trim().trim_end_matches('?');
    digits.parse().ok().filter(|&rating| rating > 0)
}

/// Whether a game of this variant is chess: the names in use for standard
/// chess, Chess960 and games from a given position.
fn is_chess(variant: &str) -> bool {
    const NAMES: [&str; 8] = [
        "",
        "standard",
        "chess",
        "normal",
        "from position",
        "chess960",
        "chess 960",
        "fischerandom",
    ];
    let variant = variant.trim().to_ascii_lowercase();
    NAMES.contains(&variant.as_str()) || variant == "fischer random" || variant == "chess960/frc"
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_tree_with_its_scores() {
        let text = "[Result \"1-0\"]\n\n1. e4 {[%eval 0.3,20]} (1. d4 {[%eval 0.2]} d5 \
                    (1... Nf6 2. c4) 2. c4) 1... e5 2. Nf3 {a long word} 1-0";
        let record = parse_game(text.as_bytes()).unwrap();
        assert_eq!((record.fen, record.result), (None, Some(Wdl::Win)));
        let shape: Vec<_> = record
            .nodes
            .iter()
            .map(|node| (node.depth, node.starts_line, node.eval.is_some()))
            .collect();
        let expected = [
            (0, false, true),
            (1, true, true),
            (1, false, false),
            (2, true, false),
            (2, false, false),
            (1, false, false),
            (0, false, false),
            (0, false, false),
        ];
        assert_eq!(shape, expected);
    }

    #[test]
    fn lines_that_engines_expected_become_variations() {
        // As TCEC writes it: the second line goes on in the first, the third
        // begins otherwise than the game, the fourth leads past its end.
        let text = "1. e4 {wv=0.30, pv=e4 c5 Nf3 d6 d4 cxd4 Nxd4 Nf6 Nc3 a6 Be3 e5,} \
                    e5 {wv=0.25, pv=e5 Nf3 Nc6,} \
                    2. Nc3 {wv=0.20, pv=Nf3 Nc6,} Nf6 {wv=0.10, pv=Nf6 Nf3,} *";
        let written = "1. e4 {[%eval 0.30]} 1... e5 {[%eval 0.25]} \
                       (1... c5 {[%eval 0.30]} 2. Nf3 d6 3. d4 cxd4 4. Nxd4 Nf6 5. Nc3) \
                       2. Nc3 {[%eval 0.20]} (2. Nf3 {[%eval 0.25]} 2... Nc6) \
                       2... Nf6 {[%eval 0.10]} *";
        let read = |text: &str| parse_game(text.as_bytes()).unwrap();
        assert_eq!(read(text), read(written));

        // Lines that share their beginning, and one that cannot be played on.
        let text = "1. e4 {wv=0.3, pv=e4 c5 Nf3,} c6 {wv=0.2, pv=c6 d4 d5 Ke4,} \
                    2. d4 {wv=0.3, pv=d4 d5 Nc3 dxe4,} d5 {wv=0.4, pv=d5 Nc3 g6,} \
                    3. e5 {wv=0.5, pv=e5 Bf5,} Bf5 *";
        let written = "1. e4 {[%eval 0.3]} c6 {[%eval 0.2]} (1... c5 {[%eval 0.3]} 2. Nf3) \
                       2. d4 {[%eval 0.3]} d5 {[%eval 0.4]} 3. e5 {[%eval 0.5]} \
                       (3. Nc3 {[%eval 0.3]} dxe4 (3... g6 {[%eval 0.4]})) 3... Bf5 *";
        assert_eq!(read(text), read(written));
    }

    #[test]
    fn lines_nest_no_deeper_than_variations_may() {
        // Each line goes on in the one before and leaves it a little later.
        const LEAVE: usize = 400;
        let own = |ply: usize| ["Nh3", "Nh6", "Ng1", "Ng8"][ply % 4];
        let queenside = ["Na3", "Na6", "Nb1", "Nb8"];
        let kingside = ["Nf3", "Nf6", "Ng1", "Ng8"];
        let mut text = String::new();
        for ply in 0..LEAVE + 4 {
            let blocks = (0..=ply).chain([ply]);
            let away = blocks.flat_map(|block| [queenside, kingside][block % 2]);
            let line: Vec<_> = (ply..LEAVE).map(own).chain(away).collect();
            text.push_str(&format!("{} {{wv=0.0, pv={},}} ", own(ply), line.join(" ")));
        }
        let record = parse_game(text.as_bytes()).unwrap();
        let depths = record.nodes.iter().map(|node| usize::from(node.depth));
        assert_eq!(depths.max(), Some(MAX_DEPTH));
        assert_eq!(record.main_line().count(), LEAVE + 4);
        record.places().unwrap();
    }

    #[test]
    fn ratings_are_read_where_they_are_given() {
        for (tag, expected) in [
            ("1500", Some(1500)),
            (" 1712? ", Some(1712)),
            ("?", None),
            ("-", None),
            ("0", None),
            ("2700000", None),
        ] {
            let text = format!("[WhiteElo \"{tag}\"]\n[BlackElo \"2000\"]\n\n1. e4 *");
            let ratings = parse_game(text.as_bytes()).unwrap().ratings;
            assert_eq!((ratings.white, ratings.black), (expected, Some(2000)));
        }
    }

    #[test]
    fn bad_games_are_refused_with_the_reason() {
        let crowd = "QQQQQQBk/Q6B/Q6Q/Q6Q/Q6Q/Q6Q/Q6Q/KQQQQQQQ w - - 0 1";
        for (text, reason) in [
            ("1. e4 e5 2. Ke3 *", "`Ke3` at ply 2 is not a legal move"),
            (
                "1. e4 (1. e5) *",
                "`e5` at ply 0 of a variation is not a legal move",
            ),
            ("1. Nf3 d5 2. d3 d4 3. Nd2 *", "`Nd2` at ply 4 is ambiguous"),
            ("1. e4 -- 2. d4 *", "`--` at ply 1 is not a legal move"),
            ("(1. e4) *", "a variation stands before any move"),
            (
                "[FEN \"8/8\"]\n\n1. e4 *",
                "`8/8` is not a FEN: invalid board part in fen",
            ),
            (
                "[Variant \"Atomic\"]\n\n1. e4 *",
                "variant `Atomic` is not chess",
            ),
            (&format!("[FEN \"{crowd}\"]\n\n1. Bg8b3 *"), ""),
            ("", "there is no game in the text"),
        ] {
            match parse_game(text.as_bytes()) {
                Ok(record) => assert!(reason.is_empty(), "{text}: {record:?}"),
                Err(error) if reason.is_empty() => drop(error),
                Err(error) => assert_eq!(error.to_string(), reason),
            }
        }
        let deep = format!("1. e4 {}", "(1. d4 ".repeat(300));
        assert!(matches!(
            parse_game(deep.as_bytes()),
            Err(GameError::TooDeep)
        ));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "([\\[\\](){};%eval#0-9. \n\"]|e4|Nf3|O-O|1-0|\\[FEN \"){0,80}") {
            let _ = parse_game(text.as_bytes());
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_game(&bytes);
        }
    }
}
