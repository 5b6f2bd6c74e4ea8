"""The chat format of SmolLM2 and Qwen2.5 (ChatML), and the prompts of this repository."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
# Ends the assistant's turn.
END = 2

PROMPTS = Path(__file__).parent / "prompts"


def chat(prompt: str, system: str = SYSTEM) -> str:
    """The text that the model sees before its answer to one user message."""
    return (
        f"<|im_start|>system\n{system}<|im_end|>\n"
        f"<|im_start|>user\n{prompt}<|im_end|>\n"
        "<|im_start|>assistant\n"
    )


def training_prompt(material: dict, source: random.Random) -> str:
    """One user message from the templates and slots of prompts/distil.json."""
    kind = source.choice(sorted(material["templates"]))
    template = source.choice(material["templates"][kind])

    def fill(match: re.Match) -> str:
        slot = match.group(1)
        if slot == "number":
            return str(source.randint(10, 999))
        if slot == "few":
            return str(source.randint(2, 12))
        return source.choice(material["slots"][slot])

    text = re.sub(r"\{(\w+)\}", fill, template)
    return text[0].upper() + text[1:]


def training_prompts(count: int, seed: int) -> list[str]:
    """`count` different messages."""
    material = json.loads((PROMPTS / "distil.json").read_text(encoding="utf-8"))
    source = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        found[training_prompt(material, source)] = None
    return list(found)


def held_out_prompts() -> list[tuple[str, str]]:
    """(id, user message) of prompts/capture.jsonl."""
    lines = (PROMPTS / "capture.jsonl").read_text(encoding="utf-8").splitlines()
    return [(entry["id"], entry["prompt"]) for entry in map(json.loads, lines)]


def main() -> None:
    """Prints the held-out prompts in the chat format, for `specgap capture`."""
    import argparse

    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--every", type=int, default=1, metavar="N",
                        help="only every N-th prompt, from the first")
    parser.add_argument("--system", default=SYSTEM, metavar="TEXT", help="the system turn")
    arguments = parser.parse_args()
    for name, prompt in held_out_prompts()[:: max(1, arguments.every)]:
        print(json.dumps({"id": name, "prompt": chat(prompt, arguments.system)}, ensure_ascii=False))


if __name__ == "__main__":
    main()
