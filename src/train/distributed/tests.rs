//! Tests in which threads act as processes and communicate over loopback.

use super::group::{Group, Store};
use super::{Agreement, Buckets, GroupError, Launch, World};
use crate::network::{Initial, Parameter, ParameterGroup};
use crate::waiting::{PATIENCE, at_some_pace};
use crossbeam::channel::bounded;
use std::net::TcpListener;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;
use tch::{Device, Kind, Tensor};

const TIMEOUT: Duration = PATIENCE;

/// Runs `work` once per process, with threads of the test process as processes, when all have
/// found each other.
pub(crate) fn together<T: Send + 'static>(
    size: usize,
    timeout: Duration,
    work: impl Fn(Arc<World>) -> T + Send + Sync + 'static,
) -> Vec<T> {
    try_together(size, timeout, move |world| work(world.unwrap()))
}

/// Runs `work` like [`together`], also in processes that have not found the others in time.
fn try_together<T: Send + 'static>(
    size: usize,
    timeout: Duration,
    work: impl Fn(Result<Arc<World>, GroupError>) -> T + Send + Sync + 'static,
) -> Vec<T> {
    let port = free_port();
    let work = Arc::new(work);
    // A process that left while another was still connecting would fail its joining.
    let tried = Arc::new(Barrier::new(size));
    let threads: Vec<_> = (0..size)
        .map(|rank| {
            let (work, tried) = (Arc::clone(&work), Arc::clone(&tried));
            let launch = launch(rank, size, port);
            thread::spawn(move || {
                let joined = World::join(&launch, Device::Cpu, timeout).map(Arc::new);
                tried.wait();
                work(joined)
            })
        })
        .collect();
    let results = threads.into_iter().map(|thread| thread.join().unwrap());
    results.collect()
}

fn free_port() -> u16 {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    free.local_addr().unwrap().port()
}

fn launch(rank: usize, size: usize, port: u16) -> Launch {
    Launch {
        rank,
        size,
        local_rank: rank,
        local_size: None,
        host: "127.0.0.1".to_owned(),
        port,
        agent_restarts: None,
    }
}

fn numbers(tensor: &Tensor) -> Vec<f32> {
    tensor.shallow_clone().try_into().unwrap()
}

#[test]
fn tensors_and_texts_are_shared() {
    let results = together(3, TIMEOUT, |world| {
        let tensor = Tensor::from_slice(&[1f32, world.rank as f32]);
        world.sum(&tensor, "testing").unwrap();
        let sum = numbers(&tensor);
        let tensor = Tensor::from_slice(&[world.rank as f32 + 5.0]);
        world.broadcast(&tensor, "testing").unwrap();
        world.barrier("testing").unwrap();
        let text = "€".repeat(3 - world.rank);
        (
            sum,
            numbers(&tensor),
            world.share(&text, "testing").unwrap(),
        )
    });
    for result in results {
        assert_eq!(result, (vec![3.0, 3.0], vec![5.0], "€€€".to_owned()));
    }
}

#[test]
fn a_wish_of_one_is_granted_to_all_in_the_same_step() {
    let steps = together(2, TIMEOUT, |world| {
        let mut agreement = Agreement::new(&world);
        let mut step = 0;
        loop {
            let wish = world.rank == 1 && step == 3;
            if agreement.ask([false, wish]).unwrap() == [false, true] {
                return step;
            }
            step += 1;
        }
    });
    assert_eq!(steps, [4, 4]);
    let alone = World::alone();
    assert_eq!(Agreement::new(&alone).ask([true]).unwrap(), [true]);
}

/// libtorch enters the first operation of every group into one record, without a lock.
#[test]
fn many_groups_begin_their_operations_at_the_same_time() {
    let store = Store::open(&launch(0, 1, free_port()), TIMEOUT).unwrap();
    for round in 0..100 {
        let ready = Barrier::new(8);
        thread::scope(|scope| {
            for number in 0..8 {
                let (store, ready) = (&store, &ready);
                scope.spawn(move || {
                    let name = format!("{round}-{number}");
                    let group = Group::new(store, &name, Device::Cpu).unwrap();
                    let tensor = Tensor::from_slice(&[number as f32]);
                    ready.wait();
                    group.sum(&tensor, "testing").unwrap().wait().unwrap();
                    assert_eq!(numbers(&tensor), [number as f32]);
                });
            }
        });
    }
}

#[test]
fn a_process_that_is_gone_is_told_of_at_once() {
    let results = together(2, TIMEOUT, |world| match world.rank {
        1 => None,
        _ => Some(world.barrier("testing").unwrap_err()),
    });
    let lost = results.into_iter().flatten().next().unwrap();
    // Otherwise it would be `TimedOut`.
    assert!(
        matches!(
            lost,
            GroupError::Lost {
                rank: 0,
                size: 2,
                ..
            }
        ),
        "{lost}"
    );
    let told = lost.to_string();
    assert!(told.contains("testing") && !told.contains('\n'), "{told}");
}

#[test]
fn a_process_that_hangs_is_waited_for_no_longer_than_agreed() {
    // On a busy machine, the processes may not even find each other in that time.
    at_some_pace("the wait ends", |factor| {
        let (leave, left) = bounded(1);
        let results = try_together(2, Duration::from_secs(2) * factor, move |world| {
            let world = world?;
            if world.rank == 1 {
                let _ = left.recv_timeout(PATIENCE);
                return Ok(None);
            }
            let hung = world.barrier("testing").err();
            let _ = leave.send(());
            Ok::<_, GroupError>(hung)
        });
        let results: Result<Vec<_>, _> = results.into_iter().collect();
        let Ok(results) = results else { return false };
        let hung = results.into_iter().flatten().next().unwrap();
        assert!(matches!(hung, GroupError::TimedOut { .. }), "{hung}");
        true
    });
}

#[test]
fn processes_that_do_not_come_are_waited_for_no_longer_than_agreed() {
    let launch = Launch {
        rank: 1,
        size: 2,
        local_rank: 1,
        local_size: None,
        host: "127.0.0.1".to_owned(),
        port: 1,
        agent_restarts: None,
    };
    let alone = World::join(&launch, Device::Cpu, Duration::from_secs(2)).unwrap_err();
    let told = alone.to_string();
    assert!(
        told.contains("127.0.0.1:1") && !told.contains('\n'),
        "{told}"
    );
}

/// Returns parameters that fill several buckets.
fn parameters() -> Vec<Parameter> {
    [1 << 20, 3, 1 << 20, 1 << 20, 7]
        .map(|count| Parameter {
            name: "x".to_owned(),
            shape: vec![count],
            initial: Initial::Zeros,
            group: ParameterGroup::Other,
        })
        .into()
}

#[test]
fn gradients_are_summed_in_every_order() {
    let results = together(2, TIMEOUT, |world| {
        let parameters = parameters();
        let count = parameters.iter().map(Parameter::count).sum::<i64>();
        let flat = Tensor::ones([count], (Kind::Float, Device::Cpu));
        let mut buckets = Buckets::new(&flat, &parameters, &world).unwrap();
        let mut firsts = Vec::new();
        // The first step determines the order for the later ones. In the last step, some parameters
        // get no gradient.
        for step in 0..3 {
            let weights = buckets.weights(Kind::Float, &parameters);
            let used = if step == 2 { 2 } else { 5 };
            let factor = (world.rank + 1) as f64;
            let mut loss = Tensor::zeros([], (Kind::Float, Device::Cpu));
            for tensor in &weights.tensors()[..used] {
                loss += (tensor * tensor * factor).sum(Kind::Float);
            }
            buckets.arm();
            loss.backward();
            let gradient = buckets.gradient(&world).unwrap();
            let expected = |of: usize| if of < used { 6.0 } else { 0.0 };
            let mut offset = 0;
            for (number, parameter) in parameters.iter().enumerate() {
                let part = gradient.narrow(0, offset, parameter.count());
                let wrong = part.ne(expected(number)).any().int64_value(&[]);
                assert_eq!(wrong, 0, "step {step}, parameter {number}");
                offset += parameter.count();
            }
            firsts.push(gradient.double_value(&[0]));
            buckets.zero();
        }
        firsts
    });
    assert_eq!(results, vec![vec![6.0; 3]; 2]);
}
