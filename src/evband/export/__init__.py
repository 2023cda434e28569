"""A fitted model in other forms: ONNX, one network."""
