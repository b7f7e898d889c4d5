//! Chooses the way and the format in which a network runs on this machine.
//!
//! Every candidate first [proves itself](super::trial). The fastest one depends on the architecture
//! and the machine: int8 speeds up the dense layers of a Chessformer, but the convolutions of a
//! tower are fastest in f32. The candidates are therefore measured once, and the
//! [result](super::answers) is stored.

use super::answers::Answers;
use super::candidate::{Candidate, reference};
use super::torch_backend::TorchBackend;
use super::trial::Trial;
use crate::backend::{Backend, Batch, Evaluations, Format, Precision, Refused, Speed};
use crate::chess::Game;
use crate::error_report::one_line;
use crate::torch::{NetworkError, process};
use shakmaty::Position;
use std::time::{Duration, Instant};
use tch::Device;

// Measure the thread's CPU time, which excludes other load on the machine. On Windows, the
// resolution of the CPU time is coarser than a call takes, so wall-clock time is used there.
#[cfg(not(windows))]
use cpu_time::ThreadTime as Clock;
#[cfg(windows)]
use std::time::Instant as Clock;

/// Maximum time per batch. Batches with a single position may take longer.
const BATCH: Duration = Duration::from_millis(50);
/// Measuring time after which no candidate gets more than [`LEAST`] calls.
const ENOUGH: Duration = Duration::from_millis(400);
/// Minimum number of calls for timing a competitive candidate.
const LEAST: usize = 3;
/// Maximum number of calls per candidate, which is enough for an accurate time.
const MOST: usize = 10;
/// A candidate is dropped as soon as it takes this many times as long as the best one.
const HOPELESS: f64 = 1.5;
/// The fraction of its time by which a candidate must be faster to replace a preferred one. It
/// exceeds the noise in timings.
const MARGIN: f64 = 0.05;

/// The candidates for running a network on a device.
#[derive(Debug)]
pub(super) struct Choice<'a> {
    /// The identity of the network's file.
    pub network: String,
    pub device: Device,
    /// In order of preference; never empty.
    pub candidates: &'a [Candidate],
    /// Whether the user has named the way, so that nothing is checked.
    pub is_named: bool,
}

/// Returns the network as the first of the candidates that no other one clearly beats. Candidates
/// that cannot run or return wrong results are refused. If all of them are, the reference runs.
/// `prepare` prepares the network, or returns `None` if the candidate does not suit it.
///
/// # Errors
/// Returns the error of the first candidate if the network cannot run at all.
pub(super) fn choose(
    choice: &Choice,
    prepare: impl Fn(Candidate) -> Result<Option<TorchBackend>, NetworkError>,
) -> Result<TorchBackend, NetworkError> {
    if let &[only] = choice.candidates {
        let backend = prepare(only)?.ok_or(NetworkError::Way(only.way))?;
        // Without a check, a GPU runs the most cautious way.
        let exchanges = backend.exchanges && choice.is_named;
        return Ok(backend.exchanging(exchanges));
    }
    let (network, machine) = (choice.key(), process::machine(choice.device));
    // Holding the lock serialises measurements, and all threads of the process get the same answer.
    let mut answers = Answers::of_user();
    if let Some(format) = answers.find(&network, &machine)
        && let Some(known) = choice.find(&format)
        && let Ok(Some(backend)) = prepare(known)
    {
        return Ok(backend.with_format(format));
    }
    let (backend, format) = measure(choice.candidates, prepare)?;
    for refused in &format.refused {
        tracing::warn!("{} does not run by {refused}", backend.properties().name);
    }
    answers.keep(&network, &machine, &format);
    Ok(backend.with_format(format))
}

/// Returns the outcome of an earlier choice, or everything that there is to choose from.
pub(super) fn outlook(choice: &Choice) -> String {
    let only = |it: &Candidate| Format::only(it.way, it.dtype.into()).to_string();
    let all: Vec<String> = choice.candidates.iter().map(only).collect();
    let answers = Answers::of_user();
    let known = answers.find(&choice.key(), &process::machine(choice.device));
    match (known, &all[..]) {
        (Some(format), _) => format.to_string(),
        (None, [only]) => only.clone(),
        (None, all) => format!("the best of {}, once measured", all.join(", ")),
    }
}

impl Choice<'_> {
    /// Returns the identity of the network and of what there is to choose from.
    fn key(&self) -> String {
        let name = |it: &Candidate| format!("-{}-{}", it.way, Precision::from(it.dtype));
        let candidates: String = self.candidates.iter().map(name).collect();
        format!("{}{candidates}", self.network)
    }

    /// Returns the candidate, or the reference, that runs in a format.
    fn find(&self, format: &Format) -> Option<Candidate> {
        let all = self.candidates.iter().copied();
        let mut all = all.chain(reference(self.candidates));
        all.find(|it| (it.way, Precision::from(it.dtype)) == (format.way, format.precision))
    }
}

/// Checks and times the candidates. Returns the best one and the reasons for the choice.
fn measure(
    candidates: &[Candidate],
    prepare: impl Fn(Candidate) -> Result<Option<TorchBackend>, NetworkError>,
) -> Result<(TorchBackend, Format), NetworkError> {
    let (mut backends, mut refused, mut errors) = (Vec::new(), Vec::new(), Vec::new());
    let mut refuse = |candidate: Candidate, reason| {
        refused.push(Refused {
            way: candidate.way,
            precision: candidate.dtype.into(),
            reason,
        });
    };
    for &candidate in candidates {
        match prepare(candidate) {
            Ok(backend) => {
                // If a network has no layers that can use int8, its dtype is another one.
                let backend = backend.filter(|backend| backend.dtype == candidate.dtype);
                backends.extend(backend.map(|backend| (candidate, backend)));
            }
            Err(error) => {
                refuse(candidate, one_line(&error));
                errors.push(error);
            }
        }
    }
    let judge = reference(candidates).filter(|judge| backends.iter().any(|it| it.0 != *judge));
    if let Some(judge) = judge {
        let position = backends
            .iter()
            .position(|(candidate, _)| *candidate == judge);
        let other = match position {
            Some(_) => None,
            None => prepare(judge).ok().flatten(),
        };
        let other = other.map(|other| other.exchanging(false));
        let judging = position.map(|index| &backends[index].1).or(other.as_ref());
        let trial = judging.map(|judging| Trial::by(&judging.clone().exchanging(false)));
        match trial {
            Some(Ok(trial)) => backends.retain(|(candidate, backend)| {
                let reason = (*candidate != judge)
                    .then(|| trial.objection(backend))
                    .flatten();
                let is_right = reason.is_none();
                if let Some(reason) = reason {
                    refuse(*candidate, reason);
                }
                is_right
            }),
            failed => {
                let reason = match failed {
                    Some(Err(error)) => one_line(&error),
                    _ => "not available".to_owned(),
                };
                tracing::warn!(
                    "the network's results are not checked, because the reference, {} in f32, \
                     does not run: {reason}",
                    judge.way
                );
            }
        }
        if backends.is_empty() {
            backends.extend(other.map(|other| (judge, other)));
        }
    }
    let (best, speeds) = match backends.len() {
        0 => {
            return Err(errors
                .into_iter()
                .next()
                .unwrap_or(NetworkError::Way(candidates[0].way)));
        }
        1 => (0, Vec::new()),
        _ => compare(&backends),
    };
    let (candidate, backend) = backends.swap_remove(best);
    let format = Format {
        way: candidate.way,
        precision: backend.dtype.into(),
        speeds,
        refused,
    };
    Ok((backend, format))
}

/// Returns the index of the first candidate that no other one clearly beats, and the speeds of the
/// candidates that did not fail.
fn compare(backends: &[(Candidate, TorchBackend)]) -> (usize, Vec<Speed>) {
    let batches = batches_for(&backends[0].1).map(|size| (size, positions(&backends[0].1, size)));
    // The geometric mean of the times per position, times the number of positions.
    let positions: usize = batches.iter().map(|(size, _)| size).sum();
    let call = |(_, backend): &(Candidate, TorchBackend)| {
        let mut product = 1.0;
        for (size, batch) in &batches {
            product *= time(backend, batch)?.as_secs_f64() / *size as f64;
        }
        Some(Duration::from_secs_f64(product.sqrt() * positions as f64))
    };
    let times = race(backends, call);
    let speed = |((candidate, _), time): (&(Candidate, TorchBackend), &Option<Duration>)| {
        Some(Speed {
            way: candidate.way,
            precision: candidate.dtype.into(),
            evaluations_per_second: positions as f64 / time.as_ref()?.as_secs_f64(),
        })
    };
    let speeds = backends.iter().zip(&times).filter_map(speed).collect();
    (first_of_the_fastest(&times).unwrap_or_default(), speeds)
}

/// Returns the two batch sizes to measure. The first is the recommended size, which a search
/// reaches once its tree has grown. For the time before, the second is a single position on a GPU,
/// where a small batch takes as long as a larger one, and a quarter of the recommended size on the
/// CPU. If a batch of the recommended size takes too long, both sizes are smaller.
fn batches_for(backend: &TorchBackend) -> [usize; 2] {
    let recommended = backend.properties().recommended_batch;
    let one = time(backend, &positions(backend, 1)).unwrap_or_default();
    match backend.device {
        Device::Cpu => {
            let affordable = BATCH.as_secs_f64() / one.as_secs_f64().max(1e-9);
            let batch = (affordable as usize).clamp(1, recommended);
            [batch, batch.div_ceil(4)]
        }
        _ => [recommended, 1],
    }
}

/// Returns this many copies of the initial position.
pub(super) fn positions(backend: &TorchBackend, count: usize) -> Batch {
    let game = Game::default();
    let moves = game.position().legal_moves();
    let mut batch = Batch::default();
    for _ in 0..count {
        let pushed = batch.push(&game, &moves, &backend.properties().encoder);
        pushed.expect("rows encode every position");
    }
    batch
}

/// Returns the time that a batch takes, or `None` if its evaluation fails.
pub(super) fn time(backend: &TorchBackend, batch: &Batch) -> Option<Duration> {
    let mut out = Evaluations::default();
    let (start, clock) = (Instant::now(), Clock::now());
    backend.evaluate(batch, &mut out).ok()?;
    // A thread that waits for a GPU uses no CPU time.
    Some(match backend.device {
        Device::Cpu => clock.elapsed(),
        _ => start.elapsed(),
    })
}

/// Returns the shortest time of each contestant over several calls, or `None` for contestants that
/// failed. The contestants take turns, so that other load affects all of them equally.
fn race<T>(
    contestants: &[T],
    mut call: impl FnMut(&T) -> Option<Duration>,
) -> Vec<Option<Duration>> {
    let mut times: Vec<Option<Duration>> = vec![Some(Duration::MAX); contestants.len()];
    let mut spent = Duration::ZERO;
    for round in 0..MOST {
        let best = times.iter().flatten().min().copied().unwrap_or_default();
        let is_in = |time: &Option<Duration>| {
            time.is_some_and(|time| round == 0 || time < best.mul_f64(HOPELESS))
        };
        let is_decided = times.iter().filter(|time| is_in(time)).count() < 2;
        if is_decided || round >= LEAST && spent > ENOUGH {
            break;
        }
        for (contestant, time) in contestants.iter().zip(&mut times) {
            if is_in(time) {
                let latest = call(contestant);
                spent += latest.unwrap_or_default();
                *time = latest.and_then(|latest| Some(latest.min((*time)?)));
            }
        }
    }
    times
}

/// Returns the first contestant whose time is within the margin of the shortest, or `None` if all
/// failed.
fn first_of_the_fastest(times: &[Option<Duration>]) -> Option<usize> {
    let best = times.iter().flatten().min()?.as_secs_f64();
    let is_fast = |time: &Option<Duration>| {
        time.is_some_and(|time| time.as_secs_f64() * (1.0 - MARGIN) <= best)
    };
    times.iter().position(is_fast)
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::backend::tests::{assert_same, positions as various};
    use crate::backend::{CodePolicy, Way};
    use crate::inference::Planned;
    use crate::network::Playable;
    use crate::torch::ComputeType;
    use std::cell::Cell;
    use tch::Kind;

    const XS: &[u8] = include_bytes!("../../nets/tessera-xs.pt");
    const ENCODER: (Way, Kind) = (Way::Encoder, Kind::Half);
    const OPERATORS: (Way, Kind) = (Way::Operators, Kind::Float);
    const KERNELS: (Way, Kind) = (Way::Kernels, Kind::Float);

    fn candidates(all: &[(Way, Kind)]) -> Vec<Candidate> {
        let candidate = |&(way, kind): &(Way, Kind)| Candidate {
            way,
            dtype: kind.into(),
        };
        all.iter().map(candidate).collect()
    }

    fn planned() -> Planned<'static> {
        let formats = [ComputeType::from(Kind::Float)];
        let (policy, device) = (CodePolicy::Checked, Device::Cpu);
        Planned::new(XS, policy, device, &formats, Way::Auto).unwrap()
    }

    /// Returns the network with one wrong weight matrix, as if a kernel read it from a wrong place.
    fn wrong() -> Planned<'static> {
        let planned = planned();
        let Some(Playable::Positions(network)) = planned.opened.network() else {
            panic!("a Chessformer evaluates positions");
        };
        let parameters = network.parameters();
        let matrix = |(name, _): &&(String, tch::Tensor)| {
            name.contains("feed_forward") && name.ends_with("weight")
        };
        let (_, tensor) = parameters.iter().find(matrix).unwrap();
        tensor.shallow_clone().copy_(&tensor.flip([0]));
        planned
    }

    fn name(refused: &[Refused]) -> Vec<(Way, Precision)> {
        let names = refused.iter().map(|it| (it.way, it.precision));
        names.collect()
    }

    #[test]
    fn a_kernel_that_is_wrong_is_refused_and_another_way_plays() {
        let (right, wrong) = (planned(), wrong());
        let honest = right.prepare(candidates(&[KERNELS])[0]).unwrap().unwrap();
        let prepare = |candidate: Candidate| match candidate.way {
            Way::Encoder | Way::Operators => wrong.prepare(candidate),
            _ => right.prepare(candidate),
        };
        let all = candidates(&[ENCODER, OPERATORS, KERNELS]);
        let (backend, format) = measure(&all, prepare).unwrap();
        assert_eq!(
            (format.way, format.precision),
            (Way::Kernels, Precision::F32)
        );
        let refused = [
            (Way::Encoder, Precision::Fp16),
            (Way::Operators, Precision::F32),
        ];
        assert_eq!(name(&format.refused), refused);
        for refused in &format.refused {
            assert!(
                refused
                    .reason
                    .starts_with("wrong results: the policy is off by ")
            );
        }
        assert_same(&backend, &honest, &various(9, true));
        // Everything but the reference is wrong.
        let narrow = candidates(&[OPERATORS, (Way::Kernels, Kind::BFloat16)]);
        let prepare = |candidate: Candidate| match candidate.dtype.kind {
            Kind::Float if candidate.way == Way::Kernels => right.prepare(candidate),
            _ => wrong.prepare(candidate),
        };
        let (backend, format) = measure(&narrow, prepare).unwrap();
        assert_eq!(
            (format.way, format.precision),
            (Way::Kernels, Precision::F32)
        );
        assert_eq!(format.refused.len(), 2);
        assert_same(&backend, &honest, &various(9, true));
    }

    #[test]
    fn right_ways_are_measured_and_the_choice_is_remembered() {
        let right = planned();
        let all = candidates(&[OPERATORS, KERNELS]);
        let choice = Choice {
            network: "right_ways_are_measured".to_owned(),
            device: Device::Cpu,
            candidates: &all,
            is_named: false,
        };
        let prepared = Cell::new(0);
        let prepare = |candidate| {
            prepared.set(prepared.get() + 1);
            right.prepare(candidate)
        };
        assert_eq!(
            outlook(&choice),
            "the best of f32 by operators, f32 by kernels, once measured"
        );
        let first = choose(&choice, prepare).unwrap();
        let format = first.properties().format.clone().unwrap();
        assert_eq!((format.speeds.len(), prepared.get()), (2, 2));
        assert_eq!(format.refused, []);
        let again = choose(&choice, prepare).unwrap();
        assert_eq!(prepared.get(), 3);
        assert_eq!(again.properties().format.as_ref(), Some(&format));
        assert_eq!(outlook(&choice), format.to_string());
    }

    #[test]
    fn a_way_that_fails_is_refused_and_one_that_does_not_suit_is_left_out() {
        let right = planned();
        let prepare = |candidate: Candidate| match candidate.way {
            Way::Encoder => Err(NetworkError::OutOfMemory("no shared memory".to_owned())),
            Way::Operators => Ok(None),
            _ => right.prepare(candidate),
        };
        let all = candidates(&[ENCODER, OPERATORS, KERNELS]);
        let (_, format) = measure(&all, prepare).unwrap();
        assert_eq!(format.way, Way::Kernels);
        assert_eq!(name(&format.refused), [(Way::Encoder, Precision::Fp16)]);
        assert!(format.refused[0].reason.contains("no shared memory"));
        let failed = measure(&all[..1], prepare).unwrap_err();
        assert!(matches!(failed, NetworkError::OutOfMemory(_)), "{failed}");
        let failed = measure(&all[1..2], prepare).unwrap_err();
        assert!(
            matches!(failed, NetworkError::Way(Way::Operators)),
            "{failed}"
        );
    }

    fn milliseconds(times: &[u64]) -> Vec<Option<Duration>> {
        let time = |&time: &u64| (time > 0).then(|| Duration::from_millis(time));
        times.iter().map(time).collect()
    }

    /// Races contestants whose calls take these times in milliseconds, where 0 means failure.
    /// Returns each contestant's shortest time and number of calls.
    fn raced(calls: &[&[u64]]) -> (Vec<Option<Duration>>, Vec<usize>) {
        let counts: Vec<_> = calls.iter().map(|_| std::cell::Cell::new(0)).collect();
        let contestants: Vec<_> = calls.iter().zip(&counts).collect();
        let times = race(&contestants, |(calls, count)| {
            let time = calls[count.get() % calls.len()];
            count.set(count.get() + 1);
            (time > 0).then(|| Duration::from_millis(time))
        });
        (times, counts.iter().map(|count| count.get()).collect())
    }

    #[test]
    fn the_slow_leave_the_race() {
        let (times, calls) = raced(&[&[7], &[14], &[33]]);
        assert_eq!((times, calls), (milliseconds(&[7, 14, 33]), vec![1, 1, 1]));
        let (times, calls) = raced(&[&[8], &[7], &[33]]);
        assert_eq!(times, milliseconds(&[8, 7, 33]));
        assert_eq!(calls, [MOST, MOST, 1]);
        // Long calls are repeated only a few times.
        let (_, calls) = raced(&[&[800], &[700]]);
        assert_eq!(calls, [LEAST, LEAST]);
    }

    #[test]
    fn the_shortest_time_counts_and_failures_do_not() {
        let (times, _) = raced(&[&[12, 9, 10], &[11, 11, 11, 8]]);
        assert_eq!(times, milliseconds(&[9, 8]));
        let (times, calls) = raced(&[&[0], &[5], &[6, 0]]);
        assert_eq!(times, milliseconds(&[0, 5, 0]));
        assert_eq!(calls, [1, 2, 2]);
        assert_eq!(raced(&[&[0], &[0]]).0, [None, None]);
    }

    #[test]
    fn the_preferred_wins_a_tie() {
        let winner = |times: &[u64]| first_of_the_fastest(&milliseconds(times));
        assert_eq!(winner(&[100, 100]), Some(0));
        assert_eq!(winner(&[104, 100]), Some(0));
        assert_eq!(winner(&[100, 104]), Some(0));
        assert_eq!(winner(&[107, 100]), Some(1));
        assert_eq!(winner(&[150, 104, 100]), Some(1));
        assert_eq!(winner(&[0, 300]), Some(1));
        assert_eq!(winner(&[0, 0]), None);
    }
}
