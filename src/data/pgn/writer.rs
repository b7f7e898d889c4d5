//! Writes annotated games as PGN, in the form that `--evals chooser` reads: a score refers to the
//! preceding move and to the position before that move.

use std::collections::BTreeMap;
use std::fmt::Write;

use shakmaty::san::SanPlus;
use shakmaty::{CastlingMode, Chess, Color, Move, Position};

use crate::chess::{Game, fen};
use crate::data::record::Eval;
use crate::data::sample::Wdl;

use super::remarks::{Piece, piece};
use super::token::result;

/// Maximum number of characters in a line of moves.
const LONGEST_LINE: usize = 79;
/// Six of the seven tags that PGN requires, and the values written if they are unknown. The seventh
/// is Result.
const ROSTER: [(&str, &str); 6] = [
    ("Event", "?"),
    ("Site", "?"),
    ("Date", "????.??.??"),
    ("Round", "?"),
    ("White", "?"),
    ("Black", "?"),
];

/// A move with an engine's score.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The scored move and the expected continuation; never empty.
    pub moves: Vec<Move>,
    /// The move's score, from White's perspective.
    pub eval: Eval,
    /// Depth of the search in plies.
    pub depth: u32,
}

/// A game with engine scores for some of its positions.
#[derive(Clone, Debug)]
pub struct AnnotatedGame {
    /// The complete game.
    pub game: Game,
    /// For each move of the game, the scored moves of the position before it, with the best first;
    /// the list may be shorter than the game.
    pub judged: Vec<Vec<Judged>>,
    /// The result for White, if any.
    pub result: Option<Wdl>,
    /// A comment after the last move.
    pub comment: Option<String>,
    /// The game's tags, in any order. FEN, SetUp and Result are derived from the game itself.
    pub tags: Vec<(String, String)>,
}

impl AnnotatedGame {
    /// Returns a game without a comment and tags.
    pub fn new(game: Game, judged: Vec<Vec<Judged>>, result: Option<Wdl>) -> AnnotatedGame {
        AnnotatedGame {
            game,
            judged,
            result,
            comment: None,
            tags: Vec::new(),
        }
    }

    /// Returns the game in the PGN standard's export format, ending in an empty line.
    ///
    /// If the best move was played, its score follows the move. Otherwise, the best move becomes a
    /// variation of `line` plies with the score, and the move played gets no score. Each other
    /// scored move becomes a variation of one move.
    pub fn to_pgn(&self, line: usize) -> String {
        let result = match self.result {
            Some(Wdl::Win) => "1-0",
            Some(Wdl::Draw) => "1/2-1/2",
            Some(Wdl::Loss) => "0-1",
            None => "*",
        };
        let mut text = self.header(result);
        let mut movetext = Movetext::default();
        let played = self.game.plies().windows(2);
        for (ply, pair) in played.enumerate() {
            let Some(mv) = pair[1].played else { continue };
            let judged = self.judged.get(ply).map_or(&[][..], Vec::as_slice);
            movetext.ply(&pair[0].position, mv, judged, line.max(1));
        }
        if let Some(comment) = &self.comment {
            movetext.comment(comment);
        }
        movetext.words.push(result.to_owned());
        movetext.wrap(&mut text);
        text.push_str("\n\n");
        text
    }

    /// Returns the game's tags, followed by an empty line.
    pub(crate) fn header(&self, result: &str) -> String {
        let mut text = String::new();
        for (name, value) in self.all_tags(result) {
            tag(&mut text, name, &value);
        }
        text.push('\n');
        text
    }

    /// Returns the seven required tags, followed by the others in alphabetical order.
    fn all_tags(&self, result: &str) -> Vec<(&str, String)> {
        let mut others = BTreeMap::new();
        for (name, value) in &self.tags {
            if is_name(name) {
                others.entry(name.as_str()).or_insert_with(|| value.clone());
            }
        }
        if self.game.mode() == CastlingMode::Chess960 {
            others.insert("Variant", "Chess960".to_owned());
        }
        for own in ["FEN", "SetUp", "Result"] {
            others.remove(own);
        }
        if !self.game.from_initial_position() {
            others.insert("FEN", fen(&self.game.plies()[0].position));
            others.insert("SetUp", "1".to_owned());
        }
        let roster = ROSTER.map(|(name, unknown)| {
            let value = others.remove(name);
            (name, value.unwrap_or_else(|| unknown.to_owned()))
        });
        let mut tags = Vec::from(roster);
        tags.push(("Result", result.to_owned()));
        tags.extend(others);
        tags
    }
}

/// Returns whether readers accept a tag with this name.
fn is_name(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"_+#=:-".contains(&byte);
    name.starts_with(|first: char| first.is_ascii_alphanumeric()) && name.bytes().all(is_inner)
}

fn tag(text: &mut String, name: &str, value: &str) {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
    let value = value.replace(char::is_control, " ");
    // Writing to a string cannot fail.
    let _ = writeln!(text, "[{name} \"{value}\"]");
}

/// The moves of a game as words that are never split across lines.
#[derive(Default)]
pub(crate) struct Movetext {
    words: Vec<String>,
    /// Whether Black's next move needs no move number.
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
            let is_best = std::ptr::eq(other, &raw const judged[0]);
            let shown = if is_best { line } else { 1 };
            self.variation(|text| {
                let mut position = position.clone();
                for (number, &mv) in other.moves.iter().take(shown).enumerate() {
                    text.mv(&mut position, mv);
                    if number == 0 {
                        text.eval(other);
                    }
                }
            });
        }
    }

    /// Adds a move played in `position`.
    pub(crate) fn mv(&mut self, position: &mut Chess, mv: Move) {
        let number = position.fullmoves();
        let number = match position.turn() {
            Color::White => format!("{number}. "),
            Color::Black if self.follows_move => String::new(),
            Color::Black => format!("{number}... "),
        };
        let san = SanPlus::from_move_and_play_unchecked(position, mv);
        self.words.push(format!("{number}{san}"));
        self.follows_move = true;
    }

    fn eval(&mut self, judged: &Judged) {
        let depth = judged.depth;
        self.comment(&match judged.eval {
            Eval::Centipawns(centipawns) => {
                let pawns = f64::from(centipawns) / 100.0;
                format!("[%eval {pawns:.2},{depth}]")
            }
            Eval::Mate(moves) => format!("[%eval #{moves},{depth}]"),
        });
    }

    /// Adds a word, such as a result or a numeric glyph.
    pub(crate) fn word(&mut self, word: String) {
        self.words.push(word);
    }

    /// Adds a comment, unless it is empty.
    pub(crate) fn comment(&mut self, text: &str) {
        let text = text.replace(['{', '}'], " ").replace(char::is_control, " ");
        let first = self.words.len();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let (word, behind) = rest.split_at(word_length(rest));
            rest = behind.trim_start();
            let word = word.split_whitespace().collect::<Vec<_>>().join(" ");
            // At the start of a line, some readers would misinterpret these characters.
            match self.words[first..].last_mut() {
                Some(before) if word.starts_with(['[', '%', ';']) => {
                    before.push(' ');
                    before.push_str(&word);
                }
                _ => self.words.push(word),
            }
        }
        self.enclose(first, '{', '}');
        self.follows_move = false;
    }

    /// Adds a variation; `line` adds its moves.
    pub(crate) fn variation(&mut self, line: impl FnOnce(&mut Movetext)) {
        let first = self.words.len();
        self.follows_move = false;
        line(self);
        self.enclose(first, '(', ')');
        self.follows_move = false;
    }

    /// Adds movetext as its author wrote it, without its results. Parentheses that have no
    /// counterpart are left out or closed.
    pub(crate) fn written(&mut self, text: &str) {
        let mut open = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (length, piece) = piece(rest);
            match piece {
                Piece::Parenthesis if rest.starts_with('(') => open.push(self.words.len()),
                Piece::Parenthesis => {
                    if let Some(first) = open.pop() {
                        self.enclose(first, '(', ')');
                    }
                }
                Piece::Comment(comment) => self.comment(comment),
                Piece::Word(word) if result(word.as_bytes()).is_some() => {}
                Piece::Word(word) if word.starts_with(['!', '?']) => {
                    if let Some(last) = self.words.last_mut() {
                        last.push_str(word);
                    }
                }
                Piece::Word(word) => self.words.push(word.to_owned()),
                Piece::Space => {}
            }
            rest = &rest[length..];
        }
        for first in open.into_iter().rev() {
            self.enclose(first, '(', ')');
        }
        self.follows_move = false;
    }

    /// Encloses the words from `first` in two characters.
    fn enclose(&mut self, first: usize, begin: char, end: char) {
        if let Some(word) = self.words.get_mut(first) {
            word.insert(0, begin);
        }
        if let Some(word) = self.words[first..].last_mut() {
            word.push(end);
        }
    }

    /// Writes the words in lines of at most [`LONGEST_LINE`] characters. Only a line with a single
    /// word may be longer.
    pub(crate) fn wrap(self, text: &mut String) {
        let mut column = 0;
        for word in self.words {
            let length = word.chars().count();
            if column > 0 {
                let fits = column + 1 + length <= LONGEST_LINE;
                text.push(if fits { ' ' } else { '\n' });
                column = if fits { column + 1 } else { 0 };
            }
            text.push_str(&word);
            column += length;
        }
    }
}

/// Returns the length in bytes of a comment's first word. Commands such as `[%eval 0.3]` are not
/// split.
fn word_length(text: &str) -> usize {
    let mut at = 0;
    loop {
        let rest = &text[at..];
        let Some(found) = rest.find(|sign: char| sign == '[' || sign.is_whitespace()) else {
            return text.len();
        };
        let here = &rest[found..];
        if !here.starts_with('[') {
            return at + found;
        }
        let command = here.starts_with("[%").then(|| here.find(']')).flatten();
        at += found + command.map_or(1, |end| end + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::pgn::{Games, parse_game, tag as tag_of, tags};
    use crate::data::replay::main_line;
    use proptest::prelude::*;
    use rand::seq::IndexedRandom;
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

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
            tags: vec![
                ("Board".to_owned(), "2".to_owned()),
                ("Event".to_owned(), "a \"b\"".to_owned()),
                ("Annotator".to_owned(), "C:\\".to_owned()),
                ("no name".to_owned(), "none".to_owned()),
                ("Result".to_owned(), "1-0".to_owned()),
                ("Board".to_owned(), "3".to_owned()),
            ],
        };
        let text = annotated.to_pgn(2);
        let expected = "[Event \"a \\\"b\\\"\"]\n[Site \"?\"]\n[Date \"????.??.??\"]\n\
                        [Round \"?\"]\n[White \"?\"]\n[Black \"?\"]\n[Result \"0-1\"]\n\
                        [Annotator \"C:\\\\\"]\n[Board \"2\"]\n\n\
                        1. e4 {[%eval 0.30,9]} 1... e5 (1... c5 {[%eval -0.05,9]} 2. Nf3) (1... e5\n\
                        {[%eval #-3,9]}) 2. Nf3 {a trap} 0-1\n\n";
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
        let text = AnnotatedGame::new(game, Vec::new(), None).to_pgn(1);
        assert!(text.contains("[Variant \"Chess960\"]"), "{text}");
        assert!(text.contains("1... O-O 2. O-O-O *"), "{text}");
        let record = parse_game(text.as_bytes()).unwrap();
        assert_eq!(record.fen.as_deref(), Some(fen));
        assert_eq!(record.nodes.len(), 2);
    }

    /// Returns a game of random legal moves. Some positions have scored moves, and the best scored
    /// move is not always the move played.
    fn random_game(plies: usize, seed: u64) -> AnnotatedGame {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut game = Game::default();
        let mut judged = Vec::new();
        for _ in 0..plies {
            let legal = game.position().legal_moves();
            let Some(&mv) = legal.choose(&mut random) else {
                break;
            };
            let scored = (0..random.random_range(0..3)).map(|_| Judged {
                moves: vec![*legal.choose(&mut random).unwrap()],
                eval: match random.random() {
                    true => Eval::Centipawns(random.random_range(-9999..9999)),
                    false => Eval::Mate(random.random_range(1..99)),
                },
                depth: random.random_range(1..99),
            });
            judged.push(scored.collect());
            game.play(mv);
        }
        AnnotatedGame::new(game, judged, Some(Wdl::Draw))
    }

    proptest! {
        #[test]
        fn games_are_read_as_they_were_written(
            plies in 0..120usize,
            seed: u64,
            value in "[ -~é\n]{0,30}",
            comment in "([a-z%;é]{1,12}|\\[%eval -?[0-9]\\.[0-9]{2},[0-9]{2}\\]|\\[[a-z]|[{}\\]()]| |\n){0,40}",
        ) {
            let mut annotated = random_game(plies, seed);
            annotated.tags.push(("White".to_owned(), value.clone()));
            annotated.tags.push(("Zeta".to_owned(), value.clone()));
            annotated.comment = Some(comment.clone());
            let text = annotated.to_pgn(1);
            let names: Vec<_> = tags(text.as_bytes()).into_iter().map(|(name, _)| name).collect();
            let expected = ["Event", "Site", "Date", "Round", "White", "Black", "Result", "Zeta"];
            prop_assert_eq!(names, expected);
            for name in ["White", "Zeta"] {
                prop_assert_eq!(tag_of(&text, name), Some(value.replace('\n', " ")));
            }
            let (_, movetext) = text.split_once("\n\n").unwrap();
            for line in movetext.lines() {
                prop_assert_eq!(line.trim(), line);
                prop_assert!(!line.starts_with(['[', '%', ';']), "{}", line);
                // Only an unsplittable word may be longer.
                let is_long = line.chars().count() > LONGEST_LINE;
                prop_assert!(!is_long || line.contains(['[', '%', ';']), "{}", line);
                prop_assert!(line.matches("[%eval").count() == line.matches("[%eval ").count());
            }
            let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            let comment = flat(&comment.replace(['{', '}'], " "));
            prop_assert!(flat(movetext).contains(&comment), "{}", text);
            let twice = text.repeat(2);
            let games: Vec<_> = Games::new(twice.as_bytes()).map(|game| game.unwrap().text).collect();
            prop_assert_eq!(games, [text.as_bytes(), text.as_bytes()]);
            let record = parse_game(text.as_bytes()).unwrap();
            prop_assert_eq!(record.result, annotated.result);
            let read = main_line(&record).unwrap();
            let moves = |game: &Game| -> Vec<_> {
                game.plies().iter().map(|ply| ply.played).collect()
            };
            prop_assert_eq!(moves(&read), moves(&annotated.game));
            let scores = annotated.judged.iter().flatten().map(|judged| judged.eval);
            let mut read: Vec<_> = record.nodes.iter().filter_map(|node| node.eval).collect();
            // A score in the final comment may be parsed as the last move's score.
            read.truncate(scores.clone().count());
            if comment.is_empty() {
                prop_assert_eq!(read, scores.collect::<Vec<_>>());
            }
        }
    }
}
