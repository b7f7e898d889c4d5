//! Where games begin: books of openings and random moves.

use crate::chess::{FenError, Game};
use crate::data::pgn::{Games, parse_game};
use crate::data::replay::own_line;
use crate::eval::epd;
use flate2::read::MultiGzDecoder;
use rand::Rng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use shakmaty::fen::Fen;
use shakmaty::{CastlingMode, EnPassantMode, Position};
use std::fmt;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use zip::ZipArchive;

/// Draws of random moves before a position is given up from which nearly all
/// end the game.
const ATTEMPTS: usize = 100;
/// How zip archives begin.
const ZIP: [u8; 4] = *b"PK\x03\x04";

/// Why there is no opening.
#[derive(Debug, thiserror::Error)]
pub enum OpeningsError {
    /// The book cannot be read.
    #[error("cannot read the openings {}: {source}", path.display())]
    Read {
        /// The book.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The book holds nothing.
    #[error("the openings {} are empty: they must be FEN, EPD or PGN", path.display())]
    Empty {
        /// The book.
        path: PathBuf,
    },
    /// An opening is no position.
    #[error("openings {}, number {number}: {reason}", path.display())]
    Opening {
        /// The book.
        path: PathBuf,
        /// Which one of it, from 1.
        number: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// Too many random moves for the position.
    #[error("{plies} random plies end the game from `{fen}`")]
    Random {
        /// How many there were to be.
        plies: u32,
        /// Where they begin.
        fen: String,
    },
}

/// Openings in an order that the seed decides, each with random moves after it.
#[derive(Debug)]
pub struct Openings {
    path: PathBuf,
    /// Lines of EPD or whole games; none stands for the initial position.
    texts: Vec<Vec<u8>>,
    order: Vec<usize>,
    is_pgn: bool,
    random_plies: u32,
    seed: u64,
}

impl fmt::Display for Openings {
    /// The book and the random moves.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.file_name() {
            Some(name) => write!(formatter, "from {}", name.to_string_lossy())?,
            None => write!(formatter, "from the initial position")?,
        }
        match self.random_plies {
            0 => Ok(()),
            plies => write!(formatter, ", {plies} random plies"),
        }
    }
}

impl Openings {
    /// Openings from a book: FEN or EPD lines, or PGN, where every game's moves
    /// are one; plain, or compressed as gzip, zstd or zip. Without a book, the
    /// initial position. `random_plies` random moves follow.
    ///
    /// # Errors
    /// [`OpeningsError`] if the book cannot be read or holds nothing.
    pub fn open(
        book: Option<&Path>,
        random_plies: u32,
        seed: u64,
    ) -> Result<Openings, OpeningsError> {
        let mut openings = Openings {
            path: book.unwrap_or(Path::new("")).to_owned(),
            texts: Vec::new(),
            order: Vec::new(),
            is_pgn: false,
            random_plies,
            seed,
        };
        let Some(book) = book else {
            return Ok(openings);
        };
        let read = |source| OpeningsError::Read {
            path: book.to_owned(),
            source,
        };
        let text = text(book).map_err(read)?;
        openings.is_pgn = is_pgn(&text);
        openings.texts = match openings.is_pgn {
            true => Games::new(text.as_slice())
                .collect::<Result<_, _>>()
                .map_err(read)?,
            false => positions(&text).map(<[u8]>::to_vec).collect(),
        };
        if openings.texts.is_empty() {
            let path = book.to_owned();
            return Err(OpeningsError::Empty { path });
        }
        openings.order = (0..openings.texts.len()).collect();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        openings.order.shuffle(&mut random);
        Ok(openings)
    }

    /// The opening of a game; begins again after the last of the book.
    ///
    /// # Errors
    /// [`OpeningsError`] if it is no position to play from.
    pub fn game(&self, number: u64) -> Result<Game, OpeningsError> {
        let book = match self.order.len() as u64 {
            0 => Game::default(),
            length => {
                let index = self.order[(number % length) as usize];
                self.read(index).map_err(|reason| OpeningsError::Opening {
                    path: self.path.clone(),
                    number: index + 1,
                    reason,
                })?
            }
        };
        // Apart from what is drawn later in the same game.
        let mut random = generator(!self.seed, number);
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
            fen: Fen::from_position(book.position(), EnPassantMode::Legal).to_string(),
        })
    }

    fn read(&self, index: usize) -> Result<Game, String> {
        let text = &self.texts[index];
        let game = if self.is_pgn {
            let record = parse_game(text).map_err(|error| error.to_string())?;
            own_line(&record).map_err(|error| error.to_string())?
        } else {
            position(text).map_err(|error| error.to_string())?
        };
        match game.ending() {
            None => Ok(game),
            Some(_) => Err("the game is over there".to_owned()),
        }
    }
}

/// The generator of what is drawn in a game, apart from that of other games.
#[must_use]
pub fn generator(seed: u64, number: u64) -> Xoshiro256PlusPlus {
    let salt = Xoshiro256PlusPlus::seed_from_u64(seed).next_u64();
    Xoshiro256PlusPlus::seed_from_u64(salt ^ number)
}

/// Plays a random legal move; without one, does nothing.
pub(crate) fn play_random(game: &mut Game, random: &mut impl Rng) {
    if let Some(&mv) = game.position().legal_moves().choose(random) {
        game.play(mv);
    }
}

/// The text of a file of openings or positions: plain, or compressed as gzip,
/// zstd or, its first file of these kinds, zip.
///
/// # Errors
/// What the system or the decompressor says.
pub(crate) fn text(path: &Path) -> io::Result<Vec<u8>> {
    let packed = std::fs::read(path)?;
    let mut text = Vec::new();
    if packed.starts_with(&[0x1f, 0x8b]) {
        MultiGzDecoder::new(packed.as_slice()).read_to_end(&mut text)?;
    } else if packed.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        zstd::Decoder::new(packed.as_slice())?.read_to_end(&mut text)?;
    } else if packed.starts_with(&ZIP) {
        let mut archive = ZipArchive::new(Cursor::new(packed.as_slice()))?;
        let is_of_use = |name: &str| {
            let name = name.to_ascii_lowercase();
            [".epd", ".fen", ".pgn"]
                .iter()
                .any(|kind| name.ends_with(kind))
        };
        let name = archive.file_names().find(|name| is_of_use(name));
        let name = name
            .map(str::to_owned)
            .ok_or_else(|| io::Error::other("the archive holds no .epd, .fen or .pgn file"))?;
        archive.by_name(&name)?.read_to_end(&mut text)?;
    } else {
        text = packed;
    }
    Ok(text)
}

/// Whether a file is a zip archive.
pub(crate) fn is_zip(path: &Path) -> io::Result<bool> {
    let mut magic = Vec::new();
    File::open(path)?.take(4).read_to_end(&mut magic)?;
    Ok(magic == ZIP)
}

/// Whether the text is of games rather than of positions.
pub(crate) fn is_pgn(text: &[u8]) -> bool {
    let mut lines = text.split(|&byte| byte == b'\n');
    lines.any(|line| line.starts_with(b"[Event ") || line.starts_with(b"1."))
}

/// The lines of the text that hold positions.
pub(crate) fn positions(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    lines.filter(|line| !line.is_empty() && !line.starts_with(b"#"))
}

/// The game that begins at the position of a line of FEN or EPD.
///
/// # Errors
/// [`FenError`] if the line is none.
pub(crate) fn position(line: &[u8]) -> Result<Game, FenError> {
    let line = String::from_utf8_lossy(line);
    Game::from_fen(&epd::fen(&line), CastlingMode::Standard)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

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

    fn fens(openings: &Openings, numbers: std::ops::Range<u64>) -> Vec<String> {
        let fen = |number| {
            let game = openings.game(number).unwrap();
            Fen::from_position(game.position(), EnPassantMode::Legal).to_string()
        };
        numbers.map(fen).collect()
    }

    #[test]
    fn books_of_all_kinds_hold_the_same() {
        let (_folder, plain) = book("a.epd", EPD.as_bytes());
        let openings = Openings::open(Some(&plain), 0, 5).unwrap();
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
        for packed in [
            gzip.finish().unwrap(),
            zstd::bulk::compress(EPD.as_bytes(), 1).unwrap(),
            zip.finish().unwrap().into_inner(),
        ] {
            let (_folder, path) = book("packed", &packed);
            let openings = Openings::open(Some(&path), 0, 5).unwrap();
            assert_eq!(fens(&openings, 0..6), expected);
        }
    }

    #[test]
    fn games_are_openings_with_their_moves() {
        let (_folder, path) = book("a.pgn", b"[Event \"a\"]\n\n1. e4 e5 (1... c5) 2. Nf3 *\n");
        let game = Openings::open(Some(&path), 2, 0).unwrap().game(7).unwrap();
        assert!(game.from_initial_position());
        assert_eq!(game.plies().len(), 1 + 3 + 2);
    }

    #[test]
    fn random_moves_depend_on_seed_and_number_alone() {
        let openings = Openings::open(None, 8, 1).unwrap();
        let drawn = fens(&openings, 0..20);
        assert_eq!(drawn, fens(&openings, 0..20));
        let others = Openings::open(None, 8, 2).unwrap();
        assert_ne!(drawn, fens(&others, 0..20));
        let distinct: std::collections::HashSet<_> = drawn.iter().collect();
        assert!(distinct.len() > 15);
    }

    #[test]
    fn what_cannot_be_played_from_is_named() {
        let (_folder, path) = book("a.epd", b"\nnonsense\n");
        let error = Openings::open(Some(&path), 0, 0)
            .unwrap()
            .game(0)
            .unwrap_err();
        assert!(
            error.to_string().contains("a.epd, number 1: `nonsense`"),
            "{error}"
        );
        let (_folder, path) = book("b.epd", b"7k/5Q2/8/8/8/8/8/K7 b - - 0 1");
        let stalemate = Openings::open(Some(&path), 0, 0).unwrap();
        let error = stalemate.game(0).unwrap_err();
        assert!(error.to_string().contains("the game is over there"));
        let (_folder, path) = book("c.epd", b"# nothing");
        assert!(matches!(
            Openings::open(Some(&path), 0, 0),
            Err(OpeningsError::Empty { .. })
        ));
        // Black must take the queen: then only the kings are left.
        let (_folder, path) = book("d.epd", b"7k/6Q1/8/8/8/8/8/K7 b - - 0 1");
        let error = Openings::open(Some(&path), 3, 0)
            .unwrap()
            .game(0)
            .unwrap_err();
        assert!(matches!(error, OpeningsError::Random { .. }));
    }
}
