//! The programs' error messages.

use crate::exit::{FAILURE, SUCCESS};
use std::error::Error;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::iter::successors;
use tracing_subscriber::filter::{LevelFilter, Targets};

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    successors(Some(error), |error| (*error).source())
}

/// Formats the error and its causes on one line. Causes that the error's own message already
/// contains are omitted.
pub fn one_line(error: &(dyn Error + 'static)) -> String {
    let mut line = String::new();
    for cause in chain(error).map(ToString::to_string) {
        // Some messages, such as those of the TOML parser, end in a newline.
        let cause = cause.trim_end();
        if line.is_empty() {
            line = cause.to_owned();
        } else if !line.contains(cause) {
            line.push_str(": ");
            line.push_str(cause);
        }
    }
    line
}

/// Returns the log filter in `RUST_LOG`, such as `info` or `tessera::serve=debug,warn`. By default,
/// the filter selects warnings and errors.
pub fn log_filter() -> Targets {
    let asked = std::env::var("RUST_LOG").ok();
    filter_of(asked.as_deref().unwrap_or_default())
}

fn filter_of(asked: &str) -> Targets {
    let warnings = || Targets::new().with_default(LevelFilter::WARN);
    match asked.trim() {
        "" => warnings(),
        asked => asked.parse().unwrap_or_else(|_| warnings()),
    }
}

/// Returns whether logs on standard error may be coloured: only on a terminal, and not if the user
/// has set `NO_COLOR`.
pub fn has_colours() -> bool {
    may_colour(io::stderr().is_terminal(), std::env::var_os("NO_COLOR"))
}

fn may_colour(is_terminal: bool, no_color: Option<OsString>) -> bool {
    is_terminal && no_color.is_none_or(|value| value.is_empty())
}

/// Writes a line for the user to standard error. If standard error is closed, for example because
/// the terminal has been closed, the line is dropped and the program continues.
pub fn tell(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Prints the error to standard error and returns the exit status. If the error is a closed output
/// pipe, because a program such as `head` has read enough, prints nothing and returns success.
pub fn report(error: &(dyn Error + 'static)) -> i32 {
    let is_closed_pipe = chain(error).any(|cause| {
        let cause = cause.downcast_ref::<io::Error>();
        cause.is_some_and(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
    });
    if is_closed_pipe {
        return SUCCESS;
    }
    tell(format_args!("error: {}", one_line(error)));
    FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot open {name}{}", if *.quotes { format!(": {}", .source) } else { String::new() })]
    struct Failure {
        name: &'static str,
        quotes: bool,
        source: io::Error,
    }

    #[test]
    fn only_a_terminal_has_colours_and_not_against_the_users_wish() {
        for (is_terminal, no_color, expected) in [
            (true, None, true),
            (true, Some(""), true),
            (true, Some("1"), false),
            (false, None, false),
            (false, Some(""), false),
        ] {
            let found = may_colour(is_terminal, no_color.map(OsString::from));
            assert_eq!(found, expected, "{is_terminal} {no_color:?}");
        }
    }

    #[test]
    fn rust_log_chooses_what_is_logged() {
        use tracing::Level;
        let logs = |asked, target, level| filter_of(asked).would_enable(target, &level);
        for asked in ["", " ", "no=such=level"] {
            assert!(logs(asked, "tessera::serve", Level::WARN), "{asked:?}");
            assert!(!logs(asked, "tessera::serve", Level::INFO), "{asked:?}");
        }
        assert!(logs("info", "hyper", Level::INFO) && !logs("info", "hyper", Level::DEBUG));
        let one = "tessera::serve=debug,warn";
        assert!(logs(one, "tessera::serve::routes", Level::DEBUG));
        assert!(!logs(one, "tessera::search", Level::INFO));
        assert!(!logs("off", "tessera", Level::ERROR));
    }

    #[test]
    fn causes_are_told_once() {
        for quotes in [false, true] {
            let error = Failure {
                name: "a",
                quotes,
                source: io::Error::other("gone"),
            };
            assert_eq!(one_line(&error), "cannot open a: gone");
        }
        let outer = anyhow::anyhow!("it ends early\n").context("a: it ends early");
        assert_eq!(one_line(outer.as_ref()), "a: it ends early");
    }
}
