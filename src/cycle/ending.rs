//! Determines why a worker's process ended, and whether restarting it can help.

use super::error::{CycleConfigError, CycleError};
use crate::data::loader::LoaderError;
use crate::inference::{LoadError, NetworkError};
use crate::selfplay::SelfPlayError;
use crate::store::StoreError;
use crate::train::{CheckpointError, ConfigError, TrainError};
use std::error::Error;
use std::io::{self, ErrorKind};
use std::iter::successors;
use std::process::ExitStatus;

/// Exit status by which a worker tells the program that started it that a restart would not help;
/// EX_CONFIG in BSD's sysexits.h.
pub const FINAL: i32 = 78;
/// Exit status of a worker that was told to stop before the loop had ended, so that a restart
/// resumes its work; EX_TEMPFAIL in BSD's sysexits.h. Status 0 means that nothing is left to do:
/// Kubernetes never restarts a pod that succeeded, not even one that it has evicted.
pub const STOPPED: i32 = 75;

/// Returns whether a restarted worker would fail again with this error: an error in the
/// configuration, a missing or malformed file, or missing permissions.
pub fn is_final(error: &(dyn Error + 'static)) -> bool {
    let mut causes = successors(Some(error), |error| (*error).source());
    let told = causes.find_map(|cause| {
        let is_configuration = cause.is::<CycleConfigError>() || cause.is::<ConfigError>();
        let stopped = cause.downcast_ref().map(CycleError::is_final);
        let store = cause.downcast_ref().map(is_lasting_store);
        let refused = cause.downcast_ref().map(is_lasting_refusal);
        is_configuration
            .then_some(true)
            .or(stopped)
            .or(store)
            .or(refused)
    });
    told.unwrap_or(false)
}

/// Returns whether a store error would persist after a restart.
pub(super) fn is_lasting_store(error: &StoreError) -> bool {
    match error {
        StoreError::Io { source, .. } => is_lasting_refusal(source),
        StoreError::Manifest { .. } => true,
    }
}

/// Returns whether a system error would persist after a restart. Timeouts and full disks are
/// temporary, and missing files do not count, because a worker recreates its own files.
fn is_lasting_refusal(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::PermissionDenied
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::NotADirectory
            | ErrorKind::InvalidInput
            | ErrorKind::InvalidData
            | ErrorKind::InvalidFilename
    )
}

/// Returns whether a file named in the configuration is missing, malformed or inaccessible.
fn is_unusable(error: &(dyn Error + 'static)) -> bool {
    let mut causes = successors(Some(error), |error| (*error).source());
    let refused = causes.find_map(|cause| cause.downcast_ref::<io::Error>());
    refused.is_none_or(|error| {
        let is_no_file = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::IsADirectory);
        is_no_file || is_lasting_refusal(error)
    })
}

impl CycleError {
    fn is_final(&self) -> bool {
        match self {
            CycleError::Config(_)
            | CycleError::Training(_)
            | CycleError::NoCheckpoint { .. }
            | CycleError::StoreLost { .. }
            | CycleError::NothingToReanalyse => true,
            CycleError::Store(error) => is_lasting_store(error),
            CycleError::Openings(error) => is_unusable(error),
            CycleError::SelfPlay(SelfPlayError::Openings(error)) => is_unusable(error),
            // This shard is named in the configuration: unusable shards of the loop are skipped,
            // see `Rows`.
            CycleError::Shard(error) => is_unusable(error),
            CycleError::Io { source, .. } => is_lasting_refusal(source),
            CycleError::Checkpoint(error) => is_refused(error),
            CycleError::Load(error) => is_for_other_machines(error),
            CycleError::Train(error) => is_final_for_training(error),
            CycleError::Taken(_)
            | CycleError::Missing { .. }
            | CycleError::Inputs(_)
            | CycleError::Backend(_)
            | CycleError::SelfPlay(_)
            | CycleError::Replay(_)
            | CycleError::Script(_)
            | CycleError::History(_) => false,
        }
    }
}

/// Returns whether the configuration asks for a device, or a way to run a network, that this machine
/// does not have.
fn is_for_other_machines(error: &LoadError) -> bool {
    let LoadError::Network { source, .. } = error else {
        return false;
    };
    matches!(source, NetworkError::Device(_) | NetworkError::Way(_))
}

fn is_final_for_training(error: &TrainError) -> bool {
    match error {
        TrainError::Config(_)
        | TrainError::NotAnEvaluator(_)
        | TrainError::Format(_)
        | TrainError::Uneven { .. }
        | TrainError::Architecture(_) => true,
        TrainError::Start(error) => is_unusable(error),
        TrainError::Teacher(error) => is_unusable(error),
        TrainError::Loader(LoaderError::Setting { .. }) => true,
        TrainError::Loader(LoaderError::Chunk(error)) => is_unusable(error),
        TrainError::Metrics { source, .. } => is_lasting_refusal(source),
        TrainError::Checkpoint(error) => is_refused(error),
        _ => false,
    }
}

/// Returns whether the system denies access to checkpoints. A damaged checkpoint is not a reason to
/// give up, because it is replaced.
fn is_refused(error: &CheckpointError) -> bool {
    matches!(error, CheckpointError::System { source, .. } if is_lasting_refusal(source))
}

/// POSIX numbers of the signals with which users and systems end a process regardless of what it is
/// doing: SIGHUP, SIGINT, SIGKILL and SIGTERM.
#[cfg(unix)]
const ORDERED: [i32; 4] = [1, 2, 9, 15];

/// Returns whether a worker's process was ended from outside, also by a second signal, see
/// [`crate::interrupt`]. Signals such as SIGABRT and SIGSEGV, in contrast, are caused by the process
/// itself.
pub fn was_ended_by_others(status: ExitStatus) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt;
        // A shell's status for a signal is 128 plus its number.
        let signal = status.signal().or(status.code().map(|code| code - 128));
        if signal.is_some_and(|signal| ORDERED.contains(&signal)) {
            return true;
        }
    }
    status.code() == Some(STOPPED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::shard::Shard;
    use crate::store::Store;
    use crate::torch::DeviceError;
    use crate::train::TrainConfig;
    use std::path::Path;

    #[test]
    fn tells_lasting_errors_from_passing_ones() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.shard");
        let open = || CycleError::from(Shard::open(&path).err().unwrap());
        let missing = open();
        std::fs::write(&path, "1. e4 e5 *\n").unwrap();
        let foreign = open();
        let of_kind = |kind: ErrorKind| CycleError::io("x")(kind.into());
        let store = |kind: ErrorKind| {
            CycleError::from(StoreError::Io {
                action: "put",
                path: "x".into(),
                source: kind.into(),
            })
        };
        let config = CycleError::from(TrainConfig::read(&path).unwrap_err());
        let address = Store::open(Path::new("s3://")).err();
        let load = |source: NetworkError| {
            CycleError::from(LoadError::Network {
                network: "x".to_owned(),
                source,
            })
        };
        for error in [
            missing,
            foreign,
            config,
            of_kind(ErrorKind::PermissionDenied),
            store(ErrorKind::ReadOnlyFilesystem),
            CycleError::NothingToReanalyse,
            CycleError::StoreLost {
                store: "x".into(),
                number: 3,
            },
            load(NetworkError::Device(DeviceError::NoCudaDevice)),
        ] {
            assert!(is_final(&error), "{error}");
            let within = anyhow::Error::from(error).context("a worker");
            assert!(is_final(within.as_ref()), "{within:#}");
        }
        #[cfg(feature = "cloud")]
        assert!(is_final(&address.unwrap()));
        #[cfg(not(feature = "cloud"))]
        drop(address);
        for error in [
            of_kind(ErrorKind::StorageFull),
            of_kind(ErrorKind::NotFound),
            store(ErrorKind::TimedOut),
            store(ErrorKind::Other),
            CycleError::Inputs(3),
            load(NetworkError::Hash),
        ] {
            assert!(!is_final(&error), "{error}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn crashes_are_failures_and_orders_to_end_are_not() {
        use std::os::unix::process::ExitStatusExt;
        let is_failure = |status| !was_ended_by_others(ExitStatus::from_raw(status));
        // SIGILL, SIGABRT, SIGBUS, SIGSEGV, and an exit with status 1.
        for status in [4, 6, 7, 11, 1 << 8] {
            assert!(is_failure(status), "{status}");
        }
        // Signals, a stop, and the second SIGINT and SIGTERM.
        for status in [1, 2, 9, 15, STOPPED << 8, 130 << 8, 143 << 8] {
            assert!(!is_failure(status), "{status}");
        }
    }
}
