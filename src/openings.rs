//! Openings of games: books, followed by random moves.

mod book;
mod eco;
mod names;

pub use book::BookOptions;
pub(crate) use book::{is_pgn, open, positions};
pub use eco::{eco_openings, is_eco};
pub use names::{Opening, named_opening};

use crate::chess::{FenError, Game, epd, fen};
use book::Book;
use rand::Rng;
use rand::seq::IndexedRandom;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use shakmaty::{CastlingMode, Position};
use std::fmt;
use std::path::PathBuf;

/// A position is given up after this many attempts to play random moves, because nearly all of them
/// end the game.
const ATTEMPTS: usize = 100;

/// Why there is no opening.
#[derive(Debug, thiserror::Error)]
pub enum OpeningsError {
    /// The book cannot be read.
    #[error("cannot read the openings {}: {source}", path.display())]
    Read {
        /// The book.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The book is empty.
    #[error("the openings {} are empty: they must be FEN, EPD or PGN", path.display())]
    Empty {
        /// The book.
        path: PathBuf,
    },
    /// A cut was requested for a book of positions, but only games in PGN can be cut.
    #[error("the openings {} are positions: only games in PGN can be cut", path.display())]
    Cut {
        /// The book.
        path: PathBuf,
    },
    /// An opening is not a legal position.
    #[error("openings {}, {place}: {reason}", path.display())]
    Opening {
        /// The book.
        path: PathBuf,
        /// The opening's number and, for a game, its line.
        place: String,
        /// The problem.
        reason: String,
    },
    /// The table contains no opening with this code.
    #[error("no opening of {} has the code {code}", path.display())]
    Unnamed {
        /// The table.
        path: PathBuf,
        /// The code.
        code: String,
    },
    /// The position does not allow this many random moves.
    #[error("{plies} random plies end the game from `{fen}`")]
    Random {
        /// The requested number of random plies.
        plies: u32,
        /// The position from which the random moves start.
        fen: String,
    },
}

/// Openings of games: from books or the initial position, followed by random moves.
#[derive(Debug)]
pub struct Openings {
    books: Vec<Book>,
    random_plies: u32,
    seed: u64,
}

impl fmt::Display for Openings {
    /// Describes the books and the random moves.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self
            .books
            .iter()
            .map(|book| book.options.to_string())
            .collect();
        match names.as_slice() {
            [] => write!(formatter, "from the initial position")?,
            names => write!(formatter, "from {}", names.join(", "))?,
        }
        match self.random_plies {
            0 => Ok(()),
            plies => write!(formatter, ", {plies} random plies"),
        }
    }
}

impl Openings {
    /// Opens books, each in an order determined by the seed; without a book, games begin at the
    /// initial position. The book for each game is sampled in proportion to the books' shares. The
    /// opening is followed by `random_plies` random moves.
    ///
    /// # Errors
    /// [`OpeningsError`] if a book cannot be read or contains nothing usable.
    pub fn open(
        books: &[BookOptions],
        random_plies: u32,
        seed: u64,
    ) -> Result<Openings, OpeningsError> {
        let books = books.iter().map(|book| Book::open(book.clone(), seed));
        Ok(Openings {
            books: books.collect::<Result<_, _>>()?,
            random_plies,
            seed,
        })
    }

    /// Returns the opening of a game, which depends only on the seed and the game's number.
    ///
    /// # Errors
    /// [`OpeningsError`] if the opening is not a playable position.
    pub fn game(&self, number: u64) -> Result<Game, OpeningsError> {
        // Independent of the random numbers used later in the same game.
        let mut random = generator(!self.seed, number);
        let book = match self.books.as_slice() {
            [] => Game::default(),
            [only] => only.game(number, &mut random)?,
            books => books
                .choose_weighted(&mut random, |book| book.options.share)
                .unwrap_or(&books[0])
                .game(number, &mut random)?,
        };
        for _ in 0..ATTEMPTS {
            let mut game = book.clone();
            while game.ending().is_none() {
                let played = game.plies().len() - book.plies().len();
                if played as u32 == self.random_plies {
                    return Ok(game);
                }
                play_random(&mut game, &mut random);
            }
        }
        Err(OpeningsError::Random {
            plies: self.random_plies,
            fen: fen(book.position()),
        })
    }
}

/// Returns a random number generator for one game, independent of those for other games.
pub fn generator(seed: u64, number: u64) -> Xoshiro256PlusPlus {
    let salt = Xoshiro256PlusPlus::seed_from_u64(seed).next_u64();
    Xoshiro256PlusPlus::seed_from_u64(salt ^ number)
}

/// Plays a random legal move, if one exists.
pub(crate) fn play_random(game: &mut Game, random: &mut impl Rng) {
    if let Some(&mv) = game.position().legal_moves().choose(random) {
        game.play(mv);
    }
}

/// Returns a game that begins at the position on a line of FEN or EPD.
///
/// # Errors
/// [`FenError`] if the line is neither FEN nor EPD.
pub(crate) fn position(line: &[u8]) -> Result<Game, FenError> {
    let line = String::from_utf8_lossy(line);
    Game::from_fen(&epd::split(&line).0, CastlingMode::Standard)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shakmaty::Position;
    use std::io::{Cursor, Write};
    use std::path::Path;

    const EPD: &str = "# a comment\n\
        4k3/8/8/8/8/8/4P3/4K3 w - - hmvc 0; fmvn 1;\n\n\
        4k3/4p3/8/8/8/8/8/4K3 b - - bm e5;\r\n\
        r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 3 40\n";

    fn book(name: &str, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        (folder, path)
    }

    fn open(path: &Path, random_plies: u32, seed: u64) -> Result<Openings, OpeningsError> {
        Openings::open(&[path.to_owned().into()], random_plies, seed)
    }

    fn fens(openings: &Openings, numbers: std::ops::Range<u64>) -> Vec<String> {
        let fen = |number| {
            let game = openings.game(number).unwrap();
            fen(game.position())
        };
        numbers.map(fen).collect()
    }

    #[test]
    fn books_of_all_kinds_hold_the_same() {
        let (_folder, plain) = book("a.epd", EPD.as_bytes());
        let openings = open(&plain, 0, 5).unwrap();
        let expected = fens(&openings, 0..6);
        assert_eq!(expected[..3], expected[3..]);
        assert!(expected.contains(&"r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 3 40".to_owned()));
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(EPD.as_bytes()).unwrap();
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (name, text) in [("LICENSE", "none"), ("book.epd", EPD)] {
            zip.start_file(name, zip::write::FileOptions::default())
                .unwrap();
            zip.write_all(text.as_bytes()).unwrap();
        }
        let marked = format!("\u{feff}{EPD}");
        for packed in [
            marked.into_bytes(),
            gzip.finish().unwrap(),
            zstd::bulk::compress(EPD.as_bytes(), 1).unwrap(),
            zip.finish().unwrap().into_inner(),
        ] {
            let (_folder, path) = book("packed", &packed);
            let openings = open(&path, 0, 5).unwrap();
            assert_eq!(fens(&openings, 0..6), expected);
        }
    }

    #[test]
    fn games_are_openings_with_their_moves() {
        let (_folder, path) = book("a.pgn", b"[Event \"a\"]\n\n1. e4 e5 (1... c5) 2. Nf3 *\n");
        let game = open(&path, 2, 0).unwrap().game(7).unwrap();
        assert!(game.from_initial_position());
        assert_eq!(game.plies().len(), 1 + 3 + 2);
    }

    #[test]
    fn random_moves_depend_on_seed_and_number_alone() {
        let openings = Openings::open(&[], 8, 1).unwrap();
        let drawn = fens(&openings, 0..20);
        assert_eq!(drawn, fens(&openings, 0..20));
        let others = Openings::open(&[], 8, 2).unwrap();
        assert_ne!(drawn, fens(&others, 0..20));
        let distinct: std::collections::HashSet<_> = drawn.iter().collect();
        assert!(distinct.len() > 15);
    }

    #[test]
    fn names_unplayable_openings() {
        let (_folder, path) = book("a.epd", b"\nnonsense\n");
        let error = open(&path, 0, 0).unwrap().game(0).unwrap_err();
        assert!(
            error.to_string().contains("a.epd, position 1: `nonsense`"),
            "{error}"
        );
        let games = b"1. e4 e5 1-0 1. d4 Ke7 1-0";
        let (_folder, path) = book("a.pgn", games);
        let errors = (0..2).filter_map(|number| open(&path, 0, 0).unwrap().game(number).err());
        let errors: Vec<_> = errors.map(|error| error.to_string()).collect();
        assert!(
            errors.len() == 1 && errors[0].contains("a.pgn, game 2, line 1: `Ke7` at ply 2"),
            "{errors:?}"
        );
        let (_folder, path) = book("b.epd", b"7k/5Q2/8/8/8/8/8/K7 b - - 0 1");
        let stalemate = open(&path, 0, 0).unwrap();
        let error = stalemate.game(0).unwrap_err();
        assert!(error.to_string().contains("the game is over"));
        let (_folder, path) = book("c.epd", b"# nothing");
        assert!(matches!(
            open(&path, 0, 0),
            Err(OpeningsError::Empty { .. })
        ));
        // Black has to capture the queen, after which only the kings are left.
        let (_folder, path) = book("d.epd", b"7k/6Q1/8/8/8/8/8/K7 b - - 0 1");
        let error = open(&path, 3, 0).unwrap().game(0).unwrap_err();
        assert!(matches!(error, OpeningsError::Random { .. }));
    }

    /// A game of pawn moves that ends in mate, and a game too short to be cut late.
    const GAMES: &[u8] =
        b"[Event \"a\"]\n\n1. a3 e6 2. b3 a6 3. c3 b6 4. f3 c6 5. g4 Qh4# 0-1\n\n[Event \"b\"]\n\n1. d3 d6 1/2-1/2\n";

    #[test]
    fn games_are_cut_where_it_is_drawn() {
        let (_folder, path) = book("a.pgn", GAMES);
        let cut = |first, last| BookOptions {
            cut: Some((first, last)),
            ..path.clone().into()
        };
        let openings = Openings::open(&[cut(3, 30)], 0, 1).unwrap();
        assert_eq!(openings.to_string(), "from a.pgn cut 3..30");
        let mut lengths = [0; 11];
        for number in 0..400 {
            lengths[openings.game(number).unwrap().plies().len() - 1] += 1;
        }
        // The short game is cut before its last move, and the long one anywhere between ply 3 and
        // the move before mate.
        assert_eq!(lengths[1], 200);
        assert!(
            lengths[3..=9].iter().all(|&count| count > 10),
            "{lengths:?}"
        );
        assert_eq!(
            lengths.iter().sum::<u32>(),
            200 + lengths[3..=9].iter().sum::<u32>()
        );
        let again = Openings::open(&[cut(3, 30)], 0, 1).unwrap();
        assert_eq!(fens(&openings, 0..50), fens(&again, 0..50));
        let (_folder, positions) = book("a.epd", EPD.as_bytes());
        let uncut = Openings::open(
            &[BookOptions {
                cut: Some((1, 2)),
                ..positions.into()
            }],
            0,
            1,
        );
        assert!(matches!(uncut, Err(OpeningsError::Cut { .. })));
    }

    #[test]
    fn books_have_their_shares() {
        let (_first, games) = book("a.pgn", GAMES);
        let (_second, positions) = book("b.epd", b"4k3/8/8/8/8/8/4P3/4K3 w - - 0 1");
        let books = [
            games.into(),
            BookOptions {
                share: 3.0,
                ..positions.into()
            },
        ];
        // The first game in a.pgn is over after its last move.
        let openings = Openings::open(&books, 0, 4).unwrap();
        assert_eq!(openings.to_string(), "from a.pgn, b.epd share 3");
        let of_positions = |number: &u64| {
            let game = openings.game(*number);
            game.is_ok_and(|game| game.position().board().occupied().count() == 3)
        };
        let first: Vec<u64> = (0..1000).filter(of_positions).collect();
        assert!((700..800).contains(&first.len()), "{}", first.len());
        let again: Vec<u64> = (0..1000).filter(of_positions).collect();
        assert_eq!(first, again);
    }
}
