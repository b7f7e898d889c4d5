//! The common part of actors and reanalysers: many threads, each of which produces one game after
//! another with the newest network.

use super::config::CycleConfig;
use super::context::WorkerContext;
use super::error::CycleError;
use super::latest::Latest;
use super::networks::Networks;
use super::shard_uploader::ShardUploader;
use crate::backend::Backend;
use crate::data::record::Record;
use crate::encode::Encoder;
use crate::scoped_threads::{SetAtEnd, join};
use crate::store::{Generation, Generations};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Interval between speed reports.
const TELLS: Duration = Duration::from_secs(60);

/// Produces games until stopped, or until generation `until` exists. Each thread calls `begin` once
/// with the newest network, and then calls the returned function once per game. This function
/// returns `None` if it was stopped during a game.
pub(super) fn work<'a, J>(
    context: &WorkerContext,
    config: &CycleConfig,
    until: Option<u64>,
    begin: impl Fn(Arc<Latest>) -> J + Sync,
) -> Result<(), CycleError>
where
    J: FnMut(u64, &dyn Fn() -> bool) -> Result<Option<Record>, CycleError> + 'a,
{
    let mut generations = Generations::default();
    let mut is_told = false;
    let is_over = |generations: &Generations| {
        let last = generations.last().map(|last| last.number);
        until.is_some_and(|until| last.is_some_and(|last| last >= until))
    };
    let networks = Networks::new(context.store, &config.search, context.threads);
    let fetch = |generation: &Generation| context.tolerate(networks.load(generation).map(Some));
    let (first, network) = loop {
        context.tolerate(generations.look(context.store))?;
        if is_over(&generations) {
            return Ok(());
        }
        if let Some(generation) = generations.accepted()
            && let Some(network) = fetch(generation)?
        {
            break (generation.clone(), network);
        }
        if !mem::replace(&mut is_told, true) {
            let store = context.store.place.display();
            (context.tell)(&format!("waiting for the first network in {store}"));
        }
        if !context.wait(config.poll) {
            return Ok(());
        }
    };
    let at_once = concurrency(config, &*network, context.threads);
    let latest = Arc::new(Latest::new(network, first.number));
    let uploader = ShardUploader::new(context, context.run_name(), config.shard_rows, first.number);
    (context.tell)(&format!(
        "generation {}: {at_once} games at once",
        first.number
    ));
    let over = AtomicBool::new(false);
    let stopped = || over.load(Relaxed) || context.is_stopped();
    let next = AtomicU64::new(0);
    let make = || -> Result<(), CycleError> {
        let mut make = begin(Arc::clone(&latest));
        while !stopped() {
            match make(next.fetch_add(1, Relaxed), &stopped)? {
                Some(record) => uploader.add(record)?,
                None => break,
            }
        }
        Ok(())
    };
    let mut current = first.number;
    let mut told = Instant::now();
    let follow = || -> Result<(), CycleError> {
        while !stopped() {
            context.wait(config.poll);
            if told.elapsed() >= TELLS {
                let rate = networks.evaluations() as f64 / told.elapsed().as_secs_f64();
                (context.tell)(&format!("{rate:.0} evaluations/s"));
                told = Instant::now();
            }
            context.tolerate(generations.look(context.store))?;
            if is_over(&generations) {
                break;
            }
            let newest = generations.accepted();
            if let Some(newest) = newest.filter(|newest| newest.number != current)
                && let Some(network) = fetch(newest)?
            {
                if !latest.replace(network, newest.number) {
                    return Err(CycleError::Inputs(newest.number));
                }
                current = newest.number;
                uploader.turn(current)?;
                (context.tell)(&format!("generation {current}"));
            }
        }
        Ok(())
    };
    work_beside(&uploader, &over, at_once, make, follow)
}

/// Runs `make` in `at_once` threads, and `follow` in this thread. When one of them ends, all stop.
/// Finished games are stored even after an error or a panic.
fn work_beside(
    uploader: &ShardUploader,
    over: &AtomicBool,
    at_once: usize,
    make: impl Fn() -> Result<(), CycleError> + Sync,
    follow: impl FnOnce() -> Result<(), CycleError>,
) -> Result<(), CycleError> {
    let make = || {
        let _end = SetAtEnd(over);
        make()
    };
    let work = || {
        std::thread::scope(|scope| {
            let end = SetAtEnd(over);
            let mut makers = Vec::new();
            for number in 0..at_once {
                let thread = std::thread::Builder::new().name(format!("game {number}"));
                let spawned = thread.spawn_scoped(scope, make);
                makers.push(spawned.map_err(CycleError::io("a thread"))?);
            }
            let followed = follow();
            drop(end);
            join(makers)?;
            followed
        })
    };
    let worked = catch_unwind(AssertUnwindSafe(work));
    let cleared = uploader.clear();
    match worked {
        Ok(worked) => worked.and(cleared),
        Err(panic) => {
            if let Err(error) = cleared {
                tracing::error!("{error}");
            }
            resume_unwind(panic)
        }
    }
}

/// Returns the number of concurrent games. By default, there are enough games to fill the network's
/// batches; searches in imagination need only one game per thread, because each search forms its
/// own batches.
fn concurrency(config: &CycleConfig, network: &dyn Backend, threads: usize) -> usize {
    let properties = network.properties();
    let is_merged = properties.encoder != Encoder::Nothing && !config.search.imagination;
    let usual = match is_merged {
        true => properties.recommended_batch * properties.recommended_threads,
        false => threads,
    };
    config.search.concurrency.unwrap_or(usual).max(1)
}

#[cfg(test)]
mod tests {
    use super::super::networks::digest;
    use super::*;
    use crate::data::pgn::parse_game;
    use crate::data::record::SearchResult;
    use crate::data::shard::Shard;
    use crate::network::ToyConfig;
    use crate::network::{About, ArchitectureConfig, Network};
    use crate::store::{Name, Store, StoreError};
    use crate::torch::ExportPrecision;
    use std::path::Path;
    use tch::Device;

    fn searched_game() -> Record {
        let record = parse_game(b"1. e4 e5 2. Nf3 1-0").unwrap();
        let search = SearchResult::new([(0, 1.0)], 0.1, 0.1);
        Record {
            searches: vec![search; record.nodes.len()],
            ..record
        }
    }

    #[test]
    fn a_store_that_cannot_be_asked_now_is_borne() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let context = WorkerContext::of(&store);
        let refused = || StoreError::Io {
            action: "get",
            path: "x".into(),
            source: std::io::ErrorKind::TimedOut.into(),
        };
        assert!(!context.tolerate::<bool, _>(Err(refused())).unwrap());
        let fetched = context.tolerate::<Option<u8>, _>(Err(CycleError::from(refused())));
        assert_eq!(fetched.unwrap(), None);
        assert_eq!(context.failures.load(Relaxed), 2);
        let damaged = StoreError::Manifest {
            path: "x".into(),
            source: Generation::parse(b"{", 0).unwrap_err(),
        };
        assert!(context.tolerate::<bool, _>(Err(damaged)).is_err());
        assert!(context.tolerate(Ok::<_, StoreError>(true)).unwrap());
        assert_eq!(context.failures.load(Relaxed), 0);
    }

    #[test]
    fn a_panic_ends_all_games_and_what_was_finished_is_put() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let context = WorkerContext::of(&store);
        for in_game in [true, false] {
            let uploader = ShardUploader::new(&context, context.run_name(), 1000, 3);
            let (over, games) = (AtomicBool::new(false), AtomicU64::new(0));
            let wait = || {
                while !over.load(Relaxed) {
                    std::thread::sleep(Duration::from_millis(1));
                }
            };
            let make = || {
                uploader.add(searched_game())?;
                let is_last = games.fetch_add(1, Relaxed) == 2;
                assert!(!(is_last && in_game), "a game panics");
                wait();
                Ok(())
            };
            let follow = || {
                while games.load(Relaxed) < 3 {
                    std::thread::sleep(Duration::from_millis(1));
                }
                assert!(in_game, "the thread that follows the store panics");
                wait();
                Ok(())
            };
            let work = || work_beside(&uploader, &over, 3, make, follow);
            assert!(catch_unwind(AssertUnwindSafe(work)).is_err());
        }
        let shards = store.shards().unwrap();
        assert_eq!(shards.len(), 2);
        for name in shards {
            let shard = Shard::open(&store.path(&name.name())).unwrap();
            assert_eq!(shard.blocks()[0].games, 3);
        }
    }

    /// Returns the file of a small network.
    fn network(path: &Path) -> Vec<u8> {
        let config = ArchitectureConfig::Toy {
            model: ToyConfig { width: 2 },
        };
        let architecture = config.build(Device::Cpu).unwrap();
        let evaluator = architecture.into_evaluator().unwrap();
        let weights = evaluator.initial_weights();
        let about = About {
            correction: None,
            name: "little".to_owned(),
            search_value: "wdl".to_owned(),
            training: serde_json::Value::Null,
            licence: "GPL-3.0-or-later".to_owned(),
        };
        let network = Network::new(evaluator, &weights, about);
        network.write(ExportPrecision::F32, path).unwrap();
        std::fs::read(path).unwrap()
    }

    #[cfg(unix)]
    #[test]
    fn games_go_on_while_a_new_network_is_out_of_reach() {
        let folder = tempfile::tempdir().unwrap();
        let bytes = network(&folder.path().join("network.pt"));
        let store = Store::open(&folder.path().join("store")).unwrap();
        let put = |number| {
            let generation = Generation {
                sha256: digest(&bytes),
                ..Generation::unfinished(number)
            };
            let name = Name::generation(number);
            store.put(&name, &generation.to_json()).unwrap();
        };
        store.put(&Name::network(0), &bytes).unwrap();
        put(0);
        let config = r#"
            store = "store"
            folder = "loop"
            poll = 0.01
            search = { cache = 0, concurrency = 1, device = "cpu", precision = "f32" }
            learner = {}
            training = {}
        "#;
        let config: CycleConfig = toml::from_str(config).unwrap();
        let context = WorkerContext::of(&store);
        let taken_up = AtomicU64::new(0);
        let begin = |latest: Arc<Latest>| {
            let (store, bytes, put, taken_up) = (&store, &bytes, &put, &taken_up);
            let folder = &folder;
            move |_, stopped: &dyn Fn() -> bool| {
                // A folder takes the place of the network, so loading fails until the network is
                // stored.
                let place = store.path(&Name::network(1));
                std::os::unix::fs::symlink(folder.path(), &place).unwrap();
                put(1);
                // Long enough for an attempt to load it.
                std::thread::sleep(Duration::from_millis(300));
                let file = folder.path().join("1.pt");
                std::fs::write(&file, bytes).unwrap();
                std::fs::rename(&file, &place).unwrap();
                while latest.generation() == 0 && !stopped() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                taken_up.store(latest.generation(), Relaxed);
                Ok(None)
            }
        };
        work(&context, &config, None, begin).unwrap();
        assert_eq!(taken_up.into_inner(), 1);
    }
}
