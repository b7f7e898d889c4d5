//! Tests that `tessera-train merge` averages runs and network files into one network.

use super::workplace::{fail, run, succeed, train, workplace};
use std::path::Path;
use tch::Tensor;
use tessera::backend::CodePolicy;
use tessera::network::{self, Network};

fn open(path: &Path) -> Network {
    network::open(&std::fs::read(path).unwrap(), CodePolicy::Checked).unwrap()
}

#[test]
#[ignore = "long: runs in tools/test --all"]
fn runs_and_files_are_averaged_into_one_network() {
    let workplace = workplace(10);
    let folder = workplace.path();
    for seed in ["1", "2"] {
        let name = format!("run{seed}");
        let seed = format!("seed={seed}");
        succeed(run(folder, &name).args(["--set", &seed]));
        let file = format!("{name}.pt");
        let export = ["export", &name, "-o", &file, "--precision", "f32"];
        succeed(train(folder).args(export));
    }
    // Merges a run with the exported file of another, weighted three to one.
    let merge = [
        "merge",
        "run1",
        "run2.pt",
        "-o",
        "both.pt",
        "--precision",
        "f32",
    ];
    let said = succeed(train(folder).args(merge).args(["--weights", "3,1"]));
    assert!(
        said.starts_with("both.pt: both, the mean of 2 networks, "),
        "{said}"
    );
    let [one, two, both] = ["run1.pt", "run2.pt", "both.pt"].map(|file| open(&folder.join(file)));
    let tensors = |network: &Network| -> Vec<Tensor> {
        let tensors = network.weights.tensors().iter();
        tensors.map(Tensor::shallow_clone).collect()
    };
    for ((one, two), both) in tensors(&one).iter().zip(tensors(&two)).zip(tensors(&both)) {
        let off = (one * 0.75 + two * 0.25 - both)
            .abs()
            .max()
            .double_value(&[]);
        assert!(off < 1e-6, "{off}");
    }
    let training = &both.about.training;
    assert_eq!(training["samples"], 640);
    assert_eq!(training["merged"][0]["weight"], 0.75);
    assert_eq!(training["merged"][1]["training"], two.about.training);
    let hash = |file: &str| {
        let file = folder.join(file);
        tessera::inference::describe(Some(&file), CodePolicy::Checked)
            .unwrap()
            .hash
    };
    for (place, file) in ["run1.pt", "run2.pt"].into_iter().enumerate() {
        assert_eq!(training["merged"][place]["hash"], hash(file));
    }
    // The result can be measured and merged like any other network.
    let eval = ["validate", "both.pt", "tiny.toml", "--device", "cpu"];
    assert!(succeed(train(folder).args(eval)).contains("policy"));
    let again = [
        "merge", "both.pt", "run1.pt", "run2", "-o", "three.pt", "--name", "all",
    ];
    assert!(succeed(train(folder).args(again)).contains(" all, the mean of 3 networks"));
    let over = ["merge", "run1.pt", "both.pt", "-o", "both.pt"];
    let errors = fail(train(folder).args(over));
    assert!(
        errors.contains("both.pt is read, so it is not written"),
        "{errors}"
    );

    // These parts are incompatible.
    let config = std::fs::read_to_string(folder.join("tiny.toml")).unwrap();
    let wider = config.replace("\nwidth = 16", "\nwidth = 32");
    std::fs::write(folder.join("tiny.toml"), wider).unwrap();
    succeed(&mut run(folder, "wide"));
    std::fs::write(folder.join("noise.pt"), "no network").unwrap();
    for (arguments, expected) in [
        (
            &["run1", "wide"][..],
            "wide cannot be merged with run1: its `model.width` is 32 in place of 16",
        ),
        (
            &["run1", "run2", "--weights", "1"],
            "--weights names 1 for 2",
        ),
        (
            &["run1", "run2", "--weights", "1,-1"],
            "the weight of run2 is -1",
        ),
        (
            &["run1", "run2", "--weights", "0,0"],
            "the weights add up to 0",
        ),
        (&["run1", "nothing"], "nothing"),
        (&["run1", "noise.pt"], "noise.pt"),
        (&["run1", "run2.pt", "--last"], "--last is for runs"),
    ] {
        let mut command = train(folder);
        command.args(["merge", "-o", "none.pt"]).args(arguments);
        let errors = fail(&mut command);
        assert!(errors.contains(expected), "{errors}");
        assert!(!folder.join("none.pt").exists());
    }
    let alone = train(folder)
        .args(["merge", "run1", "-o", "none.pt"])
        .output();
    assert_eq!(alone.unwrap().status.code(), Some(2));
}
