"""A graph in JavaScript, by onnxruntime-node from npm."""

import json
import shutil
import subprocess

import numpy as np
import pytest
from tests.export.test_export import feeds, hostile, table

from promissing import NanMLPClassifier
from promissing.export import to_onnx

SCRIPT = """
const ort = require("onnxruntime-node");
const fs = require("fs");
(async () => {
  const session = await ort.InferenceSession.create("model.onnx");
  const columns = JSON.parse(fs.readFileSync("rows.json"));
  const feeds = {};
  for (const [name, { kind, values }] of Object.entries(columns)) {
    const shape = [values.length, 1];
    if (kind === "category") feeds[name] = new ort.Tensor("string", values, shape);
    else if (kind === "date") {
      feeds[name] = new ort.Tensor("int64", BigInt64Array.from(values.map(BigInt)), shape);
    } else {
      const numbers = Float64Array.from(values.map((v) => v ?? NaN));
      feeds[name] = new ort.Tensor("float64", numbers, shape);
    }
  }
  const found = await session.run(feeds);
  console.log(JSON.stringify(Array.from(found.probabilities.data)));
})();
"""


@pytest.mark.extras
@pytest.mark.skipif(not shutil.which("npm"), reason="node and npm are not installed")
def test_a_graph_predicts_the_same_in_node(tmp_path):
    words = ["npm", "install", "onnxruntime-node@1.22", "--ignore-scripts", "--no-audit"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"onnxruntime-node cannot be installed: {done.stderr.strip()[-200:]}")
    frame, level = table()
    model = NanMLPClassifier(n_members=2, max_iter=4, random_state=0).fit(frame, level > 0)
    X = hostile(10_000, model)
    to_onnx(model, tmp_path / "model.onnx")
    kinds = dict(zip(X, model.encoder_.kinds_, strict=True))
    columns = {}
    for name, values in feeds(X, model).items():
        cells = values[:, 0].tolist()
        if kinds[name] == "date":
            cells = [str(cell) for cell in cells]  # JSON has no 64-bit integers.
        elif kinds[name] != "category":
            cells = [None if cell != cell else cell for cell in cells]
        columns[name] = {"kind": kinds[name], "values": cells}
    (tmp_path / "rows.json").write_text(json.dumps(columns))
    (tmp_path / "run.js").write_text(SCRIPT)
    done = subprocess.run(
        ["node", "run.js"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    found = np.array(json.loads(done.stdout)).reshape(-1, 2)
    np.testing.assert_allclose(found, model.predict_proba(X), atol=1e-5)
