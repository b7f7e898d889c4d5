//! Tests engine networks that were converted from checkpoints.

use super::checkpoint::Checkpoint;
use super::{games, random_parameters, ratings, rows, small};
use shakmaty::Position;
use std::fs;
use std::sync::Arc;
use tessera::agent::{AgentKind, Options};
use tessera::backend::{
    Backend, Batch, CodePolicy, DeviceChoice, Evaluations, Metadata, Precision, Way,
};
use tessera::chess::{Game, Ratings};
use tessera::encode::{InputFormat, policy_index};
use tessera::inference::open_by;
use tessera::interop::maia3;
use tessera::network::{Network, OpenError, Positions};
use tessera::play::{Limits, Question};
use tessera::softmax::softmax;
use tessera::torch::{ExportPrecision, open};

fn network() -> Network {
    let parameters = random_parameters(&small()[1], 13);
    maia3::read(&Checkpoint::new(&parameters).bytes()).unwrap()
}

/// Writes a network; returns its file and metadata.
fn written(network: &Network, precision: ExportPrecision) -> (Vec<u8>, Metadata) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("maia3.pt");
    let metadata = network.write(precision, &path).unwrap();
    (fs::read(path).unwrap(), metadata)
}

/// Returns games whose players have the ratings that [`rows`] gives them.
fn rated_games(count: usize) -> Vec<Game> {
    let mut games = games(count);
    for (index, game) in games.iter_mut().enumerate() {
        let [ours, theirs] = ratings(index).map(|rating| u16::try_from(rating.max(0)).ok());
        let (white, black) = game
            .position()
            .turn()
            .fold_wb((ours, theirs), (theirs, ours));
        game.set_ratings(Ratings { white, black });
    }
    games
}

#[test]
fn the_engine_plays_what_the_network_computes() {
    let _guard = tch::no_grad_guard();
    let network = network();
    let (file, metadata) = written(&network, ExportPrecision::F32);
    metadata.check().unwrap();
    assert_eq!(metadata.format(), Some(InputFormat::Maia3));
    assert_eq!(
        metadata.planes().unwrap().scalars,
        ["self_elo", "opponent_elo"]
    );
    let backend = open_by(
        Way::File,
        &file,
        CodePolicy::Checked,
        DeviceChoice::Cpu,
        Precision::F32,
        1,
    )
    .unwrap();
    assert_eq!(&backend.metadata, &metadata);
    let games = rated_games(150);
    let outputs = network.forward(Positions::Rows(&rows(&games)));
    for start in [0, 1, 8] {
        let games = &games[start..];
        let mut batch = Batch::default();
        for game in games {
            let moves = game.position().legal_moves();
            batch
                .push(game, &moves, &backend.properties().encoder)
                .unwrap();
        }
        let mut found = Evaluations::default();
        backend.evaluate(&batch, &mut found).unwrap();
        for (index, game) in games.iter().enumerate() {
            let row = (start + index) as i64;
            let turn = game.position().turn();
            for (mv, found) in game
                .position()
                .legal_moves()
                .into_iter()
                .zip(found.logits(index))
            {
                let logit = outputs[0].double_value(&[row, policy_index(mv, turn).into()]);
                assert!((f64::from(*found) - logit).abs() < 1e-4);
            }
            let mut wdl = [0, 1, 2].map(|place| outputs[1].double_value(&[row, place]) as f32);
            softmax(&mut wdl, 1.0);
            let value = found.value(index);
            assert!((value.q - (wdl[0] - wdl[2])).abs() < 1e-4);
            assert!((value.d - wdl[1]).abs() < 1e-4);
        }
    }
}

/// With a `top_p` that leaves only the likeliest move, the agent plays the policy's favourite.
#[test]
fn the_human_agent_plays_by_the_rated_policy() {
    let (file, _) = written(&network(), ExportPrecision::F32);
    let cpu = DeviceChoice::Cpu;
    let backend = open_by(
        Way::File,
        &file,
        CodePolicy::Checked,
        cpu,
        Precision::F32,
        1,
    )
    .unwrap();
    assert!(backend.properties().reads_ratings);
    let backend: Arc<dyn Backend> = Arc::new(backend);
    let options = Options {
        top_p: 1e-6,
        ..Options::default()
    };
    let mut agent = AgentKind::Human.build(backend.clone(), &options);
    let mut games = rated_games(20);
    // 1400 is the highest rating at which the agent plays by the policy alone.
    for (game, rating) in games.iter_mut().zip((600..=1400).step_by(20).cycle()) {
        let [white, black] = [rating, 2000 - rating].map(Some);
        game.set_ratings(Ratings { white, black });
    }
    let question = |game| Question {
        game,
        limits: Limits::default(),
    };
    let questions: Vec<Question> = games.iter().map(question).collect();
    let choices = agent.choose_many(&questions).unwrap();
    for (game, choice) in games.iter().zip(choices) {
        let moves = game.position().legal_moves();
        let mut batch = Batch::default();
        batch
            .push(game, &moves, &backend.properties().encoder)
            .unwrap();
        let mut found = Evaluations::default();
        backend.evaluate(&batch, &mut found).unwrap();
        let logits = found.logits(0);
        let best = logits.iter().copied().fold(f32::MIN, f32::max);
        let chosen = moves.iter().position(|&mv| Some(mv) == choice.best);
        // With random weights, some moves are almost equally likely, and batches round differently.
        let short = best - logits[chosen.unwrap()];
        assert!(short < 1e-4, "{short} below the likeliest move");
    }
}

/// An engine file can be converted back: it contains the checkpoint's parameters by name, and its
/// sizes.
#[test]
fn a_file_holds_the_checkpoint() {
    let network = network();
    let (file, metadata) = written(&network, ExportPrecision::F32);
    let (module, read) = open(&file, CodePolicy::Checked).unwrap();
    assert_eq!(read, metadata);
    let again = Network::from_tensors(&read, module.tensors().unwrap()).unwrap();
    assert_eq!(again.architecture.config(), network.architecture.config());
    assert_eq!(again.parameters(), network.parameters());
    let (file_again, metadata_again) = written(&again, ExportPrecision::F32);
    assert_eq!((file_again.len(), metadata_again), (file.len(), metadata));
    let foreign = Metadata {
        architecture: serde_json::json!({ "family": "lc0" }),
        ..read
    };
    let error = Network::from_tensors(&foreign, module.tensors().unwrap());
    assert!(matches!(error.unwrap_err(), OpenError::Description(_)));
    // Apart from the parameters, the file contains only index tables of a few thousand bytes.
    let tensors = network.weights.tensors().iter();
    let parameters: usize = tensors.map(|tensor| tensor.numel()).sum();
    assert!(file.len() < 4 * parameters + (100 << 10), "{}", file.len());
}

#[test]
fn half_precision_is_nearly_as_accurate() {
    let _guard = tch::no_grad_guard();
    let network = network();
    let (file, _) = written(&network, ExportPrecision::Fp16);
    let backend = open_by(
        Way::File,
        &file,
        CodePolicy::Checked,
        DeviceChoice::Cpu,
        Precision::F32,
        1,
    )
    .unwrap();
    let game = &rated_games(1)[0];
    let moves = game.position().legal_moves();
    let mut batch = Batch::default();
    batch
        .push(game, &moves, &backend.properties().encoder)
        .unwrap();
    let mut found = Evaluations::default();
    backend.evaluate(&batch, &mut found).unwrap();
    let policy = &network.forward(Positions::Rows(&rows(std::slice::from_ref(game))))[0];
    for (mv, found) in moves.into_iter().zip(found.logits(0)) {
        let entry = policy_index(mv, game.position().turn());
        assert!((f64::from(*found) - policy.double_value(&[0, entry.into()])).abs() < 0.05);
    }
}
