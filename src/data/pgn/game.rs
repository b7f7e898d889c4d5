//! Parses the text of one game into a [`Record`].

use std::ops::ControlFlow;

use shakmaty::{CastlingMode, CastlingSide, Chess, Position};

use crate::chess::{Game, Notation, Ratings};
use crate::data::legal::Legal;
use crate::data::record::{Node, Record};
use crate::data::sample::Wdl;
use crate::encode::policy_index;

use super::comment;
use super::error::{GameError, TokenPlace};
use super::expected::{Expected, MAX_DEPTH, weave};
use super::tags::Tags;
use super::token::{Token, Tokens, result};

/// Words between moves that are ignored.
pub(super) const ANNOTATIONS: [&str; 35] = [
    "+", "++", "#", "=", "+=", "=+", "=/+", "+/=", "+/-", "-/+", "+-", "-+", "+--", "--+", "=∞",
    "±", "∓", "⩲", "⩱", "∞", "~", "N", "TN", "D", "□", "⊙", "⟳", "→", "↑", "⇆", "e.p.", "e.p",
    "ep", "ep.", "ch",
];

/// A parsed game.
#[derive(Debug)]
pub struct ParsedGame {
    /// The game, without its unusable variations.
    pub record: Record,
    /// The null move on the main line, if there is one. The record then ends before the null move
    /// and has no result.
    pub null_move: Option<TokenPlace>,
    /// Why variations are unusable.
    pub bad_variations: Vec<GameError>,
}

/// Parses the game in `text`, without its unusable variations.
///
/// # Errors
/// [`GameError`] if the main line cannot be played from its start to its end.
pub fn parse_game(text: &[u8]) -> Result<Record, GameError> {
    let game = read_game(text)?;
    match game.null_move {
        Some(place) => Err(GameError::NullMove(place)),
        None => Ok(game.record),
    }
}

/// Parses a game like [`parse_game`], up to a null move on the main line, and also returns what was
/// unusable. A null move in a variation ends that variation.
///
/// # Errors
/// [`GameError`] if the main line cannot be played from its start to a null move or to its end.
pub fn read_game(text: &[u8]) -> Result<ParsedGame, GameError> {
    let (known, mut tokens) = KnownTags::read(text)?;
    let mut movetext = Movetext::new(known)?;
    while let Some(token) = tokens.next() {
        match token {
            // A variation within skipped moves.
            Token::Begin if movetext.skipped > 0 => movetext.skipped += 1,
            Token::End if movetext.skipped > 1 => movetext.skipped -= 1,
            Token::Comment(_) | Token::Result(_) | Token::Word(_) if movetext.skipped > 0 => {}
            Token::Comment(text) => movetext.comment(text),
            Token::OpenComment => return Err(GameError::OpenComment(movetext.line().ply)),
            Token::Begin => movetext.begin_variation(),
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

/// The tags that affect parsing.
#[derive(Default)]
pub(super) struct KnownTags {
    pub fen: Option<String>,
    pub result: Option<Wdl>,
    /// Whether both players lost by forfeit.
    is_forfeited: bool,
    pub ratings: Ratings,
}

impl KnownTags {
    /// Reads a game's tags. Also returns the tokens after them.
    pub(super) fn read(text: &[u8]) -> Result<(KnownTags, Tokens<'_>), GameError> {
        let mut known = KnownTags::default();
        let mut tags = Tags::new(text);
        let mut is_any = false;
        for (name, value) in &mut tags {
            is_any = true;
            let text = || String::from_utf8_lossy(&value);
            match name {
                b"FEN" if is_unknown(&value) => {}
                b"FEN" => {
                    let fen = std::str::from_utf8(&value).map_err(|_| GameError::FenTag)?;
                    known.fen = Some(fen.to_owned());
                }
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
        let tokens = Tokens::new(tags.rest);
        match is_any || tokens.clone().next().is_some() {
            true => Ok((known, tokens)),
            false => Err(GameError::Empty),
        }
    }
}

/// The record so far, and the lines that are still open, outermost first.
struct Movetext {
    record: Record,
    lines: Vec<Line>,
    /// The lines that engines expected at main-line moves.
    expected: Vec<Expected>,
    /// Whether the tags state that both players lost.
    is_forfeited: bool,
    /// Whether the result has been read.
    is_over: bool,
    /// The null move that has ended the main line.
    null_move: Option<TokenPlace>,
    /// Why variations were left out.
    bad_variations: Vec<GameError>,
    /// After a null move or an error in a variation, the number of parentheses that are open within
    /// the skipped moves, including the variation's own.
    skipped: usize,
}

struct Line {
    position: Chess,
    /// The position before the line's latest move; `None` if the line has no moves.
    before: Option<Chess>,
    ply: usize,
    /// The record index of the latest move.
    node: Option<usize>,
    /// The record index of the line's first move.
    first_node: usize,
}

impl Movetext {
    fn new(tags: KnownTags) -> Result<Movetext, GameError> {
        let position = match &tags.fen {
            None => Chess::default(),
            // The FEN itself shows whether its castling rights are possible only in Chess960.
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
                first_node: 0,
            }],
            expected: Vec::new(),
            is_forfeited: tags.is_forfeited,
            is_over: false,
            null_move: None,
            bad_variations: Vec::new(),
            skipped: 0,
        })
    }

    /// Returns the nesting depth of the current line.
    fn depth(&self) -> usize {
        self.lines.len() - 1
    }

    fn line(&self) -> &Line {
        &self.lines[self.depth()]
    }

    fn place(&self, token: &[u8]) -> TokenPlace {
        TokenPlace::new(token, self.line().ply, self.depth())
    }

    /// Processes a word. Returns a break if nothing after the word belongs to the game. An error in
    /// a variation costs only the variation.
    fn word(&mut self, word: &[u8]) -> Result<ControlFlow<()>, GameError> {
        match self.read_word(word) {
            Err(error) if self.depth() > 0 => {
                self.leave_out_variation(error);
                Ok(ControlFlow::Continue(()))
            }
            read => read,
        }
    }

    fn read_word(&mut self, word: &[u8]) -> Result<ControlFlow<()>, GameError> {
        match Notation::parse(word) {
            Some(Notation::Null) => return self.pass(word),
            Some(notation) => self.play(notation, word)?,
            None => {
                if let Some((notation, result)) = move_and_result(word) {
                    self.play(notation, word)?;
                    self.end(Some(result));
                } else if !ANNOTATIONS.iter().any(|known| known.as_bytes() == word) {
                    return Err(GameError::Token(self.place(word)));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Processes a null move, which ends its variation or, on the main line, the game.
    fn pass(&mut self, word: &[u8]) -> Result<ControlFlow<()>, GameError> {
        self.may_play(word)?;
        if self.depth() > 0 {
            self.skipped = 1;
            return Ok(ControlFlow::Continue(()));
        }
        self.null_move = Some(self.place(word));
        self.record.result = None;
        Ok(ControlFlow::Break(()))
    }

    fn may_play(&self, word: &[u8]) -> Result<(), GameError> {
        match self.is_over && self.depth() == 0 {
            true => Err(GameError::Late(self.place(word))),
            false => Ok(()),
        }
    }

    fn play(&mut self, notation: Notation, word: &[u8]) -> Result<(), GameError> {
        self.may_play(word)?;
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

    fn begin_variation(&mut self) {
        let line = self.line();
        let (position, error) = match &line.before {
            None => (&line.position, Some(GameError::EarlyVariation)),
            Some(_) if self.lines.len() > MAX_DEPTH => (&line.position, Some(GameError::TooDeep)),
            Some(before) => (before, None),
        };
        let variation = Line {
            position: position.clone(),
            before: None,
            ply: line.ply.saturating_sub(1),
            node: None,
            first_node: self.record.nodes.len(),
        };
        self.lines.push(variation);
        if let Some(error) = error {
            self.leave_out_variation(error);
        }
    }

    /// Removes the current variation, including nested ones, and skips its remaining words.
    fn leave_out_variation(&mut self, error: GameError) {
        let first = self.line().first_node;
        self.record.nodes.truncate(first);
        self.bad_variations.push(error);
        self.skipped = 1;
    }

    fn end_variation(&mut self) -> Result<(), GameError> {
        if self.depth() == 0 {
            return Err(GameError::LateEnd);
        }
        self.skipped = 0;
        self.lines.pop();
        Ok(())
    }

    /// Processes a result. Results in variations are ignored.
    fn end(&mut self, result: Option<Wdl>) {
        if self.depth() == 0 {
            self.is_over = true;
            self.record.result = result.or(self.record.result);
        }
    }

    /// Returns whether `0-0` followed by these tokens means that both players lost, rather than
    /// castling.
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
        // If the game has variations, they already include the engines' lines.
        let has_variations = record.nodes.iter().any(|node| node.depth > 0);
        if !has_variations && !self.expected.is_empty() {
            record.nodes = weave(&record.nodes, &self.expected);
        }
        Ok(ParsedGame {
            record,
            null_move: self.null_move,
            bad_variations: self.bad_variations,
        })
    }
}

/// Splits a word that joins a game's last move and its result without a space.
pub(super) fn move_and_result(word: &[u8]) -> Option<(Notation, Wdl)> {
    let results: [(&[u8], Wdl); 3] = [
        (b"1-0", Wdl::Win),
        (b"0-1", Wdl::Loss),
        (b"1/2-1/2", Wdl::Draw),
    ];
    results.into_iter().find_map(|(end, result)| {
        let notation = Notation::parse(word.strip_suffix(end)?)?;
        (notation != Notation::Null).then_some((notation, result))
    })
}

/// Parses the rating in a tag. A mark for provisional ratings may follow the number.
fn rating(tag: &str) -> Option<u16> {
    let digits = tag.trim().trim_end_matches('?');
    digits.parse().ok().filter(|&rating| rating > 0)
}

/// Returns whether a tag's value is empty, `?` (unknown) or `-` (not applicable).
fn is_unknown(value: &[u8]) -> bool {
    let value = value.trim_ascii();
    value == b"-" || value.iter().all(|&byte| byte == b'?')
}

/// Returns whether a variant's rules are those of chess: whether it is unknown, or a common name for
/// standard chess, for Chess960 or for games from a given position.
fn is_chess(variant: &str) -> bool {
    const NAMES: [&str; 7] = [
        "standard",
        "chess",
        "normal",
        "from position",
        "chess960",
        "chess 960",
        "fischerandom",
    ];
    let variant = variant.trim().to_ascii_lowercase();
    is_unknown(variant.as_bytes())
        || NAMES.contains(&variant.as_str())
        || variant == "fischer random"
        || variant == "chess960/frc"
}

#[cfg(test)]
mod tests;
