"""Training on accelerate: one machine and up. SFT is TRL's SFTTrainer; RL is one subclass of transformers' Trainer."""
