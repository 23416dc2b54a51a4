package plan_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/plan"
)

var update = flag.Bool("update", false, "write the golden files anew")

// method and subject are declarations without messages.
type method struct {
	weft.Method
	name string
}

type subject struct {
	weft.Subject
	name string
}

func (m method) MethodName() string   { return m.name }
func (s subject) SubjectName() string { return s.name }

func methods(names ...string) (list []weft.Method) {
	for _, n := range names {
		list = append(list, method{name: n})
	}
	return list
}

func subjects(names ...string) (list []weft.Subject) {
	for _, n := range names {
		list = append(list, subject{name: n})
	}
	return list
}

type southboundConfig struct {
	Rate   int      `yaml:"rate"`
	Listen []string `yaml:"listen"`
}

type gatewayConfig struct {
	Listen string `yaml:"listen"`
}

func (*southboundConfig) Validate() error { return nil }
func (*gatewayConfig) Validate() error    { return nil }

// network are services like the real ones, few and with few needs, so that
// texts about them stay as they are when those change.
func network() []weft.Spec {
	return []weft.Spec{
		{Name: "southbound", Doc: "holds the sessions", Serves: methods("southbound.Send", "southbound.ListSwitches"), Publishes: subjects("southbound.SwitchChanged"),
			Pipeline: true, Class: weft.RealTime, Scale: weft.PerPartition, Config: &southboundConfig{Listen: []string{"tcp:127.0.0.1:6653"}}},
		{Name: "discovery", Doc: "finds links", Calls: methods("southbound.Send"), Subscribes: subjects("southbound.SwitchChanged"), Publishes: subjects("discovery.LinkChanged"),
			Stage: true, Class: weft.RealTime, Scale: weft.Single},
		{Name: "paths", Doc: "computes <paths>", Serves: methods("paths.FindPath"), Subscribes: subjects("discovery.LinkChanged"), Class: weft.Compute, Scale: weft.Any},
		{Name: "forwarding", Doc: "programs paths", Calls: methods("southbound.Send", "paths.FindPath"), Subscribes: subjects("southbound.SwitchChanged"),
			Stage: true, Class: weft.Latency, Scale: weft.Any},
		{Name: "gateway", Doc: "the northbound", Calls: methods("southbound.ListSwitches", "paths.FindPath"), Subscribes: subjects("discovery.LinkChanged"),
			Class: weft.Latency, Scale: weft.Any, Config: &gatewayConfig{"127.0.0.1:8181"}},
	}
}

const splitPlan = `name: split
workers:
  southbound: {services: [southbound]}
  discovery: {services: [discovery]}
  paths: {services: [paths]}
  forwarding: {services: [forwarding]}
  gateway: {services: [gateway]}
`

const scalePlan = `name: scale
transport: ws
workers:
  edge: {services: [southbound, discovery], nice: -5, cpus: "0", memory: 512MiB}
  routing: {services: [paths, forwarding], replicas: 3, balance: least}
  gateway: {services: [gateway], machine: other}
links:
  - {from: edge, to: routing, transport: rest}
  - {from: "*", to: edge, transport: grpc}
`

const multiPlan = `name: multi
partitions:
  east: {switches: ["1-8", "10"]}
  west: {switches: [rest]}
workers:
  east: {partition: east, services: [southbound, discovery, gateway]}
  eastway: {partition: east, services: [forwarding], replicas: 2}
  west:
    partition: west
    services: [southbound, discovery, forwarding, gateway]
    settings:
      southbound: {listen: ["tcp:127.0.0.1:6654"]}
      gateway: {listen: "127.0.0.1:8182"}
  paths: {services: [paths]}
`

func parse(t *testing.T, text string) *plan.Plan {
	t.Helper()
	p, err := plan.Parse("p.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// checked is parse for a plan that fits the network.
func checked(t *testing.T, text string) *plan.Plan {
	t.Helper()
	p := parse(t, text)
	if err := p.Check(network()); err != nil {
		t.Fatal(err)
	}
	return p
}

// golden compares text with a file of testdata.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s is another (go test -update writes it):\n%s", path, text)
	}
}

func wantText(t *testing.T, err error, want string) {
	t.Helper()
	got := "no mistake"
	if err != nil {
		got = err.Error()
	}
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
