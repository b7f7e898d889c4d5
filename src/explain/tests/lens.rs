use super::*;
use serde_json::json;

fn lens(network: &Network, steps: usize) -> Lens {
    let (positions, held_out) = (random_positions(120, 1), random_positions(40, 2));
    fit_lens(network, &positions, &held_out, steps, |_, _| {}).unwrap()
}

fn read(lens: &Lens, network: &Network) -> LensReport {
    let game = game(FEN);
    let moves = game.position().legal_moves();
    lens.report(network, &game, &moves).unwrap()
}

#[test]
fn a_lens_of_every_family_ends_with_the_networks_own_outputs() {
    for network in networks() {
        let explained = explain(&network, &game(FEN), &Settings::default()).unwrap();
        assert!(explained.lens.is_none());
        let lens = lens(&network, 0);
        let game = game(FEN);
        let moves = explained.moves.iter();
        let moves: Vec<Move> = moves.map(|it| game.parse_move(&it.uci).unwrap()).collect();
        let found = lens.report(&network, &game, &moves).unwrap();
        assert_eq!((found.positions, found.held_out), (120, 40));
        let [first, second, last] = &found.layers[..] else {
            panic!("the embedding and two layers: {found:?}");
        };
        for (mv, &prior) in explained.moves.iter().zip(&last.policy) {
            assert_close(prior, mv.prior);
        }
        assert_close(last.q, explained.evaluation.q);
        assert!(last.divergence < 1e-5 && last.usual.is_none());
        assert!(first.divergence > 1e-5);
        let usual = [first, second].map(|layer| layer.usual);
        assert_eq!(usual, [0, 1].map(|layer| Some(lens.about.tuned[layer])));
    }
}

#[test]
fn a_lens_is_closer_to_the_outputs_than_the_heads_and_than_its_start() {
    let network = network(chessformer(gab(), false));
    let [start, fitted] = [0, 60].map(|steps| lens(&network, steps));
    for layer in 0..2 {
        let [start, tuned, untuned] = [
            &start.about.tuned,
            &fitted.about.tuned,
            &fitted.about.untuned,
        ]
        .map(|distances| distances[layer]);
        assert!(tuned.divergence < start.divergence, "{tuned:?} {start:?}");
        assert!(
            tuned.divergence < untuned.divergence,
            "{tuned:?} {untuned:?}"
        );
        assert!(tuned.q < untuned.q, "{tuned:?} {untuned:?}");
    }
    assert_eq!(start.about.untuned, fitted.about.untuned);
    // The stated distances are those of reports.
    let games = random_positions(40, 2);
    let mut sum = 0.0;
    let mut count = 0.0;
    for game in &games {
        let moves = game.position().legal_moves();
        if !moves.is_empty() {
            let found = fitted.report(&network, game, &moves).unwrap();
            sum += f64::from(found.layers[1].divergence);
            count += 1.0;
        }
    }
    let stated = fitted.about.tuned[1].divergence;
    assert!(
        (sum / count - stated).abs() < 1e-4,
        "{sum} of {count}, {stated}"
    );
}

#[test]
fn a_file_holds_the_lens_and_belongs_to_its_network() {
    let network = network(chessformer(gab(), false));
    let lens = lens(&network, 0);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.json");
    lens.write(&path).unwrap();
    let stored = Lens::open(&path, &network).unwrap();
    let [one, other] = [&lens, &stored].map(|it| serde_json::to_value(read(it, &network)).unwrap());
    assert_eq!(one, other);
    let other = self::network(chessformer(PositionConfig::Relative, false));
    let error = Lens::open(&path, &other).unwrap_err();
    assert!(matches!(error, LensError::OtherNetwork(_)), "{error}");
    let missing = Lens::open(&folder.path().join("none.json"), &network);
    assert!(matches!(missing.unwrap_err(), LensError::Io(_)));
    let whole = std::fs::read(&path).unwrap();
    let invalid = |bytes: &[u8], what: &str| {
        std::fs::write(&path, bytes).unwrap();
        let error = Lens::open(&path, &network).unwrap_err();
        assert!(matches!(error, LensError::Invalid(_)), "{what}: {error}");
    };
    for length in [0, 1, whole.len() / 2, whole.len() - 2] {
        invalid(&whole[..length], &format!("{length} bytes"));
    }
    let file: serde_json::Value = serde_json::from_slice(&whole).unwrap();
    let infinite = STANDARD.encode([0xffu8; 2 * 32 * 33]);
    for (pointer, value) in [
        ("/format", json!(2)),
        ("/width", json!(0)),
        ("/width", json!(31)),
        ("/width", json!(1u64 << 40)),
        ("/maps", json!([])),
        ("/maps", json!([file["maps"][0]])),
        ("/maps/0", json!("nonsense")),
        ("/maps/1", json!(infinite)),
        ("/about/tuned", json!([])),
    ] {
        let mut changed = file.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        invalid(changed.to_string().as_bytes(), pointer);
    }
}

#[test]
fn what_a_lens_cannot_read_is_refused() {
    let network = network(chessformer(gab(), false));
    let games = random_positions(4, 1);
    let mated = game("rnb1kbnr/pppp1ppp/8/4p3/6Pq/5P2/PPPPP2P/RNBQKBNR w KQkq - 1 3");
    for (positions, held_out) in [(&games[..0], &games[..]), (&games[..], &[mated][..])] {
        let error = fit_lens(&network, positions, held_out, 1, |_, _| {}).unwrap_err();
        assert!(matches!(error, ExplainError::NoPositions), "{error}");
    }
    let lens = fit_lens(&network, &games, &games, 0, |_, _| {}).unwrap();
    let illegal = Game::default().parse_move("e2e4").unwrap();
    let error = lens.report(&network, &game(FEN), &[illegal]).unwrap_err();
    assert!(matches!(error, ExplainError::Illegal), "{error}");
    let tower = self::network(tower());
    let error = lens.report(&tower, &game(FEN), &[]).unwrap_err();
    assert!(matches!(error, ExplainError::NoLayers(_)), "{error}");
}

#[test]
fn effects_of_heads_are_means_of_those_in_the_positions() {
    let network = network(chessformer(gab(), false));
    let games = [Game::default(), game(FEN)];
    let mut told = Vec::new();
    let found = head_effects(&network, &games, |layer, head| told.push((layer, head))).unwrap();
    assert_eq!((told.len(), told[0], told[7]), (8, (1, 1), (2, 4)));
    assert_eq!(found.len(), 8);
    assert!(found.is_sorted_by(|a, b| a.divergence.mean >= b.divergence.mean));
    let settings = settings();
    let explained = games.map(|game| explain(&network, &game, &settings).unwrap());
    for effect in &found {
        let [one, other] = explained.each_ref().map(|explained| {
            let heads = explained.heads.iter();
            let mut same = heads.filter(|it| (it.layer, it.head) == (effect.layer, effect.head));
            let ablation = same.next().unwrap().ablation.as_ref().unwrap();
            let q = (ablation.q - explained.evaluation.q).abs();
            [ablation.divergence, q].map(f64::from)
        });
        for (part, interval) in [effect.divergence, effect.q].iter().enumerate() {
            let mean = (one[part] + other[part]) / 2.0;
            assert!((interval.mean - mean).abs() < 1e-6, "{interval:?} {mean}");
            assert!(interval.low <= interval.mean && interval.mean <= interval.high);
        }
        assert!((0.0..=1.0).contains(&effect.changed.mean));
    }
    let error = head_effects(&network, &[Game::default()], |_, _| {}).unwrap_err();
    assert!(matches!(error, ExplainError::TooFewPositions(2)), "{error}");
    let games = [Game::default(), game(FEN)];
    let error = head_effects(&self::network(tower()), &games, |_, _| {}).unwrap_err();
    assert!(matches!(error, ExplainError::NoAttention(_)), "{error}");
}
