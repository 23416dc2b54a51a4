package testbed

import (
	"reflect"
	"strings"
	"testing"
)

func TestMetrics(t *testing.T) {
	got := parseMetrics(`# HELP a text
# TYPE a counter
a{reason="x y"} 3
a{reason="z}"} 4 1700000000
b 1.5e+06
c
`)
	if want := map[string]float64{"a": 7, "b": 1.5e6}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestWorkers(t *testing.T) {
	want := []Instance{{"southbound", 11, []string{"southbound"}}, {"routing-1", 12, []string{"paths", "forwarding"}}}
	for name, text := range map[string]string{
		"names":  `{"workers":[{"instance":"southbound","pid":11,"services":["southbound"]},{"instance":"routing-1","pid":"12","services":["paths","forwarding"]}]}`,
		"values": `{"workers":[{"instance":"southbound","pid":11,"services":[{"name":"southbound","state":"ready"}]},{"process":"routing-1","pid":12,"services":[{"name":"paths"},{"name":"forwarding"}]}]}`,
	} {
		got, err := parseWorkers([]byte(text))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, %v, want %v", name, got, err, want)
		}
	}
	if _, err := parseWorkers([]byte("no")); err == nil {
		t.Error("what is no JSON is taken")
	}
}

func TestPlan(t *testing.T) {
	for name, test := range map[string]struct {
		plan *Plan
		want string
	}{
		"split": {Split("x", "ws", 3), `name: x
transport: ws
workers:
  southbound:
    services: [southbound]
    settings:
      southbound:
        listen: ["tcp:127.0.0.1:1"]
  topology:
    services: [discovery, hosts]
  routing:
    services: [paths, forwarding]
    replicas: 3
  north:
    services: [flowrules, stats, gateway]
    settings:
      gateway:
        listen: "127.0.0.1:9"
`},
		"learning": {Learning("x", "grpc", 1), `name: x
transport: grpc
workers:
  southbound:
    services: [southbound, discovery, hosts]
    settings:
      southbound:
        listen: ["tcp:127.0.0.1:1"]
  routing:
    services: [forwarding]
  idle:
    services: [paths, flowrules, stats]
config:
  forwarding:
    mode: learning
`},
	} {
		if got := test.plan.at([]string{"127.0.0.1:1", "127.0.0.1:2"}, []string{"127.0.0.1:9", "127.0.0.1:8"}).YAML(); got != test.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, test.want)
		}
	}
	multi := Multiple("x", "rest", [][]string{{"0000000000000001", "0000000000000010"}, {"rest"}})
	text := multi.at([]string{"127.0.0.1:1", "127.0.0.1:2"}, []string{"127.0.0.1:9", "127.0.0.1:8"}).YAML()
	for _, part := range []string{`ns1: {switches: ["0000000000000001", "0000000000000010"]}`, `ns2: {switches: ["rest"]}`,
		`["tcp:127.0.0.1:1"]`, `["tcp:127.0.0.1:2"]`, `"127.0.0.1:9"`, `"127.0.0.1:8"`, "ns2-routing:\n    services: [paths, forwarding]\n    partition: ns2\n"} {
		if !strings.Contains(text, part) {
			t.Errorf("the plan has no %q:\n%s", part, text)
		}
	}
	if multi.PartitionOf(16) != 0 || multi.PartitionOf(2) != 1 {
		t.Errorf("switch 16 in %d, 2 in %d", multi.PartitionOf(16), multi.PartitionOf(2))
	}
}
