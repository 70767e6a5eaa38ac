"""Training on accelerate: one machine and up. SFT and RL are one subclass of transformers' Trainer (`loop`, `_trainer`); they
differ in where updates come from and in the loss. From TRL comes the fused head.
"""
