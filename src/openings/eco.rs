//! Named openings from the table of lichess-org/chess-openings, which uses the codes of the
//! Encyclopaedia of Chess Openings.

use super::OpeningsError;
use crate::bounded::LARGEST_TEXT;
use crate::chess::Game;
use crate::data::pgn::parse_game;
use crate::data::replay::main_line;
use serde::Deserialize;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A line of the table.
#[derive(Debug, Deserialize)]
struct Row {
    /// The code: a letter and two digits.
    eco: String,
    /// The moves from the initial position.
    pgn: String,
}

/// Returns whether a text is a code: a letter from A to E and two digits.
pub fn is_eco(code: &str) -> bool {
    matches!(code.as_bytes(), [b'A'..=b'E', tens, units]
        if tens.is_ascii_digit() && units.is_ascii_digit())
}

/// Returns the openings with this code, in table order. The code's letter selects the file in
/// `folder` from which they are read, `a.tsv` to `e.tsv`.
///
/// # Errors
/// [`OpeningsError`] if the file cannot be read, has an invalid line, or lacks the code.
pub fn eco_openings(folder: &Path, code: &str) -> Result<Vec<Game>, OpeningsError> {
    let letter = code.chars().next().unwrap_or('a').to_ascii_lowercase();
    let path = folder.join(format!("{letter}.tsv"));
    let file = File::open(&path).map_err(|source| OpeningsError::Read {
        path: path.clone(),
        source,
    })?;
    let mut rows = csv::ReaderBuilder::new()
        .delimiter(b'\t')
        .from_reader(file.take(LARGEST_TEXT));
    let mut games = Vec::new();
    for (number, row) in (1..).zip(rows.deserialize()) {
        let wrong = |reason: String| OpeningsError::Opening {
            path: path.clone(),
            place: format!("number {number}"),
            reason,
        };
        let row: Row = row.map_err(|error| wrong(error.to_string()))?;
        if row.eco == code {
            let record = parse_game(row.pgn.as_bytes());
            let record = record.map_err(|error| wrong(error.to_string()))?;
            games.push(main_line(&record).map_err(|error| wrong(error.to_string()))?);
        }
    }
    match games.is_empty() {
        true => Err(OpeningsError::Unnamed {
            path,
            code: code.to_owned(),
        }),
        false => Ok(games),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(text: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("b.tsv"), text).unwrap();
        folder
    }

    #[test]
    fn openings_are_found_by_their_code() {
        let table = "eco\tname\tpgn\nB00\tOwen \"Defense\"\t1. e4 b6\n\
                     B01\tScandinavian\t1. e4 d5\nB00\tPirc\t1. e4 d6 2. d4 Nf6\n";
        // Spreadsheets write a byte-order mark before the table.
        let folder = folder(&format!("\u{feff}{table}"));
        let found = eco_openings(folder.path(), "B00").unwrap();
        let plies: Vec<usize> = found.iter().map(|game| game.plies().len() - 1).collect();
        assert_eq!(plies, [2, 4]);
        let error = eco_openings(folder.path(), "B02").unwrap_err().to_string();
        assert!(error.contains("b.tsv") && error.contains("B02"), "{error}");
        assert!(matches!(
            eco_openings(folder.path(), "C00"),
            Err(OpeningsError::Read { .. })
        ));
    }

    #[test]
    fn names_the_line_of_a_damaged_table() {
        for text in ["", "eco\tname\n", "eco\tname\tpgn\nB00\tx\t1. e5\n"] {
            let folder = folder(text);
            assert!(eco_openings(folder.path(), "B00").is_err(), "{text:?}");
        }
        let cut = folder("eco\tname\tpgn\nB00\tx\t1. e4\nB00\n");
        let error = eco_openings(cut.path(), "B00").unwrap_err().to_string();
        assert!(error.contains("number 2"), "{error}");
    }

    #[test]
    fn codes_are_letters_and_digits() {
        assert!(["A00", "E99", "B90"].into_iter().all(is_eco));
        assert!(
            !["", "F00", "b90", "B9", "B900", "../A", "Bé"]
                .into_iter()
                .any(is_eco)
        );
    }
}
