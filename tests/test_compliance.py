"""Runs fastchess's step-by-step check of the protocol, if fastchess is installed."""

import shutil
import subprocess
import unittest

from patience import PATIENCE
from test_release import binaries


class ComplianceTest(unittest.TestCase):
    def test_fastchess_finds_no_fault_with_the_protocol(self):
        fastchess = shutil.which("fastchess")
        if fastchess is None:
            self.skipTest("fastchess is not installed")
        done = subprocess.run(
            [fastchess, "--compliance", binaries() / "tessera"],
            capture_output=True, text=True, timeout=PATIENCE, check=False,
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("Engine passed all compliance checks.", done.stdout)


if __name__ == "__main__":
    unittest.main()
