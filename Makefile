# Everything needs Go and nothing else. Tools come from gen/go.mod.

GO ?= go

.PHONY: bench test generate check race noasm tiers fuzz fmt

bench: ## the main job: kernels and trainers on MovieLens-20M (or its synthetic stand-in)
	$(GO) run ./cmd/bench --dataset=ml20m

test: ## all tests of this machine's tier
	$(GO) test ./...

generate: ## rewrite asm/ from gen/
	cd gen && $(GO) run . -dir ../asm

check: ## formatting, vet for two architectures, static analysis, tidy modules
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	GOARCH=arm64 $(GO) vet ./...
	$(GO) vet -tags=noasm ./...
	cd gen && $(GO) vet ./... && $(GO) build -o ../.bin/staticcheck honnef.co/go/tools/cmd/staticcheck
	.bin/staticcheck ./...
	$(GO) mod tidy -diff
	cd gen && $(GO) mod tidy -diff

race: ## tests under the race detector
	$(GO) test -race ./...

noasm: ## tests without assembly
	$(GO) test -tags=noasm ./...

tiers: ## tests with the tier lowered by force
	DPMF_ISA=generic $(GO) test -count=1 ./kernels/... ./trainer/... ./internal/...
	DPMF_ISA=avx2 $(GO) test -count=1 ./kernels/... ./trainer/... ./internal/...

FUZZTIME ?= 10s

fuzz: ## every fuzz target for FUZZTIME
	@set -e; for package in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
			echo "$$package $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$package; \
		done; \
	done
