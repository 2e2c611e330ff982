"""How fast is `mha`, and what does it need? `make bench` measures it beside other ways to write the same layer."""

import os

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # torch's profiler, which sees the memory, reports on itself otherwise
