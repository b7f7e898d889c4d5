//! Reads a process's rank and the rendezvous address from the launcher's environment variables.

use super::nodes::first_node;
use std::num::NonZeroUsize;

/// Default rendezvous port, as in PyTorch.
const DEFAULT_PORT: u16 = 29500;

/// First rendezvous port for Slurm jobs; jobs that share a node use different ports.
const FIRST_SLURM_PORT: u16 = 20_000;

/// Number of consecutive ports over which Slurm jobs are spread.
const SLURM_PORTS: u64 = 20_000;

/// One process of a run with several processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The process's rank among all processes, from 0.
    pub rank: usize,
    /// Number of processes.
    pub size: usize,
    /// The process's rank among those on the same machine, from 0. It is the index of the process's
    /// GPU.
    pub local_rank: usize,
    /// Number of processes on this machine, if known.
    pub local_size: Option<NonZeroUsize>,
    /// The rendezvous host.
    pub host: String,
    /// The rendezvous port.
    pub port: u16,
    /// Number of restarts by torchrun, if torchrun's agent hosts the rendezvous; otherwise, rank 0
    /// hosts it.
    pub agent_restarts: Option<u64>,
}

/// Why the environment variables are invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// A required variable is missing.
    #[error("{present} is set but {missing} is not: set both, or neither to train in one process")]
    Missing {
        /// A related variable that is set.
        present: &'static str,
        /// The missing variable.
        missing: &'static str,
    },
    /// A variable is not a number, or is too large.
    #[error("{name} is `{value}`, but must be {expected}")]
    Value {
        /// The variable.
        name: &'static str,
        /// The variable's value.
        value: String,
        /// The constraint.
        expected: String,
    },
    /// Two variables contradict each other.
    #[error("{left} is {left_value} but {right} is {right_value}: unset one of them")]
    Contradiction {
        /// The first variable.
        left: &'static str,
        /// The first variable's value.
        left_value: usize,
        /// The second variable.
        right: &'static str,
        /// The second variable's value.
        right_value: usize,
    },
}

impl Launch {
    /// Reads PyTorch's variables (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT), which
    /// torchrun and Kubernetes' PyTorchJob set. If some are missing, reads Slurm's variables
    /// instead. Returns `None` if this is the only process.
    ///
    /// # Errors
    /// [`LaunchError`] if the variables are inconsistent.
    pub fn from_environment(
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Launch>, LaunchError> {
        let variables = Variables(variable);
        let (rank, size) = (variables.count("RANK")?, variables.count("WORLD_SIZE")?);
        let slurm = match (
            variables.count("SLURM_PROCID")?,
            variables.count("SLURM_NTASKS")?,
        ) {
            (Some(rank), Some(size)) => Some((rank, size)),
            _ => None,
        };
        let (rank, size, by_slurm) = match (rank, size, slurm) {
            (Some(rank), Some(size), _) => (rank, size, false),
            (None, None, None) => return Ok(None),
            (rank, size, Some((task, tasks))) => {
                let same = |left, value: Option<usize>, right, right_value| match value {
                    Some(left_value) if left_value != right_value => {
                        Err(LaunchError::Contradiction {
                            left,
                            left_value,
                            right,
                            right_value,
                        })
                    }
                    _ => Ok(right_value),
                };
                let rank = same("RANK", rank, "SLURM_PROCID", task)?;
                let size = same("WORLD_SIZE", size, "SLURM_NTASKS", tasks)?;
                (rank, size, true)
            }
            (Some(_), None, None) => return Err(missing("RANK", "WORLD_SIZE")),
            (None, Some(1), None) => return Ok(None),
            (None, Some(_), None) => return Err(missing("WORLD_SIZE", "RANK")),
        };
        let (rank_name, size_name, local_name) = match by_slurm {
            false => ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
            true => ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
        };
        let below = |name, value: usize, size_name: &str, size: usize| match value < size {
            true => Ok(()),
            false => Err(LaunchError::Value {
                name,
                value: value.to_string(),
                expected: format!("below {size_name}, which is {size}"),
            }),
        };
        below(rank_name, rank, size_name, size)?;
        if size == 1 {
            return Ok(None);
        }
        let local_rank = match variables.count("LOCAL_RANK")? {
            Some(local_rank) => local_rank,
            // If each process runs on its own machine or in its own pod, no local rank is set.
            None => variables.count(local_name)?.unwrap_or(0),
        };
        below(local_name, local_rank, size_name, size)?;
        let local_size = variables.count("LOCAL_WORLD_SIZE")?;
        let restarts = variables.count("TORCHELASTIC_RESTART_COUNT")?;
        let has_agent = variables
            .text("TORCHELASTIC_USE_AGENT_STORE")
            .is_some_and(|value| value.eq_ignore_ascii_case("true"));
        Ok(Some(Launch {
            rank,
            size,
            local_rank,
            local_size: local_size.and_then(NonZeroUsize::new),
            host: variables.host(rank_name, by_slurm)?,
            port: variables.port(rank_name, by_slurm)?,
            agent_restarts: has_agent.then(|| restarts.unwrap_or(0) as u64),
        }))
    }
}

fn missing(present: &'static str, missing: &'static str) -> LaunchError {
    LaunchError::Missing { present, missing }
}

/// The environment; empty variables count as missing.
struct Variables<F>(F);

impl<F: Fn(&str) -> Option<String>> Variables<F> {
    fn text(&self, name: &str) -> Option<String> {
        let text = (self.0)(name)?.trim().to_owned();
        (!text.is_empty()).then_some(text)
    }

    fn number<T: std::str::FromStr>(
        &self,
        name: &'static str,
        expected: &str,
    ) -> Result<Option<T>, LaunchError> {
        let Some(value) = self.text(name) else {
            return Ok(None);
        };
        match value.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(LaunchError::Value {
                name,
                value,
                expected: expected.to_owned(),
            }),
        }
    }

    /// Returns a process count or rank.
    fn count(&self, name: &'static str) -> Result<Option<usize>, LaunchError> {
        let number: Option<u32> = self.number(name, "a whole number")?;
        Ok(number.map(|number| number as usize))
    }

    fn host(&self, present: &'static str, by_slurm: bool) -> Result<String, LaunchError> {
        if let Some(host) = self.text("MASTER_ADDR") {
            return Ok(host);
        }
        const NODES: &str = "SLURM_JOB_NODELIST";
        let Some(value) = self.text(NODES).filter(|_| by_slurm) else {
            return Err(missing(present, "MASTER_ADDR"));
        };
        first_node(&value).ok_or_else(|| LaunchError::Value {
            name: NODES,
            value,
            expected: "a list of nodes such as node[01-04,7]".to_owned(),
        })
    }

    fn port(&self, present: &'static str, by_slurm: bool) -> Result<u16, LaunchError> {
        match self.number("MASTER_PORT", "a port from 1 to 65535")? {
            Some(0) => Err(LaunchError::Value {
                name: "MASTER_PORT",
                value: "0".to_owned(),
                expected: "a port from 1 to 65535".to_owned(),
            }),
            Some(port) => Ok(port),
            None if !by_slurm => Err(missing(present, "MASTER_PORT")),
            None => {
                let job: Option<u64> = self.number("SLURM_JOB_ID", "a whole number")?;
                Ok(job.map_or(DEFAULT_PORT, |job| {
                    FIRST_SLURM_PORT + (job % SLURM_PORTS) as u16
                }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(variables: &[(&str, &str)]) -> Result<Option<Launch>, LaunchError> {
        Launch::from_environment(|name| {
            let found = variables.iter().find(|(found, _)| *found == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn error(variables: &[(&str, &str)]) -> String {
        launch(variables).unwrap_err().to_string()
    }

    const MASTER: [(&str, &str); 2] = [("MASTER_ADDR", "10.0.0.1"), ("MASTER_PORT", "1234")];

    #[test]
    fn without_a_launcher_there_is_one_process() {
        assert_eq!(launch(&[]), Ok(None));
        assert_eq!(launch(&[("WORLD_SIZE", "1")]), Ok(None));
        assert_eq!(launch(&[("RANK", "0"), ("WORLD_SIZE", "1")]), Ok(None));
        // As in a shell started by `salloc`.
        assert_eq!(launch(&[("SLURM_NTASKS", "8")]), Ok(None));
    }

    #[test]
    fn torchrun_is_understood() {
        let mut variables = vec![
            ("RANK", "5"),
            ("WORLD_SIZE", "8"),
            ("LOCAL_RANK", "1"),
            ("LOCAL_WORLD_SIZE", "4"),
            ("TORCHELASTIC_USE_AGENT_STORE", "True"),
            ("TORCHELASTIC_RESTART_COUNT", "2"),
            // As in a torchrun started by srun, with one task per machine.
            ("SLURM_PROCID", "1"),
            ("SLURM_NTASKS", "2"),
        ];
        variables.extend(MASTER);
        let expected = Launch {
            rank: 5,
            size: 8,
            local_rank: 1,
            local_size: NonZeroUsize::new(4),
            host: "10.0.0.1".to_owned(),
            port: 1234,
            agent_restarts: Some(2),
        };
        assert_eq!(launch(&variables), Ok(Some(expected)));
    }

    #[test]
    fn pytorch_job_is_understood() {
        let mut variables = vec![("RANK", "1"), ("WORLD_SIZE", "2")];
        variables.extend(MASTER);
        let launch = launch(&variables).unwrap().unwrap();
        assert_eq!((launch.rank, launch.size, launch.local_rank), (1, 2, 0));
        assert_eq!((launch.agent_restarts, launch.local_size), (None, None));
    }

    #[test]
    fn slurm_is_understood() {
        let mut variables = vec![
            ("SLURM_PROCID", "9"),
            ("SLURM_NTASKS", "16"),
            ("SLURM_LOCALID", "1"),
            ("SLURM_JOB_NODELIST", "gpu[007-008,12]"),
            ("SLURM_JOB_ID", "1234567"),
        ];
        let found = launch(&variables).unwrap().unwrap();
        assert_eq!((found.rank, found.size, found.local_rank), (9, 16, 1));
        assert_eq!((found.host.as_str(), found.port), ("gpu007", 34_567));
        variables.extend(MASTER);
        let found = launch(&variables).unwrap().unwrap();
        assert_eq!((found.host.as_str(), found.port), ("10.0.0.1", 1234));
        variables.push(("WORLD_SIZE", "8"));
        assert_eq!(
            error(&variables),
            "WORLD_SIZE is 8 but SLURM_NTASKS is 16: unset one of them"
        );
    }

    #[test]
    fn contradictions_are_told_in_one_line() {
        let with_master = |variables: &[(&'static str, &'static str)]| {
            error(&[variables, MASTER.as_slice()].concat())
        };
        for (variables, named) in [
            (vec![("RANK", "0")], "WORLD_SIZE"),
            (vec![("WORLD_SIZE", "2")], "RANK"),
            (vec![("RANK", "two"), ("WORLD_SIZE", "2")], "two"),
            (vec![("RANK", "2"), ("WORLD_SIZE", "2")], "below WORLD_SIZE"),
            (vec![("RANK", "-1"), ("WORLD_SIZE", "2")], "-1"),
            (
                vec![("RANK", "0"), ("WORLD_SIZE", "2"), ("LOCAL_RANK", "2")],
                "LOCAL_RANK",
            ),
        ] {
            let told = with_master(&variables);
            assert!(told.contains(named) && !told.contains('\n'), "{told}");
        }
        let two = [("RANK", "0"), ("WORLD_SIZE", "2")];
        assert!(error(&two).contains("MASTER_ADDR"));
        let bad_port = [
            two[0],
            two[1],
            ("MASTER_ADDR", "a"),
            ("MASTER_PORT", "70000"),
        ];
        assert!(error(&bad_port).contains("70000"));
        let bad_nodes = [
            ("SLURM_PROCID", "0"),
            ("SLURM_NTASKS", "2"),
            ("SLURM_JOB_NODELIST", "node[01-"),
        ];
        assert!(error(&bad_nodes).contains("node[01-"));
    }
}
