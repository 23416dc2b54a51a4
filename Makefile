# make build   the controller and everything around it, as bin/weft, bin/weft-bench and
#              bin/weft-cni;
#              with Loom, the page in the browser, if npm is there
# make demo    build, then show it at work on a network of real switches;
#              PLAN=split: in the processes of a plan;
#              FEATURES=all: its parts in turn, or those of a list
# make test    everything for real, the lab included
# make check   format, generated code, vet, staticcheck; part of make test-long
# make lint-more  errcheck, gosec, revive and unparam, not part of make test
# make loom-test  Loom in a real Chromium, all workflows; a report as JSON
# make test-long  tests that take minutes, not part of make test
# make virtual the controller in virtual time, as many schedules of faults as
#              wanted (SCHEDULES, FIRST; SEED, SHRINK), their ends compared with those
#              recorded (UPDATE=1 records); make test has 20
# make virtual-same  a seed is the same run to the event (SEEDS, TIMES)
# make soak    half an hour of churn on real switches, not part of make test
# make ryu-parity  Ryu itself, from PyPI, and Weft side by side, their answers
#              compared field by field; RECORD=1 keeps Ryu's for make test
# make reference  write docs/reference: all commands, and the API
# make image   build the container image weft, for what weft export writes
# make profile measure anew the profile by which the compiler optimises bin/weft

BUF_VERSION := 1.75.0
GOLANGCI_VERSION := v2.15.0
# What makes networks of real switches, and is not run under the race detector.
LAB = ./test ./lab ./lab/serve ./lab/testbed ./cmd/weft/command ./docs ./bench/experiments/agents
# Both modules: that of the controller, and bench, which requires it.
ALL = ./... ./bench/...
# Everything is compiled with the profile by which the command is, once for both, and
# without gRPC's own tracing, whose pages are templates: with one in a program, the linker
# keeps all methods of all types. -tags of a command line takes the place of that here.
# Nothing is kept for a debugger, which is a sixth of the compiler's work; for one, go build
# ./cmd/weft. COMPILE goes before what only compiles: the collector may rest for longer.
export GOFLAGS += -trimpath -pgo=$(CURDIR)/cmd/weft/default.pgo -tags=grpcnotrace -gcflags=all=-dwarf=false
COMPILE = GOGC=400 GOMEMLIMIT=1GiB
VERSION = $(shell git describe --tags --match 'v*' --dirty 2>/dev/null)

.PHONY: setup build loom loom-check loom-test demo test compiled vet sums test-long virtual virtual-same virtual-defects soak race fuzz ryu-parity reference check format lint lint-more image generate api-code generated profile

setup:
	.ci/setup

build: loom
	$(COMPILE) go build -ldflags '-s -w -X github.com/weft-sdn/weft/cmd/weft/run.version=$(VERSION)' -o bin/ ./cmd/weft ./cmd/weft-cni ./bench/cmd/weft-bench

# Loom, the page in the browser, if npm is there and its sources have changed; it
# is compiled into bin/weft.
loom:
	loom/build

demo: setup build
	bin/weft demo $(if $(PLAN),--plan $(PLAN)) $(if $(FEATURES),--features $(FEATURES))

# Every test runs once: one that fails by chance has a defect, or shows one. Tests on
# real switches wait more than they compute, so four packages run at once, the dearest
# first; the browser has the machine for itself.
GOTEST = WEFT_PROGRAM=$(CURDIR)/bin/weft go tool gotestsum --format standard-quiet --packages
ONCE = -count 1 -vet=off -timeout 15m -exec $(CURDIR)/.ci/cost
FIRST_PACKAGES = ./test ./bus ./services/southbound ./lab ./lab/testbed ./cmd/weft/command ./deploy ./docs ./bench/cmd/weft-bench/bench ./services/gateway ./services/l2vpn

# What is compiled and checked comes before the tests, which count lost packets.
test: setup sums format build
	$(MAKE) --no-print-directory -j 2 -O compiled loom-check
	$(GOTEST) ./loom -- $(ONCE)
	$(GOTEST) "$(FIRST_PACKAGES) $$(go list $(ALL) | grep -v /loom$$ | tr '\n' ' ')" -- $(ONCE) -p 4 -parallel 4 -skip "$$(.ci/tests)"

compiled:
	$(COMPILE) go list -export -test $(ALL) >/dev/null

# Loom's types and unit tests.
loom-check:
	loom/build --packages
	cd loom && npm run --silent check && npx --no-install vitest run

# All workflows of Loom; the report on standard output is JSON.
loom-test: setup build
	loom/build --packages
	node loom/test/browser.mjs bin/weft

# Half an hour of churn: memory, goroutines and open files stay what they are; and each
# process killed and ended, and services moved, which changes nothing in any switch.
# WEFT_SOAK=5m for a shorter one.
soak: setup
	go test -tags soak,grpcnotrace -timeout 60m -run 'TestSoak|TestUnchanged' -v ./test

# What takes longer than make test may: every fault over every transport, what
# builds the program anew, a hundred files applied to labs, the tests of the whole system
# over the plan single as well, replicas and partitions of the store, each benchmark once,
# 300 schedules in virtual time, and the fuzzers.
test-long: setup build check loom-test
	go test -tags long,grpcnotrace -timeout 20m -run TestExampleService ./docs
	$(GOTEST) "./lab/... ./bench/..." -- -timeout 30m -p 2 -parallel 4 -run "$$(.ci/tests)"
	$(GOTEST) ./lab -- -tags long,grpcnotrace -timeout 30m -parallel 4 -run TestApplyDrawn
	WEFT_TEST_STEPS=200 $(GOTEST) ./test -- -tags long,grpcnotrace -timeout 60m -parallel 4
	WEFT_TEST_PLAN=single $(GOTEST) ./test -- -timeout 30m -parallel 6 -skip 'TestFaults|TestTrust|TestApps|TestMulti|TestBusProcess|TestFirewallKilled'
	$(GOTEST) "$(ALL)" -- -vet=off -run NONE -bench . -benchtime 1x
	$(MAKE) --no-print-directory virtual
	$(MAKE) --no-print-directory fuzz

# The whole controller in virtual time: schedules of ten minutes with faults, of
# the seeds from FIRST on. A failure names its seed, which is the same run to the event
# however often and beside whatever it runs. The first run compiles everything anew, for
# Go's runtime is changed to that end (wefttest/virtual/rig_test.go).
# SEED=7 runs that one; with SHRINK=1 it prints the shortest list of faults with which
# the seed still fails, and the last 50 events before the failure was seen.
# make virtual-same runs SEEDS seeds TIMES times each, and shows the first event that is
# another; make virtual-defects sees whether schedules find defects that are put back.
FIRST = $(or $(SEED),1)
SCHEDULES = $(if $(SEED),1,300)
VIRTUAL = go test -count 1 -tags long,grpcnotrace -timeout 24h ./wefttest/virtual
virtual:
	$(VIRTUAL) $(if $(SHRINK),-v -run 'TestFewest$$' -seed $(SEED),-run 'TestVirtual$$|TestManaged$$|TestEdits' -first $(FIRST) -schedules $(SCHEDULES) $(if $(UPDATE),-update))

SEEDS = 20
TIMES = 100
virtual-same:
	$(VIRTUAL) -run 'TestSame$$' -first $(FIRST) -schedules $(SEEDS) -times $(TIMES)

virtual-defects:
	go test -count 1 -tags long,grpcnotrace -timeout 3h ./wefttest/virtual -run TestDefects -v

# All packages but those of LAB under the race detector, which is too slow for
# make test.
race:
	CGO_ENABLED=1 go test -race -short -timeout 15m $(filter-out $(LAB:.%=github.com/weft-sdn/weft%),$(shell go list $(ALL)))

# Every fuzzer for FUZZTIME; what it finds is kept as a test, and make test runs
# that. FUZZTIME=5m for an afternoon.
FUZZTIME = 20s
fuzz:
	FUZZTIME=$(FUZZTIME) nice -n 19 .ci/fuzz

ryu-parity:
	test/testdata/ryu/setup .ryu
	go test -count 1 ./test -run TestRyu -v -ryu $(CURDIR)/.ryu $(if $(RECORD),-ryu-record)

# The reference, which git does not have; go test ./docs writes it, too, and checks it.
reference: build
	WEFT_PROGRAM=$(CURDIR)/bin/weft go test -count 1 -vet=off -run TestReference ./docs

image:
	deploy/images/build

check: format generated vet lint

format:
	@list=$$(git ls-files '*.go' | xargs gofmt -l) && test -z "$$list" || { echo "not gofmt-ed:"; echo "$$list"; exit 1; }

vet:
	go vet -tags long,grpcnotrace $(ALL)

lint:
	nice -n 19 go tool staticcheck $(ALL)

# Further linters (.golangci.yml), which take longer: a job of their own.
lint-more:
	go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION) run --timeout 20m $(ALL)

# The generated code of api/, from its .proto files, and what the Python package
# knows of them. Their checksums go with them: to generate anew costs minutes where nothing
# is compiled yet, so make test compares those, and make check generates.
generate: api-code
	go test ./deploy/apps -run TestDescriptors -update >/dev/null
	@sha256sum $(GENERATED) >api/sums

GENERATED = $(sort $(wildcard api/*.proto api/*.yaml api/*.json api/*.pb.go internal/protoc-gen-methods/*.go sdk/python/src/weft/api.binpb))
sums:
	@sha256sum $(GENERATED) | diff -q - api/sums >/dev/null || { sha256sum $(GENERATED) | diff - api/sums; echo "api/ has changed since make generate; run it, and commit what it writes"; exit 1; }

api-code: node_modules/.bin/buf
	cd api && ../node_modules/.bin/buf lint && ../node_modules/.bin/buf generate --template buf.gen.documents.yaml && ../node_modules/.bin/buf generate

generated: generate
	@git diff --exit-code --stat -- api sdk/python/src/weft/api.binpb || { echo "api/ or sdk/python/ is not what the .proto files generate; commit what make generate has written"; exit 1; }

node_modules/.bin/buf:
	npm install --no-save --no-audit --no-fund --loglevel=error @bufbuild/buf@$(BUF_VERSION)

# cmd/weft/default.pgo is where the time goes in a learning switch under full
# load; the compiler inlines by it (about a fifth more answers per second).
profile: build
	for v in 1.0 1.3; do bin/weft bench throughput --openflow $$v --controller-command "bin/weft up --listen 127.0.0.1:{port} --data-dir /tmp/weft-profile --services southbound,forwarding --set forwarding.mode=learning --quiet --cpu-profile /tmp/weft-$$v.prof" || exit 1; done
	go tool pprof -proto /tmp/weft-1.0.prof /tmp/weft-1.3.prof > cmd/weft/default.pgo
	rm -r /tmp/weft-profile /tmp/weft-1.0.prof /tmp/weft-1.3.prof
