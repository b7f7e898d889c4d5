"""The OpenAPI description passes an independent validator."""

import json
import unittest

from tool_test import ROOT, lack

try:
    import openapi_spec_validator
except ImportError:
    openapi_spec_validator = None


class OpenApiTest(unittest.TestCase):
    def setUp(self):
        if not openapi_spec_validator:
            lack("openapi-spec-validator (tools/venv --tests installs it)")
        self.api = json.loads((ROOT / "src/serve/openapi.json").read_text())

    def test_it_is_valid(self):
        self.assertTrue(self.api["openapi"].startswith("3.1"))
        openapi_spec_validator.validate(self.api)

    def test_the_validator_finds_faults(self):
        del self.api["paths"]["/v1/move"]["post"]["responses"]["200"]["description"]
        with self.assertRaises(Exception):
            openapi_spec_validator.validate(self.api)


if __name__ == "__main__":
    unittest.main()
