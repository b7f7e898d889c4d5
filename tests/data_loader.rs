//! Tests of the data loader on shards made from real games.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use tessera::chess::Ratings;
use tessera::data::Curve;
use tessera::data::label::{EvalRefersTo, TargetRules};
use tessera::data::loader::{Batch, Loader, LoaderError};
use tessera::data::loader::{Cursor, Sampling, SourceConfig, Split};
use tessera::data::pgn::{open, parse_game};
use tessera::data::record::Record;
use tessera::data::shard::{Block, Header, ShardWriter};

/// Creates a shard of `games` with one block for every two of them. `edit` changes each game, given
/// its number.
fn shard(folder: &Path, games: &str, noise: bool, edit: impl Fn(usize, &mut Record)) -> PathBuf {
    let rules = TargetRules {
        evals: Some(EvalRefersTo::MovePlayed),
        played: false,
        noise,
        curve: Curve::Lichess,
        alternatives: None,
    };
    let header = Header {
        sources: vec![games.to_owned()],
        rules,
    };
    let input = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/games")
        .join(games);
    let mut records: Vec<_> = open(&input, |file| file)
        .unwrap()
        .map(|text| parse_game(&text.unwrap()).unwrap())
        .collect();
    for (game, record) in records.iter_mut().enumerate() {
        edit(game, record);
    }
    let path = folder.join(games).with_extension("shard");
    let mut writer = ShardWriter::create(&path, &header).unwrap();
    for pair in records.chunks(2) {
        let samples = pair.iter().map(|record| rules.samples(record)).sum();
        writer.append(&Block::new(pair, samples).unwrap()).unwrap();
    }
    writer.finish().unwrap();
    path
}

fn sampling(folder: &Path) -> Sampling {
    let shards = [
        ("tcec-standard.pgn", false),
        ("tcec-chess960.pgn", false),
        ("stockfish-noise.pgn", true),
    ];
    let source = |(games, noise)| SourceConfig {
        path: shard(folder, games, noise, |_, _| {}),
        rate: 1.0,
    };
    Sampling {
        shards: shards.map(source).into(),
        validation: 0.2,
        group: 800,
        seed: 7,
        ..Sampling::default()
    }
}

/// Returns everything in a batch, in a form that can be compared even if it contains NaN.
fn contents(batch: &Batch) -> (Vec<i64>, Vec<i64>, Vec<u32>) {
    let mut floats = Vec::new();
    for column in [
        &batch.columns.policy.probability,
        &batch.columns.q,
        &batch.columns.short_term,
        &batch.columns.moves_left,
        &batch.columns.weight,
    ] {
        floats.extend(column.iter().map(|value| value.to_bits()));
    }
    let integers = [
        &batch.columns.policy.row,
        &batch.columns.policy.index,
        &batch.columns.result,
    ];
    let words = [batch.columns.input_words(), batch.columns.legal_words()].concat();
    (
        words,
        integers.into_iter().flatten().copied().collect(),
        floats,
    )
}

fn load(sampling: &Sampling, position: Cursor, threads: usize) -> Loader {
    crate::support::loader(sampling, Split::Train, 64, position, threads).unwrap()
}

#[test]
fn every_position_resumes_with_the_batches_that_would_have_followed() {
    let folder = tempfile::tempdir().unwrap();
    let sampling = sampling(folder.path());
    let batches: Vec<Batch> = load(&sampling, Cursor::default(), 1)
        .map(Result::unwrap)
        .take_while(|batch| batch.next.epoch < 3)
        .collect();
    let groups = batches.iter().map(|batch| batch.next.group).max().unwrap();
    assert!(
        groups >= 2 && batches.len() > 40,
        "{groups} groups, {} batches",
        batches.len()
    );
    for (place, batch) in batches.iter().enumerate().step_by(3) {
        let resumed = load(&sampling, batch.next, 3);
        for (expected, found) in batches[place + 1..].iter().zip(resumed).take(4) {
            let found = found.unwrap();
            assert_eq!(found.next, expected.next);
            assert_eq!(contents(&found), contents(expected));
        }
    }
}

#[test]
fn an_epoch_holds_every_training_sample_once_and_another_order_next_time() {
    let folder = tempfile::tempdir().unwrap();
    let sampling = Sampling {
        group: 1_000_000,
        ..sampling(folder.path())
    };
    let count = |loader: Loader, epoch| {
        let mut counts = HashMap::new();
        let mut first = None;
        for batch in loader
            .map(Result::unwrap)
            .take_while(|batch| batch.next.epoch <= epoch)
        {
            first.get_or_insert_with(|| contents(&batch));
            for (row, &index) in batch
                .columns
                .policy
                .row
                .iter()
                .zip(&batch.columns.policy.index)
            {
                let input = batch.columns.inputs[*row as usize];
                *counts.entry((*input.words(), index)).or_insert(0) += 1;
            }
        }
        (counts, first)
    };
    let single = |split, epoch| {
        let position = Cursor {
            epoch,
            ..Cursor::default()
        };
        crate::support::loader(&sampling, split, 1, position, 2).unwrap()
    };
    let (train, first) = count(single(Split::Train, 0), 0);
    let (again, other) = count(single(Split::Train, 1), 1);
    let (validation, _) = count(single(Split::Validation, 0), u64::MAX);
    assert!(!validation.is_empty() && train.len() > validation.len());
    assert_ne!(first, other);
    // The last batch ends the epoch, so all other batches were counted.
    let (total, total_again): (i32, i32) = (train.values().sum(), again.values().sum());
    assert_eq!(total, total_again);
    let missing = train
        .iter()
        .filter(|(key, count)| again.get(key) != Some(count))
        .count();
    assert!(missing <= 2, "{missing} samples differ between epochs");
    // Each game is in only one of the splits, although games in different splits may share book
    // positions and repeated positions.
    let shared = validation
        .keys()
        .filter(|&key| train.contains_key(key))
        .count();
    assert!(
        shared * 20 < validation.len(),
        "{shared} of {}",
        validation.len()
    );
}

#[test]
fn samples_of_a_game_are_spread_over_the_epoch() {
    let folder = tempfile::tempdir().unwrap();
    let path = shard(folder.path(), "tcec-standard.pgn", false, |game, record| {
        // The rating identifies the game, because every sample of its main line contains it.
        let rating = Some(game as u16 + 1);
        record.ratings = Ratings {
            white: rating,
            black: rating,
        };
    });
    // Returns the largest share of a game's samples that are in the same group, and the number of
    // samples in the epoch.
    let measure = |spread| {
        let sampling = Sampling {
            shards: vec![SourceConfig {
                path: path.clone(),
                rate: 1.0,
            }],
            spread,
            validation: 0.0,
            group: 400,
            seed: 3,
            ..Sampling::default()
        };
        let mut by_group: HashMap<(u64, u32), u32> = HashMap::new();
        let mut by_game: HashMap<u32, u32> = HashMap::new();
        let mut samples = 0;
        for batch in
            crate::support::loader(&sampling, Split::Train, 1, Cursor::default(), 2).unwrap()
        {
            let batch = batch.unwrap();
            if batch.next.epoch > 0 {
                break;
            }
            samples += 1;
            if let [Some(rating), _] = batch.columns.inputs[0].ratings() {
                let game = u32::from(rating);
                *by_group.entry((batch.next.group, game)).or_default() += 1;
                *by_game.entry(game).or_default() += 1;
            }
        }
        let shares = by_group
            .iter()
            .map(|(&(_, game), &count)| count as f64 / f64::from(by_game[&game]));
        (shares.fold(0.0, f64::max), samples)
    };
    let (whole, samples) = measure(1);
    let (spread, spread_samples) = measure(32);
    assert!(samples > 2000, "{samples} samples are too few");
    assert_eq!(samples, spread_samples);
    assert!(whole > 0.95 && spread < 0.6, "{whole}, {spread}");
}

#[test]
fn rates_thin_a_source_and_resample_each_epoch() {
    let folder = tempfile::tempdir().unwrap();
    let mut sampling = sampling(folder.path());
    let whole = load(&sampling, Cursor::default(), 1).samples;
    for source in &mut sampling.shards {
        source.rate = 0.25;
    }
    let loader = crate::support::loader(&sampling, Split::Train, 1, Cursor::default(), 2).unwrap();
    let batches: Vec<Batch> = loader
        .map(Result::unwrap)
        .take_while(|batch| batch.next.epoch < 2)
        .collect();
    let of = |epoch| -> Vec<_> {
        let samples = batches.iter().filter(|batch| batch.next.epoch == epoch);
        let mut samples: Vec<_> = samples.map(contents).collect();
        samples.sort();
        samples
    };
    let (first, second) = (of(0), of(1));
    let share = first.len() as f64 / whole as f64;
    assert!((share - 0.25).abs() < 0.05, "{share}");
    assert_ne!(first, second);
}

/// A validation of a few thousand samples reads only that many, from the start.
#[test]
fn validation_starts_with_samples_of_every_source() {
    let folder = tempfile::tempdir().unwrap();
    let whole = Sampling {
        validation: 0.8,
        group: 1_000_000,
        ..sampling(folder.path())
    };
    let batch = |sampling: &Sampling, size| -> Vec<Vec<i64>> {
        let mut loader =
            crate::support::loader(sampling, Split::Validation, size, Cursor::default(), 2)
                .unwrap();
        let batch = loader.next().unwrap().unwrap();
        let inputs = batch.columns.inputs.iter();
        inputs
            .map(|input| bytemuck::cast_slice(input.words()).to_vec())
            .collect()
    };
    let first = batch(&whole, 100);
    for source in &whole.shards {
        let alone = Sampling {
            shards: vec![source.clone()],
            ..whole.clone()
        };
        let of_source = batch(&alone, 1_000_000);
        let shared = first.iter().filter(|input| of_source.contains(input));
        assert!(shared.count() > 2, "{}", source.path.display());
    }
}

#[test]
fn validation_ends_and_keeps_its_order() {
    let folder = tempfile::tempdir().unwrap();
    let sampling = sampling(folder.path());
    let run = |batch_size, threads| -> Vec<Vec<i64>> {
        crate::support::loader(
            &sampling,
            Split::Validation,
            batch_size,
            Cursor::default(),
            threads,
        )
        .unwrap()
        .flat_map(|batch| {
            let batch = batch.unwrap();
            let inputs = batch.columns.inputs.iter();
            inputs
                .map(|input| bytemuck::cast_slice(input.words()).to_vec())
                .collect::<Vec<_>>()
        })
        .collect()
    };
    let expected = run(1, 1);
    assert!(expected.len() > 100);
    assert_eq!(run(64, 3), expected);
    assert_eq!(run(1_000_000, 2), expected);
}

#[test]
fn invalid_settings_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let good = sampling(folder.path());
    let error = |change: &dyn Fn(&mut Sampling), batch_size, position| {
        let mut sampling = good.clone();
        change(&mut sampling);
        match crate::support::loader(&sampling, Split::Train, batch_size, position, 1) {
            Ok(_) => panic!("accepted"),
            Err(error) => error,
        }
    };
    let start = Cursor::default();
    for (name, change) in [
        (
            "rate",
            &(|s: &mut Sampling| s.shards[1].rate = 0.0) as &dyn Fn(&mut Sampling),
        ),
        ("rate", &|s| s.shards[0].rate = f64::NAN),
        ("validation", &|s| s.validation = 1.0),
        ("group", &|s| s.group = 0),
        ("spread", &|s| s.spread = 0),
        ("variation_decay", &|s| s.variation_decay = -1.0),
        ("the number of shards and chunks", &|s| s.shards.clear()),
    ] {
        assert!(
            error(change, 64, start).to_string().starts_with(name),
            "{name}"
        );
    }
    assert!(matches!(
        error(&|_| (), 1 << 20, start),
        LoaderError::TooFew { .. }
    ));
    let too_few = error(&|_| (), 1 << 20, start).to_string();
    assert!(too_few.contains("which is 0.2"), "{too_few}");
    let past = Cursor { group: 99, ..start };
    assert!(matches!(
        error(&|_| (), 64, past),
        LoaderError::Cursor { .. }
    ));
    let lost = error(
        &|s| s.shards[0].path = folder.path().join("lost"),
        64,
        start,
    );
    assert!(lost.to_string().contains("lost"));
}

/// Creates a shard of these games, in which each scored move gives a sample.
fn scored(path: &Path, games: &[&str]) -> Sampling {
    let rules = TargetRules {
        evals: Some(EvalRefersTo::MovePlayed),
        played: false,
        noise: false,
        curve: Curve::Lichess,
        alternatives: None,
    };
    let header = Header {
        sources: Vec::new(),
        rules,
    };
    let mut writer = ShardWriter::create(path, &header).unwrap();
    for game in games {
        let record = parse_game(game.as_bytes()).unwrap();
        let samples = rules.samples(&record);
        let block = Block::new(std::slice::from_ref(&record), samples).unwrap();
        writer.append(&block).unwrap();
    }
    writer.finish().unwrap();
    Sampling {
        shards: vec![SourceConfig {
            path: path.to_owned(),
            rate: 1.0,
        }],
        ..Sampling::default()
    }
}

#[test]
fn the_least_data_trains_and_its_absence_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let begin = |sampling: &Sampling, split, batch| {
        let loader = crate::support::loader(sampling, split, batch, Cursor::default(), 1);
        loader.and_then(|mut loader| loader.next().unwrap())
    };
    let one = scored(&folder.path().join("one"), &["1. e4 { [%eval 0.3] } *"]);
    let batch = begin(&one, Split::Train, 1).unwrap();
    assert_eq!(batch.columns.q.len(), 1);
    for (split, batch, named) in [
        (
            Split::Train,
            2,
            "add games, or lower `batch` or `data.validation`",
        ),
        (
            Split::Validation,
            1,
            "one game in 200, and selected none of these",
        ),
    ] {
        let error = begin(&one, split, batch).err().unwrap().to_string();
        assert!(error.contains(named), "{error}");
    }
    let none = scored(&folder.path().join("none"), &[]);
    for split in [Split::Train, Split::Validation] {
        let error = begin(&none, split, 1).err().unwrap();
        assert!(matches!(error, LoaderError::Empty), "{error}");
    }
}
