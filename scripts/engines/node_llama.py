"""node-llama-cpp, audited by its texts: drafts are sampled and kept if the target draws the same token.

    npm install --ignore-scripts --omit=optional node-llama-cpp@3.22.1 @node-llama-cpp/linux-x64@3.22.1
    python3 -m venv V && V/bin/pip install -r scripts/engines/requirements.txt tokenizers
    V/bin/python scripts/engines/node_llama.py --node FOLDER --specgap target/release/specgap --models models/out

FOLDER has the node_modules; Node.js 20 or newer. As in
`cpu_engines.py` p comes from one pass of the target's ONNX graph, and the mode without speculation is the control.
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

from texts import DRAFTS, HEAD, Mode, Run, Scorer, Text, missing, parser, tokenized, trial

VOCABULARY = 49152


class NodeLlama:
    """node-llama-cpp's DraftSequenceTokenPredictor."""

    package = "node-llama-cpp"
    script = "scripts/engines/node_llama.py"
    modes = (
        Mode("plain", "no speculation"),
        Mode("draft model", "`DraftSequenceTokenPredictor`, `minTokens` and `maxTokens` 4, `minConfidence` 0"),
        Mode("draft model, defaults", "the same: `minTokens` 0, `maxTokens` 16, `minConfidence` .6"),
    )

    def __init__(self, node: pathlib.Path, target: pathlib.Path, draft: pathlib.Path):
        self.node, self.target, self.draft = node, target, draft

    def run(self, mode: str, prompts: list[list[int]], tokens: int) -> Run:
        """Texts of all prompts."""
        asked = {
            "target": str(self.target), "draft": None if mode == "plain" else str(self.draft), "vocabulary": VOCABULARY,
            "drafts": {"minTokens": DRAFTS, "maxTokens": DRAFTS, "minConfidence": 0} if mode == "draft model" else {},
            "prompts": prompts, "tokens": tokens,
        }
        script = pathlib.Path(__file__).with_suffix(".mjs")
        done = subprocess.run(
            ["node", script, self.node], input=json.dumps(asked), capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(done.stderr)
        answer = json.loads(done.stdout)
        texts = [Text(prompt, text, []) for prompt, text in zip(prompts, answer["texts"], strict=True)]
        counted = answer["predictions"]
        # A draft that was used saves a call; all other tokens take one each.
        kept = counted["used"]
        calls = sum(map(len, answer["texts"])) - kept
        return Run(texts, answer["seconds"], None if mode == "plain" else kept / calls, files={"counted.json": json.dumps(counted)})


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--node", type=pathlib.Path, required=True, help="the folder with node_modules")
    arguments = options.parse_args()
    if not arguments.models:
        options.error("--models is needed")
    graph, pair = arguments.models / "target.onnx", [arguments.models / f"gguf/{name}-f32.gguf" for name in ("target", "draft")]
    if missing([graph, *pair]):
        return 2
    package = arguments.node / "node_modules/node-llama-cpp/package.json"
    version = json.loads(package.read_text(encoding="utf-8"))["version"]
    print(HEAD)
    prompts = tokenized(arguments.models, arguments.prompts)
    wrong, _ = trial(NodeLlama(arguments.node, *pair), version, prompts, Scorer(graph), arguments)
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
