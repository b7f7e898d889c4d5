//! The text of one game as a [`Record`].

use std::fmt;
use std::ops::ControlFlow;

use shakmaty::san::SanError;
use shakmaty::{CastlingMode, CastlingSide, Chess, Position};

use crate::chess::{FenError, Game, Notation, Ratings};
use crate::data::legal::Legal;
use crate::data::record::{Node, Record};
use crate::data::sample::Wdl;
use crate::encode::policy_index;

use super::comment;
use super::expected::{Expected, MAX_DEPTH, weave};
use super::tags::Tags;
use super::token::{Token, Tokens, result};

/// Characters of a token that an error shows.
const SHOWN: usize = 40;
/// What people and programs write between moves without playing one.
const ANNOTATIONS: [&str; 35] = [
    "+", "++", "#", "=", "+=", "=+", "=/+", "+/=", "+/-", "-/+", "+-", "-+", "+--", "--+", "=∞",
    "±", "∓", "⩲", "⩱", "∞", "~", "N", "TN", "D", "□", "⊙", "⟳", "→", "↑", "⇆", "e.p.", "e.p",
    "ep", "ep.", "ch",
];

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
        "{place} is {}",
        match .source {
            SanError::IllegalSan => "not a legal move",
            SanError::AmbiguousSan => "ambiguous",
        }
    )]
    Move {
        /// The move.
        place: TokenPlace,
        /// Which of the two it is.
        source: SanError,
    },
    /// A token is neither a move nor anything else that stands in a game.
    #[error("{0} is no move")]
    Token(TokenPlace),
    /// A move follows the game's result.
    #[error("{0} stands behind the result")]
    Late(TokenPlace),
    /// A record numbers legal moves in a byte; only artificial positions have more.
    #[error("`{0}` is one of more than 256 legal moves")]
    Crowd(String),
    /// A variation comes before any move that it could replace.
    #[error("a variation stands before any move")]
    EarlyVariation,
    /// A variation ends that did not begin.
    #[error("a variation ends that did not begin")]
    LateEnd,
    /// A variation does not end.
    #[error("a variation has no end")]
    OpenVariation,
    /// A comment does not end.
    #[error("a comment after ply {0} has no end")]
    OpenComment(usize),
    /// Variations nest too deep.
    #[error("variations nest deeper than {MAX_DEPTH}")]
    TooDeep,
    /// The text contains no game.
    #[error("there is no game in the text")]
    Empty,
}

/// A token and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenPlace {
    /// The token as written, its beginning if it is long.
    pub token: String,
    /// Plies before it, from 0.
    pub ply: usize,
    /// Nesting depth of its variation; 0 on the main line.
    pub depth: usize,
}

impl fmt::Display for TokenPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TokenPlace { token, ply, depth } = self;
        let of = if *depth > 0 { " of a variation" } else { "" };
        write!(formatter, "`{token}` at ply {ply}{of}")
    }
}

/// A game as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedGame {
    /// The game.
    pub record: Record,
    /// Whether a null move stands on the main line. The record ends before it, without
    /// a result.
    pub is_cut: bool,
}

/// Reads the game in `text`.
///
/// # Errors
/// [`GameError`] if the game cannot be played from its start to its end, the
/// variations included.
pub fn parse_game(text: &[u8]) -> Result<Record, GameError> {
    read_game(text).map(|game| game.record)
}

/// [`parse_game`], which also says whether a null move ended the game. In a variation
/// a null move only ends that variation.
///
/// # Errors
/// As [`parse_game`].
pub fn read_game(text: &[u8]) -> Result<ParsedGame, GameError> {
    let mut tags = Tags::new(text);
    let known = KnownTags::read(&mut tags)?;
    let mut tokens = Tokens::new(tags.rest());
    if !known.is_any && tokens.clone().next().is_none() {
        return Err(GameError::Empty);
    }
    let mut movetext = Movetext::new(known)?;
    while let Some(token) = tokens.next() {
        match token {
            // What follows a null move in a variation.
            Token::Begin if movetext.skipped > 0 => movetext.skipped += 1,
            Token::End if movetext.skipped > 1 => movetext.skipped -= 1,
            Token::Comment(_) | Token::Result(_) | Token::Word(_) if movetext.skipped > 0 => {}
            Token::Comment(text) => movetext.comment(text),
            Token::OpenComment => return Err(GameError::OpenComment(movetext.line().ply)),
            Token::Begin => movetext.begin_variation()?,
            Token::End => movetext.end_variation()?,
            Token::Result(result) => movetext.end(result),
            Token::Word(b"0-0") if movetext.is_forfeited(&tokens) => movetext.record.result = None,
            Token::Word(word) => {
                if movetext.word(word)?.is_break() {
                    break;
                }
            }
        }
    }
    movetext.finish()
}

/// What the tags say that matters.
#[derive(Default)]
struct KnownTags {
    is_any: bool,
    fen: Option<String>,
    result: Option<Wdl>,
    /// Whether both players lost.
    is_forfeited: bool,
    ratings: Ratings,
}

impl KnownTags {
    fn read(tags: &mut Tags<'_>) -> Result<KnownTags, GameError> {
        let mut known = KnownTags::default();
        for (name, value) in tags {
            known.is_any = true;
            let text = || String::from_utf8_lossy(&value);
            match name {
                b"FEN" if value.trim_ascii().is_empty() => {}
                b"FEN" => match std::str::from_utf8(&value) {
                    Ok(fen) => known.fen = Some(fen.to_owned()),
                    Err(_) => return Err(GameError::FenTag),
                },
                b"Result" => {
                    known.result = result(&value).flatten();
                    known.is_forfeited = &*value == b"0-0";
                }
                b"WhiteElo" => known.ratings.white = rating(&text()),
                b"BlackElo" => known.ratings.black = rating(&text()),
                b"Variant" if !is_chess(&text()) => {
                    return Err(GameError::Variant(text().into_owned()));
                }
                _ => {}
            }
        }
        Ok(known)
    }
}

/// The record so far and its open lines, outermost first.
struct Movetext {
    record: Record,
    lines: Vec<Line>,
    /// What engines expected at moves of the game's main line.
    expected: Vec<Expected>,
    /// Whether the tags say that both players lost.
    is_forfeited: bool,
    /// Whether the result was read.
    is_over: bool,
    /// Whether a null move ended the main line.
    is_cut: bool,
    /// Parentheses still open around what follows a null move in a variation.
    skipped: usize,
}

struct Line {
    position: Chess,
    /// The position before the line's latest move, once there is one.
    before: Option<Chess>,
    ply: usize,
    /// The latest move's place in the record.
    node: Option<usize>,
}

impl Movetext {
    fn new(tags: KnownTags) -> Result<Movetext, GameError> {
        let position = match &tags.fen {
            None => Chess::default(),
            // Rights that only Chess960 has show in the FEN itself.
            Some(fen) => Game::from_fen(fen, CastlingMode::Standard)?
                .position()
                .clone(),
        };
        Ok(Movetext {
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
            expected: Vec::new(),
            is_forfeited: tags.is_forfeited,
            is_over: false,
            is_cut: false,
            skipped: 0,
        })
    }

    /// Nesting depth of the line at hand.
    fn depth(&self) -> usize {
        self.lines.len() - 1
    }

    fn line(&self) -> &Line {
        &self.lines[self.depth()]
    }

    fn place(&self, token: &[u8]) -> TokenPlace {
        let token = String::from_utf8_lossy(token);
        TokenPlace {
            token: token.escape_debug().take(SHOWN).collect(),
            ply: self.line().ply,
            depth: self.depth(),
        }
    }

    /// Reads a word. After a break nothing belongs to the game.
    fn word(&mut self, word: &[u8]) -> Result<ControlFlow<()>, GameError> {
        let Some(notation) = Notation::parse(word) else {
            if let Some((mv, result)) = part_result(word) {
                self.word(mv)?;
                self.end(Some(result));
            } else if !ANNOTATIONS.iter().any(|known| known.as_bytes() == word) {
                return Err(GameError::Token(self.place(word)));
            }
            return Ok(ControlFlow::Continue(()));
        };
        let is_main = self.depth() == 0;
        if self.is_over && is_main {
            return Err(GameError::Late(self.place(word)));
        }
        if notation != Notation::Null {
            self.play(notation, word)?;
            return Ok(ControlFlow::Continue(()));
        }
        if !is_main {
            self.skipped = 1;
            return Ok(ControlFlow::Continue(()));
        }
        self.is_cut = true;
        self.record.result = None;
        Ok(ControlFlow::Break(()))
    }

    fn play(&mut self, notation: Notation, word: &[u8]) -> Result<(), GameError> {
        let depth = self.depth();
        let mv = notation.to_move(&self.line().position);
        let mv = mv.map_err(|source| GameError::Move {
            place: self.place(word),
            source,
        })?;
        let line = &mut self.lines[depth];
        let turn = line.position.turn();
        let legal = Legal::of(&line.position.legal_moves(), turn);
        let ordinal = legal.ordinal(policy_index(mv, turn));
        let Ok(ordinal) = u8::try_from(ordinal) else {
            return Err(GameError::Crowd(String::from_utf8_lossy(word).into_owned()));
        };
        self.record.nodes.push(Node {
            ordinal,
            depth: depth as u8,
            starts_line: depth > 0 && line.node.is_none(),
            eval: None,
        });
        line.before = Some(line.position.clone());
        line.position.play_unchecked(mv);
        line.ply += 1;
        line.node = Some(self.record.nodes.len() - 1);
        Ok(())
    }

    fn comment(&mut self, text: &[u8]) {
        let line = &self.lines[self.depth()];
        let (Some(node), Some(before)) = (line.node, &line.before) else {
            return;
        };
        let text = String::from_utf8_lossy(text);
        let said = comment::read(&text, before.turn());
        let Some(eval) = said.eval else {
            return;
        };
        self.record.nodes[node].eval = Some(eval);
        if let Some(expected) = said.line.filter(|_| self.lines.len() == 1) {
            self.expected.push(Expected {
                ply: line.ply - 1,
                position: before.clone(),
                eval,
                line: expected.to_owned(),
            });
        }
    }

    fn begin_variation(&mut self) -> Result<(), GameError> {
        if self.lines.len() > MAX_DEPTH {
            return Err(GameError::TooDeep);
        }
        let line = self.line();
        let position = line.before.clone().ok_or(GameError::EarlyVariation)?;
        let ply = line.ply - 1;
        self.lines.push(Line {
            position,
            before: None,
            ply,
            node: None,
        });
        Ok(())
    }

    fn end_variation(&mut self) -> Result<(), GameError> {
        if self.depth() == 0 {
            return Err(GameError::LateEnd);
        }
        self.skipped = 0;
        self.lines.pop();
        Ok(())
    }

    /// Takes in a result; those of variations say nothing of the game.
    fn end(&mut self, result: Option<Wdl>) {
        if self.depth() == 0 {
            self.is_over = true;
            self.record.result = result.or(self.record.result);
        }
    }

    /// Whether `0-0` before these tokens is no castling, but says that both players
    /// lost.
    fn is_forfeited(&self, rest: &Tokens<'_>) -> bool {
        let is_last = rest.clone().all(|token| matches!(token, Token::Comment(_)));
        let castling = self.line().position.castling_moves(CastlingSide::KingSide);
        is_last && self.depth() == 0 && (self.is_forfeited || castling.is_empty())
    }

    fn finish(self) -> Result<ParsedGame, GameError> {
        if self.depth() > 0 {
            return Err(GameError::OpenVariation);
        }
        let mut record = self.record;
        // Where there are variations, the lines of interest are among them.
        let has_variations = record.nodes.iter().any(|node| node.depth > 0);
        if !has_variations && !self.expected.is_empty() {
            record.nodes = weave(&record.nodes, &self.expected);
        }
        Ok(ParsedGame {
            record,
            is_cut: self.is_cut,
        })
    }
}

/// The last move and the result of a game, where no space parts them.
fn part_result(word: &[u8]) -> Option<(&[u8], Wdl)> {
    let results: [(&[u8], Wdl); 3] = [
        (b"1-0", Wdl::Win),
        (b"0-1", Wdl::Loss),
        (b"1/2-1/2", Wdl::Draw),
    ];
    let parted = results
        .into_iter()
        .find_map(|(end, result)| Some((word.strip_suffix(end)?, result)));
    parted.filter(|&(mv, _)| Notation::parse(mv).is_some_and(|mv| mv != Notation::Null))
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

    fn read(text: &str) -> Record {
        parse_game(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn dialects_are_read_as_the_moves_they_mean() {
        let start = "[FEN \"4k2r/P7/8/3pP3/8/8/4P3/R3K2R w KQk d6 0 1\"]\n\n";
        let expected = read(&format!(
            "{start}1. exd6 O-O 2. a8=Q Rxa8 3. Rxa8+ Kf7 4. O-O Kg6 5. e4 *"
        ));
        assert_eq!(expected.main_line().count(), 9);
        for moves in [
            "1. exd6e.p. 0-0 2. a8Q Rxa8 3. Rxa8 Kf7 4. 0-0 Kg6 5. e4 *",
            "1. exd6 e.p. o-o 2. a8(Q) Ra8 3. Ra8 Kf7 4. O–O Kg6 5. e2-e4 *",
            "1. e5xd6 ep O-O 2. a7-a8Q Rf8xa8 3. Ra1xa8+ Kg8-f7 4. 0–0 Kf7-g6 5. e2-e4 *",
            "1 e5d6 e8g8 2 a7a8q f8a8 3 a1a8 g8f7 4 e1g1 f7g6 5 e2e4",
            "1.exd6 O-O 2.a8=Q Rxa8 3.Rxa8 Kf7 4.O-O Kg6 5.e41-0",
            "1.exd6!(1.e4)0-0{a}2.a8(Q)$1Rxa8!?3.Rxa8+-Kf7 4.0-0 = Kg6 5.e4 N ± □",
        ] {
            let moves = moves.replace("Rxa8+-", "Rxa8 +- ");
            let record = read(&format!("{start}{moves}"));
            assert!(record.main_line().eq(expected.main_line()), "{moves}");
        }
    }

    #[test]
    fn a_null_move_ends_its_variation_or_the_game() {
        let scored = "1. e4 {+0.3/10 1s} e5 {+0.2/10 1s} NULL 2. Nf3 {+0.3/10 1s} \
                      Nc6 {+0.2/10 1s} 1-0";
        let without = read(&scored.replace("NULL", ""));
        for null in ["--", "Z0", "null", "@@@@", "0000"] {
            for variation in [
                "1... NULL 2. d4",
                "1... NULL (1... c5) 2. d4 {a} 0-1",
                "NULL",
            ] {
                let variation = format!("({})", variation.replace("NULL", null));
                let text = scored.replace("NULL", &variation);
                assert_eq!(read(&text), without, "{text}");
            }
            let text = scored.replace("NULL", &format!("(1... c5 2. {null} Nc6 3. Nxx) (1... c6)"));
            assert_eq!(
                read(&text),
                read(&scored.replace("NULL", "(1... c5) (1... c6)"))
            );

            let text = format!("[Result \"1-0\"]\n\n1. e4 e5 (1... c5) 2. {null} Sf6 3. d4 ( 1-0");
            let cut = read_game(text.as_bytes()).unwrap();
            assert!(cut.is_cut && cut.record.result.is_none());
            assert_eq!(cut.record, read("1. e4 e5 (1... c5) *"));
        }
        assert!(!read_game(b"1. e4 (1. --) *").unwrap().is_cut);
    }

    #[test]
    fn results_are_those_of_the_game() {
        let tagged =
            |tag: &str, moves: &str| read(&format!("[Result \"{tag}\"]\n\n{moves}")).result;
        assert_eq!(tagged("?", "1. e4 (1. d4 0-1) 1-0 {0-1}"), Some(Wdl::Win));
        assert_eq!(tagged("1/2", "1. e4 *"), Some(Wdl::Draw));
        assert_eq!(tagged("1–0", "1. e4"), Some(Wdl::Win));
        assert_eq!(tagged("1-0", "1. e4 0-1 1-0"), Some(Wdl::Win));
        assert_eq!(tagged("*", "1. e4 e51/2-1/2"), Some(Wdl::Draw));
        // Both lose; where castling is possible, the tag decides.
        let castling = "1. e4 e5 2. Nf3 Nf6 3. Bc4 Bc5";
        for (tag, moves, plies) in [
            ("0-0", "0-0 {nobody came}".to_owned(), 0),
            ("?", "1. e4 0-0".to_owned(), 1),
            ("0-0", format!("{castling} 0-0"), 6),
            ("*", format!("{castling} 0-0"), 7),
            ("0-0", format!("{castling} 4. 0-0 0-0"), 7),
        ] {
            let record = read(&format!("[Result \"{tag}\"]\n\n{moves}"));
            assert_eq!(
                (record.result, record.nodes.len()),
                (None, plies),
                "{moves}"
            );
        }
    }

    #[test]
    fn tags_do_not_lose_a_game() {
        let text = "% escaped\n[Annotator \"a \"b\" c\"]\n[FEN \"\"]\n%[Result \"0-1\"]\n\
                    [WhiteElo \"1500\"]\n[Result \"1-0\"]\n\n%1. d4\n1. e4\n%d5\n e5 2. Nf3";
        let record = read(text);
        assert_eq!((record.nodes.len(), record.result), (3, Some(Wdl::Win)));
        assert_eq!(record.ratings.white, Some(1500));
        assert_eq!(record.fen, None);
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
            ("1. a8Q Kg7 *", "`a8Q` at ply 0 is not a legal move"),
            ("1. e4 e5 2. Sf3 Sc6 1-0", "`Sf3` at ply 2 is no move"),
            (
                "1. e4 (1. d4 Sf6) *",
                "`Sf6` at ply 1 of a variation is no move",
            ),
            ("1. e4 e5 } 2. Nf3 *", "`}` at ply 2 is no move"),
            ("1. e4 [%clk 0:01] e5", "`[%clk` at ply 1 is no move"),
            (
                "1. e4 e5 0-0 2. Nf3 *",
                "`0-0` at ply 2 is not a legal move",
            ),
            (
                "1. e4 e5 1-0 2. d4 *",
                "`d4` at ply 2 stands behind the result",
            ),
            ("1. e4 e5 1-0 --", "`--` at ply 2 stands behind the result"),
            ("1. e4 (1. d4 d5 2. c4 *", "a variation has no end"),
            ("1. e4) e5 *", "a variation ends that did not begin"),
            ("1. e4 e5 {2. Nf3 *", "a comment after ply 2 has no end"),
            (
                "1. e4 (1. d4 -- {2. c4) *",
                "a comment after ply 1 has no end",
            ),
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
        fn no_text_panics(text in "([\\[\\](){};%eval#0-9. \n\"]|e4|Nf3|O-O|1-0|0-0|--|e2-e4|\\[FEN \"){0,80}") {
            let _ = parse_game(text.as_bytes());
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_game(&bytes);
        }
    }
}
