//! `info`: a player's reports in UCI format.

use super::settings::Settings;
use crate::chess::Game;
use crate::encode::policy_index;
use crate::play::{Choice, Line, MoveStatistics, Report, Score, ScoreType, WrittenScore};
use shakmaty::Position;
use vampirc_uci::{UciInfoAttribute, UciMessage};

/// Returns the lines of a report, best first.
pub(crate) fn report<'a>(
    report: &'a Report,
    game: &'a Game,
    settings: &'a Settings,
) -> impl Iterator<Item = UciMessage> + 'a {
    let milliseconds = report.elapsed.as_millis() as u64;
    let likelihood = report.likelihood.map(|likelihood| {
        let text = format!("imagined line {:.1} %", 100.0 * likelihood);
        UciMessage::Info(vec![UciInfoAttribute::Any("string".to_owned(), text)])
    });
    let lines = report.lines.iter().enumerate().map(move |(index, line)| {
        let mut info = vec![
            number("depth", report.depth),
            number("seldepth", report.selective_depth),
            number("time", milliseconds),
            UciInfoAttribute::Nodes(report.nodes),
            score(line.score, settings.score_type),
        ];
        if settings.show_wdl {
            info.push(wdl(line.wdl));
        }
        if settings.show_moves_left
            && let Some(plies) = line.moves_left
        {
            info.push(number("movesleft", ((1.0 + plies) / 2.0) as u32));
        }
        info.extend(report.nodes_per_second().map(UciInfoAttribute::Nps));
        info.extend([
            UciInfoAttribute::HashFull((1000.0 * report.memory_use.clamp(0.0, 1.0)) as u16),
            UciInfoAttribute::TbHits(report.tablebase_hits),
            number("multipv", index + 1),
            UciInfoAttribute::Any("pv".to_owned(), moves(line, game)),
        ]);
        UciMessage::Info(info)
    });
    likelihood.into_iter().chain(lines)
}

/// Returns the lines of a report as text, each with its line break, in the form that a session with
/// default options prints.
#[cfg(feature = "serve")]
pub(crate) fn info_lines(of: &Report, game: &Game) -> String {
    use vampirc_uci::Serializable;
    let settings = Settings::default();
    let lines = report(of, game, &settings).map(|message| message.serialize() + "\n");
    lines.collect()
}

/// Returns the report for a position without legal moves.
pub(crate) fn no_moves(game: &Game, settings: &Settings) -> UciMessage {
    let mated = game.position().is_check();
    let (score_now, wdl_now) = if mated {
        (Score::Mate(0), [0.0, 0.0, 1.0])
    } else {
        (Score::Expected(0.0), [0.0, 1.0, 0.0])
    };
    let mut info = vec![number("depth", 0), score(score_now, settings.score_type)];
    if settings.show_wdl {
        info.push(wdl(wdl_now));
    }
    UciMessage::Info(info)
}

/// Returns the root moves' statistics in Lc0's format, with the best move last, just above
/// `bestmove`.
pub(crate) fn statistics<'a>(
    statistics: &'a [MoveStatistics],
    game: &'a Game,
) -> impl Iterator<Item = String> + 'a {
    statistics.iter().rev().map(|of| {
        let [win, draw, loss] = of.wdl;
        format!(
            "{:5} ({:4}) N: {:8} (P: {:5.2}%) (W: {win:.3}) (D: {draw:.3}) (L: {loss:.3}) (Q: {:8.5})",
            game.format_move(of.mv),
            policy_index(of.mv, game.position().turn()),
            of.visits,
            100.0 * of.prior,
            of.q
        )
    })
}

/// Returns the answer to `go`.
pub(crate) fn best_move(choice: &Choice, game: &Game, settings: &Settings) -> String {
    let Some(best) = choice.best else {
        return NO_MOVE.to_owned();
    };
    let mut line = format!("bestmove {}", game.format_move(best));
    if let Some(reply) = choice.ponder.filter(|_| settings.ponder) {
        line.push_str(" ponder ");
        line.push_str(&game.format_move(reply));
    }
    line
}

/// The answer to `go` if there is no legal move.
pub(crate) const NO_MOVE: &str = "bestmove (none)";

fn score(score: Score, unit: ScoreType) -> UciInfoAttribute {
    match WrittenScore::of(score, unit) {
        WrittenScore::Centipawns(score) => UciInfoAttribute::from_centipawns(score),
        // vampirc's own attribute cannot represent mates in more than 127 moves.
        WrittenScore::Mate(moves) => {
            UciInfoAttribute::Any("score".to_owned(), format!("mate {moves}"))
        }
    }
}

/// Returns win, draw and loss in thousandths, which sum to 1000.
fn wdl([win, _, loss]: [f32; 3]) -> UciInfoAttribute {
    let thousandths = |probability: f32| (1000.0 * probability.clamp(0.0, 1.0)).round() as u32;
    let win = thousandths(win);
    let loss = thousandths(loss).min(1000 - win);
    let draw = 1000 - win - loss;
    UciInfoAttribute::Any("wdl".to_owned(), format!("{win} {draw} {loss}"))
}

fn moves(line: &Line, game: &Game) -> String {
    let moves: Vec<String> = line.moves.iter().map(|&mv| game.format_move(mv)).collect();
    moves.join(" ")
}

fn number(name: &str, number: impl ToString) -> UciInfoAttribute {
    UciInfoAttribute::Any(name.to_owned(), number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::play::centipawns;
    use proptest::prelude::*;
    use std::time::Duration;
    use vampirc_uci::Serializable;

    fn line(game: &Game, score: Score, moves: &[&str]) -> Line {
        let mut game = game.clone();
        let moves = moves.iter().map(|mv| {
            let mv = game.parse_move(mv).unwrap();
            game.play(mv);
            mv
        });
        Line {
            score,
            wdl: [0.5, 0.3, 0.2],
            moves_left: Some(80.0),
            moves: moves.collect(),
        }
    }

    #[test]
    fn a_report_is_written_line_by_line() {
        let game = Game::default();
        let thought = Report {
            depth: 300,
            selective_depth: 400,
            nodes: 5000,
            new_nodes: 4000,
            elapsed: Duration::from_millis(2000),
            memory_use: 0.25,
            tablebase_hits: 3,
            likelihood: None,
            lines: vec![
                line(&game, Score::Expected(0.25), &["e2e4", "e7e5"]),
                line(&game, Score::Mate(-200), &["d2d4"]),
            ],
        };
        let cp = centipawns(0.25);
        let mut settings = Settings::default();
        let lines: Vec<String> = report(&thought, &game, &settings)
            .map(|message| message.serialize())
            .collect();
        assert_eq!(
            lines,
            [
                format!(
                    "info depth 300 seldepth 400 time 2000 nodes 5000 score cp {cp} nps 2000 \
                     hashfull 250 tbhits 3 multipv 1 pv e2e4 e7e5"
                ),
                "info depth 300 seldepth 400 time 2000 nodes 5000 score mate -200 nps 2000 \
                 hashfull 250 tbhits 3 multipv 2 pv d2d4"
                    .to_owned(),
            ]
        );
        settings.show_wdl = true;
        settings.show_moves_left = true;
        let first = report(&thought, &game, &settings)
            .next()
            .unwrap()
            .serialize();
        assert!(
            first.contains(&format!(" score cp {cp} wdl 500 300 200 movesleft 40 nps ")),
            "{first}"
        );
    }

    #[test]
    fn the_answer_names_the_reply_only_to_those_who_ponder() {
        let game = Game::default();
        let mut after = game.clone();
        let best = game.parse_move("e2e4").unwrap();
        after.play(best);
        let choice = Choice {
            best: Some(best),
            ponder: Some(after.parse_move("e7e5").unwrap()),
            ..Choice::default()
        };
        let mut settings = Settings::default();
        assert_eq!(
            best_move(&choice, &game, &settings),
            "bestmove e2e4 ponder e7e5"
        );
        settings.ponder = false;
        assert_eq!(best_move(&choice, &game, &settings), "bestmove e2e4");
        assert_eq!(
            best_move(&Choice::default(), &game, &settings),
            "bestmove (none)"
        );
    }

    #[test]
    fn statistics_put_the_best_move_last() {
        let game = Game::default();
        let of = |mv, visits| MoveStatistics {
            mv: game.parse_move(mv).unwrap(),
            visits,
            prior: 0.125,
            q: -0.1,
            wdl: [0.3, 0.3, 0.4],
            moves_left: None,
            score: Score::Expected(-0.1),
        };
        let lines: Vec<String> = statistics(&[of("e2e4", 10), of("d2d4", 5)], &game).collect();
        assert_eq!(
            lines[1],
            "e2e4  ( 322) N:       10 (P: 12.50%) (W: 0.300) (D: 0.300) (L: 0.400) (Q: -0.10000)"
        );
    }

    #[test]
    fn a_tree_that_was_grown_before_has_no_speed() {
        let game = Game::default();
        let mut thought = Report {
            nodes: 5000,
            lines: vec![line(&game, Score::Expected(0.25), &["e2e4"])],
            ..Report::default()
        };
        let settings = Settings::default();
        let told = |thought: &Report| {
            report(thought, &game, &settings)
                .next()
                .unwrap()
                .serialize()
        };
        assert!(!told(&thought).contains(" nps "));
        thought.new_nodes = 1;
        assert!(told(&thought).contains(" nps 1000 "));
    }

    proptest! {
        #[test]
        fn thousandths_sum_to_a_thousand(w in -0.1f32..=1.1, l in -0.1f32..=1.1) {
            let UciInfoAttribute::Any(_, text) = wdl([w, 0.0, l]) else { unreachable!() };
            let sum: u32 = text.split(' ').map(|part| part.parse::<u32>().unwrap()).sum();
            prop_assert_eq!(sum, 1000);
        }
    }
}
