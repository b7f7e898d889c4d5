use super::*;
use crate::network::About;
use crate::network::Architecture;
use crate::network::gpt::GptConfig;
use rand::SeedableRng;

/// Returns a generator for an untrained network with this context length.
fn generator(context: i64) -> Generator {
    let config = serde_json::json!({
        "layers": 2, "width": 32, "heads": 2, "feed_forward": 48, "context": context,
    });
    let config: GptConfig = serde_json::from_value(config).unwrap();
    let gpt = Gpt::new(&config, Device::Cpu).unwrap();
    tch::manual_seed(1);
    let flat = gpt.initial_weights();
    let about = About {
        correction: None,
        name: "newborn".to_owned(),
        search_value: String::new(),
        training: serde_json::Value::Null,
        licence: "CC0-1.0".to_owned(),
    };
    let network = Network::new(Box::new(gpt), &flat, about);
    Generator::new(network, Kind::Float, Device::Cpu)
}

fn prompts(count: u64, moves: &str) -> Vec<Prompt> {
    let mut game = Game::default();
    for mv in moves.split_whitespace() {
        game.play(game.parse_move(mv).unwrap());
    }
    (0..count)
        .map(|seed| Prompt {
            game: game.clone(),
            conditions: Conditions::default(),
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
        })
        .collect()
}

#[test]
fn games_are_legal_and_begin_as_asked() {
    let generator = generator(40);
    let sampling = Sampling::default();
    let written = generator
        .write(prompts(12, "e2e4 c7c5"), &sampling)
        .unwrap();
    assert_eq!(written.len(), 12);
    for game in &written {
        let opening: Vec<_> = game.game.plies()[1..3]
            .iter()
            .map(|ply| ply.played.unwrap())
            .map(|mv| game.game.format_move(mv))
            .collect();
        assert_eq!(opening, ["e2e4", "c7c5"]);
        assert!(game.game.plies().len() <= 40);
        match &game.end {
            WrittenEnd::Rules(ending) => assert_eq!(game.game.ending(), Some(*ending)),
            WrittenEnd::Said(end) => assert!(!end.is_mate()),
            WrittenEnd::Unfinished => assert_eq!(game.game.plies().len(), 40),
            WrittenEnd::Illegal(text) => panic!("{text}"),
        }
        assert_eq!(game.result().is_none(), game.end == WrittenEnd::Unfinished);
    }
    // Each game has its own random generator, so every run gives the same games.
    let texts = |written: &[Written]| -> Vec<String> {
        let last = written.iter().map(|it| format!("{:?}", it.game.position()));
        last.collect()
    };
    let again = generator
        .write(prompts(12, "e2e4 c7c5"), &sampling)
        .unwrap();
    assert_eq!(texts(&written), texts(&again));
    let alone = generator.write(prompts(1, "e2e4 c7c5"), &sampling).unwrap();
    assert_eq!(texts(&written)[..1], texts(&alone));
    assert_ne!(texts(&written)[0], texts(&written)[1]);
}

#[test]
fn without_the_mask_a_newborn_breaks_the_rules() {
    let sampling = Sampling {
        legal_only: false,
        ..Sampling::default()
    };
    let written = generator(40).write(prompts(20, ""), &sampling).unwrap();
    let is_illegal = |it: &&Written| matches!(it.end, WrittenEnd::Illegal(_));
    // In the initial position, 20 of 1,968 moves are legal.
    assert!(written.iter().filter(is_illegal).count() >= 15);
    assert!(
        written
            .iter()
            .filter(is_illegal)
            .all(|it| it.result().is_none())
    );
}

#[test]
fn games_that_are_over_stay_as_they_are() {
    let generator = generator(40);
    let mate = "f2f3 e7e5 g2g4 d8h4";
    let mut both = prompts(1, mate);
    both.extend(prompts(1, "d2d4"));
    let written = generator.write(both, &Sampling::default()).unwrap();
    assert_eq!(written[0].end, WrittenEnd::Rules(Ending::Checkmate));
    assert_eq!(written[0].result(), Some(Wdl::Loss));
    assert_eq!(written[0].game.plies().len(), 5);
    assert!(written[1].game.plies().len() > 1);
    let long = prompts(1, "g1f3 g8f6 f3g1 f6g8 e2e4");
    assert!(matches!(
        super::tests::generator(4).write(long, &Sampling::default()),
        Err(Unencodable::TooLong { .. })
    ));
}

#[test]
fn games_that_begin_in_the_place_of_others_are_the_same() {
    let generator = generator(60);
    let sampling = Sampling::default();
    let openings = [
        "",
        "e2e4 c7c5",
        "f2f3 e7e5 g2g4 d8h4",
        "d2d4 d7d5 c2c4 e7e6 b1c3 g8f6",
    ];
    let all: Vec<Prompt> = (0..30)
        .map(|number| {
            let mut prompt = prompts(1, openings[number % openings.len()]).remove(0);
            prompt.random = Xoshiro256PlusPlus::seed_from_u64(number as u64);
            prompt
        })
        .collect();
    let text = |written: &Written| format!("{:?} {:?}", written.game.position(), written.end);
    let write = |games: usize, threads: usize| {
        let mut texts = vec![String::new(); all.len()];
        let prompts = all.iter().cloned().map(Ok::<Prompt, Unencodable>);
        generator
            .write_each(
                prompts,
                SideBySide { games, threads },
                &sampling,
                |number, written| {
                    assert!(texts[number].is_empty(), "{number} twice");
                    texts[number] = text(&written);
                    Ok(())
                },
            )
            .unwrap();
        texts
    };
    let alone = write(1, 1);
    assert!(alone.iter().all(|text| !text.is_empty()));
    assert_eq!(write(4, 1), alone);
    assert_eq!(write(30, 1), alone);
    assert_eq!(write(64, 1), alone);
    assert_eq!(write(4, 3), alone);
}

#[test]
fn whoever_takes_the_games_can_stop() {
    let generator = generator(40);
    for threads in [1, 2] {
        let rows = SideBySide { games: 4, threads };
        let prompts = prompts(200, "").into_iter().map(anyhow::Ok);
        let mut taken = 0;
        let result = generator.write_each(prompts, rows, &Sampling::default(), |_, _| {
            taken += 1;
            anyhow::ensure!(taken < 3, "enough");
            Ok(())
        });
        assert_eq!(result.unwrap_err().to_string(), "enough");
        // When one thread fails, each other thread may still take one prompt before it stops.
        assert!((3..=2 + threads).contains(&taken), "{taken}");
    }
}
