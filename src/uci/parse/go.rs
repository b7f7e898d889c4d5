//! The command `go`: parsing and the resulting limits.

use super::{Command, Parsed, Words};
use crate::play::Limits;
use shakmaty::{Color, Move};
use std::time::Duration;

/// Times above this, which is seven weeks, are reduced to it so that deadlines do not overflow.
const LONGEST: u64 = u32::MAX as u64;

/// A parsed `go`, without unknown words.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Go {
    pub white_time: Option<Duration>,
    pub black_time: Option<Duration>,
    pub white_increment: Option<Duration>,
    pub black_increment: Option<Duration>,
    pub moves_to_go: Option<u32>,
    pub move_time: Option<Duration>,
    pub nodes: Option<u64>,
    pub depth: Option<u32>,
    pub mate: Option<u32>,
    pub infinite: bool,
    pub ponder: bool,
    pub search_moves: Vec<String>,
    /// Whether an unreadable limit was given.
    pub unreadable: bool,
}

const WORDS: [&str; 13] = [
    "searchmoves",
    "ponder",
    "wtime",
    "btime",
    "winc",
    "binc",
    "movestogo",
    "depth",
    "nodes",
    "mate",
    "movetime",
    "infinite",
    "perft",
];

impl Go {
    /// Parses the words after `go`.
    pub(crate) fn parse(words: &mut Words, parsed: &mut Parsed) -> Command {
        let mut go = Go::default();
        let mut perft = None;
        while let Some(word) = words.next() {
            match word {
                "infinite" => go.infinite = true,
                "ponder" => go.ponder = true,
                "searchmoves" => {
                    while let Some(mv) = words.peek().filter(|word| !WORDS.contains(word)) {
                        go.search_moves.push(mv.to_owned());
                        words.next();
                    }
                }
                limit if WORDS.contains(&limit) => match number(limit, words, parsed) {
                    Some(number) if limit == "perft" => perft = Some(clamp(number)),
                    Some(number) => go.set(limit, number),
                    None => go.unreadable = true,
                },
                unknown => parsed.skipped.push(unknown.to_owned()),
            }
        }
        perft.map_or(Command::Go(go), Command::Perft)
    }

    fn set(&mut self, limit: &str, number: u64) {
        let time = Some(Duration::from_millis(number.min(LONGEST)));
        match limit {
            "wtime" => self.white_time = time,
            "btime" => self.black_time = time,
            "winc" => self.white_increment = time,
            "binc" => self.black_increment = time,
            "movetime" => self.move_time = time,
            // Some clients send 0 for the rest of the game.
            "movestogo" => self.moves_to_go = Some(clamp(number)).filter(|&moves| moves > 0),
            "nodes" => self.nodes = Some(number.max(1)),
            "depth" => self.depth = Some(clamp(number).max(1)),
            "mate" => self.mate = Some(clamp(number).max(1)),
            _ => {}
        }
    }

    /// Returns the limits for `turn`, the side to move, with `searchmoves` resolved to legal moves.
    ///
    /// A side whose clock is not given has none. If there is no other limit either, the opponent's
    /// clock is used, because both players usually have the same one. If no limit could be read,
    /// the smallest one applies, because answering too early costs less than not answering at all.
    pub(crate) fn limits(&self, turn: Color, search_moves: Vec<Move>) -> Limits {
        let white = (self.white_time, self.white_increment);
        let black = (self.black_time, self.black_increment);
        let ((time, increment), (opponent_time, opponent_increment)) = match turn {
            Color::White => (white, black),
            Color::Black => (black, white),
        };
        let limited = self.infinite
            || self.move_time.is_some()
            || self.nodes.is_some()
            || self.depth.is_some()
            || self.mate.is_some();
        let time = time.or(opponent_time.filter(|_| !limited));
        let guessed = self.unreadable && !limited && !self.ponder && time.is_none();
        Limits {
            time,
            opponent_time,
            increment: increment.unwrap_or_default(),
            opponent_increment: opponent_increment.unwrap_or_default(),
            moves_to_go: self.moves_to_go,
            move_time: self.move_time,
            nodes: self.nodes.or(guessed.then_some(1)),
            depth: self.depth,
            mate: self.mate,
            infinite: self.infinite,
            ponder: self.ponder,
            search_moves,
        }
    }
}

/// Returns whether a search within `limits` ends by itself (when pondering, once the expected move
/// has been played). A search for a mate that does not exist never ends.
pub(crate) fn ends_by_itself(limits: &Limits) -> bool {
    !limits.infinite
        && (limits.time.is_some()
            || limits.move_time.is_some()
            || limits.nodes.is_some()
            || limits.depth.is_some())
}

/// Returns the number after `limit`. A word that begins another limit is not consumed.
fn number(limit: &str, words: &mut Words, parsed: &mut Parsed) -> Option<u64> {
    let word = words.peek().filter(|word| !WORDS.contains(word));
    let Some(word) = word else {
        parsed.warn(format!("go: {limit} is followed by a number; ignored"));
        return None;
    };
    words.next();
    let number = read(word);
    if number.is_none() {
        parsed.warn(format!(
            "go: {limit} is followed by a number, not `{word}`; ignored"
        ));
    }
    number
}

/// Parses a whole number leniently: negative ones (a clock that has run out) count as 0, fractions
/// are truncated, and large ones saturate.
fn read(word: &str) -> Option<u64> {
    let digits = word.trim_start_matches(['-', '+']);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if word.len() - digits.len() > 1
        || whole.is_empty()
        || !all_digits(whole)
        || !all_digits(fraction)
    {
        return None;
    }
    if word.starts_with('-') {
        return Some(0);
    }
    // Parsing a string of digits can only fail by overflow.
    Some(whole.parse().unwrap_or(u64::MAX))
}

fn clamp(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;
    use proptest::prelude::*;
    use vampirc_uci::{
        Serializable, UciMessage, UciMove, UciSearchControl, UciSquare, UciTimeControl,
    };

    fn go(line: &str) -> Go {
        match parse(line).command {
            Some(Command::Go(go)) => go,
            other => panic!("{line}: {other:?}"),
        }
    }

    fn limits(line: &str) -> Limits {
        go(line).limits(Color::White, Vec::new())
    }

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn clocks_are_seen_from_the_mover() {
        let go = go("go ponder wtime 1000 btime 2000 winc 10 binc 20 movestogo 300");
        let white = go.limits(Color::White, Vec::new());
        assert!(white.ponder && !white.infinite);
        assert_eq!(white.time, Some(ms(1000)));
        assert_eq!(white.opponent_time, Some(ms(2000)));
        assert_eq!(white.increment, ms(10));
        assert_eq!(white.moves_to_go, Some(300));
        let black = go.limits(Color::Black, Vec::new());
        assert_eq!((black.time, black.increment), (Some(ms(2000)), ms(20)));
        assert_eq!(black.opponent_increment, ms(10));
    }

    #[test]
    fn every_limit_is_read() {
        let limits = limits("go depth 300 nodes 99999999999 mate 400 movetime 5000");
        assert_eq!(limits.depth, Some(300));
        assert_eq!(limits.nodes, Some(99_999_999_999));
        assert_eq!(limits.mate, Some(400));
        assert_eq!(limits.move_time, Some(ms(5000)));
        assert!(go("go infinite").infinite);
        assert_eq!(parse("go perft 5").command, Some(Command::Perft(5)));
    }

    #[test]
    fn the_search_moves_end_at_the_next_limit() {
        let go = go("go searchmoves e2e4 d2d4 nodes 10");
        assert_eq!(go.search_moves, ["e2e4", "d2d4"]);
        assert_eq!(go.nodes, Some(10));
    }

    #[test]
    fn odd_numbers_are_made_the_best_of() {
        assert_eq!(limits("go wtime -50 btime 10").time, Some(ms(0)));
        assert_eq!(limits("go movetime 1500.75").move_time, Some(ms(1500)));
        assert_eq!(
            limits("go movetime 99999999999999999999999").move_time,
            Some(ms(LONGEST))
        );
        assert_eq!(
            limits("go nodes 99999999999999999999999").nodes,
            Some(u64::MAX)
        );
        assert_eq!(limits("go depth 0 nodes 0").depth, Some(1));
        assert_eq!(limits("go wtime 10 btime 10 movestogo 0").moves_to_go, None);
    }

    #[test]
    fn reports_unreadable_limits_and_ends_soon() {
        for line in [
            "go depth",
            "go nodes many",
            "go movetime 1e5",
            "go nodes --5",
        ] {
            assert_eq!(parse(line).warnings.len(), 1, "{line}");
            assert_eq!(limits(line).nodes, Some(1), "{line}");
        }
        let line = "go wtime btime 500";
        assert_eq!(parse(line).warnings.len(), 1);
        assert_eq!(limits(line).time, Some(ms(500)));
        assert_eq!(limits(line).opponent_time, Some(ms(500)));
        assert_eq!(limits("go depth x movetime 5").nodes, None);
    }

    #[test]
    fn a_side_without_a_clock_plays_by_the_other_limits() {
        for (line, time) in [
            ("go btime 500", Some(500)),
            ("go btime 500 binc 10 movestogo 3", Some(500)),
            ("go ponder btime 500", Some(500)),
            ("go wtime 0 btime 500", Some(0)),
            ("go btime 500 nodes 10", None),
            ("go btime 500 movetime 10", None),
            ("go btime 500 depth 3", None),
            ("go btime 500 mate 3", None),
            ("go btime 500 mate 3 nodes 10", None),
            ("go wtime 500 btime 500 mate 3", Some(500)),
            ("go btime 500 infinite", None),
        ] {
            let limits = limits(line);
            assert_eq!(limits.time, time.map(ms), "{line}");
            assert_eq!(limits.opponent_time, Some(ms(500)), "{line}");
            let endless = line.ends_with("mate 3") && time.is_none() || limits.infinite;
            assert_eq!(ends_by_itself(&limits), !endless, "{line}");
        }
        assert_eq!(limits("go winc 500").time, None);
        assert_eq!(limits("go").time, None);
        assert!(!ends_by_itself(&limits("go")));
        assert!(!ends_by_itself(&limits("go mate 1")));
        assert!(!ends_by_itself(&limits("go infinite nodes 5")));
    }

    #[test]
    fn reads_limits_that_vampirc_writes() {
        let message = UciMessage::Go {
            time_control: Some(UciTimeControl::TimeLeft {
                white_time: Some(vampirc_uci::Duration::milliseconds(900)),
                black_time: Some(vampirc_uci::Duration::milliseconds(800)),
                white_increment: None,
                black_increment: None,
                moves_to_go: Some(7),
            }),
            search_control: Some(UciSearchControl {
                search_moves: vec![UciMove::from_to(
                    UciSquare::from('e', 2),
                    UciSquare::from('e', 4),
                )],
                mate: Some(2),
                depth: Some(3),
                nodes: Some(4),
            }),
        };
        let go = go(&message.serialize());
        assert_eq!(go.white_time, Some(ms(900)));
        assert_eq!(go.black_time, Some(ms(800)));
        assert_eq!(go.moves_to_go, Some(7));
        assert_eq!((go.mate, go.depth, go.nodes), (Some(2), Some(3), Some(4)));
        assert_eq!(go.search_moves, ["e2e4"]);
    }

    proptest! {
        #[test]
        fn every_go_is_read(words in "( (wtime|btime|winc|binc|movestogo|depth|nodes|mate|movetime|perft|searchmoves|infinite|ponder|e2e4|-?[0-9]{1,30}|[a-z.-]{1,4})){0,12} ?") {
            let command = parse(&format!("go{words}")).command;
            let read = matches!(command, Some(Command::Go(_) | Command::Perft(_)));
            prop_assert!(read);
        }
    }
}
