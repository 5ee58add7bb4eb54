"""Model files as numpy sees them."""
import json
import struct

import numpy as np


def read_tensors(path):
    """The arrays of a safetensors file by name, and its metadata."""
    with open(path, "rb") as file:
        raw = file.read()
    size = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + size])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        first, end = entry["data_offsets"]
        tensors[name] = np.frombuffer(raw[8 + size + first:8 + size + end], dtype="<f4").reshape(entry["shape"])
    return tensors, metadata
