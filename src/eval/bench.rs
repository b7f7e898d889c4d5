//! The search, measured on fixed positions: its nodes, speed and memory.
//!
//! Without a node limit, every position is searched to the same mean leaf depth. On the random
//! backend, whose values and priors are a hash, the number of nodes then depends only on the
//! search. This number is the signature, which shows whether a code change has changed the search.

use crate::backend::BackendError;
use crate::chess::Game;
use crate::play::{Control, Limits};
use crate::search::Search;
use cpu_time::ProcessTime;
use std::time::{Duration, Instant};

/// The mean leaf depth to which the positions are searched for the signature.
pub const SIGNATURE_DEPTH: u32 = 4;

/// The number of nodes in searches of [`POSITIONS`] to [`SIGNATURE_DEPTH`], on the random backend
/// with one thread. It changes only if the search does.
pub const SIGNATURE: u64 = 343_091;

/// The positions: openings, middlegames, endgames.
pub const POSITIONS: [&str; 34] = [
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    // Najdorf, Advance Caro-Kann, Winawer, Marshall, Berlin, Meran, King's Indian.
    "rnbqkb1r/1p2pppp/p2p1n2/8/3NP3/2N1B3/PPP2PPP/R2QKB1R b KQkq - 1 6",
    "rn1qkbnr/pp2pppp/2p5/3pPb2/3P4/5N2/PPP2PPP/RNBQKB1R b KQkq - 2 4",
    "rnbqk1nr/pp3ppp/4p3/2ppP3/3P4/P1P5/2P2PPP/R1BQKBNR b KQkq - 0 6",
    "r1bq1rk1/4bppp/p1p5/1p1nR3/3P4/1BP5/PP3PPP/RNBQ2K1 b - - 0 12",
    "r1bk1b1r/ppp2ppp/2p5/4Pn2/8/5N2/PPP2PPP/RNB2RK1 w - - 0 9",
    "r1bqkb1r/p2n1ppp/2p1pn2/1p6/2BP4/2N1PN2/PP3PPP/R1BQK2R w KQkq - 0 8",
    "r1bq1rk1/ppp2pbp/2np1np1/4p3/2PPP3/2N2N2/PP2BPPP/R1BQ1RK1 w - - 2 8",
    // Positions for testing move generators.
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
    "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1",
    "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8",
    "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10",
    // Bratko and Kopec's positions 10, 12, 19 and 22.
    "3rr1k1/pp3pp1/1qn2np1/8/3p4/PP1R1P2/2P1NQPP/R1B3K1 b - - 0 1",
    "r3r1k1/ppqb1ppp/8/4p1NQ/8/2P5/PP3PPP/R3R1K1 b - - 0 1",
    "3rr3/2pq2pk/p2p1pnp/8/2QBPP2/1P6/P5PP/4RRK1 b - - 0 1",
    "2r2rk1/1bqnbpp1/1p1ppn1p/pP6/N1P1P3/P2B1N1P/1B2QPP1/R2R2K1 b - - 0 1",
    // Win at Chess, positions 1, 2, 141, 200 and 230.
    "2rr3k/pp3pp1/1nnqbN1p/3pN3/2pP4/2P3Q1/PPB4P/R4RK1 w - - 0 1",
    "8/7p/5k2/5p2/p1p2P2/Pr1pPK2/1P1R3P/8 b - - 0 1",
    "4r1k1/p1qr1p2/2pb1Bp1/1p5p/3P1n1R/1B3P2/PP3PK1/2Q4R w - - 0 1",
    "2rqrn1k/pb4pp/1p2pp2/n2P4/2P3N1/P2B2Q1/1B3PPP/2R1R1K1 w - - 0 1",
    "2b5/1r6/2kBp1p1/p2pP1P1/2pP4/1pP3K1/1R3P2/8 b - - 0 1",
    // LCT II, a middlegame and an ending.
    "2r2rk1/1p1bq3/p3p2p/3pPpp1/1P1Q4/P7/2P2PPP/2R1RBK1 b - - 0 1",
    "6k1/4pp1p/3p2p1/P1pPb3/R7/1r2P1PP/3B1P2/6K1 w - - 0 1",
    // Two games between engines.
    "3q1r1k/1b3ppp/p1n5/1p1pPB2/2rP4/P6N/1P2Q1PP/R4RK1 w - - 0 1",
    "3q1rk1/pr1b1p1p/1bp2p2/2ppP3/8/2P1BN2/PPQ3PP/R4RK1 w - - 0 1",
    // Lasker and Reichhelm, Réti, Saavedra, Lucena.
    "8/k7/3p4/p2P1p2/P2P1P2/8/8/K7 w - - 0 1",
    "7K/8/k1P5/7p/8/8/8/8 w - - 0 1",
    "8/8/1KP5/3r4/8/8/8/k7 w - - 0 1",
    "1K1k4/1P6/8/8/8/8/r7/2R5 w - - 0 1",
    // Bishop and knight against the bare king.
    "8/8/8/3k4/8/8/8/1BN1K3 w - - 0 1",
    // Pawn endings, a bishop against pawns, a zugzwang.
    "8/1p3p2/p7/8/2k5/4P1pP/2P1K1P1/8 w - - 0 1",
    "8/6p1/6P1/6Pp/B1p1p2K/6PP/3k2P1/8 w - - 0 1",
    "8/3p1p2/5Ppp/K2R2bk/4pPrr/6Pp/4B2P/3N4 w - - 0 1",
];

/// The total cost of the searches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measurement {
    /// Visits at the roots.
    pub nodes: u64,
    /// The time of the searches alone, without loading and start-up.
    pub elapsed: Duration,
    /// The CPU time of the searches, over all CPUs.
    pub cpu: Duration,
    /// The memory of the trees at the end of each search, in bytes.
    pub bytes: u64,
}

impl Measurement {
    /// Returns the nodes per second of elapsed time.
    pub fn nodes_per_second(&self) -> u64 {
        (self.nodes as f64 / self.elapsed.as_secs_f64().max(1e-9)) as u64
    }
}

/// Searches each of `games` within `limits`, always starting with an empty tree. `done` is called
/// after each search.
///
/// # Errors
/// [`BackendError`] if an evaluation failed.
pub fn run(
    search: &mut Search,
    games: &[Game],
    limits: &Limits,
    mut done: impl FnMut(),
) -> Result<Measurement, BackendError> {
    let mut sum = Measurement::default();
    for game in games {
        search.clear();
        let empty = search.bytes();
        let (clock, cpu) = (Instant::now(), ProcessTime::now());
        let choice = search.run(game, limits, &Control::default(), &mut |_| {})?;
        sum.elapsed += clock.elapsed();
        sum.cpu += cpu.elapsed();
        sum.nodes += choice.report.nodes;
        sum.bytes += search.bytes().saturating_sub(empty) as u64;
        done();
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Random;
    use crate::search::Parameters;
    use shakmaty::{CastlingMode, Position};
    use std::collections::HashSet;
    use std::sync::Arc;

    #[test]
    fn the_positions_are_legal_alive_and_all_different() {
        let mut keys = HashSet::new();
        for fen in POSITIONS {
            let game = Game::from_fen(fen, CastlingMode::Standard).unwrap();
            assert_eq!(game.mode(), CastlingMode::Standard, "{fen}");
            assert_eq!(game.ending(), None, "{fen}");
            assert!(game.position().legal_moves().len() > 1, "{fen}");
            assert!(keys.insert(game.current().key), "{fen}");
        }
    }

    #[test]
    fn searches_are_measured_each_on_its_own() {
        let games: Vec<Game> = [POSITIONS[0], POSITIONS[8], POSITIONS[0]]
            .map(|fen| Game::from_fen(fen, CastlingMode::Standard).unwrap())
            .into();
        let measure = |games: &[Game]| {
            let parameters = Parameters {
                threads: 1,
                ..Parameters::default()
            };
            let mut search = Search::new(Arc::new(Random::new(0)), &parameters);
            let limits = Limits {
                depth: Some(3),
                ..Limits::default()
            };
            let mut done = 0;
            let sum = run(&mut search, games, &limits, || done += 1).unwrap();
            assert_eq!(done, games.len());
            assert!(sum.bytes > sum.nodes && sum.elapsed > Duration::ZERO);
            sum.nodes
        };
        // No search benefits from an earlier one.
        let [first, second, third] = [0, 1, 2].map(|index| measure(&games[index..=index]));
        assert_eq!(first, third);
        assert_eq!(measure(&games), first + second + third);
    }
}
