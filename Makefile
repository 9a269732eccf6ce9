# lmcaddy: `make help` lists the targets.

SHELL       := /bin/sh
BIN         := bin/lmcaddy
CACHE       := $(CURDIR)/.cache
TAGS        := nobadger,nomysql,nopgx
VERSION     := $(shell git describe --tags --always --dirty 2>/dev/null || echo development)
LDFLAGS     := -s -w -X github.com/caddyserver/caddy/v2.CustomVersion=$(VERSION)
GO_FILES    := $(shell find . -name '*.go' -not -name '*_test.go' -not -path './.cache/*' -not -path './e2e/*')
# The files that //go:embed names
EMBEDDED    := $(wildcard $(shell awk '/^\/\/go:embed /{dir=FILENAME; sub("[^/]*$$","",dir); for(i=2;i<=NF;i++) print dir $$i}' $(GO_FILES)))
GREMLINS    := github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0
LINT        := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

NFPM        := github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2
KUSTOMIZE   := sigs.k8s.io/kustomize/kustomize/v5@v5.8.2
VALIDATE    := sigs.k8s.io/kubectl-validate@v0.0.4

# The end-to-end tests take their engine from this home.
TEST_HOME   := $(CACHE)/home
PORT        ?= 1234
SHIPPED     := testdata/models/lmcaddy/tinychat

export CGO_ENABLED = 0

# Tests are compiled in the way of the program, so that what both consist of is compiled once.
export GOFLAGS += -trimpath
# make lint vets the tests, and nobody debugs them: without symbols they are linked faster.
TEST_FLAGS  := -vet=off -ldflags=-s

.PHONY: help
help: ## Lists the targets
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: $(BIN) ## Builds bin/lmcaddy

$(BIN): $(GO_FILES) $(EMBEDDED) go.mod go.sum
	go build -trimpath -buildvcs=false -tags $(TAGS) -ldflags '$(LDFLAGS)' -o $@ ./cmd/lmcaddy

.PHONY: run
run: build ## Installs the engine and serves the shipped model on http://127.0.0.1:1234 (PORT=8080: on another port)
	@# The shell expands LMCADDY_HOME, since make would expand a $$ in the path.
	@# exec: Ctrl-C and the exit status are lmcaddy's own. A SIGINT to make alone doesn't reach it: make expects terminals to send it to
	@# both. A SIGTERM does.
	@home="$${LMCADDY_HOME:-$$HOME/.lmcaddy}" && mkdir -p -m 700 "$$home" && mkdir -p "$$home/models/lmcaddy" && \
	{ test -e "$$home/models/lmcaddy/tinychat" || ln -sfn "$(CURDIR)/$(SHIPPED)" "$$home/models/lmcaddy/tinychat"; } && \
	$(BIN) runtime get llama.cpp --if-missing && \
	echo "Open http://127.0.0.1:$(PORT) in a browser. Ctrl-C stops the server. make run PORT=8080 serves on another port." && \
	LMCADDY_PORT="$(PORT)" exec $(BIN) run --config Caddyfile

.PHONY: page
page: ## Makes the page, web/dist/index.html, from web/src
	tools/page.sh

PREFIX      ?= /usr/local

.PHONY: install
install: build ## Installs bin/lmcaddy, completions and manual pages below PREFIX (/usr/local)
	LMCADDY_PREFIX="$(DESTDIR)$(PREFIX)" packaging/install.sh --program "$(BIN)"

.PHONY: uninstall
uninstall: ## Deletes what make install has installed below PREFIX
	LMCADDY_PREFIX="$(DESTDIR)$(PREFIX)" packaging/install.sh --uninstall

.PHONY: release
release: ## Builds a release into dist: archives, .deb, .rpm, lists of components, checksums (PUBLISHED=https://…: manifests, too)
	@mkdir -p $(CACHE)
	GOBIN=$(CACHE) go install $(NFPM)
	go run ./tools/release -nfpm $(CACHE)/nfpm -published "$(PUBLISHED)"

# The packages that are tested with the race detector: those below Caddy, without translate, which has no goroutines.
RACED       := ./api/... ./catalog/... ./internal/... ./mcploop/... ./node/... ./store ./supervisor/... ./warm/...

# Runs tests of e2e; its arguments say which.
E2E = cd e2e && MAKEFLAGS= LMCADDY_BIN="$(CURDIR)/$(BIN)" LMCADDY_RUNTIMES="$(TEST_HOME)/runtimes" \
	go test $(TEST_FLAGS) -p 2 -parallel 6 -count 1 -timeout 90m

# What the tests need is downloaded while the program is compiled.
.PHONY: test
test: ## Sets everything up and runs every test
	$(MAKE) -j 2 set-up build
	$(MAKE) -j 2 test-packages lavapipe test-tools
	$(MAKE) test-e2e
	$(MAKE) test-gpu

.PHONY: set-up
set-up: ## Installs what the tests need besides Go and an engine
	go list -tags $(TAGS) -test -deps ./... >/dev/null # downloads the modules
	cd e2e && go list -test -deps ./... >/dev/null
	tools/promtool.sh
	tools/postgres.sh
	tools/venv.sh
	tools/python.sh -c ''
	tools/node.sh .cache/clients
	tools/node.sh .cache/mcpservers mcpservers
	tools/node.sh .cache/page ../web
	tools/chromium.sh
	tools/lavapipe.sh driver

.PHONY: lavapipe
lavapipe: build ## Installs an engine for lavapipe, and has it compile its shaders
	tools/lavapipe.sh

.PHONY: test-packages
test-packages: ## Runs test-rest and test-race
	$(MAKE) test-rest
	$(MAKE) test-race

.PHONY: test-unit
test-unit: ## Runs the tests of the packages, with the fake engine, PostgreSQL and Python
	tools/postgres.sh
	tools/venv.sh
	tools/promtool.sh
	go test -tags $(TAGS) -timeout 60m ./...

.PHONY: test-race
test-race: ## Runs the tests of the packages below Caddy with the race detector
	tools/postgres.sh
	tools/venv.sh
	tools/race.sh $(TEST_FLAGS) $(RACED)

.PHONY: test-rest
test-rest: ## Runs the tests of the other packages
	tools/promtool.sh
	mkdir -p $(CACHE) && go list -tags $(TAGS) $(RACED) >$(CACHE)/raced
	go test $(TEST_FLAGS) -tags $(TAGS) -timeout 60m $$(go list -tags $(TAGS) ./... | grep -vxFf $(CACHE)/raced)
	go test $(TEST_FLAGS) ./supervisor/schedule -run '^TestStep_RandomSchedules$$' # with the race detector only some are played

.PHONY: test-tools
test-tools: ## Runs the tests of the small models' recipe
	tools/python.sh -m unittest discover -t tools -s tools/tinymodel

.PHONY: test-e2e
test-e2e: build set-up ## Runs the end-to-end tests: the built binary, a real llama-server, the shipped model
	LMCADDY_HOME="$(TEST_HOME)" $(BIN) runtime get llama.cpp --if-missing
	$(E2E) -skip '^TestGPU_' ./...

.PHONY: test-gpu
test-gpu: build set-up ## Runs the end-to-end tests of GPUs, on devices that the processor computes
	LMCADDY_HOME="$(TEST_HOME)" $(BIN) runtime get llama.cpp --if-missing
	tools/lavapipe.sh
	$(E2E) -run '^TestGPU_' .

.PHONY: release-test
release-test: build ## Makes a release twice, installs it into new systems, builds the image; root, Debian, twenty minutes
	LMCADDY_HOME="$(TEST_HOME)" $(BIN) runtime get llama.cpp --if-missing
	@mkdir -p $(CACHE)
	GOBIN=$(CACHE) go install $(NFPM)
	cd tools/imagelint && go run . ../..
	cd e2e && LMCADDY_BIN="$(CURDIR)/$(BIN)" LMCADDY_RUNTIMES="$(TEST_HOME)/runtimes" LMCADDY_NFPM="$(CACHE)/nfpm" \
		go test -count 1 -timeout 0 -tags release ./packages
	cd e2e && LMCADDY_BIN="$(CURDIR)/$(BIN)" LMCADDY_RUNTIMES="$(TEST_HOME)/runtimes" \
		go test -count 1 -timeout 0 -run '^TestFirstHour$$' . -whole-first-hour

.PHONY: manifests
manifests: ## Checks the example for Kubernetes against its schema; builds two large tools the first time
	@mkdir -p $(CACHE)
	test -x $(CACHE)/kustomize || GOBIN=$(CACHE) go install $(KUSTOMIZE)
	test -x $(CACHE)/kubectl-validate || GOBIN=$(CACHE) go install $(VALIDATE)
	$(CACHE)/kustomize build examples/kubernetes >$(CACHE)/manifests.yaml
	$(CACHE)/kubectl-validate $(CACHE)/manifests.yaml

.PHONY: mlx
mlx: build ## Runs the tests of MLX models with a real mlx_lm.server, which it installs if there is none; ten minutes
	LMCADDY_HOME="$(TEST_HOME)" $(BIN) runtime get llama.cpp --if-missing
	tools/node.sh .cache/mcpservers mcpservers
	tools/mlx.sh "$(CURDIR)/$(BIN)" "$(TEST_HOME)"

.PHONY: families
families: build ## Checks the models in the folder FAMILIES in every API, and writes the table of docs/families.md
	test -d "$(FAMILIES)" || { echo "FAMILIES=<folder> with models: publisher/repository/file.gguf" >&2; exit 2; }
	LMCADDY_HOME="$(TEST_HOME)" $(BIN) runtime get llama.cpp --if-missing
	$(E2E) ./families -models "$(abspath $(FAMILIES))" -table "$(CURDIR)/docs/families.md"

.PHONY: clients
clients: build ## Runs coding agents on the server, and the page in Firefox; downloads hundreds of megabytes
	LMCADDY_HOME="$(TEST_HOME)" $(BIN) runtime get llama.cpp --if-missing
	tools/node.sh .cache/agents agents
	tools/node.sh .cache/firefox firefox
	tools/firefox.sh
	cd e2e && LMCADDY_BIN="$(CURDIR)/$(BIN)" LMCADDY_RUNTIMES="$(TEST_HOME)/runtimes" go test -p 1 -count 1 -tags clients -run 'Agents|Firefox' .

.PHONY: bench
bench: build ## Measures requests, downloads, listings, conversations and the page, as ratios, and kills a download fifty times; an hour; BENCH_BEFORE=binary compares figures, and answers
	go test -run '^$$' -bench . -benchmem ./translate/... ./supervisor ./supervisor/schedule
	go test -run '^$$' -bench . -benchmem ./catalog
	tools/postgres.sh
	go test -run '^$$' -bench Put -benchmem ./store
	go test ./store -run '^$$' -bench Continue -benchtime 1000x -timeout 30m -turns 1000000
	go test -tags $(TAGS) -run '^$$' -bench Listing -benchmem ./api
	go test ./catalog/fetch -run TestKill -count 1 -kills 50
	go test -run '^$$' -bench Throughput -benchtime 3x -timeout 30m ./catalog/fetch
	LMCADDY_HOME="$(TEST_HOME)" $(BIN) runtime get llama.cpp --if-missing
	cd e2e/bench && LMCADDY_BIN="$(CURDIR)/$(BIN)" LMCADDY_RUNTIMES="$(TEST_HOME)/runtimes" \
		go test -count 1 -timeout 0 -full -update $(if $(BENCH_BEFORE),-before "$(abspath $(BENCH_BEFORE))")
	$(E2E) -run '^$$' -bench Page -benchtime 5x .
	$(if $(BENCH_BEFORE),$(E2E) -v -run '^TestRandomRequests$$' . -before "$(abspath $(BENCH_BEFORE))" -requests 10000 $(BENCH_FLAGS))

.PHONY: gpu
gpu: build ## Measures speed, loads, memory and conversations on this machine's GPU; five minutes; GPU_DEVICES=lavapipe: tries that without one
	tools/gpu.sh

.PHONY: gpu-pack
gpu-pack: build ## Packs what make gpu needs on a machine without Go, make and a network; GPU_RUNTIME=folder: with an engine
	tools/gpu.sh pack $(if $(GPU_RUNTIME),"$(GPU_RUNTIME)")

PROFILE     ?=

.PHONY: profile
profile: build ## Says where the processor time of requests goes, in docs/performance.md; PROFILE="small body": of one load, printed only
	@mkdir -p $(CACHE)/profiles
	LMCADDY_HOME="$(TEST_HOME)" $(BIN) runtime get llama.cpp --if-missing
	cd e2e/bench && LMCADDY_BIN="$(CURDIR)/$(BIN)" LMCADDY_RUNTIMES="$(TEST_HOME)/runtimes" \
		go test -count 1 -timeout 0 -profile "$(CACHE)/profiles" $(if $(PROFILE),-only "$(PROFILE)",-update)

.PHONY: faults
faults: build ## Breaks engines, the server and their surroundings under load; minutes; FAULTS_BEFORE=binary compares
	LMCADDY_HOME="$(TEST_HOME)" $(BIN) runtime get llama.cpp --if-missing
	cd e2e/faults && LMCADDY_BIN="$(CURDIR)/$(BIN)" LMCADDY_RUNTIMES="$(TEST_HOME)/runtimes" \
		go test -count 1 -timeout 0 -full $(if $(FAULTS_BEFORE),-before "$(abspath $(FAULTS_BEFORE))") $(FAULTS_FLAGS)

.PHONY: cluster
cluster: build ## Kills nodes of a cluster for a minute and cuts one off, amid 200 conversations; has one whose clock is wrong
	LMCADDY_HOME="$(TEST_HOME)" $(BIN) runtime get llama.cpp --if-missing
	cd e2e && LMCADDY_WHOLE=1 LMCADDY_BIN="$(CURDIR)/$(BIN)" LMCADDY_RUNTIMES="$(TEST_HOME)/runtimes" \
		go test -count 1 -timeout 0 -v -run '^TestCluster_(NodesAreKilled|ANodeIsCutOff)$$' .
	tools/clock.sh "$(CACHE)/clock/lmcaddy"
	cd e2e && LMCADDY_CLOCK_BIN="$(CACHE)/clock/lmcaddy" LMCADDY_BIN="$(CURDIR)/$(BIN)" LMCADDY_RUNTIMES="$(TEST_HOME)/runtimes" \
		go test -tags clock -count 1 -v -run '^TestCluster_ANodesClockIsWrong$$' .

# Of supervisor, the pure files are mutated, and the tests are skipped that start processes or wait. Of store, what needs
# PostgreSQL is left out.
PKG             ?= ./supervisor/schedule
MUTANTS_EXCLUDE ?= $(if $(filter ./store,$(PKG)),postgres)
MUTANTS_SKIP    ?= $(if $(filter ./store,$(PKG)),Postgres|TestOpen_SaysWhatToDo|TestKill|/postgres)

.PHONY: mutants
mutants: ## Changes one package here and there, and lists the changes (LIVED) that its tests miss: PKG=./store
	CGO_ENABLED=0 GOFLAGS='-buildvcs=false -vet=off -ldflags=-s $(if $(MUTANTS_SKIP),-skip=$(MUTANTS_SKIP))' go run $(GREMLINS) unleash \
		--workers 2 --timeout-coefficient 8 $(if $(filter ./store,$(PKG)),,--invert-logical) $(if $(MUTANTS_EXCLUDE),-E $(MUTANTS_EXCLUDE)) $(PKG)

.PHONY: lint
lint: ## Runs the linter
	@mkdir -p $(CACHE)
	test -x $(CACHE)/golangci-lint || GOBIN=$(CACHE) go install $(LINT)
	$(CACHE)/golangci-lint run ./...
	cd e2e && $(CACHE)/golangci-lint run -c ../.golangci.yml ./...
	for os in darwin windows; do GOOS=$$os go vet ./api/... ./catalog/... ./internal/... ./mcploop/... ./node ./store ./supervisor/... ./translate/... || exit 1; done

.PHONY: reference
reference: ## Makes docs/caddyfile.md, docs/commands.md, docs/metrics.md, docs/api/endpoints.md, docs/api/fields.md and web/src/core/options.ts from the code
	go test -tags $(TAGS) ./api -run 'AreAsDocumented$$' -count 1 -update
	go test -tags $(TAGS) ./caddymodule ./caddymodule/command -run '^TestReference_' -count 1 -update

.PHONY: fmt
fmt: ## Formats the code
	gofmt -w $$(git ls-files '*.go')

.PHONY: clean
clean: ## Removes everything that was built or downloaded
	rm -rf bin dist .cache
