//! One book of openings: lines of FEN or EPD, or games in PGN.

use super::{OpeningsError, position};
use crate::bounded::{self, LARGEST_TEXT, Limited};
use crate::chess::Game;
use crate::data::pgn::{Games, parse_game};
use crate::data::replay::main_line;
use flate2::read::MultiGzDecoder;
use rand::Rng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use std::fmt;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use zip::ZipArchive;

/// How zip archives begin.
const ZIP: [u8; 4] = *b"PK\x03\x04";

/// A book, and how openings are taken from it.
#[derive(Clone, Debug, PartialEq)]
pub struct BookOptions {
    /// FEN or EPD lines, or PGN; plain, or compressed as gzip, zstd or zip.
    pub path: PathBuf,
    /// Games that begin in this book, in proportion to the shares of the
    /// others; positive.
    pub share: f64,
    /// Cuts each of a PGN's games at a ply drawn between these two, both
    /// included. `None` plays all its moves.
    pub cut: Option<(usize, usize)>,
}

impl From<PathBuf> for BookOptions {
    /// The whole book, with a share of 1.
    fn from(path: PathBuf) -> BookOptions {
        BookOptions {
            path,
            share: 1.0,
            cut: None,
        }
    }
}

impl fmt::Display for BookOptions {
    /// The file's name, and what else is not as usual.
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

/// The openings of a book, in an order that the seed decides.
#[derive(Debug)]
pub(super) struct Book {
    pub(super) options: BookOptions,
    /// Lines of EPD or whole games; never empty.
    texts: Vec<Vec<u8>>,
    order: Vec<usize>,
    is_pgn: bool,
}

impl Book {
    /// Reads a book.
    ///
    /// # Errors
    /// [`OpeningsError`] if it cannot be read, holds nothing, or holds
    /// positions that are to be cut.
    pub(super) fn open(options: BookOptions, seed: u64) -> Result<Book, OpeningsError> {
        let path = || options.path.clone();
        let read = |source| OpeningsError::Read {
            path: path(),
            source,
        };
        let text = text(&options.path).map_err(read)?;
        let is_pgn = is_pgn(&text);
        if options.cut.is_some() && !is_pgn {
            return Err(OpeningsError::Cut { path: path() });
        }
        let texts: Vec<Vec<u8>> = match is_pgn {
            true => Games::new(text.as_slice())
                .collect::<Result<_, _>>()
                .map_err(read)?,
            false => positions(&text).map(<[u8]>::to_vec).collect(),
        };
        if texts.is_empty() {
            return Err(OpeningsError::Empty { path: path() });
        }
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
        Ok(Book {
            options,
            texts,
            order,
            is_pgn,
        })
    }

    /// The opening of a game; begins again after the last of the book.
    ///
    /// # Errors
    /// [`OpeningsError::Opening`] if it is no position to play from.
    pub(super) fn game(&self, number: u64, random: &mut impl Rng) -> Result<Game, OpeningsError> {
        let index = self.order[(number % self.order.len() as u64) as usize];
        self.read(index, random)
            .map_err(|reason| OpeningsError::Opening {
                path: self.options.path.clone(),
                number: index + 1,
                reason,
            })
    }

    fn read(&self, index: usize, random: &mut impl Rng) -> Result<Game, String> {
        let text = &self.texts[index];
        let mut game = if self.is_pgn {
            let record = parse_game(text).map_err(|error| error.to_string())?;
            main_line(&record).map_err(|error| error.to_string())?
        } else {
            position(text).map_err(|error| error.to_string())?
        };
        if let Some((first, last)) = self.options.cut {
            // The last move of a game may have ended it.
            let longest = game.plies().len().saturating_sub(2);
            let last = last.min(longest);
            let ply = random.random_range(first.min(last)..=last);
            game.truncate(ply + 1);
            // A draw that nobody claimed.
            while game.ending().is_some() && game.plies().len() > 1 {
                game.undo();
            }
        }
        match game.ending() {
            None => Ok(game),
            Some(_) => Err("the game is over there".to_owned()),
        }
    }
}

/// The text of a file of openings or positions: plain, or compressed as gzip,
/// zstd or, its first file of these kinds, zip.
///
/// # Errors
/// What the system or the decompressor says; or that it is larger than
/// [`LARGEST_TEXT`].
pub(crate) fn text(path: &Path) -> io::Result<Vec<u8>> {
    text_within(path, LARGEST_TEXT)
}

/// [`text`] of at most so many bytes.
fn text_within(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let packed = bounded::read(path, most)?;
    let mut text = Vec::new();
    if packed.starts_with(&[0x1f, 0x8b]) {
        Limited::new(MultiGzDecoder::new(packed.as_slice()), most).read_to_end(&mut text)?;
    } else if packed.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        Limited::new(zstd::Decoder::new(packed.as_slice())?, most).read_to_end(&mut text)?;
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
        Limited::new(archive.by_name(&name)?, most).read_to_end(&mut text)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::write::GzEncoder;
    use std::io::Write;

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
            assert_eq!(text_within(&path, 4 << 20).unwrap(), zeros);
            let error = text_within(&path, 3 << 20).unwrap_err();
            assert_eq!(error.to_string(), "the content is larger than 3 MiB");
        }
    }
}
