# make test works on a machine with only Go. Everything else says what it misses.

GO      ?= go
BIN     := bin/ashlar
LDFLAGS := -s -w -X ashlar.Version=$(shell cat VERSION)

export CGO_ENABLED ?= 0

.PHONY: build test race vet lint fmt bench demo live interop test-crash check clean

build: $(BIN)

$(BIN): FORCE
	@$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $@ ./cmd/ashlar

FORCE:

# Unit, conformance, script and command-line tests. Prints what it skipped and why.
test: build
	@$(GO) vet ./...
	@out=$$(mktemp); $(GO) test -short -v ./... >$$out 2>&1; code=$$?; awk -f testdata/summary.awk $$out; rm -f $$out; exit $$code

# The race detector needs a C compiler.
race:
	@if command -v "$$($(GO) env CC)" >/dev/null 2>&1; then \
		CGO_ENABLED=1 $(GO) test -race -short ./...; \
	else \
		echo "race: skipped, there is no C compiler"; \
	fi

fmt:
	@out=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "not gofmt-ed:"; echo "$$out"; exit 1; fi

vet:
	@$(GO) vet ./...

lint: fmt vet
	@$(GO) tool -modfile=tools/go.mod staticcheck ./...

check: lint test race

# Figures as ratios to a baseline of the same run.
bench: build
	@$(GO) run ./bench

test-crash: build
	@$(GO) test -count=1 ./crash

# A real tool-using block on the recording that ships: no network, no key.
demo: build
	@echo "A Lua agent on a recorded model: it reads a file through a tool and answers."
	@echo
	@DEMO_TOOL_CHOICE=required $(BIN) run -s blocks/demo.lua --replay testdata/recordings/demo.jsonl --beats 6 --deadline 1m \
		"Use read_file on notes.txt. What is the secret word?"
	@echo
	@echo "Every fact of it is in the log, $${ASHLAR_HOME:-$$HOME/.ashlar}/kernel.db:"
	@$(BIN) log sessions --project . | tail -n 1
	@echo "Read it with: $(BIN) log show SESSION"

# The same block on a real model behind a real server, installed outside the repository.
live: build
	@testdata/live/run.sh $(BIN)

# 500 agents on a model server by others (npm, loopback) that misbehaves.
interop:
	@testdata/suites/aimock/run.sh $(GO)

clean:
	rm -rf bin
