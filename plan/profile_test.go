package plan_test

import (
	"math"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/plan"
)

const someProfile = `# measured
measured: {seconds: 30, switches: 20, packet_ins: 1000, changes: 0.5}
process: {cpu: 0.05, idle: 0.01, per_packet: 3us, per_change: 1ms, memory: 20MiB}
services:
  paths: {cpu: 0.1, idle: missing, per_packet: 1.5us, memory: 2MiB}
  hosts: {cpu: 0.2, idle: 0.01, per_packet: 4us, per_change: missing, memory: 1MiB, packets: 990}
rates:
  - {from: forwarding, to: paths, calls: 12.5, events: 0}
delays:
  grpc: {local: 90us, remote: missing}
`

func TestProfileIsReadAsItWasWritten(t *testing.T) {
	p, err := plan.ParseProfile("p.yaml", []byte(someProfile))
	if err != nil {
		t.Fatal(err)
	}
	hosts := p.Of("hosts")
	switch {
	case p.Switches != 20 || p.PacketIns != 1000 || p.Changes != 0.5 || p.Seconds != 30:
		t.Errorf("measured: %+v", p)
	case hosts.PerPacket != plan.Measured(4e-6) || hosts.Memory != plan.Measured(1<<20) || hosts.Packets != plan.Measured(990):
		t.Errorf("hosts: %+v", hosts)
	case hosts.PerChange.Known || p.Of("paths").Idle.Known || p.Of("paths").PerChange.Known || p.Of("nobody").CPU.Known:
		t.Error("what is missing is known")
	case p.DelayOf("grpc").Local != plan.Measured(90e-6) || p.DelayOf("grpc").Remote.Known || p.DelayOf("ws").Local.Known:
		t.Errorf("delays: %+v", p.Delays)
	}
	text := p.YAML("a line", "another\nline")
	again, err := plan.ParseProfile("q.yaml", text)
	if err != nil {
		t.Fatalf("%v\nin\n%s", err, text)
	}
	if second := again.YAML("a line", "another line"); string(second) != string(text) {
		t.Errorf("written again it is\n%s\nnot\n%s", second, text)
	}
}

func TestProfileMistakesAreToldWithTheirLines(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"measured: {switches: 1}\nservces: {}\n", "p.yaml:2: unknown key servces; allowed: measured, process, services, rates, delays"},
		{"measured: {switches: 0}\n", "p.yaml:1: measured.switches: want at least 1"},
		{"process: {}\n", "measured.switches: want at least 1"},
		{"measured: {switches: 1}\nservices:\n  hosts: {cpu: -1}\n", "p.yaml:3: services.hosts.cpu: want 0 to"},
		{"measured: {switches: 1}\nservices:\n  hosts: {cpu: .nan}\n", "p.yaml:3: services.hosts.cpu: want a number"},
		{"measured: {switches: 1}\nservices:\n  hosts: {per_packet: 5}\n", "p.yaml:3: services.hosts.per_packet: want a time such as"},
		{"measured: {switches: 1}\nservices:\n  hosts: {per_packet: -5us}\n", "want 0 to 3600"},
		{"measured: {switches: 1}\nservices:\n  hosts: {memory: lots}\n", "p.yaml:3: services.hosts.memory: want an amount of memory"},
		{"measured: {switches: 1}\nservices:\n  Hosts: {}\n", "is no service's name"},
		{"measured: {switches: 1}\nrates:\n  - {from: a}\n", "p.yaml:3: rates[0]: want from and to"},
		{"measured: {switches: 1}\nrates: 3\n", "rates: want a list"},
		{"measured: {switches: 1}\ndelays:\n  pigeon: {local: 1h}\n", "p.yaml:3: delays.pigeon: unknown transport"},
		{"measured: {switches: 1, seconds: 1e400}\n", "measured.seconds: want a number"},
		{"- 1\n", "want keys with values"},
		{"measured: &a {switches: 1}\n", "a profile has no anchors"},
		{"\xff", "not text in UTF-8"},
		{strings.Repeat("[", 200), "p.yaml:1: nested too deeply"},
	} {
		if _, err := plan.ParseProfile("p.yaml", []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("of %q: %v; want %q in it", c.text, err, c.want)
		}
	}
}

func FuzzParseProfile(f *testing.F) {
	f.Add([]byte(someProfile))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := plan.ParseProfile("p.yaml", text)
		if err != nil {
			return
		}
		if err := p.Validate(); err != nil {
			t.Fatalf("it was read, and is not valid: %v", err)
		}
		again, err := plan.ParseProfile("q.yaml", p.YAML())
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, p.YAML())
		}
		if string(again.YAML()) != string(p.YAML()) {
			t.Fatalf("written twice it differs:\n%s\n%s", p.YAML(), again.YAML())
		}
	})
}

// measured returns a profile of one service with a processor's time.
func measured(cpu, packetIns, changes float64) *plan.Profile {
	return &plan.Profile{
		Switches: 10, PacketIns: packetIns, Changes: changes,
		Process: plan.Demand{CPU: plan.Measured(0)}, Services: []plan.Demand{{Service: "hosts", CPU: plan.Measured(cpu), Memory: plan.Measured(1)}},
	}
}

func TestEachMeasurementTellsOnePart(t *testing.T) {
	near := func(f plan.Figure, want float64) bool { return f.Known && math.Abs(f.Value-want) < 1e-12 }
	rest := measured(0.02, 1, 0)
	rest.Derive()
	if d := rest.Of("hosts"); !near(d.Idle, 0.02) || d.PerPacket.Known || d.PerChange.Known {
		t.Errorf("at rest: %+v", d)
	}
	alone := measured(0.12, 1000, 0)
	alone.Derive()
	if d := alone.Of("hosts"); d.Idle.Known || d.PerPacket.Known {
		t.Errorf("busy, and nothing else known: %+v", d)
	}
	busy := measured(0.12, 1000, 0)
	busy.Derive(rest)
	if d := busy.Of("hosts"); !near(d.Idle, 0.02) || !near(d.PerPacket, 1e-4) || d.PerChange.Known {
		t.Errorf("busy: %+v", d)
	}
	moving := measured(0.32, 2000, 2)
	moving.Derive(busy)
	if d := moving.Of("hosts"); !near(d.PerPacket, 1e-4) || !near(d.PerChange, 0.05) {
		t.Errorf("busy while the topology changes: %+v", d)
	}
	both := measured(0.32, 2000, 2)
	both.Derive(rest)
	if d := both.Of("hosts"); d.PerPacket.Known || d.PerChange.Known {
		t.Errorf("two unknowns cannot be told from one measurement: %+v", d)
	}
	if got := strings.Join(moving.Missing([]string{"hosts", "paths"}, true, true), " "); !strings.Contains(got, "services.paths.idle") || strings.Contains(got, "services.hosts") {
		t.Errorf("missing: %s", got)
	}
}

func TestBuiltInProfileIsWhole(t *testing.T) {
	p, err := plan.DefaultProfile()
	if err != nil {
		t.Fatal(err)
	}
	var services []string
	for _, d := range p.Services {
		services = append(services, d.Service)
	}
	if keys := p.Missing(services, true, true); len(keys) > 0 || len(services) < 16 {
		t.Errorf("it has %d services, and misses %v", len(services), keys)
	}
	for _, name := range plan.Transports() {
		if !p.DelayOf(name).Local.Known {
			t.Errorf("the delay of %s is not known", name)
		}
	}
}
