//! Random but valid client behaviour, in any order and at any moment, with 8 threads on any number
//! of CPUs.

use crate::uci::{Engine, endurance, resident, worked};
use rand::seq::{IndexedRandom, IteratorRandom};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use shakmaty::{CastlingMode, Position};
use std::collections::VecDeque;
use std::thread;
use std::time::{Duration, Instant};
use tessera::chess::Game;

/// Duration of the test unless `TESSERA_ENDURANCE` is set.
const BRIEFLY: Duration = Duration::from_secs(5);
/// Maximum CPU time of all threads for an answer to `isready` or `stop`.
const PROMPT: Duration = Duration::from_secs(15);
/// Maximum `Hash`, in MiB, that a client requests here.
const MOST_HASH: usize = 16;
/// Number of MiB by which the engine may grow: two trees, because the new one may be created before
/// the old one is freed, and the overhead of threads and allocators.
const GROWTH: usize = 2 * MOST_HASH + 64;

const POSITIONS: [&str; 6] = [
    "startpos",
    "fen r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "fen 8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
    "fen 8/8/8/4k3/8/3K4/3Q4/8 w - - 30 80",
    "fen 6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1",
    "fen 7k/5Q2/8/6K1/8/8/8/8 w - - 98 120",
];

const OPTIONS: [(&str, &[&str]); 12] = [
    ("Threads", &["8", "8", "8", "3", "1"]),
    ("Hash", &["1", "2", "16"]),
    ("MultiPV", &["1", "1", "3", "500"]),
    ("Backend", &["random", "uniform"]),
    ("Transpositions", &["true", "false"]),
    ("MinibatchSize", &["0", "1", "7", "256"]),
    ("MaxCollisionVisits", &["1", "80000"]),
    ("TwoFoldDraws", &["true", "false"]),
    ("Temperature", &["0", "1"]),
    ("GumbelMoves", &["0", "0", "8"]),
    ("DirichletNoiseEpsilon", &["0", "0.25"]),
    ("VerboseMoveStats", &["true", "false", "false"]),
];

/// A client and its outstanding requests.
struct Client {
    engine: Engine,
    random: Xoshiro256PlusPlus,
    /// The starting position as last sent.
    start: &'static str,
    game: Game,
    /// The valid answers to each unanswered `go`.
    asked: VecDeque<Vec<String>>,
    began: Instant,
    slowest_ready: Duration,
    slowest_stop: Duration,
    answers: usize,
}

impl Client {
    fn new(seed: u64) -> Client {
        let mut client = Client {
            engine: Engine::random(),
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            start: POSITIONS[0],
            game: Game::default(),
            asked: VecDeque::new(),
            began: Instant::now(),
            slowest_ready: Duration::ZERO,
            slowest_stop: Duration::ZERO,
            answers: 0,
        };
        client.engine.say("setoption name Threads value 8");
        client.engine.say("setoption name Hash value 1");
        client
    }

    /// Checks a line against the outstanding requests.
    fn hear(&mut self, line: &str) {
        let Some(answer) = line.strip_prefix("bestmove ") else {
            return;
        };
        let best = answer.split(' ').next().unwrap();
        let legal = self.asked.pop_front();
        let legal = legal.unwrap_or_else(|| panic!("unexpected `{line}`"));
        assert!(
            legal.iter().any(|mv| mv == best),
            "`{line}`, not of {legal:?}"
        );
        self.answers += 1;
    }

    fn ready(&mut self) {
        let asked = worked(&self.engine, self.began);
        for line in self.engine.settle() {
            self.hear(&line);
        }
        let taken = worked(&self.engine, self.began) - asked;
        self.slowest_ready = self.slowest_ready.max(taken);
    }

    /// Stops all searches and waits for their answers.
    fn rest(&mut self) {
        let asked = worked(&self.engine, self.began);
        self.engine.say("stop");
        while !self.asked.is_empty() {
            for line in self.engine.wait_for("bestmove ") {
                self.hear(&line);
            }
        }
        let taken = worked(&self.engine, self.began) - asked;
        self.slowest_stop = self.slowest_stop.max(taken);
        self.ready();
    }

    fn set_an_option(&mut self) {
        let (name, values) = OPTIONS.choose(&mut self.random).unwrap();
        let value = values.choose(&mut self.random).unwrap();
        self.engine
            .say(&format!("setoption name {name} value {value}"));
    }

    /// Continues the game by some moves, or starts a new one.
    fn set_a_position(&mut self) {
        let over = self.game.ending().is_some();
        if over || self.random.random_bool(0.2) {
            self.start = POSITIONS.choose(&mut self.random).unwrap();
            self.game = match self.start.strip_prefix("fen ") {
                Some(fen) => Game::from_fen(fen, CastlingMode::Standard).unwrap(),
                None => Game::default(),
            };
        }
        for _ in 0..self.random.random_range(0..=3) {
            let moves = self.game.position().legal_moves();
            if let Some(&mv) = moves.choose(&mut self.random) {
                self.game.play(mv);
            }
        }
        let mut replayed = self.game.clone();
        let played: Vec<_> = self
            .game
            .plies()
            .iter()
            .filter_map(|ply| ply.played)
            .collect();
        replayed.truncate(1);
        let mut line = format!("position {}", self.start);
        if !played.is_empty() {
            line.push_str(" moves");
        }
        for mv in played {
            line.push(' ');
            line.push_str(&replayed.format_move(mv));
            replayed.play(mv);
        }
        self.engine.say(&line);
    }

    /// Sends a `go`; returns whether it ends by itself.
    fn go(&mut self) -> bool {
        let random = &mut self.random;
        let mut legal: Vec<String> = {
            let moves = self.game.position().legal_moves();
            moves.iter().map(|&mv| self.game.format_move(mv)).collect()
        };
        let mut line = match random.random_range(0..8) {
            0 => "go infinite".to_owned(),
            1 => "go ponder wtime 300 btime 300 winc 10 binc 10".to_owned(),
            2 => format!(
                "go wtime {0} btime {0} winc 5 binc 5",
                random.random_range(1..400)
            ),
            3 => format!("go movetime {}", random.random_range(0..60)),
            4 => format!("go mate {} movetime 50", random.random_range(1..4)),
            5 => format!("go depth {} movetime 50", random.random_range(1..9)),
            _ => format!("go nodes {}", random.random_range(1..20_000)),
        };
        if legal.len() > 1 && random.random_bool(0.25) {
            let some = random.random_range(1..=legal.len().min(3));
            legal = legal.into_iter().choose_multiple(random, some);
            line.push_str(&format!(" searchmoves {}", legal.join(" ")));
        }
        if legal.is_empty() {
            legal.push("(none)".to_owned());
        }
        self.engine.say(&line);
        self.asked.push_back(legal);
        !line.contains("infinite") && !line.contains("ponder")
    }

    /// Runs a search that other commands interrupt.
    fn round(&mut self) {
        for _ in 0..self.random.random_range(0..3) {
            self.set_an_option();
        }
        if self.random.random_bool(0.05) {
            self.engine.say("ucinewgame");
        }
        if self.random.random_bool(0.9) {
            self.set_a_position();
        }
        let ends = self.go();
        for _ in 0..self.random.random_range(0..4) {
            match self.random.random_range(0..10) {
                0 => self.ready(),
                1 => self.engine.say("ponderhit"),
                2 => self.set_an_option(),
                3 => self.set_a_position(),
                4 => self.engine.say("setoption name Clear Hash"),
                5 => self.engine.say("ucinewgame"),
                // Spreads the commands over the search.
                _ => thread::sleep(Duration::from_millis(self.random.random_range(0..30))),
            }
        }
        // Some searches end by themselves, some are stopped, and the next `go` cuts some short.
        if ends && self.random.random_bool(0.3) {
            while !self.asked.is_empty() {
                for line in self.engine.wait_for("bestmove ") {
                    self.hear(&line);
                }
            }
        } else if self.random.random_bool(0.7) {
            self.rest();
        }
    }
}

#[test]
fn endures_any_client() {
    let duration = endurance(BRIEFLY);
    let seed =
        std::env::var("TESSERA_SEED").map_or_else(|_| rand::random(), |seed| seed.parse().unwrap());
    println!("TESSERA_SEED={seed}");
    let mut client = Client::new(seed);
    client.rest();
    let before = resident(&client.engine);
    let began = Instant::now();
    let mut rounds = 0;
    while began.elapsed() < duration {
        client.round();
        rounds += 1;
        if rounds % 16 == 0 {
            client.rest();
            if let (Some(before), Some(now)) = (before, resident(&client.engine)) {
                assert!(now < before + GROWTH, "{before} MiB have become {now}");
            }
        }
    }
    client.rest();
    println!(
        "{rounds} rounds, {} answers; readyok after {:?} of work at most, everything stopped after {:?}; \
         {before:?} MiB have become {:?}",
        client.answers,
        client.slowest_ready,
        client.slowest_stop,
        resident(&client.engine),
    );
    assert!(client.slowest_ready < PROMPT && client.slowest_stop < PROMPT);
    client.engine.say("quit");
    let said = client.engine.ends();
    assert!(
        !said.iter().any(|line| line.starts_with("bestmove")),
        "{said:?}"
    );
}
