"""Serve a small real model over llama.cpp's own HTTP server, in this process.

usage: serve.py MODEL.gguf TEMPLATE.jinja PORT

For machines whose processor the ready-made llama-server was not built for. Stops on
SIGTERM.
"""
import signal
import sys

import xllamacpp

model, template, port = sys.argv[1:4]
params = xllamacpp.CommonParams()
params.model.path = model
params.model_alias = {"smollm2-135m"}
params.hostnames = ["127.0.0.1"]
params.port = int(port)
params.n_ctx = 4096
params.n_parallel = 1
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 2
params.sampling.temp = 0
params.use_jinja = True
with open(template, encoding="utf-8") as f:
    params.chat_template = f.read()
params.reasoning_format = xllamacpp.common_reasoning_format.COMMON_REASONING_FORMAT_NONE
params.ui = False

signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
signal.pause()
