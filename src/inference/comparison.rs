//! Compares all ways to run a network, whichever the engine would choose.

use super::candidate::{Candidate, Family, reference};
use super::choice::{positions, time};
use super::plan::plan;
use super::planned::Planned;
use super::torch_backend::TorchBackend;
use super::trial::{Trial, wrong_results};
use crate::backend::{Backend, DeviceChoice, Precision, Way};
use crate::error_report::one_line;
use crate::torch::{NetworkError, TorchError, process, resolve_for};
use clap::ValueEnum;
use serde::Serialize;
use std::fmt::{self, Display, Formatter};
use std::time::{Duration, Instant};
use tch::{Device, Kind};

/// Time for measuring one speed.
const ENOUGH: Duration = Duration::from_millis(200);

/// All ways to run a network on a device, compared.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The network's name.
    pub network: String,
    /// The processor or the GPU with its driver, and a hash of the program and of everything else
    /// that affects results.
    pub machine: String,
    /// The way to whose results, in f32, the others are compared.
    pub reference: Way,
    /// Number of positions that each way evaluated.
    pub positions: usize,
    /// The measured batch sizes: 1, and that of a search.
    pub batches: [usize; 2],
    /// The ways.
    pub ways: Vec<ComparedWay>,
}

/// A way to run a network in a format.
#[derive(Clone, Debug, Serialize)]
pub struct ComparedWay {
    /// The way.
    pub way: Way,
    /// The format.
    pub precision: Precision,
    /// Means over the positions of the largest difference in the probability of a move, in 0…1, and
    /// of the difference in the expected result, in 0…2. `None` if the way failed.
    pub differences: Option<[f32; 2]>,
    /// Evaluations per second by one caller, for each batch size. Empty if the way failed.
    pub speeds: Vec<f64>,
    /// The reason for which the engine does not choose this way: an error, or wrong results.
    pub refused: Option<String>,
}

impl Comparison {
    /// Runs a network that is opened for a device by each way.
    pub(super) fn new(planned: &Planned, choice: DeviceChoice) -> Result<Comparison, NetworkError> {
        let device = planned.opened.device;
        if device == Device::Cpu {
            tch::set_num_threads(1);
        }
        let config = planned.opened.architecture();
        let config = config.filter(|_| planned.opened.network().is_some());
        let family = Family::of(config.as_ref());
        // On a GPU, none of our kernels is trusted.
        let trusted = plan(family, Device::Cuda(0), &[Kind::Float.into()], Way::Auto);
        let judge = reference(&trusted).ok_or(NetworkError::Foreign)?;
        let judging = planned
            .prepare(judge)?
            .ok_or(NetworkError::Way(judge.way))?;
        let judging = judging.exchanging(false);
        let trial = Trial::by(&judging);
        let trial = trial.map_err(|error| TorchError::new(&one_line(&error)))?;
        let batches = [1, judging.properties().recommended_batch];
        let candidates = candidates(family, device, choice).into_iter();
        let ways = candidates.filter_map(|it| ComparedWay::new(planned, it, &trial, batches));
        Ok(Comparison {
            network: planned.metadata().name.clone(),
            machine: process::machine(device),
            reference: judge.way,
            positions: trial.len(),
            batches,
            ways: ways.collect(),
        })
    }
}

/// Returns every way and format of a device.
fn candidates(family: Family, device: Device, choice: DeviceChoice) -> Vec<Candidate> {
    let ways = Way::value_variants()
        .iter()
        .filter(|&&way| way != Way::Auto);
    let pairs = ways.flat_map(|&way| Precision::value_variants().iter().map(move |&it| (way, it)));
    let each = pairs.flat_map(|(way, precision)| {
        let (_, formats) = resolve_for(way, choice, precision).unwrap_or((device, Vec::new()));
        let mut candidates = plan(family, device, &formats, way);
        candidates.retain(|candidate| Precision::from(candidate.dtype) == precision);
        candidates
    });
    each.collect()
}

impl ComparedWay {
    /// Runs a network by a way. Returns `None` if the network has no layers for the format.
    fn new(
        planned: &Planned,
        candidate: Candidate,
        trial: &Trial,
        batches: [usize; 2],
    ) -> Option<ComparedWay> {
        let mut compared = ComparedWay {
            way: candidate.way,
            precision: candidate.dtype.into(),
            differences: None,
            speeds: Vec::new(),
            refused: None,
        };
        let prepared = planned.prepare(candidate);
        match prepared.and_then(|it| it.ok_or(NetworkError::Way(candidate.way))) {
            Ok(backend) if backend.dtype != candidate.dtype => return None,
            Ok(backend) => match trial.differences(&backend) {
                Ok(differences) => {
                    let speeds = batches.iter().filter_map(|&size| speed(&backend, size));
                    compared.speeds = speeds.collect();
                    compared.differences = Some(differences);
                    compared.refused = wrong_results(differences, candidate.dtype);
                }
                Err(error) => compared.refused = Some(one_line(&error)),
            },
            Err(error) => compared.refused = Some(one_line(&error)),
        }
        Some(compared)
    }
}

/// Returns the evaluations per second in batches of this size, or `None` if an evaluation fails.
fn speed(backend: &TorchBackend, size: usize) -> Option<f64> {
    let batch = positions(backend, size);
    let start = Instant::now();
    let mut best = time(backend, &batch)?;
    while start.elapsed() < ENOUGH {
        best = best.min(time(backend, &batch)?);
    }
    Some(size as f64 / best.as_secs_f64())
}

/// Formats the comparison as a table.
impl Display for Comparison {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let (reference, positions) = (self.reference, self.positions);
        writeln!(
            formatter,
            "{} on {}: differences from {reference} in f32 over {positions} positions, and \
             evaluations/s",
            self.network, self.machine
        )?;
        write!(
            formatter,
            "{:10} {:6} {:>9} {:>9}",
            "way", "format", "policy", "value"
        )?;
        for size in self.batches {
            write!(formatter, " {:>9}", format!("batch {size}"))?;
        }
        for compared in &self.ways {
            let names = [compared.way.to_string(), compared.precision.to_string()];
            write!(formatter, "\n{:10} {:6}", names[0], names[1])?;
            for difference in compared.differences.iter().flatten() {
                write!(formatter, " {:7.3} %", 100.0 * difference)?;
            }
            for speed in &compared.speeds {
                write!(formatter, " {speed:9.0}")?;
            }
            if let Some(reason) = &compared.refused {
                write!(formatter, " refused: {reason}")?;
            }
        }
        writeln!(formatter)
    }
}
