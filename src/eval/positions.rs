//! The positions of test sets of every kind, to be excluded from training.

use super::{SuiteError, lines, puzzles, text_of};
use crate::chess::{Game, epd};
use crate::packed;
use shakmaty::CastlingMode;
use std::path::Path;

/// Number of bytes in which to look for the first line.
const START: usize = 4096;

/// Reads positions from a file that may be compressed with gzip or zstd: the positions to solve in
/// puzzles (CSV in Lichess's format), or the positions on lines of FEN or EPD. Also returns the
/// errors of unusable rows and lines.
///
/// # Errors
/// [`SuiteError`] if the file contains no position.
pub fn read(path: &Path) -> Result<(Vec<Game>, Vec<SuiteError>), SuiteError> {
    let failed = SuiteError::read(path);
    let stream = packed::open(path, |file| file).map_err(&failed)?;
    let (start, stream) = packed::peek(stream, START);
    if is_table(&String::from_utf8_lossy(&start)) {
        let (puzzles, refused) = puzzles::parse(stream, path)?;
        let positions = puzzles.iter().flat_map(puzzles::Puzzle::positions);
        return Ok((positions.collect(), refused));
    }
    let text = text_of(stream).map_err(failed)?;
    let (mut positions, mut refused) = (Vec::new(), Vec::new());
    for (line, text) in lines(&text) {
        match Game::from_fen(&epd::split(text).0, CastlingMode::Standard) {
            Ok(game) => positions.push(game),
            Err(error) => refused.push(SuiteError::line(path, line, error)),
        }
    }
    super::usable(positions, refused, path)
}

/// Returns whether a text begins with column names, which, unlike a position's board, contain no
/// slashes.
fn is_table(text: &str) -> bool {
    let first = lines(text).next();
    first.is_some_and(|(_, line)| line.contains(',') && !line.contains('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUZZLES: &str = "PuzzleId,FEN,Moves,Rating\n\
        a,6rk/p1b2p1p/5Pr1/q7/2p1N2Q/7R/P1P4P/R6K b - - 7 31,h7h6 h4h6 g6h6 h3h6,438\n\
        b,6k1/2p2ppp/8/8/8/8/5PPP/QR4K1 b - - 0 1,c7c6 b1b8,\n";
    const SUITE: &str = "# positions\n\n4k3/8/8/8/8/8/8/4K2R w K - bm Ke5;\n\
        4k3/8/8/8/8/8/8/4K2R b K - 3 40\n4k3/8/8/8/8/8/8/4K2R w K - id \"a, b\"; dm x;\nnonsense\n";

    fn read_text(text: &[u8]) -> Result<(Vec<Game>, Vec<SuiteError>), SuiteError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, text).unwrap();
        read(&path)
    }

    #[test]
    fn positions_count_whatever_they_ask() {
        for (text, positions, refused) in [
            (PUZZLES, 2, vec!["line 3: the column `Rating` is empty"]),
            (SUITE, 3, vec!["line 6: `nonsense` is not a FEN"]),
            ("\u{feff}4k3/8/8/8/8/8/8/4K2R w K -", 1, vec![]),
        ] {
            for text in [
                text.as_bytes().to_vec(),
                zstd::bulk::compress(text.as_bytes(), 1).unwrap(),
            ] {
                let (read, faults) = read_text(&text).unwrap();
                assert_eq!(read.len(), positions);
                assert_eq!(faults.len(), refused.len());
                for (fault, expected) in faults.iter().zip(&refused) {
                    assert!(fault.to_string().contains(expected), "{fault}");
                }
            }
        }
    }

    #[test]
    fn without_a_position_the_reason_is_told() {
        for (text, reason) in [
            (&b""[..], "holds no position"),
            (b"nonsense", "line 1: `nonsense` is not a FEN"),
            (b"a,b,c\n1,2,3", "line 1: the column `PuzzleId` is missing"),
            (b"\xff\xfe4\0", "UTF-16"),
        ] {
            let error = read_text(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
