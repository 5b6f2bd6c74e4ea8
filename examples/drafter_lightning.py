"""Trains the heads of drafter_plain.py by PyTorch Lightning, which logs what they would accept.

    pip install lightning tensorboard specgap; python examples/drafter_lightning.py [--steps 150] [--logs FOLDER]

Each process has an accumulator of its own. At the end of a validation they gather each other's bytes, so that
all log the same numbers, to the bit, however texts were dealt out; a text that two processes had counts once.
"""

import argparse
import logging
import warnings

import lightning
import torch
from drafter_plain import DEPTH, Heads, Target, rows, shown
from lightning.pytorch.loggers import TensorBoardLogger

import specgap as sg


class Drafting(lightning.LightningModule):
    def __init__(self, target):
        super().__init__()
        self.target, self.heads = target.requires_grad_(False), Heads()
        self.reports = []

    def training_step(self, batch, index):
        p, q, _ = rows(self.target, self.heads, batch[1])
        loss = sg.torch.drafter_loss(p, q)
        self.log("train/loss", loss)
        return loss

    def on_validation_epoch_start(self):
        self.acc = sg.drafter(depth=DEPTH)

    def validation_step(self, batch, index):
        prompts, ids = batch
        self.acc.add(*rows(self.target, self.heads, ids), prompt_id=prompts)

    def on_validation_epoch_end(self):
        parts = [self.acc.to_bytes()]
        if self.trainer.world_size > 1:
            parts = [None] * self.trainer.world_size
            torch.distributed.all_gather_object(parts, self.acc.to_bytes())
        whole = sg.drafter(depth=DEPTH)
        for part in parts:
            whole.merge(sg.Drafter.from_bytes(part))
        report = whole.report()
        self.reports.append(report)
        metrics = report.metrics("eval/")
        # All processes have the same numbers; none is to be averaged.
        self.log_dict(metrics, rank_zero_only=True)
        if self.trainer.is_global_zero:
            shown(self.global_step, metrics)

    def configure_optimizers(self):
        return torch.optim.Adam(self.heads.parameters(), lr=1e-2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--logs", help="a folder for TensorBoard")
    args = parser.parse_args()
    # What Lightning says of itself.
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="lightning")
    lightning.seed_everything(0, verbose=False)
    target = Target()

    def loader(first, texts, batch, shuffle=False):
        data = torch.utils.data.TensorDataset(torch.arange(first, first + texts), target.write(texts, 48))
        return torch.utils.data.DataLoader(data, batch_size=batch, shuffle=shuffle)

    training, validation = loader(100, 64, 16, True), loader(0, 24, 8)
    trainer = lightning.Trainer(
        accelerator="cpu",
        max_steps=args.steps,
        val_check_interval=max(args.steps // 3, 1),
        check_val_every_n_epoch=None,
        num_sanity_val_steps=0,
        logger=TensorBoardLogger(args.logs) if args.logs else False,
        log_every_n_steps=10,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    module = Drafting(target)
    trainer.validate(module, validation, verbose=False)
    trainer.fit(module, training, validation)
    names = [name for name in trainer.callback_metrics if name.startswith("eval/")]
    print(f"{len(names)} numbers are logged")
    print(sg.compare(module.reports[0], module.reports[-1]))


if __name__ == "__main__":
    main()
