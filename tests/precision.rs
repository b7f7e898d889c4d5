//! The dtype in which a network runs, which is measured once and cached.

// CPUs with AVX2 have several dtypes to choose from.
#![cfg(target_arch = "x86_64")]

use crate::interop_lc0::plain;
use crate::support::launches;
use assert_cmd::Command;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tessera::torch::ExportPrecision;

/// Launches of an evaluation by `tessera-xs`.
const LAUNCHES: usize = 10;
/// The same with libtorch's operators, in a format that the encoder kernel does not support.
const LAUNCHES_OF_OPERATORS: usize = 74;

/// A network in a folder that is also the user's home.
struct Workplace {
    folder: TempDir,
    net: PathBuf,
}

impl Workplace {
    fn new() -> Workplace {
        let folder = tempfile::tempdir().unwrap();
        let net = folder.path().join("net.pt");
        plain::write(&net, ExportPrecision::Fp16);
        Workplace { folder, net }
    }

    fn tessera(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tessera"));
        let home = self.folder.path();
        for variable in ["HOME", "LOCALAPPDATA"] {
            command.env(variable, home);
        }
        command.env("XDG_CACHE_HOME", home.join("cache"));
        command.args(arguments);
        command
    }

    /// Returns `doctor`'s report on the network's dtype.
    fn format(&self, mut doctor: Command) -> Value {
        let output = doctor.arg("--net").arg(&self.net).arg("--json").output();
        let text = String::from_utf8(output.unwrap().stdout).unwrap();
        let mut said: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        let format = said["format"].take();
        assert!(format["precision"].is_string(), "{text}");
        format
    }

    /// Returns the file in which the choice is cached.
    fn kept(&self) -> PathBuf {
        let folders = ["cache", "Library/Caches", "."];
        let files = folders.map(|folder| self.folder.path().join(folder).join("tessera/ways.json"));
        files.into_iter().find(|file| file.exists()).unwrap()
    }
}

fn said(mut command: Command) -> String {
    let output = command.assert().success();
    String::from_utf8(output.get_output().stdout.clone()).unwrap()
}

#[test]
fn measurements_are_cached_and_reported() {
    let place = Workplace::new();
    let describe = || said(place.tessera(&["describe", place.net.to_str().unwrap()]));
    let outlook = describe();
    assert!(outlook.contains("\nruns: the best of "), "{outlook}");
    let measured = place.format(place.tessera(&["doctor"]));
    assert_eq!(measured["way"], "kernels");
    assert_eq!(measured["refused"], serde_json::json!([]));
    let known = format!(
        "\nruns: {} by kernels (evaluations/s: ",
        measured["precision"]
    );
    let described = describe();
    assert!(described.contains(&known.replace('"', "")), "{described}");
    let speeds = measured["speeds"].as_array().unwrap();
    assert!(speeds.len() > 1, "{measured}");
    for speed in speeds {
        assert!(speed["evaluations_per_second"].as_f64() > Some(0.0));
    }
    let file = place.kept();
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(place.format(place.tessera(&["doctor"])), measured);
    assert_eq!(fs::read_to_string(&file).unwrap(), text);

    // A different cached choice is trusted.
    let mut answers: Value = serde_json::from_str(&text).unwrap();
    let other = match measured["precision"] == "f32" {
        true => "int8",
        false => "f32",
    };
    answers[0]["format"]["precision"] = other.into();
    fs::write(&file, answers.to_string()).unwrap();
    assert_eq!(place.format(place.tessera(&["doctor"]))["precision"], other);
    let mut engine = place.tessera(&[]);
    let net = place.net.display();
    engine.write_stdin(format!("setoption name Net value {net}\nisready\nquit\n"));
    let lines = said(engine);
    let expected = format!(" s, runs in {other} by kernels (evaluations/s: ");
    assert!(lines.contains(&expected), "{lines}");

    // Measurements from another CPU are ignored.
    answers[0]["machine"] = "AMD K6".into();
    fs::write(&file, answers.to_string()).unwrap();
    place.format(place.tessera(&["doctor"]));
    let answers: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(answers.as_array().unwrap().len(), 2);
}

#[test]
#[ignore = "long: runs in tools/test --all"]
fn a_damaged_or_unwritable_cache_does_not_prevent_loading() {
    let place = Workplace::new();
    let format = |doctor| place.format(doctor);
    format(place.tessera(&["doctor"]));
    let file = place.kept();
    let whole = fs::read_to_string(&file).unwrap();
    for broken in ["", "no JSON", &whole[..whole.len() / 2], "[{}]"] {
        fs::write(&file, broken).unwrap();
        format(place.tessera(&["doctor"]));
        let written: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!(written.as_array().unwrap().len(), 1, "{broken}");
    }
    // First a folder has the name of the file, then a file has the name of the folder.
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    format(place.tessera(&["doctor"]));
    let folder = file.parent().unwrap();
    fs::remove_dir_all(folder).unwrap();
    fs::write(folder, "no folder").unwrap();
    format(place.tessera(&["doctor"]));
    assert_eq!(fs::read_to_string(folder).unwrap(), "no folder");
    // The user has no home folder.
    let mut homeless = place.tessera(&["doctor"]);
    for variable in ["HOME", "LOCALAPPDATA", "XDG_CACHE_HOME"] {
        homeless.env(variable, Path::new("/no such folder"));
    }
    format(homeless);
}

#[test]
fn backendbench_traces_a_networks_operators() {
    let place = Workplace::new();
    let trace = place.folder.path().join("trace.json");
    let [net, file] = [&place.net, &trace].map(|path| path.to_str().unwrap());
    let bench = ["backendbench", "--net", net, "--device", "cpu"];
    let short = ["--batch", "2", "--time", "0s", "--trace", file];
    said(place.tessera(&[&bench[..], &short].concat()));
    let trace: Value = serde_json::from_slice(&std::fs::read(trace).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let operators = events.iter().filter(|event| event["cat"] == "cpu_op");
    // There are ten evaluations, each with several operators.
    assert!(operators.count() > 10, "{}", events.len());
}

/// Counted on the CPU. A GPU also copies the input and the output.
#[test]
fn a_network_takes_few_launches() {
    let Some(python) = crate::python::with_or_skip("json") else {
        return;
    };
    let place = Workplace::new();
    let trace = place.folder.path().join("trace.json");
    let net = Path::new(env!("CARGO_MANIFEST_DIR")).join("nets/tessera-xs.pt");
    let [net, file] = [&net, &trace].map(|path| path.to_str().unwrap());
    let bench = ["backendbench", "--net", net, "--device", "cpu", "--way"];
    let short = ["--batch", "2", "--threads", "1", "--time", "0s"];
    let counted = |way, precision| {
        let more = [way, "--precision", precision, "--trace", file];
        said(place.tessera(&[&bench[..], &more, &short].concat()));
        launches(&python, &trace)
    };
    // On the CPU, the outputs' conversion from fp16 counts as another launch.
    assert_eq!(counted("encoder", "fp16"), 10 * (LAUNCHES + 1));
    assert_eq!(counted("operators", "f32"), 10 * LAUNCHES_OF_OPERATORS);
    assert!(counted("file", "f32") > 20 * LAUNCHES_OF_OPERATORS);
}

#[test]
fn backendbench_compares_number_formats() {
    let place = Workplace::new();
    let net = place.net.to_str().unwrap();
    let bench = [
        "backendbench",
        "--net",
        net,
        "--device",
        "cpu",
        "--threads",
        "1",
    ];
    let short = ["--batch", "2,3", "--time", "0s", "--precision"];
    let run = |precision: &str, more: &[&str]| {
        said(place.tessera(&[&bench[..], &short, &[precision], more].concat()))
    };
    let json = |precision: &str| -> Value {
        serde_json::from_str(run(precision, &["--json"]).lines().last().unwrap()).unwrap()
    };
    let all = json("all");
    let rows = all["results"].as_array().unwrap();
    let formats: Vec<_> = rows
        .iter()
        .map(|row| (&row["batch"], &row["precision"]))
        .collect();
    let expected = [2, 3].map(|batch| ["f32", "bf16", "int8"].map(|it| (batch.into(), it.into())));
    let expected: Vec<(Value, Value)> = expected.into_iter().flatten().collect();
    assert_eq!(
        formats,
        expected.iter().map(|(a, b)| (a, b)).collect::<Vec<_>>()
    );
    let table = run("all", &[]);
    let auto = all["format"]["precision"].as_str().unwrap();
    assert!(
        table.contains(&format!("auto selects {auto}\nbatch")),
        "{table}"
    );
    assert_eq!(table.lines().count(), 4);
    let one = json("bf16");
    assert_eq!(one["format"]["precision"], "bf16");
    assert!(
        one["results"]
            .as_array()
            .unwrap()
            .iter()
            .all(|row| row["precision"] == "bf16")
    );
    assert!(run("bf16", &[]).starts_with("plain in bf16 by kernels, 1 thread\n"));
    // Without a network, there is nothing to measure.
    let mut uniform =
        place.tessera(&["backendbench", "--backend", "uniform", "--precision", "all"]);
    let output = uniform.assert().failure();
    let errors = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(
        errors.contains("--precision all is for networks"),
        "{errors}"
    );
}
