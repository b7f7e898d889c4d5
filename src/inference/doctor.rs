//! Checks an installation and suggests remedies.

use super::LoadError;
use super::files::instead_of;
use crate::backend::{BuiltIn, Format, Metadata};
use crate::error_report::one_line;
use crate::torch::{CudaStatus, Environment, LIBTORCH_VERSION};
use serde::Serialize;
use std::path::Path;
use std::process::{Command, Stdio};

/// The first NVIDIA driver that supports CUDA 13, which this libtorch build uses.
const OLDEST_DRIVER: u32 = 580;

/// The result of one check.
#[derive(Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The checked component.
    pub subject: &'static str,
    /// Whether the component works.
    pub ok: bool,
    /// The finding, in human-readable form.
    pub found: String,
    /// The remedy, if something is wrong.
    pub remedy: Option<String>,
}

impl Finding {
    fn good(subject: &'static str, found: impl Into<String>) -> Finding {
        Finding {
            subject,
            ok: true,
            found: found.into(),
            remedy: None,
        }
    }

    fn bad(subject: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding {
            subject,
            ok: false,
            found: found.into(),
            remedy: Some(remedy.into()),
        }
    }
}

/// The result of one evaluation and the time that it took.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// The format of the evaluation, if the device has more than one.
    pub format: Option<Format>,
    /// The time of the first evaluation.
    pub milliseconds: f64,
}

/// Checks that the libtorch in use is the version that the program was built for.
pub fn libtorch(found: &str) -> Finding {
    let subject = "libtorch";
    // Patch releases do not change the interface of their series.
    let series = |version: &str| {
        version
            .rsplit_once('.')
            .map(|(series, _)| series.to_owned())
    };
    match found {
        LIBTORCH_VERSION => Finding::good(subject, format!("{found}, as expected")),
        _ if series(found) == series(LIBTORCH_VERSION) => Finding::good(
            subject,
            format!("{found}, which can replace {LIBTORCH_VERSION}"),
        ),
        _ => Finding::bad(
            subject,
            format!("`{found}` in place of {LIBTORCH_VERSION}"),
            format!(
                "`pip install torch=={LIBTORCH_VERSION}` for the wheel; from source unset LIBTORCH \
                 and run `tools/tessera`, which fetches libtorch and rebuilds"
            ),
        ),
    }
}

/// Lists this processor's formats. A missing instruction set is not a problem with the
/// installation.
pub fn processor(environment: &Environment) -> Finding {
    let vector = ["bf16", "vnni", "avx2", "avx512_f", "neon", "sve"];
    let used: Vec<&str> = environment
        .cpu_features
        .iter()
        .map(String::as_str)
        .filter(|feature| vector.iter().any(|name| feature.ends_with(name)))
        .collect();
    let format = if environment.cpu_bf16 { "bf16" } else { "f32" };
    let int8 = if environment.cpu_int8 {
        ", dense layers in int8"
    } else {
        ""
    };
    Finding::good(
        "processor",
        format!(
            "networks run in {format}{int8} ({}), threads {}",
            used.join(" "),
            environment.threads
        ),
    )
}

/// Checks that the installed devices can be used. `gpus` is the list that NVIDIA's driver reports,
/// or `None` if no driver is installed.
pub fn cuda(status: &CudaStatus, gpus: Option<&[Gpu]>) -> Finding {
    let subject = "CUDA";
    let list = |gpus: &[Gpu]| {
        let names = gpus.iter().map(|gpu| gpu.name.as_str());
        let driver = gpus.first().map_or("", |gpu| gpu.driver.as_str());
        format!("driver {driver}, {}", names.collect::<Vec<_>>().join(", "))
    };
    match (status, gpus) {
        (CudaStatus::Devices(devices), gpus) => {
            let gpus = gpus.map_or(String::new(), |gpus| format!(": {}", list(gpus)));
            Finding::good(subject, format!("{devices} devices can be used{gpus}"))
        }
        (_, None) => Finding::good(subject, "no NVIDIA driver: networks run on the CPU"),
        (CudaStatus::NotLoaded(reason), Some(gpus)) => Finding::bad(
            subject,
            format!(
                "{}, but libtorch's CUDA part is missing ({reason})",
                list(gpus)
            ),
            "from source run `tools/setup --cuda`; for the wheel install PyTorch with CUDA",
        ),
        (CudaStatus::NoDevice, Some(gpus)) => Finding::bad(
            subject,
            format!("{}, but libtorch finds no device", list(gpus)),
            match gpus.iter().any(|gpu| gpu.is_outdated()) {
                true => format!("install NVIDIA's driver {OLDEST_DRIVER} or newer"),
                false => "unset CUDA_VISIBLE_DEVICES, or restart the machine after a driver \
                          update"
                    .to_owned(),
            },
        ),
    }
}

/// A device that NVIDIA's driver reports.
#[derive(Debug, PartialEq, Serialize)]
pub struct Gpu {
    driver: String,
    name: String,
    memory_mib: Option<u64>,
}

impl Gpu {
    fn is_outdated(&self) -> bool {
        let major = self.driver.split('.').next().unwrap_or_default();
        major.parse().is_ok_and(|major: u32| major < OLDEST_DRIVER)
    }
}

/// Returns the output of the driver's own tool, or `None` if there is no driver.
pub fn gpus() -> Option<Vec<Gpu>> {
    let output = Command::new("nvidia-smi")
        .args([
            "--query-gpu=driver_version,memory.total,name",
            "--format=csv,noheader,nounits",
        ])
        .stdin(Stdio::null())
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let gpus = parse_gpus(&String::from_utf8_lossy(&output.stdout));
    (!gpus.is_empty()).then_some(gpus)
}

fn parse_gpus(csv: &str) -> Vec<Gpu> {
    csv.lines()
        .filter_map(|line| {
            let mut fields = line.splitn(3, ',').map(str::trim);
            Some(Gpu {
                driver: fields.next()?.to_owned(),
                memory_mib: fields.next()?.parse().ok(),
                name: fields.next()?.to_owned(),
            })
        })
        .collect()
}

/// Checks that the network can be read and evaluated. `file` is `None` for the built-in network.
pub fn network(
    file: Option<&Path>,
    card: &Result<Metadata, LoadError>,
    evaluation: &Result<Evaluation, String>,
) -> Finding {
    let subject = "network";
    let card = match card {
        Ok(card) => card,
        Err(error) => {
            let remedy = match file {
                Some(_) => "leave out --net to use the network that ships with the program",
                None => INSTALL,
            };
            return Finding::bad(subject, one_line(error), remedy);
        }
    };
    let place = file.map_or_else(
        || place_of(BuiltIn::Main),
        |file| file.display().to_string(),
    );
    let summary = format!(
        "{} ({place}), {:.1} M parameters, licence {}, outputs {}",
        card.name,
        card.parameters as f64 / 1e6,
        card.licence,
        card.outputs().collect::<Vec<_>>().join(" "),
    );
    match evaluation {
        Ok(Evaluation {
            format,
            milliseconds,
        }) => {
            let format = format
                .as_ref()
                .map_or(String::new(), |format| format!("runs in {format}, "));
            let speed = format!("{format}one evaluation takes {milliseconds:.1} ms");
            Finding::good(subject, format!("{summary}; {speed}"))
        }
        Err(error) => Finding::bad(
            subject,
            format!("{summary}; it does not run: {error}"),
            "leave out --device and --precision to use what this machine can run",
        ),
    }
}

/// Checks that the network for levels up to 2400 can be read.
pub fn human(card: &Result<Metadata, LoadError>) -> Finding {
    let subject = "levels";
    match card {
        Ok(card) => {
            let place = place_of(BuiltIn::Human);
            Finding::good(subject, format!("{} ({place})", card.name))
        }
        Err(error) => Finding::bad(subject, one_line(error), INSTALL),
    }
}

/// The remedy if a network that ships with the program is missing or damaged.
const INSTALL: &str = "install Tessera again, or name another network's file";

/// Returns where the program has a built-in network from.
fn place_of(built_in: BuiltIn) -> String {
    let file = instead_of(built_in);
    file.map_or("built in".to_owned(), |file| file.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(driver: &str) -> Gpu {
        Gpu {
            driver: driver.to_owned(),
            name: "NVIDIA X".to_owned(),
            memory_mib: Some(24576),
        }
    }

    #[test]
    fn reads_what_the_driver_says() {
        let csv = "580.65.06, 24576, NVIDIA X\n580.65.06, [N/A], NVIDIA Y, Laptop\n";
        let second = Gpu {
            name: "NVIDIA Y, Laptop".to_owned(),
            memory_mib: None,
            ..gpu("580.65.06")
        };
        assert_eq!(parse_gpus(csv), [gpu("580.65.06"), second]);
        assert_eq!(parse_gpus("No devices were found\n"), []);
    }

    #[test]
    fn a_gpu_that_is_not_used_is_wrong_and_has_a_remedy() {
        let absent = CudaStatus::NotLoaded("no such file".to_owned());
        let remedy = |status: &CudaStatus, driver: &str| {
            let finding = cuda(status, Some(&[gpu(driver)]));
            assert!(!finding.ok);
            finding.remedy.unwrap()
        };
        assert!(remedy(&absent, "580.65").contains("tools/setup --cuda"));
        assert!(remedy(&CudaStatus::NoDevice, "550.54").contains("580 or newer"));
        assert!(remedy(&CudaStatus::NoDevice, "580.65").contains("CUDA_VISIBLE_DEVICES"));
        assert!(cuda(&absent, None).ok);
        assert!(cuda(&CudaStatus::Devices(1), Some(&[gpu("580.65")])).ok);
    }

    #[test]
    fn libtorch_of_another_series_is_wrong() {
        let patch = LIBTORCH_VERSION.replace(".0", ".7");
        for found in [LIBTORCH_VERSION, &patch] {
            assert!(libtorch(found).ok, "{found}");
        }
        for found in ["2.5.1", "2.1.0", "2", ""] {
            assert!(!libtorch(found).ok, "{found}");
        }
    }
}
