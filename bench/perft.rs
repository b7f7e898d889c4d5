//! Runs perft to depth 5 on every suite in the shared data: `cargo bench --bench perft`. To change
//! the depth, add it, as in `cargo bench --bench perft -- 4`. To run a single suite, add its name.

#[path = "../tests/perft/suite.rs"]
mod suite;

use shakmaty::CastlingMode;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;
use suite::{Outcome, read};

const DEFAULT_DEPTH: u32 = 5;
const SUITES: [&str; 3] = ["perftsuite.epd", "frcperftsuite.epd", "perft-marcel.epd.gz"];

fn main() -> ExitCode {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/data/epd");
    // Cargo adds `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let depth = arguments.iter().find_map(|argument| argument.parse().ok());
    let depth = depth.unwrap_or(DEFAULT_DEPTH);
    let named = |name: &str| arguments.iter().any(|argument| argument == name);
    let all = !SUITES.into_iter().any(named);
    let mut failed = false;
    for name in SUITES.into_iter().filter(|name| all || named(name)) {
        let path = folder.join(name);
        if !path.exists() {
            println!("skipped: {} does not exist", path.display());
            continue;
        }
        let entries = match read(&path) {
            Ok(entries) => entries,
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::FAILURE;
            }
        };
        let mode = if name.starts_with("frc") {
            CastlingMode::Chess960
        } else {
            CastlingMode::Standard
        };
        let clock = Instant::now();
        let (mut right, mut wrong, mut refused, mut leaves) = (0, 0, 0, 0);
        for entry in &entries {
            match entry.check(mode, depth, u64::MAX) {
                Outcome::Right(counted) => {
                    right += 1;
                    leaves += counted;
                }
                Outcome::Refused(reason) => {
                    refused += 1;
                    println!("refused: {reason}");
                }
                Outcome::Wrong {
                    depth: at,
                    expected,
                    counted,
                } => {
                    wrong += 1;
                    let fen = &entry.fen;
                    println!("wrong: {fen} at depth {at}: {counted} in place of {expected}");
                }
            }
        }
        failed |= wrong > 0;
        let seconds = clock.elapsed().as_secs_f64();
        println!(
            "{name}: {} positions to depth {depth}: {right} right, {wrong} wrong, {refused} refused; \
             {leaves} leaves in {seconds:.1} s, {:.0} million a second",
            entries.len(),
            leaves as f64 / seconds / 1e6
        );
    }
    ExitCode::from(u8::from(failed))
}
