"""What a model costs before it is trained: parameters, FLOPs, memory and time, from formulas that are held to the built model."""
