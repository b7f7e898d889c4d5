//! A summary of several reviewed games, for one player or for all of them.

use super::facts::Topic;
use super::marks::Mark;
use super::rating::{LogLikelihood, Rating, estimate};
use super::report::{Report, Side, SideReport};
use crate::plural::counted;
use serde::Serialize;
use shakmaty::Color;
use std::collections::BTreeMap;

/// Maximum number of openings that are listed.
const OPENINGS: usize = 12;

/// A summary of games.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Summary {
    /// The player, if the games are one player's.
    pub player: Option<String>,
    /// The origin of the games' scores, and how reliable marks without a judge are.
    pub scores: Vec<String>,
    /// The games, in the order in which they were reviewed.
    pub games: Vec<GameRow>,
    /// Games that could not be read, or not to their end, with the reason.
    pub unreadable: Vec<String>,
    /// The totals over all reviewed sides.
    pub total: Total,
    /// Openings, the most frequent first.
    pub openings: Vec<OpeningRow>,
    /// Counts of each kind of reason for a bad move, the most frequent first.
    #[cfg_attr(test, schema(value_type = Vec<Vec<serde_json::Value>>))]
    pub topics: Vec<(String, usize)>,
}

/// A game in a summary.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct GameRow {
    /// The name of its page's file, if it has a page.
    pub page: Option<String>,
    /// White's name.
    pub white: String,
    /// Black's name.
    pub black: String,
    /// The date.
    pub date: String,
    /// The result.
    pub result: String,
    /// The opening.
    pub opening: String,
    /// The side that is reviewed.
    pub side: Option<Side>,
    /// Number of moves.
    pub moves: usize,
    /// Accuracy of the reviewed side, or of White and Black.
    pub accuracy: Vec<Option<f64>>,
    /// Numbers of blunders, mistakes and inaccuracies of the reviewed side, or of both sides
    /// together.
    pub marks: [usize; 3],
}

/// Totals over all games.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Total {
    /// Moves that were judged.
    pub moves: usize,
    /// Mean accuracy of the games.
    pub accuracy: Option<f64>,
    /// Mean accuracy in the opening, the middlegame and the endgame.
    pub by_phase: [Option<f64>; 3],
    /// Numbers of blunders, mistakes and inaccuracies.
    pub marks: [usize; 3],
    /// Numbers of missed and allowed mates.
    pub mates: [usize; 2],
    /// The rating estimate, if the games are one player's.
    pub estimate: Option<Rating>,
}

/// An opening in a summary.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct OpeningRow {
    /// Its name, without the variation.
    pub name: String,
    /// Number of games.
    pub games: usize,
    /// The score in percent, if the games are one player's.
    pub score: Option<f64>,
    /// Mean accuracy in percent.
    pub accuracy: Option<f64>,
}

impl Summary {
    /// Returns the summary as text for a terminal.
    pub fn text(&self) -> String {
        let total = &self.total;
        let mut lines = vec![format!(
            "{}, {}",
            counted(self.games.len(), "game"),
            counted(total.moves, "move")
        )];
        lines.extend(self.scores.clone());
        if let Some(accuracy) = total.accuracy {
            lines.push(format!("accuracy {accuracy:.0} %"));
        }
        let [blunders, mistakes, inaccuracies] = total.marks;
        lines.push(format!(
            "{}, {}, {inaccuracies} {}",
            counted(blunders, "blunder"),
            counted(mistakes, "mistake"),
            match inaccuracies {
                1 => "inaccuracy",
                _ => "inaccuracies",
            }
        ));
        if let Some(rating) = total.estimate {
            let Rating { low, high, .. } = rating;
            lines.push(format!("plays like {} ({low} to {high})", rating.estimate));
        }
        let topics = self.topics.iter();
        lines.extend(topics.map(|(name, count)| format!("{name}: {}", counted(*count, "move"))));
        lines.join("\n") + "\n"
    }
}

/// Returns the reviewed sides of a report.
fn sides(report: &Report) -> Vec<(Side, &SideReport)> {
    let all = [Color::White, Color::Black].map(|color| (Side::from(color), report.of(color)));
    all.into_iter()
        .filter(|(side, _)| report.is_for(*side))
        .collect()
}

/// Returns the summary of reviewed games, with the file of each game's page.
pub fn summary(
    player: Option<String>,
    reports: &[(Option<String>, Report)],
    unreadable: Vec<String>,
) -> Summary {
    let is_one_player = !reports.is_empty() && reports.iter().all(|(_, it)| it.side.is_some());
    let all: Vec<&SideReport> = reports
        .iter()
        .flat_map(|(_, report)| sides(report).into_iter().map(|(_, side)| side))
        .collect();
    let mean = |of: &dyn Fn(&SideReport) -> Option<f64>| mean(all.iter().filter_map(|it| of(it)));
    let total = |of: &dyn Fn(&SideReport) -> usize| all.iter().map(|it| of(it)).sum();
    let mut likelihood = LogLikelihood::default();
    let sums = all.iter().filter_map(|side| side.log_likelihood);
    sums.for_each(|of| {
        likelihood
            .iter_mut()
            .zip(of)
            .for_each(|(sum, it)| *sum += it)
    });
    let moves = all
        .iter()
        .filter_map(|side| side.estimate)
        .map(|it| it.moves);
    let moves = moves.sum();
    Summary {
        player,
        scores: origins(reports),
        games: reports
            .iter()
            .map(|(page, report)| row(page, report))
            .collect(),
        unreadable,
        total: Total {
            moves: total(&|side| side.moves),
            accuracy: mean(&|side| side.accuracy),
            by_phase: [0, 1, 2].map(|phase| mean(&|side| side.by_phase[phase])),
            marks: [
                total(&|side| side.blunders),
                total(&|side| side.mistakes),
                total(&|side| side.inaccuracies),
            ],
            mates: [
                total(&|side| side.missed_mates),
                total(&|side| side.allowed_mates),
            ],
            estimate: estimate(&likelihood, moves).filter(|_| is_one_player),
        },
        openings: openings(reports),
        topics: topics(reports),
    }
}

/// Returns the sentences on the origin of the scores, each once.
fn origins(reports: &[(Option<String>, Report)]) -> Vec<String> {
    let mut origins = Vec::new();
    for (_, report) in reports {
        let sentences = std::iter::once(report.origin()).chain(report.reliability.clone());
        for sentence in sentences {
            if !origins.contains(&sentence) {
                origins.push(sentence);
            }
        }
    }
    origins
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

fn row(page: &Option<String>, report: &Report) -> GameRow {
    let tag = |name: &str| {
        let mut tags = report.game.tags.iter();
        let found = tags.find(|(other, _)| other == name);
        found.map_or_else(String::new, |(_, value)| value.clone())
    };
    let own = sides(report);
    let total = |of: fn(&SideReport) -> usize| own.iter().map(|(_, side)| of(side)).sum();
    GameRow {
        page: page.clone(),
        white: tag("White"),
        black: tag("Black"),
        date: tag("Date"),
        result: report.game.result.clone(),
        opening: report.game.opening.clone().unwrap_or_default(),
        side: report.side,
        moves: report.plies.len().div_ceil(2),
        accuracy: own.iter().map(|(_, side)| side.accuracy).collect(),
        marks: [
            total(|side| side.blunders),
            total(|side| side.mistakes),
            total(|side| side.inaccuracies),
        ],
    }
}

/// Returns the points of the reviewed side, if there is one.
fn points(report: &Report) -> Option<f64> {
    let white = match &report.game.result[..] {
        "1-0" => 1.0,
        "0-1" => 0.0,
        "1/2-1/2" => 0.5,
        _ => return None,
    };
    report.side.map(|side| match side {
        Side::White => white,
        Side::Black => 1.0 - white,
    })
}

fn openings(reports: &[(Option<String>, Report)]) -> Vec<OpeningRow> {
    let mut by_name: BTreeMap<&str, Vec<&Report>> = BTreeMap::new();
    for (_, report) in reports {
        if let Some(name) = &report.game.opening {
            let family = name.split(':').next().unwrap_or(name);
            by_name.entry(family).or_default().push(report);
        }
    }
    let rows = by_name.into_iter().map(|(name, games)| {
        let accuracies = games.iter().flat_map(|report| sides(report));
        OpeningRow {
            name: name.to_owned(),
            games: games.len(),
            score: mean(games.iter().filter_map(|it| points(it))).map(|it| 100.0 * it),
            accuracy: mean(accuracies.filter_map(|(_, side)| side.accuracy)),
        }
    });
    let mut rows: Vec<OpeningRow> = rows.collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.games));
    rows.truncate(OPENINGS);
    rows
}

fn topics(reports: &[(Option<String>, Report)]) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let plies = reports
        .iter()
        .flat_map(|(_, report)| report.plies.iter().filter(|ply| report.is_for(ply.side)));
    for ply in plies.filter(|ply| matches!(ply.mark, Some(Mark::Mistake | Mark::Blunder))) {
        let facts = ply.reasons.played.iter().chain(&ply.reasons.best);
        let mut names: Vec<&str> = facts.filter_map(|fact| name(fact.topic)).collect();
        names.sort_unstable();
        names.dedup();
        names
            .into_iter()
            .for_each(|name| *counts.entry(name).or_default() += 1);
    }
    let counts = counts
        .into_iter()
        .map(|(name, count)| (name.to_owned(), count));
    let mut counts: Vec<(String, usize)> = counts.collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}

/// Returns the name of a topic in a summary.
fn name(topic: Topic) -> Option<&'static str> {
    match topic {
        Topic::Mate => Some("forced mate"),
        Topic::BackRank => Some("back rank"),
        Topic::Stalemate => Some("stalemate"),
        Topic::Hanging => Some("hanging piece"),
        Topic::Fork => Some("fork"),
        Topic::Pin => Some("pin"),
        Topic::Skewer => Some("skewer"),
        Topic::Discovered => Some("discovered attack"),
        Topic::Trapped => Some("trapped piece"),
        Topic::Defender => Some("lost defence"),
        Topic::OpenedLine => Some("opened line"),
        Topic::Threat => Some("threat"),
        Topic::Recapture => Some("recapture"),
        Topic::PassedPawn => Some("passed pawn"),
        Topic::Castling => Some("castling"),
        Topic::Structure => Some("doubled pawns"),
        Topic::Exchange => Some("exchange"),
        Topic::Positional => Some("positional loss"),
        Topic::Material | Topic::Kept => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::testing::fools_mate;

    #[test]
    fn games_are_summed_up() {
        let (_, report) = fools_mate();
        let both = [
            (None, report.clone()),
            (Some("2.html".to_owned()), report.clone()),
        ];
        let all = summary(None, &both, vec!["game 3: no".to_owned()]);
        assert_eq!(all.total.marks, [2, 0, 2]);
        assert_eq!(all.total.moves, 8);
        assert_eq!(
            all.scores,
            ["Scores by Stockfish 15.1, 50 nodes a position."]
        );
        assert!(
            all.text()
                .starts_with("2 games, 8 moves\nScores by Stockfish 15.1")
        );
        assert!(all.total.estimate.is_none());
        assert_eq!(all.games[1].page.as_deref(), Some("2.html"));
        assert_eq!(all.games[0].accuracy.len(), 2);
        assert_eq!(all.topics, [("forced mate".to_owned(), 2)]);
        let own = Report {
            side: Some(Side::White),
            ..report
        };
        let own = vec![(None, own); 3];
        let own = summary(Some("Anna".to_owned()), &own, Vec::new());
        assert_eq!(own.total.marks, [3, 0, 3]);
        assert_eq!(own.openings[0].score, Some(0.0));
        assert_eq!(own.openings[0].games, 3);
        let none = summary(None, &[], Vec::new());
        assert!(none.total.accuracy.is_none() && none.openings.is_empty());
    }
}
