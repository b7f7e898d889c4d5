//! A file of games that grows over hours and stays intact if its writer is killed.
//!
//! Each finished game is appended to `NAME.part` in one write, with its number in a tag, so that
//! the file is valid PGN at any time. After the last game, all games are written to `NAME`, ordered
//! by number. If a writer is killed, only its unfinished games are lost, and the next writer skips
//! the finished ones.
//!
//! A stream, such as standard output, receives each game once all earlier ones are finished, and
//! cannot be resumed.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::stream::{Games, open};
use super::tags::tag;
use crate::atomic_file::{self, Stream};

/// The zstd level, out of 22; at this level, files are small and writing is still fast.
const ZSTD_LEVEL: i32 = 9;

/// The tags that contain the settings common to all games, and the game's number.
pub const IDENTITY: [&str; 2] = ["Event", "Round"];
/// The tags used instead for games that already have an event and a round.
pub const LABELLED: [&str; 2] = ["LabelledBy", "LabelNumber"];

/// Why games cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The system reported an error.
    #[error("cannot write the games {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file contains games of another event.
    #[error(
        "{} holds games of `{found}`, not of `{wanted}`: name another output, or remove it",
        path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The event of the games in the file.
        found: String,
        /// The event of the games to be written.
        wanted: String,
    },
    /// The file was written by another program.
    #[error("{} is not a file of numbered games: name another output", path.display())]
    Unnumbered {
        /// The file.
        path: PathBuf,
    },
    /// Another process is writing the file.
    #[error("{} is being written by another process", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
}

/// A growing file of games, all belonging to one event.
#[derive(Debug)]
pub struct Journal {
    output: PathBuf,
    part_path: PathBuf,
    event: String,
    /// Offsets of the games in the part file, by number.
    games: BTreeMap<u64, (u64, u64)>,
    /// `None` while the output is complete.
    part: Option<File>,
    end: u64,
    /// Used instead of the files if the output is a stream.
    in_order: Option<InOrder>,
}

/// A stream that receives games in the order of their numbers, from 0.
#[derive(Debug)]
struct InOrder {
    stream: Stream,
    next: u64,
    /// Finished games that wait for earlier ones; `None` for a number without a game.
    early: BTreeMap<u64, Option<String>>,
}

impl InOrder {
    fn add(&mut self, number: u64, game: Option<&str>) -> io::Result<()> {
        self.early.insert(number, game.map(str::to_owned));
        while let Some(game) = self.early.remove(&self.next) {
            self.next += 1;
            self.stream.write_all(game.unwrap_or_default().as_bytes())?;
        }
        self.stream.flush()
    }

    /// Writes the games that are still waiting for earlier ones.
    fn finish(&mut self) -> io::Result<()> {
        for game in std::mem::take(&mut self.early).into_values().flatten() {
            self.stream.write_all(game.as_bytes())?;
        }
        self.stream.flush()
    }
}

impl Journal {
    /// Opens `output`, which may be new or unfinished. If its name ends in .gz or .zst, the final
    /// file is compressed. `event` is stored in the first tag of [`IDENTITY`] or [`LABELLED`], and
    /// should name all settings on which moves and scores depend. `visit` is called with each
    /// finished game.
    ///
    /// # Errors
    /// [`JournalError`] if the file contains games of another event, or cannot be read.
    pub fn open(
        output: &Path,
        event: &str,
        visit: impl FnMut(&str),
    ) -> Result<Journal, JournalError> {
        let mut journal = Journal {
            output: output.to_owned(),
            part_path: part_path(output),
            event: event.to_owned(),
            games: BTreeMap::new(),
            part: None,
            end: 0,
            in_order: None,
        };
        let stream = atomic_file::stream(output).map_err(|error| journal.io(error))?;
        if let Some(stream) = stream {
            journal.in_order = Some(InOrder {
                stream,
                next: 0,
                early: BTreeMap::new(),
            });
        } else if journal.part_path.exists() || !output.exists() {
            let part = journal.open_part()?;
            let reader = part.try_clone().map_err(|error| journal.io(error))?;
            let games = Games::new(BufReader::new(reader));
            let part_path = journal.part_path.clone();
            journal.index(&part_path, games, visit)?;
            // Truncate an incomplete game to make room for the next one.
            let cut = part.set_len(journal.end);
            cut.map_err(|error| journal.io(error))?;
            journal.part = Some(part);
        } else {
            let games = open(output, |file| file).map_err(|error| journal.io(error))?;
            // A complete output was written atomically, so its text after our games was not written
            // by this program. Truncation would destroy that text.
            if !journal.index(output, games, visit)? {
                return Err(JournalError::Unnumbered {
                    path: output.to_owned(),
                });
            }
        }
        Ok(journal)
    }

    /// Returns the paths written for `output`: the output itself, and its part file unless it is a
    /// stream.
    pub fn files(output: &Path) -> Vec<PathBuf> {
        let mut files = vec![output.to_owned()];
        if !atomic_file::is_stream(output) {
            files.push(part_path(output));
        }
        files
    }

    /// Returns whether the game with this number is finished.
    pub fn contains(&self, number: u64) -> bool {
        self.games.contains_key(&number)
    }

    /// Returns the numbers of the finished games, in ascending order.
    pub fn numbers(&self) -> impl Iterator<Item = u64> {
        self.games.keys().copied()
    }

    /// Marks a number as having no game, so that a stream does not wait for it.
    ///
    /// # Errors
    /// [`JournalError`] if the games that waited for this number cannot be written.
    pub fn leave_out(&mut self, number: u64) -> Result<(), JournalError> {
        let passed = self.in_order.as_mut().map(|it| it.add(number, None));
        passed.unwrap_or(Ok(())).map_err(|error| self.io(error))
    }

    /// Appends a finished game: PGN with the tags of [`IDENTITY`] or [`LABELLED`], ending in an
    /// empty line.
    ///
    /// # Errors
    /// [`JournalError`] if the game cannot be written.
    pub fn append(&mut self, number: u64, game: &str) -> Result<(), JournalError> {
        if let Some(in_order) = &mut self.in_order {
            let added = in_order.add(number, Some(game));
            return added.map_err(|error| self.io(error));
        }
        if self.part.is_none() {
            self.reopen()?;
        }
        if let Some(part) = &mut self.part
            && let Err(error) = part.write_all(game.as_bytes())
        {
            // Remove the incomplete game: readers would ignore the games after it.
            let _ = part.set_len(self.end);
            return Err(self.io(error));
        }
        let length = game.len() as u64;
        self.games.insert(number, (self.end, length));
        self.end += length;
        Ok(())
    }

    /// Writes the complete output, with the games in order.
    ///
    /// # Errors
    /// [`JournalError`] if the output cannot be written; all games are then still in the part file.
    pub fn finish(&mut self) -> Result<(), JournalError> {
        if let Some(in_order) = &mut self.in_order {
            let finished = in_order.finish();
            return finished.map_err(|error| self.io(error));
        }
        let Some(part) = self.part.take() else {
            return Ok(());
        };
        let written = self.write_output(&part);
        written.map_err(|error| self.io(error))?;
        let removed = std::fs::remove_file(&self.part_path);
        removed.map_err(|error| self.io(error))
    }

    fn write_output(&self, mut part: &File) -> io::Result<()> {
        let file = atomic_file::unfinished(&self.output)?;
        let extension = self.output.extension().and_then(|kind| kind.to_str());
        let mut copy = |to: &mut dyn Write| -> io::Result<()> {
            for &(start, length) in self.games.values() {
                part.seek(SeekFrom::Start(start))?;
                io::copy(&mut part.take(length), to)?;
            }
            to.flush()
        };
        match extension {
            Some("gz") => {
                let mut packer = GzEncoder::new(BufWriter::new(&file), Compression::default());
                copy(&mut packer)?;
                packer.finish()?.flush()?;
            }
            Some("zst") => {
                let mut packer = zstd::Encoder::new(BufWriter::new(&file), ZSTD_LEVEL)?;
                copy(&mut packer)?;
                packer.finish()?.flush()?;
            }
            _ => copy(&mut BufWriter::new(&file))?,
        }
        atomic_file::persist(file, &self.output)
    }

    /// Reopens a complete output to resume it.
    fn reopen(&mut self) -> Result<(), JournalError> {
        let copy = || -> io::Result<()> {
            let file = atomic_file::unfinished(&self.part_path)?;
            let mut to = BufWriter::new(&file);
            for game in open(&self.output, |file| file)? {
                to.write_all(&game?)?;
            }
            to.flush()?;
            drop(to);
            atomic_file::persist(file, &self.part_path)
        };
        copy().map_err(|error| self.io(error))?;
        let part = self.open_part()?;
        // Truncate after the last complete game.
        part.set_len(self.end).map_err(|error| self.io(error))?;
        self.part = Some(part);
        Ok(())
    }

    /// Returns the file of finished games, locked for this process.
    fn open_part(&self) -> Result<File, JournalError> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        let part = options
            .open(&self.part_path)
            .map_err(|error| self.io(error))?;
        match part.try_lock() {
            Ok(()) => Ok(part),
            Err(TryLockError::WouldBlock) => Err(JournalError::Busy {
                path: self.part_path.clone(),
            }),
            Err(TryLockError::Error(error)) => Err(self.io(error)),
        }
    }

    /// Indexes the games of a file up to the first incomplete one, and returns whether all games
    /// are complete.
    fn index(
        &mut self,
        path: &Path,
        games: Games<impl io::BufRead>,
        mut visit: impl FnMut(&str),
    ) -> Result<bool, JournalError> {
        for game in games {
            let game = game.map_err(|error| self.io(error))?;
            let Some(text) = whole(&game) else {
                return Ok(false);
            };
            let unnumbered = || JournalError::Unnumbered {
                path: path.to_owned(),
            };
            let [event, number] = match tag(text, LABELLED[0]) {
                Some(_) => LABELLED,
                None => IDENTITY,
            };
            let number = tag(text, number).and_then(|number| number.parse().ok());
            let number: u64 = number.ok_or_else(unnumbered)?;
            let found = tag(text, event).ok_or_else(unnumbered)?;
            if found != self.event {
                return Err(JournalError::Foreign {
                    path: path.to_owned(),
                    found,
                    wanted: self.event.clone(),
                });
            }
            let length = game.len() as u64;
            self.games.insert(number, (self.end, length));
            self.end += length;
            visit(text);
        }
        Ok(true)
    }

    fn io(&self, source: io::Error) -> JournalError {
        JournalError::Io {
            path: self.output.clone(),
            source,
        }
    }
}

/// Returns the path of the file of finished games.
fn part_path(output: &Path) -> PathBuf {
    let mut part = output.as_os_str().to_owned();
    part.push(".part");
    part.into()
}

/// Returns the text of a game, or `None` if the game is incomplete. A complete game ends in an
/// empty line, the only one after its first move.
fn whole(game: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(game).ok()?;
    let last = text.strip_suffix("\n\n")?.lines().last()?;
    (!last.starts_with('[')).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn game(number: u64) -> String {
        format!(
            "[Event \"test \\\"a\\\"\"]\n[Round \"{number}\"]\n[Result \"*\"]\n\n1. e4 e5 *\n\n"
        )
    }

    fn open_journal(path: &Path) -> Journal {
        Journal::open(path, "test \"a\"", |_| {}).unwrap()
    }

    fn text(path: &Path) -> String {
        let games = open(path, |file| file).unwrap();
        let bytes: Vec<u8> = games.flat_map(|game| game.unwrap().text).collect();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn games_come_out_in_order_and_more_can_follow() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.pgn", "a.pgn.gz", "a.pgn.zst"] {
            let output = folder.path().join(name);
            let mut journal = open_journal(&output);
            for number in [3, 1, 2] {
                journal.append(number, &game(number)).unwrap();
            }
            journal.finish().unwrap();
            assert_eq!(text(&output), [1, 2, 3].map(game).concat());
            let mut journal = open_journal(&output);
            assert!(journal.contains(2) && !journal.contains(0));
            journal.finish().unwrap();
            journal.append(0, &game(0)).unwrap();
            assert_eq!(journal.games.len(), 4);
            journal.finish().unwrap();
            assert_eq!(text(&output), [0, 1, 2, 3].map(game).concat());
        }
        let left = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 3);
    }

    #[test]
    fn never_replaces_foreign_files() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("a.pgn");
        let ours = [1, 2].map(game).concat();
        let windows = "[Event \"mine\"]\r\n[White \"Me\"]\r\n\r\n1. e4 e5 1-0\r\n\r\n";
        let appended = format!("{ours}[Event \"note\"]\n\n1. e4");
        for text in [
            windows.as_bytes(),
            b"[White \"M\xfcller\"]\n\n1. e4 e5 1-0\n\n",
            b"[White \"Me\"]\n\n1. e4 e5 1-0\n",
            b"a shopping list\n",
            &[0, 159, 146, 150],
            appended.as_bytes(),
        ] {
            std::fs::write(&output, text).unwrap();
            let error = Journal::open(&output, "test \"a\"", |_| {}).unwrap_err();
            assert!(matches!(error, JournalError::Unnumbered { .. }), "{error}");
            assert_eq!(std::fs::read(&output).unwrap(), text);
        }
        std::fs::write(&output, "").unwrap();
        assert!(open_journal(&output).games.is_empty());
    }

    #[test]
    fn wherever_writing_is_cut_off_whole_games_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("a.pgn");
        let part = folder.path().join("a.pgn.part");
        let whole = [1, 2].map(game).concat();
        for length in 0..=whole.len() {
            std::fs::write(&part, &whole[..length]).unwrap();
            let mut journal = open_journal(&output);
            let kept = length / game(1).len();
            assert_eq!(journal.games.len(), kept, "{length} bytes");
            for number in 1..=3 {
                if !journal.contains(number) {
                    journal.append(number, &game(number)).unwrap();
                }
            }
            drop(journal);
            assert_eq!(text(&part), [1, 2, 3].map(game).concat());
        }
    }

    #[cfg(unix)]
    #[test]
    fn streams_get_the_games_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("a.pgn");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status();
        assert!(made.unwrap().success());
        assert_eq!(Journal::files(&fifo).len(), 1);
        let read = |games: usize| {
            let fifo = fifo.clone();
            std::thread::spawn(move || {
                let games = open(&fifo, |file| file).unwrap().take(games);
                games
                    .flat_map(|game| game.unwrap().text)
                    .collect::<Vec<u8>>()
            })
        };
        let reader = read(9);
        let mut journal = open_journal(&fifo);
        for number in [4, 1, 0, 2, 7] {
            journal.append(number, &game(number)).unwrap();
        }
        journal.leave_out(3).unwrap();
        assert!(!journal.contains(1));
        journal.finish().unwrap();
        drop(journal);
        let written = String::from_utf8(reader.join().unwrap()).unwrap();
        assert_eq!(written, [0, 1, 2, 4, 7].map(game).concat());
        // If the reader closes the stream early, the writer stops.
        let reader = read(1);
        let mut journal = open_journal(&fifo);
        let failed = (0..).find_map(|number| journal.append(number, &game(number)).err());
        let Some(JournalError::Io { source, .. }) = failed else {
            panic!("{failed:?}");
        };
        assert_eq!(source.kind(), io::ErrorKind::BrokenPipe);
        reader.join().unwrap();
        let null = Path::new("/dev/null");
        let mut journal = open_journal(null);
        journal.append(0, &game(0)).unwrap();
        journal.finish().unwrap();
        assert!(!part_path(null).exists());
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);
    }

    #[test]
    fn labelled_games_are_known_by_tags_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("a.pgn");
        let labelled = "[Event \"a cup\"]\n[Round \"3.1\"]\n[LabelNumber \"5\"]\n\
                        [LabelledBy \"test \\\"a\\\"\"]\n\n1. e4 *\n\n";
        open_journal(&output).append(5, labelled).unwrap();
        let journal = open_journal(&output);
        assert!(journal.contains(5) && journal.games.len() == 1);
    }

    #[test]
    fn other_games_and_other_writers_are_respected() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("a.pgn");
        let mut journal = open_journal(&output);
        let again = Journal::open(&output, "test \"a\"", |_| {});
        assert!(matches!(again, Err(JournalError::Busy { .. })));
        journal.append(1, &game(1)).unwrap();
        journal.finish().unwrap();
        let other = Journal::open(&output, "another", |_| {});
        assert!(matches!(other, Err(JournalError::Foreign { .. })));
        std::fs::write(&output, "1. e4 *\n\n").unwrap();
        let foreign = Journal::open(&output, "test", |_| {});
        assert!(matches!(foreign, Err(JournalError::Unnumbered { .. })));
    }
}
