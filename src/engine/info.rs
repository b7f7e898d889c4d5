//! The `info` lines of UCI engines.

use shakmaty::uci::UciMove;

/// The score of a line for the side to move, as UCI sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineScore {
    /// A score in hundredths of a pawn.
    Centipawns(i32),
    /// Mate in N moves; negative if the side to move gets mated. Never 0.
    Mate(i32),
}

/// An `info` line with a score.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// Depth in plies; 0 if unknown.
    pub depth: u32,
    /// The line's rank among the reported lines, starting from 1.
    pub multipv: usize,
    /// The line's score.
    pub score: EngineScore,
    /// Whether the score is only a bound.
    pub is_bound: bool,
    /// The line's moves, up to the first word that is not a move.
    pub pv: Vec<UciMove>,
}

impl Info {
    /// Parses a line; returns `None` if it is not an `info` line or has no score.
    ///
    /// Unknown words are skipped, and unreadable numbers count as missing.
    pub fn parse(line: &str) -> Option<Info> {
        let mut words = line.split_ascii_whitespace().peekable();
        if words.next() != Some("info") {
            return None;
        }
        let (mut depth, mut multipv, mut score) = (0, 1, None);
        let mut is_bound = false;
        let mut pv = Vec::new();
        while let Some(word) = words.next() {
            match word {
                // The rest of the line is free text.
                "string" => break,
                "depth" => depth = number(words.peek()).unwrap_or(0),
                "multipv" => multipv = number(words.peek()).unwrap_or(1).max(1),
                "cp" => score = number(words.peek()).map(EngineScore::Centipawns).or(score),
                "mate" => {
                    let moves = number(words.peek()).filter(|&moves| moves != 0);
                    score = moves.map(EngineScore::Mate).or(score);
                }
                "lowerbound" | "upperbound" => is_bound = true,
                "pv" => {
                    while let Some(mv) = words.peek().and_then(|word| word.parse().ok()) {
                        pv.push(mv);
                        words.next();
                    }
                }
                _ => {}
            }
        }
        Some(Info {
            depth,
            multipv,
            score: score?,
            is_bound,
            pv,
        })
    }
}

fn number<T: std::str::FromStr>(word: Option<&&str>) -> Option<T> {
    word?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_as_engines_write_them() {
        let line = "info depth 8 seldepth 9 multipv 3 score cp -14 upperbound nodes 20009 nps \
                    540783 hashfull 6 tbhits 0 time 37 pv c2c4 g8f6";
        let info = Info::parse(line).unwrap();
        assert_eq!((info.depth, info.multipv), (8, 3));
        assert_eq!(
            (info.score, info.is_bound),
            (EngineScore::Centipawns(-14), true)
        );
        assert_eq!(info.pv.len(), 2);
        let mate = Info::parse("info score mate -3 wdl 0 0 1000 depth 7 pv a7a8q x e2e4").unwrap();
        assert_eq!((mate.score, mate.depth), (EngineScore::Mate(-3), 7));
        assert_eq!((mate.multipv, mate.pv.len()), (1, 1));
        for silent in [
            "",
            "info",
            "bestmove e2e4",
            "info depth 5 currmove e2e4 currmovenumber 1",
            "info string score cp 5",
            "info score cp many",
            "info score mate 0",
        ] {
            assert_eq!(Info::parse(silent), None, "{silent}");
        }
    }

    fn score() -> impl Strategy<Value = EngineScore> {
        prop_oneof![
            any::<i32>().prop_map(EngineScore::Centipawns),
            any::<i32>()
                .prop_filter("no mate in zero", |&moves| moves != 0)
                .prop_map(EngineScore::Mate),
        ]
    }

    /// Returns the parts of a line, each of which is valid on its own.
    fn parts(info: &Info) -> Vec<String> {
        let score = match info.score {
            EngineScore::Centipawns(centipawns) => format!("cp {centipawns}"),
            EngineScore::Mate(moves) => format!("mate {moves}"),
        };
        let bound = if info.is_bound { " lowerbound" } else { "" };
        vec![
            format!("depth {}", info.depth),
            format!("multipv {}", info.multipv),
            format!("score {score}{bound}"),
            "nodes 99 nps 1000 time 17 hashfull 0".to_owned(),
            "wdl 10 900 90".to_owned(),
        ]
    }

    proptest! {
        #[test]
        fn reads_info_in_any_order(
            depth: u32,
            multipv in 1..500usize,
            score in score(),
            is_bound: bool,
            squares in proptest::collection::vec((0..64u32, 0..64u32), 0..20),
            order in Just(vec![0, 1, 2, 3, 4]).prop_shuffle(),
        ) {
            let pv: Vec<UciMove> = squares
                .into_iter()
                .filter(|(from, to)| from != to)
                .map(|(from, to)| UciMove::Normal {
                    from: shakmaty::Square::new(from),
                    to: shakmaty::Square::new(to),
                    promotion: None,
                })
                .collect();
            let info = Info { depth, multipv, score, is_bound, pv };
            let parts = parts(&info);
            let said: Vec<&str> = order.iter().map(|&part| parts[part].as_str()).collect();
            let pv: Vec<String> = info.pv.iter().map(ToString::to_string).collect();
            let line = format!("info {} pv {}", said.join(" "), pv.join(" "));
            prop_assert_eq!(Info::parse(&line), Some(info));
        }

        #[test]
        fn no_line_panics(
            line in "(info|bestmove)?( (depth|score|cp|mate|multipv|pv|string|e2e4|-?[0-9]{1,12}|\\PC{1,4}))*",
        ) {
            if let Some(info) = Info::parse(&line) {
                prop_assert!(info.multipv > 0 && info.score != EngineScore::Mate(0));
            }
        }
    }
}
