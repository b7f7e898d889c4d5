use super::*;
use crate::backend::{CodePolicy, EncoderSpec};
use crate::chess::Ratings;
use crate::network::config::gpt::VocabularyConfig;
use crate::network::{About, Architecture, Network, Parameter, open, open_any};
use crate::torch::ExportPrecision;
use shakmaty::KnownOutcome;

fn config() -> GptConfig {
    GptConfig {
        vocabulary: VocabularyConfig::Uci,
        layers: 3,
        width: 32,
        heads: 4,
        feed_forward: 48,
        context: 64,
        norm: NormKind::Rms,
        positions: PositionKind::Rotary,
        mlp: MlpKind::SwiGlu,
        tied: false,
        outcome: true,
        board: false,
    }
}

/// Returns a configuration with GPT-2's options and the moves of one opening as vocabulary.
fn published() -> GptConfig {
    GptConfig {
        vocabulary: VocabularyConfig::San(["e4", "e5", "Nf3"].map(str::to_owned).into()),
        norm: NormKind::Layer,
        positions: PositionKind::Learned,
        mlp: MlpKind::Gelu,
        tied: true,
        outcome: false,
        ..config()
    }
}

/// Returns the structure, with weights so large that every input affects the outputs.
fn build(config: &GptConfig) -> (Gpt, Weights) {
    tch::manual_seed(4);
    let gpt = Gpt::new(config, Device::Cpu).unwrap();
    let flat = gpt.initial_weights();
    let flat = &flat + Tensor::randn_like(&flat) * 0.2;
    let weights = Weights::from_flat(&flat, gpt.parameters());
    (gpt, weights)
}

/// Returns rows of tokens that are the same in every call.
fn tokens(gpt: &Gpt, rows: i64, columns: i64) -> Tensor {
    let vocabulary = &gpt.vocabulary;
    let tokens = Tensor::arange(rows * columns, (Kind::Int64, Device::Cpu))
        .square()
        .remainder(vocabulary.size() as i64)
        .view([rows, columns]);
    let _ = tokens.narrow(1, 0, 1).fill_(i64::from(vocabulary.start()));
    tokens
}

fn logits(gpt: &Gpt, weights: &Weights, games: &Sequences) -> Tensor {
    gpt.next(weights, &gpt.features(weights, games, None))
        .tokens
}

fn assert_close(one: &Tensor, other: &Tensor) {
    assert_eq!(one.size(), other.size());
    let off = (one - other).abs().max().double_value(&[]);
    assert!(off < 1e-4, "{off}");
}

#[test]
fn cached_steps_match_whole_games() {
    for config in [config(), published()] {
        let (gpt, weights) = build(&config);
        let _guard = tch::no_grad_guard();
        let games = Sequences::of_tokens(tokens(&gpt, 2, 12));
        let whole = logits(&gpt, &weights, &games);
        let mut cache = gpt.cache(&weights, 2, 8);
        // Reads the tokens `from..to` of each game after those in the cache.
        let go_on = |cache: &mut KvCache, from: i64, to: i64| {
            let count = to - from;
            let part = Sequences {
                tokens: games.tokens.narrow(1, from, count),
                positions: games.positions.narrow(1, from, count),
                ratings: games.ratings.shallow_clone(),
                results: games.results.shallow_clone(),
                padding: None,
            };
            let said = gpt.next(&weights, &gpt.features(&weights, &part, Some(cache)));
            assert_close(&said.tokens, &whole.narrow(1, from, count));
        };
        go_on(&mut cache, 0, 5);
        for from in 5..12 {
            go_on(&mut cache, from, from + 1);
        }
        assert_eq!(cache.len(), 12);
        // Take back moves and replay them.
        cache.truncate(3);
        go_on(&mut cache, 3, 9);
        cache.truncate(8);
        go_on(&mut cache, 8, 9);
        // Remove some games from the batch.
        cache.truncate(0);
        assert!(cache.is_empty());
        cache.select(&Tensor::from_slice(&[1i64]));
        let second = Sequences::of_tokens(games.tokens.narrow(0, 1, 1));
        let said = gpt.features(&weights, &second, Some(&mut cache));
        assert_close(&gpt.next(&weights, &said).tokens, &whole.narrow(0, 1, 1));
    }
}

#[test]
fn the_past_is_all_that_counts() {
    for config in [config(), published()] {
        let (gpt, weights) = build(&config);
        let all = tokens(&gpt, 1, 10);
        let whole = logits(&gpt, &weights, &Sequences::of_tokens(all.shallow_clone()));
        let begun = logits(&gpt, &weights, &Sequences::of_tokens(all.narrow(1, 0, 6)));
        assert_close(&begun, &whole.narrow(1, 0, 6));
        let _ = all.narrow(1, 2, 1).fill_(0);
        let other = logits(&gpt, &weights, &Sequences::of_tokens(all));
        assert_close(&other.narrow(1, 0, 2), &whole.narrow(1, 0, 2));
        let later = (other - whole).narrow(1, 2, 8).abs().amax([0, 2], false);
        assert!(later.min().double_value(&[]) > 1e-3);
    }
}

#[test]
fn players_and_the_wanted_result_count_and_what_is_unknown_does_not_move() {
    let (gpt, weights) = build(&config());
    let said = |ratings: [f32; 2], result: i64| {
        let games = Sequences {
            ratings: Tensor::from_slice(&ratings).view([1, 1, 2]),
            results: Tensor::from_slice(&[result]).view([1, 1]),
            ..Sequences::of_tokens(tokens(&gpt, 1, 6))
        };
        logits(&gpt, &weights, &games)
    };
    let unknown = said([0.0, 0.0], 0);
    let differs = |other: Tensor| (other - &unknown).abs().max().double_value(&[]) > 1e-3;
    for (ratings, result) in [
        ([1500.0, 0.0], 0),
        ([0.0, 1500.0], 0),
        ([2200.0, 2200.0], 0),
        ([0.0, 0.0], 1),
        ([0.0, 0.0], 3),
    ] {
        assert!(differs(said(ratings, result)), "{ratings:?} {result}");
    }
    // Ratings interpolate between the low and the high vector, and are clamped outside their range.
    assert_close(&said([3000.0, 500.0], 0), &said([3900.0, 100.0], 0));
}

#[test]
fn one_move_is_embedded_by_its_parts() {
    let (gpt, weights) = build(&config());
    let table = gpt.tokens.table(&weights);
    assert_eq!(table.size(), [gpt.vocabulary.size() as i64, 32]);
    let vector = |mv: &str| {
        let token = (0..1968).find(|&token| gpt.vocabulary.text(token).as_deref() == Some(mv));
        table.get(i64::from(token.unwrap()))
    };
    // Moves with a common origin, destination or promotion share the corresponding vector.
    let [one, other] = ["b1", "f1"].map(|from| vector(&format!("{from}d2")));
    let [three, four] = ["b1", "f1"].map(|from| vector(&format!("{from}e1")));
    assert_close(&(one - other), &(three - four));
    let [queen, knight] = ["q", "n"].map(|piece| vector(&format!("a7a8{piece}")));
    let [over, there] = ["q", "n"].map(|piece| vector(&format!("b2c1{piece}")));
    assert_close(&(queen - knight), &(over - there));
}

#[test]
fn gradients_reach_every_parameter() {
    for config in [config(), published()] {
        let gpt = Gpt::new(&config, Device::Cpu).unwrap();
        tch::manual_seed(4);
        let flat = gpt.initial_weights().set_requires_grad(true);
        let weights = Weights::from_flat(&flat, gpt.parameters());
        let games = Sequences {
            ratings: Tensor::from_slice(&[1500f32, 0.0, 0.0, 1800.0]).view([2, 1, 2]),
            results: Tensor::from_slice(&[1i64, 0]).view([2, 1]),
            ..Sequences::of_tokens(tokens(&gpt, 2, 60))
        };
        let next = gpt.next(&weights, &gpt.features(&weights, &games, None));
        let mut loss = next.tokens.square().sum(Kind::Float);
        if let Some(outcome) = next.outcome {
            loss = &loss + outcome.square().sum(Kind::Float);
        }
        loss.backward();
        let gradients = Weights::from_flat(&flat.grad(), gpt.parameters());
        for (parameter, gradient) in gpt.parameters().iter().zip(gradients.tensors()) {
            let size = gradient.abs().max().double_value(&[]);
            assert!(size > 0.0, "{}", parameter.name);
        }
    }
}

#[test]
fn its_size_is_counted() {
    let (gpt, _) = build(&config());
    let counted: i64 = gpt.parameters().iter().map(Parameter::count).sum();
    assert_eq!(gpt.size().parameters, counted);
    // Per token, each of the three layers multiplies by four square matrices and by the three
    // matrices of the gated network. The head follows.
    let macs = 3 * (4 * 32 * 32 + 3 * 32 * 48) + 32 * gpt.vocabulary.size() as i64;
    assert_eq!(gpt.size().macs, macs);
    // The total also includes attention over half of a full context, and the outcome head.
    assert_eq!(gpt.size().macs_total, macs + 3 * 64 * 32 + 32 * 3);
}

#[test]
fn sizes_that_make_no_network_are_named() {
    let broken = |change: fn(&mut GptConfig)| {
        let mut config = config();
        change(&mut config);
        Gpt::new(&config, Device::Cpu).unwrap_err().to_string()
    };
    assert!(broken(|it| it.layers = 0).contains("layers is 0"));
    assert!(broken(|it| it.context = 1 << 40).contains("context"));
    assert!(broken(|it| it.heads = 32).contains("width (32)"));
    let twice = broken(|it| {
        it.vocabulary = VocabularyConfig::San(vec!["e4".to_owned(), "e4".to_owned()]);
    });
    assert!(twice.contains("`e4` is in the vocabulary twice"), "{twice}");
}

#[test]
fn games_of_any_length_are_read_side_by_side() {
    for config in [config(), published()] {
        let (gpt, weights) = build(&config);
        let _guard = tch::no_grad_guard();
        let conditions = |white, result| Conditions {
            ratings: Ratings {
                white: Some(white),
                black: None,
            },
            result,
        };
        let games = [
            (5, conditions(1200, None)),
            (9, conditions(2400, Some(KnownOutcome::Draw))),
            (1, Conditions::default()),
        ];
        let all = tokens(&gpt, 3, 12);
        let rows: Vec<Vec<i64>> = Vec::try_from(&all).unwrap();
        let rows: Vec<Vec<u16>> = rows
            .iter()
            .map(|row| row.iter().map(|&token| token as u16).collect())
            .collect();
        // Reads one game alone, in a single call.
        let alone = |game: usize, tokens: usize| {
            let (_, conditions) = games[game];
            let sequences = Sequences {
                ratings: Conditions::ratings(&[conditions]),
                results: Conditions::results(&[conditions]),
                ..Sequences::of_tokens(all.narrow(0, game as i64, 1).narrow(1, 0, tokens as i64))
            };
            logits(&gpt, &weights, &sequences).narrow(1, tokens as i64 - 1, 1)
        };
        let begun: Vec<_> = games
            .iter()
            .zip(&rows)
            .map(|(&(count, conditions), row)| (&row[..count], conditions))
            .collect();
        let (mut decoder, next) = Decoder::start(&gpt, &weights, &begun);
        for (game, (count, _)) in games.iter().enumerate() {
            assert_close(&next.tokens.narrow(0, game as i64, 1), &alone(game, *count));
        }
        // The second step continues only two of the games, in reverse order.
        let mut order = vec![0, 1, 2];
        for step in 0..2 {
            let following: Vec<u16> = order
                .iter()
                .map(|&game| rows[game][games[game].0 + step])
                .collect();
            let next = decoder.step(&following);
            for (place, &game) in order.iter().enumerate() {
                let expected = alone(game, games[game].0 + step + 1);
                assert_close(&next.tokens.narrow(0, place as i64, 1), &expected);
            }
            if step == 0 {
                decoder.keep(&[2, 0]);
                order = vec![2, 0];
            }
        }
    }
}

#[test]
fn a_game_begins_in_the_place_of_another() {
    for config in [config(), published()] {
        let (gpt, weights) = build(&config);
        let _guard = tch::no_grad_guard();
        let all = tokens(&gpt, 5, 24);
        let rows: Vec<Vec<i64>> = Vec::try_from(&all).unwrap();
        let row = |game: usize, count: usize| -> Vec<u16> {
            rows[game][..count].iter().map(|&it| it as u16).collect()
        };
        let alone = |game: usize, tokens: usize| {
            let tokens = all.narrow(0, game as i64, 1).narrow(1, 0, tokens as i64);
            let sequences = Sequences::of_tokens(tokens);
            let last = sequences.tokens.size()[1] - 1;
            logits(&gpt, &weights, &sequences).narrow(1, last, 1)
        };
        let begun = [(0, 3), (1, 5)].map(|(game, count)| row(game, count));
        let begun = begun.each_ref().map(|row| (&**row, Conditions::default()));
        let (mut decoder, _) = Decoder::start(&gpt, &weights, &begun);
        let mut read = [(0, 3), (1, 5)];
        // The first new game is shorter than the others. The next is longer than all others. The
        // last two are so short that the padding before both games can be dropped.
        for (place, game, count) in [(1, 2, 2), (0, 3, 12), (1, 4, 1), (0, 1, 1)] {
            let newcomer = row(game, count);
            let next = decoder.replace(&[place], &[(&*newcomer, Conditions::default())]);
            assert_close(&next.tokens, &alone(game, count));
            read[place] = (game, count);
            for _ in 0..3 {
                let following = read.map(|(game, count)| rows[game][count] as u16);
                let next = decoder.step(&following);
                for (place, (game, count)) in read.iter_mut().enumerate() {
                    *count += 1;
                    let found = next.tokens.narrow(0, place as i64, 1);
                    assert_close(&found, &alone(*game, *count));
                }
            }
        }
    }
}

#[test]
fn files_hold_both_methods_and_the_same_weights() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gpt.pt");
    for config in [config(), published()] {
        let (gpt, weights) = build(&config);
        let flat: Vec<Tensor> = weights
            .tensors()
            .iter()
            .map(|it| it.reshape([-1]))
            .collect();
        let about = About {
            correction: None,
            name: "little".to_owned(),
            search_value: String::new(),
            training: serde_json::Value::Null,
            licence: "CC0-1.0".to_owned(),
        };
        let network = Network::new(Box::new(gpt), &Tensor::cat(&flat, 0), about);
        let metadata = network.write(ExportPrecision::F32, &path).unwrap();
        let methods: Vec<&String> = metadata.methods.keys().collect();
        assert_eq!(methods, ["forward", "step"]);
        assert_eq!(
            (metadata.search_value, metadata.encoder),
            (None, EncoderSpec::Moves { context: 64 })
        );
        let file = std::fs::read(&path).unwrap();
        let opened = open_any(&file, CodePolicy::Checked).unwrap();
        let opened = opened.downcast::<Gpt>().unwrap();
        assert_eq!(opened.architecture.config, config);
        for (one, other) in opened
            .weights
            .tensors()
            .iter()
            .zip(network.weights.tensors())
        {
            assert_eq!(one, other);
        }
        let error = open(&file, CodePolicy::Checked).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("do not evaluate single positions"),
            "{error}"
        );
    }
}
