"""Recording PyTorch programs: on tensors without data, on a machine without a GPU.

    Recording ─┬─ recorder    sees every operator: launches and operands
               ├─ storages    births, deaths and names of tensors
               ├─ modules     where in the model, which phase, which step
               └─ pretend     a GPU, for scripts that ask for one

No part keeps a reference to a tensor: deaths would be late, and gradients copied.
"""
