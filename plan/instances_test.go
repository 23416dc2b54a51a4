package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/plan"
)

func names(list []plan.Instance) string {
	var out []string
	for _, i := range list {
		out = append(out, i.Name)
	}
	return strings.Join(out, " ")
}

func TestInstances(t *testing.T) {
	p := parse(t, "workers:\n  z: {services: [b, a]}\n  r: {services: [c], replicas: 11}\n")
	if got := names(p.Instances()); got != "r-1 r-2 r-3 r-4 r-5 r-6 r-7 r-8 r-9 r-10 r-11 z" {
		t.Error(got)
	}
	i, ok := p.Of("r-2")
	if !ok || i.Worker != "r" || i.Replica != 2 || i.Partition != "" || !slices.Equal(i.Services, []string{"c"}) {
		t.Errorf("%+v", i)
	}
	if i, ok = p.Of("z"); !ok || i.Replica != 1 || !slices.Equal(i.Services, []string{"b", "a"}) {
		t.Errorf("%+v", i)
	}
	for _, name := range []string{"r", "r-0", "r-12", "z-1", ""} {
		if _, ok := p.Of(name); ok {
			t.Errorf("there is %q", name)
		}
	}
	if p.Worker("r").Replicas != 11 || p.Worker("r-1") != nil || !p.Has("a") || p.Has("z") || !slices.Equal(p.Services(), []string{"a", "b", "c"}) {
		t.Error("workers and services")
	}
}

func TestRunning(t *testing.T) {
	p := checked(t, multiPlan)
	for _, c := range []struct{ service, partition, want string }{
		{"forwarding", "east", "eastway-1 eastway-2"}, {"forwarding", "west", "west"}, {"forwarding", "", ""},
		{"paths", "east", "paths"}, {"paths", "", "paths"}, {"southbound", "east", "east"}, {"nat", "east", ""}, {"southbound", "north", ""},
	} {
		if got := names(p.Running(c.service, c.partition)); got != c.want {
			t.Errorf("%s of %q: got %q; want %q", c.service, c.partition, got, c.want)
		}
	}
	for sw, want := range map[flow.DPID]string{0: "west", 1: "east", 8: "east", 9: "west", 0x10: "east", 0x11: "west", ^flow.DPID(0): "west"} {
		if got := p.PartitionOf(sw); got != want {
			t.Errorf("switch %v is in %q; want %q", sw, got, want)
		}
	}
	if got := checked(t, scalePlan).PartitionOf(1); got != "" {
		t.Errorf("partition %q without partitions", got)
	}
}

func TestTransportBetween(t *testing.T) {
	p := checked(t, scalePlan)
	for _, c := range []struct{ from, to, want string }{
		{"edge", "routing", "rest"}, {"routing", "edge", "grpc"}, {"gateway", "routing", "ws"}, {"edge", "edge", "inproc"}, {"routing", "routing", "ws"}, {"gateway", "edge", "grpc"},
	} {
		if got := p.TransportBetween(c.from, c.to); got != c.want {
			t.Errorf("%s to %s: got %s; want %s", c.from, c.to, got, c.want)
		}
	}
}

func TestWay(t *testing.T) {
	for _, c := range []struct{ name, text, partition, want string }{
		{"split", splitPlan, "", "[{southbound [] } {discovery [discovery] grpc} {forwarding [forwarding] grpc}]"},
		{"scale", scalePlan, "", "[{edge [discovery] } {routing [forwarding] rest}]"},
		{"east", multiPlan, "east", "[{east [discovery] } {eastway [forwarding] grpc}]"},
		{"west", multiPlan, "west", "[{west [discovery forwarding] }]"},
		{"one", at("pipeline: [forwarding, discovery]\n", ""), "", "[{all [forwarding discovery] }]"},
		{"none", "workers: {a: {services: [x]}}", "", "[]"},
	} {
		if got := fmt.Sprint(parse(t, c.text).Way(network(), c.partition)); got != c.want {
			t.Errorf("%s: got %s; want %s", c.name, got, c.want)
		}
	}
}

func TestClassOf(t *testing.T) {
	p := parse(t, "workers:\n  a: {services: [paths, gateway]}\n  b: {services: [paths], class: realtime}\n  c: {services: [unknown]}\n  d: {services: [paths, discovery]}\n")
	for i, want := range []weft.Class{weft.Latency, weft.RealTime, weft.Compute, weft.RealTime} {
		if got := p.Workers[i].ClassOf(network()); got != want {
			t.Errorf("worker %s: got %v; want %v", p.Workers[i].Name, got, want)
		}
	}
}

func TestUnits(t *testing.T) {
	for text, want := range map[string]plan.Bytes{"0B": 0, "1KiB": 1024, "512MiB": 512 << 20, "2GiB": 2 << 30, "1TiB": 1 << 40, "17B": 17} {
		if got, err := plan.ParseBytes(text); err != nil || got != want || got.String() != text {
			t.Errorf("%s: got %d %v, %v", text, uint64(got), got, err)
		}
	}
}

func TestTraffic(t *testing.T) {
	var lines []string
	for _, x := range checked(t, multiPlan).Traffic(network()) {
		lines = append(lines, fmt.Sprintf("%s>%s %s %v %v", x.From, x.To, x.Transport, x.Calls, x.Events))
	}
	if got, want := strings.Join(lines, "\n"), `east>eastway grpc [] [southbound.SwitchChanged]
east>paths grpc [paths.FindPath] [discovery.LinkChanged]
eastway>east grpc [southbound.Send] []
eastway>paths grpc [paths.FindPath] []
west>paths grpc [paths.FindPath] [discovery.LinkChanged]`; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
