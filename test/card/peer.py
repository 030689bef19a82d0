# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What PyTorch takes for products and rows as speed.py has them, where there is one
with a card: run by card/run, whose table gets the lines."""
import sys

from products import PRODUCTS
from torch_peer import milliseconds, torch

if not torch.cuda.is_available():
    sys.exit("PyTorch sees no card")


def tell(what, time, gigabytes=None, flops=None):
    rate = (f"{gigabytes / time * 1e3:.0f} GB/s" if gigabytes
            else f"{flops / time / 1e9:.0f} TFLOP/s")
    print(f"peer: | PyTorch {torch.__version__} {what} | {time:.4f} ms | {rate} |",
          flush=True)


for m, k, n in PRODUCTS:
    a, b = (torch.randn(*shape, device="cuda").half() for shape in ((m, k), (k, n)))
    tell(f"matmul {m}x{k}x{n} f16", milliseconds(lambda: a @ b),
         flops=2 * m * k * n)
elements = 1 << 24
for dtype in torch.float32, torch.float16:
    x = torch.randn(elements // 4096, 4096, device="cuda").to(dtype)
    both = 2 * x.nbytes / 1e9
    tell(f"copy {dtype}", milliseconds(x.clone), gigabytes=both)
    tell(f"softmax 4096 {dtype}", milliseconds(lambda: torch.softmax(x, -1)),
         gigabytes=both)
    tell(f"layer norm 4096 {dtype}",
         milliseconds(lambda: torch.nn.functional.layer_norm(x, (4096,))),
         gigabytes=both)
    tell(f"column sum {dtype}", milliseconds(lambda: x.sum(0)), gigabytes=both / 2)
