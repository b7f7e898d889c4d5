//! A single book of openings: lines of FEN or EPD, or games in PGN.

use super::{OpeningsError, position};
use crate::bounded::LARGEST_TEXT;
use crate::chess::Game;
use crate::data::pgn::{GameText, Games, parse_game};
use crate::data::replay::main_line;
use crate::packed::{self, Stream};
use rand::Rng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use serde::Deserialize;
use std::fmt;
use std::io::{self, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use zip::ZipArchive;

/// The first bytes of zip archives.
const ZIP: [u8; 4] = *b"PK\x03\x04";

/// A book, and how openings are taken from it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BookOptions {
    /// The path of a file with lines of FEN or EPD, or games in PGN; plain, or compressed as gzip,
    /// zstd or zip.
    pub path: PathBuf,
    /// Share of the games that begin in this book, relative to the shares of the other books;
    /// positive.
    #[serde(default = "one")]
    pub share: f64,
    /// The range of plies, with both ends included, from which the cut of each PGN game is sampled.
    /// `None` plays all moves of each game.
    pub cut: Option<(usize, usize)>,
}

fn one() -> f64 {
    1.0
}

impl From<PathBuf> for BookOptions {
    /// Uses the whole book, with a share of 1.
    fn from(path: PathBuf) -> BookOptions {
        BookOptions {
            path,
            share: one(),
            cut: None,
        }
    }
}

impl fmt::Display for BookOptions {
    /// Describes the book by its file name and any settings that differ from the defaults.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        write!(formatter, "{}", name.to_string_lossy())?;
        if self.share != 1.0 {
            write!(formatter, " share {}", self.share)?;
        }
        match self.cut {
            Some((first, last)) => write!(formatter, " cut {first}..{last}"),
            None => Ok(()),
        }
    }
}

/// The openings of a book, in an order determined by the seed.
#[derive(Debug)]
pub(super) struct Book {
    pub(super) options: BookOptions,
    texts: Texts,
    order: Vec<usize>,
}

/// The texts of a book; there is at least one.
#[derive(Debug)]
enum Texts {
    /// Lines of FEN or EPD.
    Positions(Vec<Vec<u8>>),
    Games(Vec<GameText>),
}

impl Texts {
    fn len(&self) -> usize {
        match self {
            Texts::Positions(lines) => lines.len(),
            Texts::Games(games) => games.len(),
        }
    }

    fn place(&self, index: usize) -> String {
        match self {
            Texts::Positions(_) => format!("position {}", index + 1),
            Texts::Games(games) => games[index].place.to_string(),
        }
    }

    fn read(&self, index: usize) -> Result<Game, String> {
        match self {
            Texts::Positions(lines) => position(&lines[index]).map_err(|error| error.to_string()),
            Texts::Games(games) => {
                let record = parse_game(&games[index]).map_err(|error| error.to_string())?;
                main_line(&record).map_err(|error| error.to_string())
            }
        }
    }
}

impl Book {
    /// Reads a book.
    ///
    /// # Errors
    /// [`OpeningsError`] if the book cannot be read, contains nothing, or contains positions
    /// although a cut is requested.
    pub(super) fn open(options: BookOptions, seed: u64) -> Result<Book, OpeningsError> {
        let path = || options.path.clone();
        let read = |source| OpeningsError::Read {
            path: path(),
            source,
        };
        let text = open(&options.path)
            .and_then(|text| packed::read_all(text, LARGEST_TEXT))
            .map_err(read)?;
        let is_pgn = is_pgn(&text);
        if options.cut.is_some() && !is_pgn {
            return Err(OpeningsError::Cut { path: path() });
        }
        let texts = match is_pgn {
            true => {
                let games: io::Result<_> = Games::new(text.as_slice()).collect();
                Texts::Games(games.map_err(read)?)
            }
            false => Texts::Positions(positions(&text).map(<[u8]>::to_vec).collect()),
        };
        if texts.len() == 0 {
            return Err(OpeningsError::Empty { path: path() });
        }
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
        Ok(Book {
            options,
            texts,
            order,
        })
    }

    /// Returns the opening of a game; the book starts over after its last opening.
    ///
    /// # Errors
    /// [`OpeningsError::Opening`] if the opening is not a playable position.
    pub(super) fn game(&self, number: u64, random: &mut impl Rng) -> Result<Game, OpeningsError> {
        let index = self.order[(number % self.order.len() as u64) as usize];
        self.read(index, random)
            .map_err(|reason| OpeningsError::Opening {
                path: self.options.path.clone(),
                place: self.texts.place(index),
                reason,
            })
    }

    fn read(&self, index: usize, random: &mut impl Rng) -> Result<Game, String> {
        let mut game = self.texts.read(index)?;
        if let Some((first, last)) = self.options.cut {
            // The last move of a game may have ended it.
            let longest = game.plies().len().saturating_sub(2);
            let last = last.min(longest);
            let ply = random.random_range(first.min(last)..=last);
            game.truncate(ply + 1);
            // The game passed through a draw that nobody claimed.
            while game.ending().is_some() && game.plies().len() > 1 {
                game.undo();
            }
        }
        match game.ending() {
            None => Ok(game),
            Some(_) => Err("the game is over".to_owned()),
        }
    }
}

/// Opens the text of a file of openings or positions: plain, or compressed as gzip, zstd or zip. In
/// a zip archive, the text is the first file with openings or positions. The text is read once,
/// from front to back.
///
/// # Errors
/// The error of the system or the decompressor, or an error if the file is a folder, in UTF-16, or
/// a zip larger than [`LARGEST_TEXT`] when unpacked.
pub(crate) fn open(path: &Path) -> io::Result<Stream> {
    open_within(path, LARGEST_TEXT)
}

/// Opens a text like [`open`], with a limit on its unzipped size in bytes.
fn open_within(path: &Path, most: u64) -> io::Result<Stream> {
    let file = BufReader::with_capacity(packed::BUFFER, packed::open_file(path)?);
    let (magic, stream) = packed::peek(file, ZIP.len());
    packed::text(match magic == ZIP {
        true => Box::new(Cursor::new(unzip(stream, most)?)),
        false => packed::unpack(stream)?,
    })
}

/// Returns the first usable file in a zip archive.
fn unzip(stream: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut archive = ZipArchive::new(Cursor::new(packed::read_all(stream, most)?))?;
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
    packed::read_all(archive.by_name(&name)?, most)
}

/// Returns whether a text with this beginning contains games rather than positions.
pub(crate) fn is_pgn(text: &[u8]) -> bool {
    let lines = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let mut telling = lines.filter_map(|line| match line {
        [b'{' | b'%', ..] => Some(true),
        [b'[', letter, ..] if letter.is_ascii_alphabetic() => Some(true),
        line if line.starts_with(b"1.") => Some(true),
        line => is_board(line).then_some(false),
    });
    telling.next().unwrap_or(false)
}

/// Returns whether a line begins with the eight ranks of a board.
fn is_board(line: &[u8]) -> bool {
    let first = line.split(u8::is_ascii_whitespace).next();
    first.is_some_and(|board| board.iter().filter(|&&byte| byte == b'/').count() == 7)
}

/// Returns the lines of a text that contain positions.
pub(crate) fn positions(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    lines.filter(|line| !line.is_empty() && !line.starts_with(b"#"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::write::GzEncoder;
    use std::io::Write;

    #[test]
    fn games_are_told_from_positions() {
        for games in [
            "[White \"a\"]",
            "\n# a\n 1. e4 e5",
            "{a game\nof} 1. e4",
            "% escaped\ne4 e5",
            "\n1.e4",
        ] {
            assert!(is_pgn(games.as_bytes()), "{games}");
        }
        for positions in [
            "",
            "nonsense",
            "# a\n4k3/8/8/8/8/8/8/4K2R w K - id \"a\";\n[a]\n",
            "nonsense\n4k3/8/8/8/8/8/8/4K2R w K -\n1. e4",
        ] {
            assert!(!is_pgn(positions.as_bytes()), "{positions}");
        }
    }

    #[test]
    fn books_that_unpack_to_too_much_are_refused() {
        let zeros = vec![0; 4 << 20];
        let mut gzip = GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&zeros).unwrap();
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        zip.start_file("a.epd", zip::write::FileOptions::default())
            .unwrap();
        zip.write_all(&zeros).unwrap();
        for bomb in [
            gzip.finish().unwrap(),
            zstd::bulk::compress(&zeros, 1).unwrap(),
            zip.finish().unwrap().into_inner(),
        ] {
            assert!(bomb.len() < 1 << 20);
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("bomb");
            std::fs::write(&path, bomb).unwrap();
            let read =
                |most| open_within(&path, most).and_then(|text| packed::read_all(text, most));
            assert_eq!(read(4 << 20).unwrap(), zeros);
            let error = read(3 << 20).unwrap_err();
            assert_eq!(error.to_string(), "the content is larger than 3 MiB");
        }
    }
}
