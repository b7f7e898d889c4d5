//! Input lines with mistakes. The tests of the real program also include this file.

use rand::Rng;
use rand::seq::IndexedRandom;
use rand_xoshiro::Xoshiro256PlusPlus;

/// The seed lines: valid client input, and invalid input.
const SEEDS: [&str; 34] = [
    "uci",
    "isready",
    "ucinewgame",
    "debug on",
    "register later",
    "stop",
    "ponderhit",
    "d",
    "help",
    "position startpos",
    "position startpos moves e2e4 e7e5 g1f3 b8c6 f1b5",
    "position fen r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1 moves e1g1",
    "position fen 8/8/8/8/8/8/4K2k/8 w - -",
    "position fen nrk1bbrq/pppppppp/8/8/8/8/PPPPPPPP/NRK1BBRQ w GBgb - 0 1",
    "position fen 7k/5Q2/6K1/8/8/8/8/8 b - - 0 1",
    "position startpos moves 0000 e2e4",
    "go",
    "go ",
    "go nodes 1",
    "go nodes 18446744073709551616",
    "go depth 256",
    "go mate 300 searchmoves e2e4 d2d4",
    "go movetime 0",
    "go movetime -1",
    "go infinite",
    "go ponder wtime 1000 btime 1000 winc 10 binc 10 movestogo 999",
    "go wtime -30 btime 99999999999999999999",
    "go perft 2",
    "setoption name MultiPV value 3",
    "setoption name Clear Hash",
    "setoption name UCI_Chess960 value true",
    "setoption name Hash value 99999999999999999999",
    "setoption name CPuct value NaN",
    "setoption name value value value",
];

const CHARACTERS: [char; 18] = [
    ' ',
    '\t',
    '\0',
    '\r',
    '-',
    '0',
    '9',
    'a',
    'h',
    'Q',
    '/',
    '<',
    '.',
    '\u{feff}',
    'é',
    '棋',
    '\u{202e}',
    '\u{1f600}',
];

/// Returns a plausible line of client input with up to three mistakes.
pub(super) fn mutated(random: &mut Xoshiro256PlusPlus) -> String {
    let mut line: Vec<char> = SEEDS
        .choose(random)
        .expect("there are some")
        .chars()
        .collect();
    for _ in 0..random.random_range(0..4) {
        let at = random.random_range(0..=line.len());
        match random.random_range(0..6) {
            0 => line.insert(at, *CHARACTERS.choose(random).expect("there are some")),
            1 if at < line.len() => {
                line.remove(at);
            }
            2 if at < line.len() => {
                line[at] = char::from(random.random_range(b' '..=b'~'));
            }
            3 => line.truncate(at),
            4 => {
                let other = SEEDS.choose(random).expect("there are some");
                line.splice(at..at, " ".chars().chain(other.chars()));
            }
            _ => {
                let words: String = line.iter().collect();
                let mut words: Vec<&str> = words.split(' ').collect();
                let from = random.random_range(0..words.len());
                let to = random.random_range(0..words.len());
                words.swap(from, to);
                line = words.join(" ").chars().collect();
            }
        }
    }
    // The log file is the only option with effects outside the session, and `quit` has its own
    // test.
    let line: String = line.into_iter().collect();
    line.replace("quit", "stop").replace("LogFile", "Net")
}
