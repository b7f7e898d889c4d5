//! Parses a line of input into a command.
//!
//! UCI requires engines to be lenient: words may be separated by any white space, and unknown words
//! are skipped while the rest is still understood. vampirc-uci's parser is not lenient (it panics
//! on depths above 255 and on `go ` with a trailing space, and drops everything after an unreadable
//! move). Input is therefore parsed here, while vampirc-uci's messages and serialisers write the
//! output.

pub(crate) mod go;

use go::Go;

/// A parsed line of input.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Command {
    Uci,
    Debug(bool),
    IsReady,
    SetOption {
        name: String,
        /// The value verbatim, including inner spaces; `None` if there is no `value`.
        value: Option<String>,
    },
    Register,
    NewGame,
    Position {
        /// `None` stands for the initial position.
        fen: Option<String>,
        moves: Vec<String>,
    },
    Go(Go),
    Perft(u32),
    Stop,
    PonderHit,
    Quit,
    Display,
    Help,
}

/// A parsed line of input, as far as it could be understood.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Parsed {
    /// The command; `None` if the line contains none.
    pub command: Option<Command>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// Unknown words that were skipped.
    pub skipped: Vec<String>,
}

/// Parses one line. Every input is accepted. An empty line, or one that begins with `#` (a comment
/// in scripts), is neither a command nor an error.
pub(crate) fn parse(line: &str) -> Parsed {
    let mut parsed = Parsed::default();
    // Windows shells prefix piped text with a byte order mark.
    let mut words = Words(line.trim_start_matches('\u{feff}'));
    if words.peek().is_some_and(|word| word.starts_with('#')) {
        return parsed;
    }
    while let Some(word) = words.next() {
        let command = match word {
            "uci" => Some(Command::Uci),
            "debug" => debug(&mut words, &mut parsed),
            "isready" => Some(Command::IsReady),
            "setoption" => set_option(&mut words, &mut parsed),
            "register" => Some(Command::Register),
            "ucinewgame" => Some(Command::NewGame),
            "position" => position(&mut words, &mut parsed),
            "go" => Some(Go::parse(&mut words, &mut parsed)),
            "stop" => Some(Command::Stop),
            "ponderhit" => Some(Command::PonderHit),
            "quit" => Some(Command::Quit),
            "d" => Some(Command::Display),
            "help" => Some(Command::Help),
            unknown => {
                parsed.skipped.push(unknown.to_owned());
                continue;
            }
        };
        parsed.command = command;
        break;
    }
    parsed
}

fn debug(words: &mut Words, parsed: &mut Parsed) -> Option<Command> {
    match words.next() {
        Some("on") => Some(Command::Debug(true)),
        Some("off") => Some(Command::Debug(false)),
        _ => {
            parsed.warn("debug is followed by `on` or `off`");
            None
        }
    }
}

/// Parses `setoption name N [value V]`. Both N and V may contain spaces, and the name ends at the
/// first word `value`.
fn set_option(words: &mut Words, parsed: &mut Parsed) -> Option<Command> {
    parsed.skip_until(words, &["name"]);
    let mut name = Vec::new();
    while let Some(word) = words.next() {
        if word == "value" {
            break;
        }
        name.push(word);
        if words.peek().is_none() {
            return Some(Command::SetOption {
                name: name.join(" "),
                value: None,
            });
        }
    }
    if name.is_empty() {
        parsed.warn("an option is set by `setoption name NAME value VALUE`");
        return None;
    }
    Some(Command::SetOption {
        name: name.join(" "),
        value: Some(words.0.trim().to_owned()),
    })
}

fn position(words: &mut Words, parsed: &mut Parsed) -> Option<Command> {
    let fen = match parsed.skip_until(words, &["startpos", "fen"]) {
        Some("startpos") => {
            parsed.skip_until(words, &["moves"]);
            None
        }
        Some(_) => {
            let fields: Vec<&str> = words.take_while(|&word| word != "moves").collect();
            Some(fields.join(" "))
        }
        None => {
            parsed.warn(
                "a position is set by `position startpos moves …` or `position fen FEN moves …`; \
                 the previous one stays",
            );
            return None;
        }
    };
    let moves = words.map(str::to_owned).collect();
    Some(Command::Position { fen, moves })
}

impl Parsed {
    pub(crate) fn warn(&mut self, warning: impl Into<String>) {
        self.warnings.push(warning.into());
    }

    /// Skips words up to and including the first that is in `wanted`.
    fn skip_until<'a>(&mut self, words: &mut Words<'a>, wanted: &[&str]) -> Option<&'a str> {
        for word in words.by_ref() {
            if wanted.contains(&word) {
                return Some(word);
            }
            self.skipped.push(word.to_owned());
        }
        None
    }
}

/// The words of a line, with access to the unread rest.
pub(crate) struct Words<'a>(&'a str);

impl<'a> Words<'a> {
    /// Returns the next word without consuming it.
    pub(crate) fn peek(&self) -> Option<&'a str> {
        self.0.split_whitespace().next()
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let rest = self.0.trim_start();
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let (word, rest) = rest.split_at(end);
        self.0 = rest;
        (!word.is_empty()).then_some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use vampirc_uci::{Serializable, UciMessage};

    fn command(line: &str) -> Command {
        let parsed = parse(line);
        assert_eq!(parsed.warnings, Vec::<String>::new(), "{line}");
        parsed.command.expect(line)
    }

    fn position(fen: Option<&str>, moves: &[&str]) -> Command {
        Command::Position {
            fen: fen.map(str::to_owned),
            moves: moves.iter().map(|&mv| mv.to_owned()).collect(),
        }
    }

    fn option(name: &str, value: Option<&str>) -> Command {
        Command::SetOption {
            name: name.to_owned(),
            value: value.map(str::to_owned),
        }
    }

    #[test]
    fn any_white_space_parts_words() {
        assert_eq!(command("  \tisready \r"), Command::IsReady);
        assert_eq!(command("\u{feff}uci"), Command::Uci);
        assert_eq!(
            command("position\tstartpos   moves  e2e4\t e7e5 "),
            position(None, &["e2e4", "e7e5"])
        );
    }

    #[test]
    fn unknown_words_are_passed_over() {
        assert_eq!(command("joho debug on"), Command::Debug(true));
        assert_eq!(parse("joho debug on").skipped, ["joho"]);
        assert_eq!(
            command("position from startpos with moves e2e4"),
            position(None, &["e2e4"])
        );
        let parsed = parse("what is this");
        assert_eq!((parsed.command, parsed.skipped.len()), (None, 3));
    }

    #[test]
    fn nothing_and_comments_are_no_command() {
        for line in ["", " \t ", "# go infinite", "#stop"] {
            assert_eq!(parse(line), Parsed::default());
        }
    }

    #[test]
    fn fens_run_to_the_moves() {
        let four = "8/8/8/8/8/8/4K2k/8 w - -";
        assert_eq!(
            command(&format!("position fen {four}")),
            position(Some(four), &[])
        );
        assert_eq!(
            command(&format!("position fen  {four}  0 1   moves e2e3")),
            position(Some(&format!("{four} 0 1")), &["e2e3"])
        );
    }

    #[test]
    fn names_and_values_of_options_may_hold_spaces() {
        assert_eq!(
            command("setoption name Move Overhead value 100"),
            option("Move Overhead", Some("100"))
        );
        assert_eq!(
            command("setoption name Net value C:\\my  nets\\a value.pt "),
            option("Net", Some("C:\\my  nets\\a value.pt"))
        );
        assert_eq!(
            command("setoption name Clear  Hash"),
            option("Clear Hash", None)
        );
        assert_eq!(
            command("setoption name LogFile value"),
            option("LogFile", Some(""))
        );
        assert_eq!(parse("setoption Hash 64").warnings.len(), 1);
        assert_eq!(parse("setoption name value 64").warnings.len(), 1);
    }

    #[test]
    fn a_position_without_a_start_is_reported() {
        let parsed = parse("position moves e2e4");
        assert_eq!(parsed.command, None);
        assert!(parsed.warnings[0].contains("position startpos"));
    }

    #[test]
    fn reads_commands_that_vampirc_writes() {
        for (message, command) in [
            (UciMessage::Uci, Command::Uci),
            (UciMessage::IsReady, Command::IsReady),
            (UciMessage::Debug(false), Command::Debug(false)),
            (UciMessage::register_later(), Command::Register),
            (UciMessage::UciNewGame, Command::NewGame),
            (UciMessage::Stop, Command::Stop),
            (UciMessage::PonderHit, Command::PonderHit),
            (UciMessage::Quit, Command::Quit),
            (
                UciMessage::SetOption {
                    name: "Move Overhead".to_owned(),
                    value: Some("10".to_owned()),
                },
                option("Move Overhead", Some("10")),
            ),
            (
                UciMessage::Position {
                    startpos: false,
                    fen: Some("8/8/8/8/8/8/4K2k/8 w - - 0 1".into()),
                    moves: Vec::new(),
                },
                position(Some("8/8/8/8/8/8/4K2k/8 w - - 0 1"), &[]),
            ),
        ] {
            assert_eq!(super::parse(&message.serialize()).command, Some(command));
        }
    }

    proptest! {
        #[test]
        fn every_line_is_read_without_panic(line in "\\PC*") {
            parse(&line);
        }

        #[test]
        fn setoption_gives_back_what_was_written(
            name in "[A-Za-z]{1,8}( [A-Za-z]{1,8}){0,2}",
            value in "[!-~]{1,8}( {1,2}[!-~]{1,8}){0,3}",
        ) {
            prop_assume!(name.split(' ').all(|word| word != "value"));
            let line = format!("setoption name {name} value {value}");
            prop_assert_eq!(parse(&line).command, Some(option(&name, Some(&value))));
        }
    }
}
