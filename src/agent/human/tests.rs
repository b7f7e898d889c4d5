use super::*;
use crate::backend::tests::Corrected;
use crate::backend::{
    BackendError, Batch, Evaluations, Properties, Random, Uniform, Value, evaluate_people,
};
use crate::chess::Ratings;
use crate::play::MoveStatistics;
use crate::search::Parameters;
use crate::waiting::PATIENCE;
use shakmaty::CastlingMode;
use std::collections::HashSet;
use std::sync::mpsc::channel;
use std::time::Duration;

fn options(seed: u64) -> Options {
    let search = Parameters {
        seed,
        hash: 4,
        ..Parameters::default()
    };
    search.into()
}

/// Returns a game between players with this rating.
fn game(rating: u16) -> Game {
    let mut game = Game::default();
    game.set_ratings(Ratings {
        white: Some(rating),
        black: Some(rating),
    });
    game
}

/// Returns the first `plies` moves of the agent's game against itself, or fewer if the game ends
/// before.
fn play(agent: &mut HumanAgent, rating: u16, plies: usize) -> Vec<String> {
    agent.new_game();
    let mut game = game(rating);
    let moves = (0..plies).map_while(|_| {
        let control = Control::default();
        let choice = agent.choose(&game, &Limits::default(), &control, &mut |_| {});
        let choice = choice.unwrap();
        let best = choice.best?;
        assert_eq!(choice.report.lines[0].moves, [best]);
        let text = game.format_move(best);
        game.play(best);
        Some(text)
    });
    moves.collect()
}

#[test]
fn a_seed_fixes_the_games_of_every_level() {
    for rating in [1200, 2500] {
        let mut agent = HumanAgent::new(Arc::new(Random::new(1)), &options(7));
        let first = play(&mut agent, rating, 12);
        assert_eq!(play(&mut agent, rating, 12), first, "{rating}");
        let mut again = HumanAgent::new(Arc::new(Random::new(1)), &options(7));
        assert_eq!(play(&mut again, rating, 12), first, "{rating}");
        again.adjust(&options(8));
        assert_ne!(play(&mut again, rating, 12), first, "{rating}");
    }
}

#[test]
fn several_lines_are_visited_and_change_no_level() {
    let choose = |rating, lines| {
        let mut options = options(7);
        options.search.multi_pv = lines;
        let mut agent = HumanAgent::new(Arc::new(Random::new(1)), &options);
        let control = Control::default();
        let limits = Limits::default();
        let choice = agent.choose(&game(rating), &limits, &control, &mut |_| {});
        choice.unwrap()
    };
    for (rating, expected) in [(1200, 1), (2400, 5)] {
        let (one, five) = (choose(rating, 1), choose(rating, 5));
        assert_eq!((one.best, &one.statistics), (five.best, &five.statistics));
        assert_eq!(five.report.lines.len(), expected, "{rating}");
        for line in five.report.lines.iter().filter(|_| rating > 2000) {
            let of = five.statistics.iter().find(|of| of.mv == line.moves[0]);
            assert!(of.unwrap().visits > 0);
        }
    }
}

#[test]
fn games_differ_by_themselves() {
    let mut agent = HumanAgent::new(Arc::new(Uniform::default()), &options(0));
    let games: HashSet<_> = (0..4).map(|_| play(&mut agent, 1500, 8)).collect();
    assert_eq!(games.len(), 4);
}

#[test]
fn high_levels_search_and_find_what_wins() {
    let mate = "6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1";
    let mates = |rating| {
        let mut agent = HumanAgent::new(Arc::new(Uniform::default()), &options(0));
        let mut game = Game::from_fen(mate, shakmaty::CastlingMode::Standard).unwrap();
        game.set_ratings(Ratings {
            white: Some(rating),
            black: None,
        });
        let question = Question {
            game: &game,
            limits: Limits::default(),
        };
        let found = (0..40).filter(|_| {
            agent.new_game();
            let choices = agent.choose_many(std::slice::from_ref(&question)).unwrap();
            game.format_move(choices[0].best.unwrap()) == "a1a8"
        });
        found.count()
    };
    // One of 18 moves mates, and the search makes that move much likelier.
    assert!(mates(1300) < 12);
    assert!(mates(2600) > 30);
}

/// A backend whose policy is always certain of the last move in the list.
struct Certain(Uniform);

impl Backend for Certain {
    fn properties(&self) -> &Properties {
        self.0.properties()
    }

    fn evaluate(&self, batch: &Batch, out: &mut Evaluations) -> Result<(), BackendError> {
        out.clear();
        for index in 0..batch.len() {
            let last = batch.moves(index).len() - 1;
            let logits = (0..=last).map(|place| if place == last { 40.0 } else { 0.0 });
            out.push(Value::default(), logits);
        }
        Ok(())
    }
}

#[test]
fn never_plays_moves_that_nobody_plays() {
    let few = Limits {
        nodes: Some(1),
        ..Limits::default()
    };
    for rating in [1200, 1800, 2400] {
        let mut agent = HumanAgent::new(Arc::new(Certain(Uniform::default())), &options(0));
        let game = game(rating);
        let last = game.position().legal_moves().last().copied();
        for _ in 0..4000 {
            agent.new_game();
            let choice = agent.choose(&game, &few, &Control::default(), &mut |_| {});
            assert_eq!(choice.unwrap().best, last, "{rating}");
        }
    }
}

#[test]
fn it_keeps_to_the_moves_allowed() {
    let game = game(2500);
    let allowed = game.parse_move("a2a3").unwrap();
    for rating in [0, 1500, 2500] {
        let mut game = game.clone();
        game.set_ratings(Ratings {
            white: Some(rating),
            black: None,
        });
        let mut agent = HumanAgent::new(Arc::new(Random::new(1)), &options(0));
        let limits = Limits {
            search_moves: vec![allowed],
            ..Limits::default()
        };
        let choice = agent.choose(&game, &limits, &Control::default(), &mut |_| {});
        assert_eq!(choice.unwrap().best, Some(allowed));
    }
}

/// Returns the time spent on a move for which people with this clock would take hours, if a stop or
/// a ponderhit arrives after 50 ms.
fn interrupted(ponder: bool, interrupt: fn(&Control)) -> Duration {
    let mut options = options(1);
    options.human.takes_time = true;
    options.search.move_overhead = 0;
    let mut agent = HumanAgent::new(Arc::new(Uniform::default()), &options);
    let limits = Limits {
        time: Some(1000 * PATIENCE),
        ponder,
        ..Limits::default()
    };
    let control = Arc::new(Control::default());
    let (sender, answers) = channel();
    let began = Instant::now();
    std::thread::spawn({
        let control = control.clone();
        move || {
            let choice = agent.choose(&game(1500), &limits, &control, &mut |_| {});
            let _ = sender.send(choice.unwrap().best);
        }
    });
    std::thread::sleep(Duration::from_millis(50));
    interrupt(&control);
    let best = answers.recv_timeout(PATIENCE).expect("an answer");
    assert!(best.is_some());
    began.elapsed()
}

#[test]
fn human_time_ends_with_stop() {
    for ponder in [false, true] {
        let taken = interrupted(ponder, Control::stop);
        assert!(taken >= Duration::from_millis(50), "{taken:?}");
    }
}

#[test]
fn human_time_goes_on_after_the_ponder_hit() {
    let taken = interrupted(true, |control| {
        control.ponder_hit();
        std::thread::sleep(Duration::from_millis(300));
        control.stop();
    });
    assert!(taken >= Duration::from_millis(350), "{taken:?}");
}

/// Beginners deviate from the policy's likeliest move more often than the policy itself does.
#[test]
fn beginners_stray_from_the_likeliest_move() {
    let strays = |rating: u16, temperature: f32| {
        let mut options = options(0);
        options.search.temperature = temperature;
        let mut agent = HumanAgent::new(Arc::new(Random::new(1)), &options);
        // There are three moves, and the likeliest has most of the probability.
        let fen = "7k/p7/8/8/8/8/8/K7 w - - 0 1";
        let mut game = Game::from_fen(fen, CastlingMode::Standard).unwrap();
        game.set_ratings(self::game(rating).ratings());
        let likeliest = |choice: &Choice| {
            let by_prior = |of: &&MoveStatistics| (of.prior * 1e6) as u64;
            choice
                .statistics
                .iter()
                .max_by_key(by_prior)
                .map(|of| of.mv)
        };
        let strays = (0..2000).filter(|_| {
            agent.new_game();
            let control = Control::default();
            let choice = agent.choose(&game, &Limits::default(), &control, &mut |_| {});
            let choice = choice.unwrap();
            choice.best != likeliest(&choice)
        });
        strays.count()
    };
    // The random backend's policies depend on the rating, so both agents play at the same rating.
    let [beginner, policy] = [0.0, 1.0].map(|temperature| strays(600, temperature));
    assert!(beginner > policy + 50, "{beginner} and {policy}");
    // An explicit temperature applies to all levels.
    assert_eq!(strays(600, 0.01), 0);
    assert_eq!(strays(1200, 0.01), 0);
}

/// A search sees every mate, but people do not, so mates keep the share of the corrected policy.
#[test]
fn a_search_sees_no_mate_for_the_player() {
    let fens = [
        "6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1",
        // White mates on the back rank unless Black prevents it.
        "6k1/5ppp/8/8/8/8/r4PPP/1R4K1 b - - 0 1",
    ];
    for fen in fens {
        for shift in [0.0, 4.0] {
            let backend: Arc<dyn Backend> = Arc::new(Corrected::new(Random::new(1), shift));
            let mut game = Game::from_fen(fen, CastlingMode::Standard).unwrap();
            game.set_ratings(Ratings::both(2200));
            let people = evaluate_people(&*backend, [&game]).unwrap().remove(0);
            let mut agent = HumanAgent::new(backend, &options(0));
            let control = Control::default();
            let choice = agent.choose(&game, &Limits::default(), &control, &mut |_| {});
            let statistics = choice.unwrap().statistics;
            assert_eq!(statistics.len(), people.moves.len());
            let sum: f32 = statistics.iter().map(|of| of.prior).sum();
            assert!((sum - 1.0).abs() < 1e-4, "{sum}");
            let mut settled = 0;
            for (mv, share) in people.priors() {
                let after = crate::chess::after(game.position(), mv);
                let mates = after.is_checkmate();
                if mates || crate::tactics::mates::can_mate(&after) {
                    let of = statistics.iter().find(|of| of.mv == mv).unwrap();
                    assert!((of.prior - share).abs() < 1e-5, "{mv}");
                    settled += 1;
                }
            }
            assert!(settled > 0 && settled < statistics.len(), "{settled}");
            assert!(statistics.iter().any(|of| of.visits > 0));
        }
    }
}
