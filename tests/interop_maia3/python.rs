//! Checkpoints that PyTorch writes, and what it computes from them.

use super::{games, largest_difference, rows};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};
use tessera::interop::maia3;

/// A Python that has PyTorch: the one `tools/test` prepares, or the user's own.
fn python() -> Option<PathBuf> {
    let prepared = Path::new(env!("CARGO_MANIFEST_DIR")).join(".venv/bin/python");
    [prepared, PathBuf::from("python3")]
        .into_iter()
        .find(|python| {
            let probe = Command::new(python).args(["-c", "import torch"]).output();
            probe.is_ok_and(|probe| probe.status.success())
        })
}

#[test]
fn pytorch_and_the_network_agree() {
    let Some(python) = python() else {
        crate::skip::skip("a Python with PyTorch (tools/test prepares one)");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let games = games(100);
    let rows = rows(&games);
    let words = Vec::<i64>::try_from(rows.flatten(0, -1)).unwrap();
    fs::write(place("rows"), bytemuck::cast_slice::<i64, u8>(&words)).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/maia3.py");
    let output = Command::new(python)
        .arg(script)
        .arg(folder.path())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let names = String::from_utf8(output.stdout).unwrap();
    assert_eq!(names.lines().count(), 3);
    for name in names.lines() {
        let file = fs::read(place(&format!("{name}.pt"))).unwrap();
        let network = maia3::read(&file).unwrap_or_else(|error| panic!("{name}: {error}"));
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
}

/// What PyTorch's older format and TorchScript look like, by PyTorch itself.
#[test]
fn other_files_of_pytorchs_are_told_apart() {
    let Some(python) = python() else {
        crate::skip::skip("a Python with PyTorch (tools/test prepares one)");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let script = "import sys, torch
layer = torch.nn.Linear(2, 2)
torch.save(layer.state_dict(), 'legacy.pt', _use_new_zipfile_serialization=False)
torch.save(layer, 'module.pt')
torch.jit.script(layer).save('script.pt')
torch.save(layer.state_dict(), 'linear.pt')
torch.save(layer.state_dict(), 'new.pt', pickle_protocol=5)
";
    let status = Command::new(python)
        .args(["-W", "ignore", "-c", script])
        .current_dir(folder.path())
        .status()
        .unwrap();
    assert!(status.success());
    for (name, told) in [
        ("legacy.pt", "before version 1.6"),
        ("module.pt", "torch.nn.modules.linear.Linear"),
        ("script.pt", "it is TorchScript"),
        ("linear.pt", "no parameter `elo_embedding_low.weight`"),
        ("new.pt", "no parameter `elo_embedding_low.weight`"),
    ] {
        let file = fs::read(folder.path().join(name)).unwrap();
        let message = maia3::read(&file).unwrap_err().to_string();
        assert!(message.contains(told), "{name}: {message}");
    }
}
