package archtest

import (
	"path"
	"strings"
)

// row says what the packages of a folder may import. Patterns are those of
// path.Match; the root is ".". Everybody may import the standard library.
type row struct {
	dir     string
	inside  []string // folders of this module
	outside []string // prefixes of other modules' packages; "*": any
}

// codes are the kinds of errors, which are gRPC's.
const codes = "google.golang.org/grpc/codes"

// table is who may import whom. The first row that matches a folder counts.
var table = []row{
	{"flow", nil, nil},
	{"packet", []string{"flow"}, nil},
	{"openflow", []string{"flow"}, nil},
	{"openflow/*", []string{"openflow", "flow", "packet", "internal/backoff"}, nil},
	{"sbi", nil, nil},
	{"pce", nil, nil},
	{"pce/*", nil, nil},
	{"api", []string{"flow", "internal/backoff"}, []string{
		"google.golang.org/protobuf/", "google.golang.org/grpc", "google.golang.org/genproto/",
	}},
	{"flow/trace", []string{"flow", "packet", "api"}, []string{codes}},
	{"nib", []string{"flow", "api"}, []string{"google.golang.org/protobuf/proto"}},
	{".", []string{"flow", "api", "nib"}, []string{codes, "google.golang.org/protobuf/proto"}},
	{"services/intake", []string{".", "nib", "object", "flow", "packet", "api", "openflow", "services/southbound"}, []string{codes, "golang.org/x/sync/errgroup"}},
	{"services/southbound/*", []string{"flow", "packet", "api", "openflow", "services/southbound/*", "internal/backoff", "internal/ratelimit"}, []string{"*"}},
	{"services/southbound", []string{".", "flow", "packet", "api", "openflow", "object", "services/southbound/*", "internal/backoff", "internal/keypair", "internal/localsocket", "internal/resend"}, []string{"*"}},
	{"object", []string{".", "nib", "flow", "api"}, []string{codes, "google.golang.org/protobuf/"}},
	{"policy", []string{".", "nib", "flow", "api", "object"}, []string{codes, "google.golang.org/protobuf/"}},
	{"services/l2vpn/*", []string{"flow", "packet"}, nil},
	{"services/l2vpn", []string{".", "nib", "flow", "packet", "api", "pce", "object", "services/l2vpn/*", "internal/backoff"}, []string{codes, "google.golang.org/protobuf/"}},
	// Its checks of members.
	{"services/balancer", []string{".", "nib", "flow", "packet", "api", "object", "policy", "sbi", "internal/backoff"}, []string{codes, "google.golang.org/protobuf/", "golang.org/x/net/http2/hpack"}},
	// At most so many probes a second.
	{"services/discovery", []string{".", "flow", "packet", "api", "object", "internal/ratelimit"}, []string{codes, "google.golang.org/protobuf/", "golang.org/x/time/rate"}},
	// Switches that refuse are asked again.
	{"services/flowrules", []string{".", "flow", "api", "object", "internal/backoff"}, []string{codes, "google.golang.org/protobuf/"}},
	// At most so many paths a second of a host.
	{"services/forwarding", []string{".", "flow", "packet", "api", "object", "internal/backoff", "internal/ratelimit"}, []string{codes, "google.golang.org/protobuf/", "golang.org/x/sync/errgroup"}},
	// The northbound: HTTP, TLS, users, the page.
	{"services/gateway", []string{".", "api", "flow", "object", "flow/trace", "loom", "internal/asowner", "internal/auditlog", "internal/jsonhttp", "internal/keypair", "internal/localsocket", "internal/machineservice", "internal/northbound", "internal/ratelimit", "internal/shares"}, []string{"google.golang.org/", "github.com/coder/websocket", "github.com/grpc-ecosystem/grpc-gateway/"}},
	// Path computation; other partitions are asked again.
	{"services/paths", []string{".", "flow", "api", "object", "pce", "internal/backoff"}, []string{codes, "google.golang.org/protobuf/"}},
	// Open vSwitch's database, which only root may open.
	{"services/qos", []string{".", "nib", "flow", "api", "object", "policy", "internal/rootpart"}, []string{codes, "google.golang.org/protobuf/", "golang.org/x/sys/"}},
	// Ryu's northbound.
	{"services/ryu", []string{".", "nib", "flow", "api", "object", "internal/asowner", "internal/auditlog", "internal/localsocket", "internal/northbound"}, []string{codes, "google.golang.org/protobuf/", "github.com/coder/websocket"}},
	// Ends TCP and HTTP/2 of the 5G core.
	{"services/scp", []string{".", "nib", "flow", "packet", "api", "object", "sbi", "internal/asowner", "internal/backoff", "internal/netspace", "internal/shares"}, []string{codes, "google.golang.org/protobuf/", "golang.org/x/sync/singleflight", "gvisor.dev/gvisor/"}},
	{"services/scp/scptest", []string{"api", "internal/freeport"}, nil},
	// Switches that do not answer are asked again.
	{"services/stats", []string{".", "nib", "flow", "api", "object", "internal/backoff"}, []string{codes, "google.golang.org/protobuf/"}},
	// Its tests compute paths as paths does.
	{"services/tunnels", []string{".", "nib", "flow", "packet", "api", "object", "policy", "pce", "pce/assign"}, []string{codes, "google.golang.org/protobuf/"}},
	// The others need the spine only; what needs more has a row that says why.
	{"services/*", []string{".", "nib", "flow", "packet", "api", "object", "policy"}, []string{codes, "google.golang.org/protobuf/"}},
	{"services", []string{".", "services/*"}, nil},
	{"transport", nil, nil},
	{"transport/transporttest", []string{"transport"}, nil},
	{"transport/*", []string{"transport", "transport/*", "internal/backoff", "internal/localsocket"}, []string{"*"}},
	{"bus", []string{".", "api", "transport", "internal/backoff", "internal/wholefile"}, []string{nats, codes}},
	{"bus/bustest", []string{".", "api"}, []string{codes}},
	{"plan", []string{".", "api", "flow", "plan/*", "internal/document"}, []string{"gonum.org/"}},
	{"plan/*", []string{"flow", "plan/*"}, []string{"gonum.org/", "github.com/crillab/gophersat/"}},
	{"deploy", []string{".", "nib", "flow", "packet", "api", "plan", "plan/size", "bus", "transport", "transport/*", "deploy/config", "deploy/local", "deploy/members", "deploy/apps", "deploy/packets", "deploy/scaler", "internal/backoff", "internal/cputime", "internal/quantile"}, []string{
		"github.com/prometheus/", "google.golang.org/protobuf/", codes,
	}},
	{"deploy/local", []string{".", "nib", "flow", "packet", "api", "plan", "transport", "transport/inproc", "deploy/config", "internal/backoff", "internal/loglinear"}, []string{metricsClient, codes}},
	{"deploy/members", []string{".", "flow", "api", "plan", "transport", "deploy/local", "deploy/apps", "internal/backoff"}, []string{codes}},
	{"deploy/packets", []string{".", "flow", "packet", "api", "plan", "deploy/local", "deploy/members", "deploy/apps"}, []string{codes}},
	{"deploy/plans", []string{"plan"}, nil},
	{"deploy/scaler", []string{"plan", "plan/size", "plan/simulate"}, nil},
	{"deploy/config", []string{".", "api", "plan", "internal/document"}, []string{codes}},
	{"deploy/*", []string{".", "flow", "packet", "api", "plan", "bus", "transport", "transport/*", "deploy/local", "internal/asowner", "internal/backoff", "internal/document", "internal/localsocket", "internal/ownthread", "internal/rootpart"}, []string{"*"}},
	{"policy/policytest", []string{".", "api", "policy", "wefttest", "internal/testwait"}, []string{codes, "google.golang.org/protobuf/"}},
	{"wefttest", []string{".", "nib", "flow", "packet", "api", "deploy/config", "deploy/local", "internal/testwait"}, []string{metricsClient, "google.golang.org/protobuf/proto", codes}},
	{"wefttest/*", []string{"*", "*/*"}, []string{"*"}}, // tests only
	{"node", []string{"api", "flow", "openflow", "internal/backoff", "internal/document", "internal/ownthread"}, []string{"github.com/vishvananda/", "golang.org/x/sys/", "google.golang.org/"}},
	{"lab/topology", []string{"flow", "internal/bitrate", "internal/document"}, []string{"golang.org/x/text/", "gonum.org/"}},
	{"lab/machine", []string{"lab/topology", "internal/cputime", "internal/ownthread", "internal/wholefile"}, []string{"github.com/vishvananda/", "golang.org/x/sync/", "golang.org/x/sys/"}},
	{"lab/layout", []string{"flow", "lab/topology", "lab/machine"}, nil},
	{"lab/links", []string{"lab/topology", "lab/machine", "lab/layout"}, []string{"github.com/vishvananda/", "golang.org/x/sys/"}},
	{"lab/nodes", []string{"flow", "lab/topology", "lab/machine", "lab/layout", "lab/links", "node", "internal/asowner", "internal/ownthread", "internal/resend"}, []string{"github.com/vishvananda/", "golang.org/x/sync/", "golang.org/x/sys/"}},
	{"lab/keeper", []string{"lab/topology", "lab/machine", "lab/layout", "lab/links", "lab/nodes", "internal/backoff", "internal/resend"}, []string{"golang.org/x/sys/"}},
	{"lab/traffic", []string{"lab/topology", "lab/machine", "lab/layout", "internal/cputime"}, []string{"golang.org/x/net/", "golang.org/x/sync/", "golang.org/x/sys/"}},
	{"lab", []string{"flow", "packet", "lab/topology", "lab/machine", "lab/layout", "lab/links", "lab/nodes", "lab/keeper", "lab/traffic", "node", "api", "internal/backoff", "internal/freeport"}, []string{"*"}},
	{"lab/testbed", []string{"lab", "lab/*", "flow", "plan/partition", "internal/document", "internal/wholefile"}, []string{"golang.org/x/sync/", "golang.org/x/sys/", "golang.org/x/term"}},
	{"lab/serve", []string{"api", "lab", "lab/*", "lab/testbed", "internal/backoff", "internal/machineservice", "internal/shares"}, []string{"github.com/coder/websocket", "github.com/creack/pty", "golang.org/x/sync/", codes, "google.golang.org/protobuf/proto"}},
	{"bench/sim", []string{"flow", "packet", "openflow", "internal/backoff"}, []string{"*"}},
	{"bench/sim/*", []string{"bench/sim", "flow", "packet", "openflow", "internal/backoff", "internal/cputime"}, []string{"*"}},
	{"bench/nf/ids", []string{"internal/cputime"}, []string{"golang.org/x/sys/"}},
	{"bench/nf", []string{"sbi", "bench/sim/httpload", "internal/asowner", "internal/backoff"}, []string{"golang.org/x/net/netutil", "github.com/HdrHistogram/"}},
	{"loom", nil, nil},
	{"internal/document", []string{"internal/asowner"}, []string{yaml}},
	{"internal/asowner", []string{"internal/ownthread", "internal/wholefile"}, []string{"golang.org/x/sys/"}},
	{"internal/keypair", []string{"internal/asowner"}, nil},
	{"internal/bitrate", nil, nil},
	{"internal/localsocket", nil, []string{"golang.org/x/sys/"}},
	{"internal/northbound", []string{"internal/document", "internal/localsocket"}, nil},
	{"internal/jsonhttp", []string{"api"}, []string{"google.golang.org/", "github.com/grpc-ecosystem/grpc-gateway/"}},
	{"internal/machineservice", []string{"internal/asowner", "internal/jsonhttp", "internal/localsocket", "internal/northbound", "internal/shares"}, []string{"google.golang.org/", "github.com/grpc-ecosystem/grpc-gateway/"}},
	{"internal/cputime", nil, []string{"golang.org/x/sys/"}},
	{"internal/resend", nil, []string{"golang.org/x/sys/"}},
	{"internal/protoc-gen-methods", nil, []string{"google.golang.org/protobuf/"}},
	{"internal/netspace", []string{"internal/ownthread", "internal/rootpart"}, []string{"golang.org/x/sys/"}},
	{"internal/rootpart", []string{"internal/localsocket", "internal/shares"}, []string{"golang.org/x/sys/"}},
	{"internal/asowner/*", nil, nil},
	{"internal/partitioned", []string{"flow", "plan/partition", "services/paths", "internal/cputime"}, nil},
	{"internal/*", nil, nil},
	{"bench/experiments", []string{"*", "*/*", "*/*/*"}, []string{"*"}},
	{"bench/experiments/*", []string{"*", "*/*", "*/*/*"}, []string{"*"}},
	{"test/measure", []string{"internal/quantile"}, []string{"golang.org/x/sys/"}},
	{"test/testbed", []string{"api", "flow", "openflow", "packet", "plan", "deploy/plans", "lab", "lab/*", "internal/backoff", "internal/companion", "internal/cputime", "internal/freeport", "internal/ownthread", "test/measure"}, []string{"golang.org/x/sys/", "google.golang.org/grpc"}},
	{"test", []string{"*", "*/*"}, []string{"*"}},
	{"docs", []string{"*", "*/*", "cmd/weft/command"}, []string{"*"}}, // tests only
	{"cmd/weft/cli", []string{"api", "flow", "lab", "lab/*", "plan/*", "internal/asowner", "internal/bitrate", "internal/document"}, []string{"*"}},
	{"cmd/weft/planning", []string{".", "flow", "api", "plan", "plan/partition", "deploy/config", "deploy/members", "deploy/plans", "lab/topology"}, []string{"github.com/spf13/pflag", codes, "google.golang.org/protobuf/"}},
	{"cmd/weft/*", []string{"*", "*/*", "cmd/weft/*"}, []string{"*"}},
	{"bench/cmd/weft-bench/*", []string{"*", "*/*", "*/*/*", "bench/cmd/weft-bench/*"}, []string{"*"}},
	{"bench/cmd/weft-bench", []string{"lab", "lab/*", "bench/experiments/*", "bench/cmd/weft-bench/*", "cmd/weft/command", "cmd/weft/planner", "."}, []string{"github.com/spf13/cobra"}},
	{"cmd/weft", []string{"cmd/weft/command"}, []string{"*"}},
	{"cni", []string{"lab/machine", "internal/document"}, []string{"github.com/containernetworking/cni/", "github.com/vishvananda/", "golang.org/x/sys/unix"}},
	{"cmd/weft-cni", []string{"cni"}, []string{"github.com/containernetworking/cni/"}},
}

const (
	nats          = "github.com/nats-io/"
	yaml          = "go.yaml.in/yaml/"
	metricsClient = "github.com/prometheus/client_golang/"
)

// suites are the packages made for tests; any test may import them.
var suites = []string{"wefttest", "policy/policytest", "services/scp/scptest", "bus/bustest", "transport/transporttest", "openflow/oftest", "internal/archtest", "internal/asowner/asownertest", "internal/testprogram"}

// helpers are packages that make input, measure or wait; any test may import them, and
// else those whose rows allow it.
var helpers = []string{"internal/classbench", "internal/cputime", "internal/freeport", "internal/testwait"}

// keepers are libraries with few importers; the reason goes into the message.
// The benches touch links to measure when one went down (weft bench reroute).
var keepers = []struct {
	prefix  string
	dirs    []string
	instead string
}{
	{nats, []string{"bus"}, "keep state and events through weft.State and weft.Publish"},
	{yaml, []string{"internal/document"}, "read and write YAML by internal/document, whose time grows with the text"},
	{"github.com/vishvananda/", []string{"lab", "lab/machine", "lab/links", "lab/nodes", "node", "cni", "bench/cmd/weft-bench/bench"}, "let package lab touch links and namespaces"},
}

// guarded are the variables of packages that are locks or counters nevertheless,
// and why there is no other way.
var guarded = map[string]string{
	"plan/place.gophersat":                 "the library learns in a buffer that all its solvers of a process share",
	"bench/cmd/weft-bench/bench.benchLabs": "names of labs differ within a process",
	"lab/testbed.starts":                   "the sshd of a machine is one for all labs of a process",
	"services.others":                      "a program of another module adds its services before anything runs",
}

// starters are the packages of cmd/weft that run services, or read what they
// keep. All others talk to a running controller, by its northbound API only.
var starters = []string{"cmd/weft/run", "cmd/weft/planner", "cmd/weft/planning", "cmd/weft/store"}

// rowOf returns the rules of a folder; false if the table has none.
func rowOf(dir string) (row, bool) {
	for _, r := range table {
		if ok, err := path.Match(r.dir, dir); ok && err == nil {
			return r, true
		}
	}
	return row{}, false
}

// imports checks the import table.
func (c *check) imports() {
	for i := range c.files {
		f := &c.files[i]
		r, ok := rowOf(f.dir)
		if !ok {
			c.fail(f, nil, "folder %s has no row in the import table; add it to internal/archtest/table.go and to docs/internals/imports.md", f.dir)
			continue
		}
		for _, spec := range f.syntax.Imports {
			p := imported(spec)
			c.templates(f, spec, p)
			if dir, ours := within(p); ours {
				c.inside(f, r, spec, dir)
			} else if strings.Contains(strings.SplitN(p, "/", 2)[0], ".") {
				c.outside(f, r, spec, p)
			}
		}
	}
}
