"""Trains heads on a small Llama by transformers' Trainer, with a callback that logs what they would accept.

    pip install transformers accelerate tensorboard specgap
    python examples/drafter_trainer.py [--steps 150] [--logs FOLDER]

The target is a Llama of two layers with random weights; it writes its own text by `generate`. The callback evaluates at
every evaluation of the Trainer and hands `report.metrics("eval/")` to all of its loggers.
"""

import argparse
import os
import tempfile

import torch
from drafter_plain import DEPTH, VOCABULARY, WIDTH, Heads, shown
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

import specgap as sg


def a_target():
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=WIDTH,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=64,
        initializer_range=0.2,
        eos_token_id=None,
        pad_token_id=None,
    )
    return LlamaForCausalLM(config).eval().requires_grad_(False)


class Drafting(torch.nn.Module):
    """Heads on the target's last hidden state; the loss is minus the sum over depths of alpha*."""

    def __init__(self, target):
        super().__init__()
        self.target, self.heads = target, Heads()

    def rows(self, ids):
        """p, q and the tokens that they are about: ids[:, 1:], since row t of a causal model is about t + 1."""
        with torch.no_grad():
            out = self.target(ids[:, :-1], output_hidden_states=True)
        return out.logits, self.heads(out.hidden_states[-1]), ids[:, 1:]

    def forward(self, input_ids, labels=None):
        p, q, tokens = self.rows(input_ids)
        return {"loss": sg.torch.drafter_loss(p, q), "logits": q[:, :, 0]}


class Acceptance(TrainerCallback):
    """Measures a drafter on validation texts, [N, T] ids that the target wrote, whenever the Trainer evaluates.

    With several processes each takes its share of texts, and all gather the bytes.
    """

    def __init__(self, texts, batch=8):
        self.texts, self.batch = texts, batch
        self.trainer, self.reports = None, []

    @torch.no_grad()
    def on_evaluate(self, args, state, control, model=None, **kwargs):
        acc = sg.drafter(depth=DEPTH)
        mine = range(args.process_index * self.batch, len(self.texts), args.world_size * self.batch)
        for k in mine:
            ids = self.texts[k : k + self.batch].to(args.device)
            acc.add(*model.rows(ids), prompt_id=torch.arange(k, k + len(ids)))
        if args.world_size > 1:
            parts = [None] * args.world_size
            torch.distributed.all_gather_object(parts, acc.to_bytes())
            acc = sg.drafter(depth=DEPTH)
            for part in parts:
                acc.merge(sg.Drafter.from_bytes(part))
        self.reports.append(acc.report())
        metrics = self.reports[-1].metrics("eval/")
        self.trainer.log(metrics)                # TensorBoard, W&B, MLflow: what report_to names
        if state.is_world_process_zero:
            shown(state.global_step, metrics)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--logs", help="a folder for TensorBoard")
    args = parser.parse_args()
    torch.manual_seed(0)
    target = a_target()

    def written(texts):
        ids = torch.randint(VOCABULARY, (texts, 1))
        # All that changes p is off: what is not said here comes from the model's generation_config.
        return target.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=48,
            do_sample=True,
            temperature=1.0,
            top_k=0,
            top_p=1.0,
            min_p=None,
            typical_p=1.0,
            epsilon_cutoff=0.0,
            eta_cutoff=0.0,
            repetition_penalty=1.0,
            no_repeat_ngram_size=0,
            bad_words_ids=None,
            suppress_tokens=None,
        )

    training = [{"input_ids": ids, "labels": ids} for ids in written(64)]
    validation = written(24)
    if args.logs:
        os.environ["TENSORBOARD_LOGGING_DIR"] = args.logs
    callback = Acceptance(validation)
    with tempfile.TemporaryDirectory() as folder:
        settings = TrainingArguments(
            output_dir=folder,
            max_steps=args.steps,
            per_device_train_batch_size=16,
            learning_rate=1e-2,
            lr_scheduler_type="constant",
            eval_strategy="steps",
            eval_steps=max(args.steps // 3, 1),
            eval_on_start=True,
            logging_steps=max(args.steps // 3, 1),
            save_strategy="no",
            report_to=["tensorboard"] if args.logs else "none",
            use_cpu=True,
            disable_tqdm=True,
        )
        trainer = Trainer(
            Drafting(target),
            settings,
            train_dataset=training,
            eval_dataset=training[:8],
            callbacks=[callback],
        )
        trainer.remove_callback(PrinterCallback)
        callback.trainer = trainer
        trainer.train()
    said = [line for line in trainer.state.log_history if "eval/acceptance_length" in line]
    print(f"{len(said)} evaluations are in the Trainer's own log, of {len(said[-1])} numbers")
    print(sg.compare(callback.reports[0], callback.reports[-1]))


if __name__ == "__main__":
    main()
