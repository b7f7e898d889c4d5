//! A player's mistakes as puzzles, in the columns of Lichess's database: the position before the
//! opponent's move, followed by that move and the solution.

use super::curve::Evaluation;
use super::facts::Topic;
use super::marks::Mark;
use super::people;
use super::phase::Phase;
use super::report::{PlyReport, Report};
use sha2::{Digest, Sha256};

/// The columns of the file.
pub const COLUMNS: [&str; 10] = [
    "PuzzleId",
    "FEN",
    "Moves",
    "Rating",
    "RatingDeviation",
    "Popularity",
    "NbPlays",
    "Themes",
    "GameUrl",
    "OpeningTags",
];
/// Winning chances, in −1…1, by which the solution has to be better than any other move.
const APART: f64 = 0.2;
/// The rating of the players whose success determines a puzzle's rating.
const SOLVER: u16 = 1500;
/// The characters used in names.
const LETTERS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Returns the rows of a game: the mistakes and blunders of the reviewed side, in positions where
/// one move was much better than all others.
pub fn puzzles(report: &Report) -> Vec<[String; 10]> {
    let pairs = report.plies.windows(2);
    let pairs = pairs.enumerate();
    let rows = pairs.filter_map(|(place, pair)| {
        let start = place
            .checked_sub(1)
            .map_or(&report.start.fen, |before| &report.plies[before].fen);
        row(report, start, &pair[0], &pair[1])
    });
    rows.collect()
}

fn row(report: &Report, start: &str, last: &PlyReport, ply: &PlyReport) -> Option<[String; 10]> {
    let best = ply.best.as_ref()?;
    let is_mistake = matches!(ply.mark, Some(Mark::Mistake | Mark::Blunder));
    // Convert to the view of the player to move.
    let evaluation = match ply.side {
        super::report::Side::White => best.evaluation,
        super::report::Side::Black => best.evaluation.reversed(),
    };
    let is_apart = match ply.second {
        // A proven mate ends the search before other moves are visited. Without a mate, moves that
        // were not visited may be as good.
        None => matches!(evaluation, Evaluation::Mate(1..)),
        // A slower mate is also a solution.
        Some(Evaluation::Mate(1..)) => false,
        Some(second) => evaluation.chances() - second.chances() >= APART,
    };
    if !is_mistake || !is_apart || !report.is_for(ply.side) {
        return None;
    }
    // Only mates are known to be forced move by move.
    let length = match evaluation {
        Evaluation::Mate(1..) => best.moves.len(),
        _ => 1,
    };
    let solution = best.moves.iter().take(length).map(|mv| mv.mv.uci.as_str());
    let moves: Vec<&str> = [last.mv.uci.as_str()].into_iter().chain(solution).collect();
    let moves = moves.join(" ");
    let opening = report.game.opening.as_deref().unwrap_or_default();
    let tag = |name: &str| {
        let mut tags = report.game.tags.iter();
        tags.find(|(other, _)| other == name)
            .map(|(_, value)| value.clone())
    };
    let url = tag("Site").filter(|site| site.starts_with("http"));
    Some([
        name(start, &moves),
        start.to_owned(),
        moves,
        rating(ply).to_string(),
        "150".to_owned(),
        "0".to_owned(),
        "0".to_owned(),
        themes(ply, evaluation, length).join(" "),
        url.map(|url| format!("{url}#{}", last.ply))
            .unwrap_or_default(),
        opening.replace([':', ',', '\''], "").replace(' ', "_"),
    ])
}

/// Returns the five characters that identify a puzzle.
fn name(fen: &str, moves: &str) -> String {
    let digest = Sha256::digest(format!("{fen} {moves}"));
    let letter = |&byte: &u8| char::from(LETTERS[usize::from(byte) % LETTERS.len()]);
    digest.iter().take(5).map(letter).collect()
}

/// Returns a puzzle's rating, chosen so that players rated [`SOLVER`] solve the puzzle as often as
/// they play its first move.
fn rating(ply: &PlyReport) -> u16 {
    let best = ply.shares.and_then(|shares| shares.best);
    let rating = best.map_or(f32::from(SOLVER), |curve| {
        let share = people::at(&curve, SOLVER).clamp(0.01, 0.99);
        f32::from(SOLVER) + 400.0 * ((1.0 - share) / share).log10()
    });
    rating.round() as u16
}

fn themes(ply: &PlyReport, evaluation: Evaluation, length: usize) -> Vec<String> {
    let phase = match ply.phase {
        Phase::Opening => "opening",
        Phase::Middlegame => "middlegame",
        Phase::Endgame => "endgame",
    };
    let size = match length {
        1 => "oneMove",
        2 | 3 => "short",
        4 | 5 => "long",
        _ => "veryLong",
    };
    let mut themes = vec![phase.to_owned(), size.to_owned()];
    if let Evaluation::Mate(moves @ 1..) = evaluation {
        themes.extend(["mate".to_owned(), format!("mateIn{}", moves.min(5))]);
    }
    let topics = ply.reasons.best.iter().filter_map(|fact| match fact.topic {
        Topic::BackRank => Some("backRankMate"),
        Topic::Hanging => Some("hangingPiece"),
        Topic::Fork => Some("fork"),
        Topic::Pin => Some("pin"),
        Topic::Skewer => Some("skewer"),
        Topic::Discovered => Some("discoveredAttack"),
        Topic::Trapped => Some("trappedPiece"),
        Topic::PassedPawn => Some("promotion"),
        _ => None,
    });
    themes.extend(topics.map(str::to_owned));
    themes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::testing::fools_mate;

    #[test]
    fn mistakes_are_puzzles() {
        let (_, mut report) = fools_mate();
        let rows = puzzles(&report);
        assert_eq!(rows.len(), 1);
        let [id, fen, moves, rating, .., themes, url, _] = &rows[0];
        assert_eq!(id.len(), 5);
        assert!(fen.starts_with("rnbqkbnr/pppppppp/8/8/8/5P2/PPPPP1PP/RNBQKBNR b"));
        assert_eq!((&moves[..], &rating[..]), ("e7e5 e2e4", "1500"));
        assert_eq!((&themes[..], &url[..]), ("opening oneMove", ""));
        // The other side's mistakes are not the player's, and positions with another good move do
        // not qualify.
        report.side = Some(crate::review::report::Side::Black);
        assert!(puzzles(&report).is_empty());
        report.side = None;
        for second in [Some(Evaluation::Centipawns(-90)), None] {
            report.plies[2].second = second;
            assert!(puzzles(&report).is_empty());
        }
        // A mate needs no other move for comparison.
        report.plies[2].best.as_mut().unwrap().evaluation = Evaluation::Mate(1);
        assert_eq!(puzzles(&report).len(), 1);
    }
}
