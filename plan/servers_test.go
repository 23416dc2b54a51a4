package plan_test

import (
	"strings"
	"testing"

	"github.com/weft-sdn/weft/plan"
)

func TestServersAreRead(t *testing.T) {
	list, err := plan.ParseServers("s.yaml", []byte("servers:\n  b1: {cpu: 1.5, memory: 2GiB, domain: A, address: 10.0.0.1}\n  a1: {cpu: 4, memory: 8GiB, cpus: \"0,2\"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []plan.Server{{Name: "b1", CPU: 1.5, Memory: 2 << 30, Domain: "A", Address: "10.0.0.1"}, {Name: "a1", CPU: 4, Memory: 8 << 30, CPUs: "0,2"}}
	if len(list) != 2 || list[0] != want[0] || list[1] != want[1] {
		t.Errorf("read %+v", list)
	}
}

func TestServerMistakesAreToldWithTheirLines(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "there are none"},
		{"servers: {}\n", "s.yaml:1: servers: there are none"},
		{"servers:\n  a: {cpu: x}\n", "s.yaml:2: servers.a.cpu: want a number"},
		{"servers:\n  a: {cpu: -1}\n", "s.yaml:2: servers.a.cpu: want a number of processors"},
		{"servers:\n  a: {core: 1}\n", "unknown key servers.a.core; allowed: cpu, memory, domain, address, cpus"},
		{"servers:\n  a: {memory: much}\n", "s.yaml:2: servers.a.memory: want an amount of memory"},
		{"servers:\n  A: {cpu: 1}\n", "the name of a server is"},
		{"servers:\n  a: {address: \"a b\"}\n", "s.yaml:2: servers.a.address: want a host name"},
		{"servers:\n  a: {address: \"10.0.0.1:99\"}\n", "want a host name or an address without a port"},
		{"servers:\n  a: {cpus: \"9-1\"}\n", "s.yaml:2: servers.a.cpus"},
		{"servers:\n  a: {cpu: 1}\n  a: {cpu: 2}\n", "is there twice"},
	} {
		if _, err := plan.ParseServers("s.yaml", []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("of %q: %v; want %q in it", c.text, err, c.want)
		}
	}
	if _, err := plan.LocalServers(0, 1, 1); err == nil {
		t.Error("no servers at all are accepted")
	}
}
