//! Searches in an imagination that knows the rules exactly or almost.

use crate::backend::{
    Backend, BackendError, Batch, Evaluations, Imagination, Imagined, ImaginedBoard, Properties,
    Scene, Uniform, Value,
};
use crate::chess::Game;
use crate::encode::{POLICY_SIZE, policy_index, policy_move};
use crate::play::{Control, Limits};
use crate::search::{Parameters, Search, WorldOptions};
use parking_lot::Mutex;
use shakmaty::{CastlingMode, Position};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Imagines games exactly, except that at every root it prefers one illegal move.
#[derive(Default)]
struct Seer {
    /// Games, indexed by the number that a board stores.
    games: Mutex<Vec<Game>>,
    scenes: AtomicUsize,
    longest: AtomicUsize,
    is_wrong: bool,
}

/// A policy index that belongs to no legal move in any of the starting positions.
const WRONG: u16 = 0;

impl Seer {
    fn board(&self, game: Game, has_step: bool) -> Arc<ImaginedBoard> {
        let mut games = self.games.lock();
        games.push(game);
        let number = games.len() as u64 - 1;
        Arc::new(ImaginedBoard::new(&number.to_le_bytes(), has_step))
    }

    fn see(&self, game: Game, has_step: bool, asked: &[u16], most: usize) -> Imagined {
        let position = game.position();
        let moves = position.legal_moves();
        let is_over = moves.is_empty();
        let entries = moves.iter().map(|&mv| policy_index(mv, position.turn()));
        let mut likeliest: Vec<(u16, f32)> = entries.map(|entry| (entry, 0.0)).collect();
        if !has_step && self.is_wrong {
            likeliest.insert(0, (WRONG, 9.0));
        }
        let others = (0..POLICY_SIZE as u16).map(|entry| (entry, -9.0));
        let known = likeliest.clone();
        let is_new = |entry: u16| known.iter().all(|(other, _)| *other != entry);
        likeliest.extend(others.filter(|(entry, _)| is_new(*entry)));
        likeliest.truncate(most);
        let is_mate = position.is_checkmate();
        Imagined {
            value: Value {
                q: if is_mate { -1.0 } else { 0.0 },
                d: f32::from(u8::from(!is_mate)),
                ..Value::default()
            },
            board: self.board(game, has_step),
            ended: f32::from(u8::from(is_over)),
            logits: vec![0.0; asked.len()],
            likeliest,
        }
    }
}

impl Imagination for Seer {
    fn bytes(&self) -> usize {
        1 << 16
    }

    fn context(&self) -> usize {
        3
    }

    fn imagine(&self, scenes: &[Scene], most: usize) -> Result<Vec<Imagined>, BackendError> {
        let of = |board: &ImaginedBoard| {
            let number = u64::from_le_bytes(board.bytes().try_into().unwrap());
            self.games.lock()[number as usize].clone()
        };
        self.scenes.fetch_add(scenes.len(), Relaxed);
        let imagined = scenes.iter().map(|scene| match scene {
            Scene::Present { input, moves } => {
                let position = input.position().unwrap();
                let game = Game::new(position, CastlingMode::Standard);
                self.see(game, false, moves, most)
            }
            Scene::After { from, path, mv } => {
                self.longest.fetch_max(path.len(), Relaxed);
                assert!(path.first().is_none_or(|first| first == from));
                let mut game = of(from);
                // An illegal move changes nothing but the side to move.
                if let Some(mv) = policy_move(game.position(), *mv) {
                    game.play(mv);
                }
                self.see(game, true, &[], most)
            }
        });
        Ok(imagined.collect())
    }
}

/// A backend with an imagination.
struct Dreamer(Uniform, Arc<Seer>);

impl Backend for Dreamer {
    fn properties(&self) -> &Properties {
        self.0.properties()
    }

    fn evaluate(&self, batch: &Batch, out: &mut Evaluations) -> Result<(), BackendError> {
        self.0.evaluate(batch, out)
    }

    fn imagination(&self) -> Option<Arc<dyn Imagination>> {
        Some(self.1.clone())
    }
}

fn nodes(count: u64) -> Limits {
    Limits {
        nodes: Some(count),
        ..Limits::default()
    }
}

fn search(seer: Seer, parameters: &Parameters) -> (Search, Arc<Seer>) {
    let seer = Arc::new(seer);
    let backend = Arc::new(Dreamer(Uniform::default(), seer.clone()));
    (
        Search::in_imagination(backend, parameters, &options()),
        seer,
    )
}

fn parameters(threads: usize) -> Parameters {
    Parameters {
        threads,
        ..Parameters::default()
    }
}

fn options() -> WorldOptions {
    WorldOptions {
        top: 40,
        ..WorldOptions::default()
    }
}

/// Two moves mate in two.
const MATE: &str = "7k/8/5K2/8/8/8/8/R7 w - - 0 1";

#[test]
fn finds_tactics_without_the_rules() {
    for threads in [1, 3] {
        let (mut search, seer) = search(Seer::default(), &parameters(threads));
        let game = Game::from_fen(MATE, CastlingMode::Standard).unwrap();
        let choice = search
            .run(&game, &nodes(3000), &Control::default(), &mut |_| {})
            .unwrap();
        let best = choice.best.unwrap();
        let best = game.format_move(best);
        assert!(["f6g6", "f6f7"].contains(&&*best), "{threads}: {best}");
        // Nothing is proven: a mate is only expected, and the line is legal.
        let line = &choice.report.lines[0];
        assert!(matches!(line.score, crate::play::Score::Expected(_)));
        let mut shown = game.clone();
        for &mv in &line.moves {
            assert!(shown.position().legal_moves().contains(&mv));
            shown.play(mv);
        }
        assert_eq!(choice.note, None);
        assert_eq!(choice.report.nodes, 3000);
        // A step looks back on at most `context` moves, including its own.
        assert_eq!(seer.longest.load(Relaxed), 2);
    }
}

#[test]
fn counts_illegal_moves_without_playing_them() {
    let seer = Seer {
        is_wrong: true,
        ..Seer::default()
    };
    let (mut search, _) = search(seer, &parameters(1));
    let game = Game::default();
    let control = Control::default();
    for number in 1..3 {
        let choice = search
            .run(&game, &nodes(200), &control, &mut |_| {})
            .unwrap();
        let note = choice.note.unwrap();
        assert!(note.contains(&format!("({number} of {number} ")), "{note}");
        let legal = game.position().legal_moves();
        assert!(legal.contains(&choice.best.unwrap()));
        assert_eq!(choice.statistics.len(), 20);
        for line in &choice.report.lines {
            assert!(legal.contains(&line.moves[0]));
        }
    }
    // No illegal move is shown, whether there are several lines or only some moves are searched.
    let mut limits = nodes(200);
    let moves = ["a2a3", "h2h4"].map(|mv| game.parse_move(mv).unwrap());
    limits.search_moves = moves.to_vec();
    search.adjust(&Parameters {
        multi_pv: 5,
        ..parameters(1)
    });
    let choice = search.run(&game, &limits, &control, &mut |_| {}).unwrap();
    assert_eq!(choice.report.lines.len(), 2);
    assert!(moves.contains(&choice.best.unwrap()));
}

/// One MiB holds sixteen boards of 64 KiB. Evicted boards are imagined again.
#[test]
fn little_memory_costs_time_and_changes_nothing() {
    let run = |hash: usize| {
        let parameters = Parameters {
            hash,
            ..parameters(1)
        };
        let (mut search, seer) = search(Seer::default(), &parameters);
        let game = Game::from_fen(MATE, CastlingMode::Standard).unwrap();
        let choice = search
            .run(&game, &nodes(600), &Control::default(), &mut |_| {})
            .unwrap();
        let visits: Vec<u64> = choice.statistics.iter().map(|of| of.visits).collect();
        let full = choice.report.memory_use;
        (visits, seer.scenes.load(Relaxed), full)
    };
    let (plenty, enough, _) = run(512);
    let (little, again, full) = run(1);
    assert_eq!(plenty, little);
    assert!(again > enough + 100, "{again} {enough}");
    assert!(full > 0.5 && full <= 1.2, "{full}");
}

#[test]
fn reports_networks_without_imagination() {
    let backend = Arc::new(Uniform::default());
    let mut search = Search::in_imagination(backend, &parameters(1), &options());
    let game = Game::default();
    let error = search
        .run(&game, &nodes(10), &Control::default(), &mut |_| {})
        .unwrap_err();
    assert!(error.to_string().contains("family world"), "{error}");
}
