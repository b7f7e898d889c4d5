//! Tests checkpoints that PyTorch writes, and compares our outputs for them with PyTorch's.

use super::{games, largest_difference, rows};
use crate::golden::{self, Golden};
use std::path::Path;
use std::process::Command;
use std::{env, fs};
use tessera::interop::maia3;
use tessera::network::Positions;

/// Tolerance for values computed in f32, to allow for differences between machines.
const TOLERANCE: f64 = 1e-5;

#[test]
fn pytorch_and_the_network_agree() {
    let python = crate::python::with("torch");
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let games = games(100);
    let rows = rows(&games);
    let words = Vec::<i64>::try_from(rows.flatten(0, -1)).unwrap();
    fs::write(place("rows"), bytemuck::cast_slice::<i64, u8>(&words)).unwrap();
    let files = ["mean.pt", "compressed.pt", "wrapped.pt"];
    golden::files(
        "maia3",
        folder.path(),
        &files,
        python.as_deref(),
        |python| {
            let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/maia3.py");
            let output = Command::new(python)
                .arg(script)
                .arg(folder.path())
                .output()
                .unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{errors}");
        },
    );
    let mut golden = Golden::open("maia3", python.is_some());
    for file in files {
        let name = file.strip_suffix(".pt").unwrap();
        let file = fs::read(place(file)).unwrap();
        let network = maia3::read(&file).unwrap_or_else(|error| panic!("{name}: {error}"));
        let outputs = tch::no_grad(|| network.forward(Positions::Rows(&rows)));
        for (place, output) in outputs.iter().enumerate() {
            let numbers = Vec::<f64>::try_from(output.flatten(0, -1)).unwrap();
            golden.numbers(&format!("{name}, output {place}"), &numbers, TOLERANCE);
        }
        if python.is_none() {
            continue;
        }
        let outputs = fs::read(place(&format!("{name}.outputs"))).unwrap();
        let outputs: Vec<f64> = bytemuck::pod_collect_to_vec(&outputs);
        let expected: Vec<_> = outputs
            .chunks_exact(4352 + 3)
            .map(|outputs| (outputs[..4352].to_vec(), outputs[4352..].to_vec()))
            .collect();
        assert_eq!(expected.len(), games.len());
        let off = largest_difference(&network, &games, &expected);
        println!("{name}: off by {off:.1e}");
        assert!(off < 1e-4, "{name} is off by {off}");
    }
    golden.finish();
}

/// PyTorch's older format and TorchScript, written by PyTorch itself.
#[test]
fn other_pytorch_files_are_recognised() {
    let python = crate::python::with("torch");
    let folder = tempfile::tempdir().unwrap();
    let script = "import sys, torch
layer = torch.nn.Linear(2, 2)
torch.save(layer.state_dict(), 'legacy.pt', _use_new_zipfile_serialization=False)
torch.save(layer, 'module.pt')
torch.jit.script(layer).save('script.pt')
torch.save(layer.state_dict(), 'linear.pt')
torch.save(layer.state_dict(), 'new.pt', pickle_protocol=5)
";
    let files = [
        ("legacy.pt", "before version 1.6"),
        ("module.pt", "torch.nn.modules.linear.Linear"),
        ("script.pt", "it is TorchScript"),
        ("linear.pt", "no parameter `elo_embedding_low.weight`"),
        ("new.pt", "no parameter `elo_embedding_low.weight`"),
    ];
    let names = files.map(|(name, _)| name);
    golden::files(
        "pytorch",
        folder.path(),
        &names,
        python.as_deref(),
        |python| {
            let status = Command::new(python)
                .args(["-W", "ignore", "-c", script])
                .current_dir(folder.path())
                .status()
                .unwrap();
            assert!(status.success());
        },
    );
    for (name, told) in files {
        let file = fs::read(folder.path().join(name)).unwrap();
        let message = maia3::read(&file).unwrap_err().to_string();
        assert!(message.contains(told), "{name}: {message}");
    }
}
