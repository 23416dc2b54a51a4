package plan_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/plan"
)

// full is a plan with every key.
const full = `
name: scale
transport: ws
events: grpc
balance: switch
pipeline: [discovery, forwarding]
bus: {url: "nats://10.0.0.1:4222, tls://10.0.0.2:4222", credentials: /etc/weft/bus.creds, replicas: 3}
partitions:
  east: {switches: ["0x20", 1-8, 0000000000000010]}
  west: {switches: [rest, 30]}
workers:
  east:
    services: [southbound, discovery]
    class: realtime
    nice: -5
    cpus: 0-1,3
    memory: 512MiB
    listen: "127.0.0.1:7001"
    env: {GOGC: 200, EMPTY: "", A: yes}
    machine: node7
    partition: east
    settings:
      southbound: {listen: ["tcp:127.0.0.1:6653"], rate: 0x10, on: true, text: "5"}
  routing: {services: [paths, forwarding], replicas: 3, balance: least}
links:
  - {from: east, to: routing, transport: rest}
  - {from: "*", to: "*", transport: nats}
config:
  forwarding: {mode: proactive, subnets: [{gateway: 10.0.1.1/24}], dpids: [0000000000000010]}
  paths:
  discovery: {}
`

func TestParse(t *testing.T) {
	p := parse(t, full)
	section := func(service, text string) plan.Section { return plan.Section{Service: service, Text: []byte(text)} }
	want := &plan.Plan{
		Name: "scale", Transport: "ws", Events: "grpc", Balance: "switch", Pipeline: []string{"discovery", "forwarding"},
		Bus: plan.Bus{URL: "nats://10.0.0.1:4222, tls://10.0.0.2:4222", Credentials: "/etc/weft/bus.creds", Replicas: 3},
		Partitions: []plan.Partition{
			{Name: "east", Switches: []flow.DPIDRange{{First: 1, Last: 8}, {First: 16, Last: 16}, {First: 32, Last: 32}}},
			{Name: "west", Switches: []flow.DPIDRange{{First: 48, Last: 48}}, Rest: true},
		},
		Workers: []plan.Worker{
			{Name: "east", Services: []string{"southbound", "discovery"}, Replicas: 1, Balance: "switch", Partition: "east", Class: "realtime", Nice: -5, CPUs: "0-1,3",
				Memory: 512 << 20, Listen: "127.0.0.1:7001", Env: map[string]string{"GOGC": "200", "EMPTY": "", "A": "yes"}, Machine: "node7",
				Settings: []plan.Section{section("southbound", "listen: [\"tcp:127.0.0.1:6653\"]\nrate: 0x10\n\"on\": true\ntext: \"5\"\n")}},
			{Name: "routing", Services: []string{"paths", "forwarding"}, Replicas: 3, Balance: "least", Listen: "127.0.0.1:0"},
		},
		Links:  []plan.Link{{From: "east", To: "routing", Transport: "rest"}, {From: "*", To: "*", Transport: "nats"}},
		Config: []plan.Section{section("forwarding", "mode: proactive\nsubnets:\n  - {gateway: \"10.0.1.1/24\"}\ndpids: [0000000000000010]\n")},
	}
	if got := plan.WithoutPlaces(p); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got := p.SettingsOf("routing"); len(got) != 1 || got[0].Service != "forwarding" {
		t.Errorf("settings of routing: %v", got)
	}
	again(t, p)
}

// Settings stand on the lines of the file, for those who report on them.
func TestLocated(t *testing.T) {
	p := parse(t, "workers:\n  a:\n    services: [x]\n    settings:\n      x:\n        one: 1\n\n        two:\n          - 3\n          - {four: 'a:b'}\n")
	got := strings.Split(string(p.Workers[0].Settings[0].Located()), "\n")
	for line, want := range map[int]string{6: "one: 1", 8: "two:", 9: "3", 10: `four: "a:b"`} {
		if len(got) < line || !strings.Contains(got[line-1], want) {
			t.Errorf("line %d is not %q in %q", line, want, got)
		}
	}
	if s := (plan.Section{Service: "x", Text: []byte("a: 1\n")}); string(s.Located()) != "a: 1\n" {
		t.Errorf("one that was never read: %q", s.Located())
	}
}

func TestDefaults(t *testing.T) {
	for source, name := range map[string]string{"/tmp/my plan.yaml": "my-plan", "": "plan", "the plan in force": "the-plan-in-force", "..yaml": "plan"} {
		p, err := plan.Parse(source, []byte("workers: {a: {services: [x]}}"))
		if err != nil {
			t.Fatal(err)
		}
		want := &plan.Plan{Name: name, Transport: "grpc", Events: "nats", Balance: "flow", Bus: plan.Bus{Replicas: 1},
			Workers: []plan.Worker{{Name: "a", Services: []string{"x"}, Replicas: 1, Balance: "flow", Listen: "127.0.0.1:0"}}}
		if got := plan.WithoutPlaces(p); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %+v; want %+v", source, got, want)
		}
	}
}

func TestYAML(t *testing.T) {
	for name, text := range map[string]string{"full.yaml": full, "split.yaml": splitPlan, "multi.yaml": multiPlan} {
		out, err := parse(t, text).YAML()
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name, string(out))
	}
	raw, err := json.Marshal(parse(t, full))
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Workers map[string]struct {
			Replicas int
			Settings map[string]map[string]any
		}
		Config map[string]map[string]any
	}
	if err := json.Unmarshal(raw, &v); err != nil || v.Workers["routing"].Replicas != 3 || v.Workers["east"].Settings["southbound"]["rate"] != "0x10" ||
		v.Workers["east"].Settings["southbound"]["on"] != true || fmt.Sprint(v.Config["forwarding"]["dpids"]) != "[0000000000000010]" {
		t.Errorf("%v: %s", err, raw)
	}
	for _, text := range []string{"[", "a", "*x"} {
		p := &plan.Plan{Config: []plan.Section{{Service: "x", Text: []byte(text)}}}
		if _, err := p.YAML(); err == nil || !strings.Contains(err.Error(), "settings of service x") {
			t.Errorf("settings %q: %v", text, err)
		}
		if _, err := json.Marshal(p); err == nil {
			t.Errorf("settings %q become JSON", text)
		}
	}
}

// again checks that a plan is the same after it was written and read.
func again(t *testing.T, p *plan.Plan) {
	t.Helper()
	text, err := p.YAML()
	if err != nil {
		t.Fatal(err)
	}
	q, err := plan.Parse("again.yaml", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if a, b := plan.WithoutPlaces(p), plan.WithoutPlaces(q); !reflect.DeepEqual(a, b) {
		t.Fatalf("got  %+v\nwant %+v\n%s", b, a, text)
	}
	if !p.Equal(q) || len(plan.Diff(p, q)) > 0 {
		t.Fatalf("differs from itself: %v", plan.Diff(p, q))
	}
}

// Whatever a plan says, it is the same after it was written and read.
func TestPlansSurviveYAML(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := randomPlan(r)
		if err := p.Check(network()); err != nil && strings.Contains(err.Error(), "want ") {
			t.Fatalf("seed %d: %v", seed, err)
		}
		again(t, p)
		q := randomPlan(r)
		if changes := plan.Diff(p, q); len(changes) == 0 && !p.Equal(q) {
			t.Fatalf("seed %d: no difference between %+v and %+v", seed, p, q)
		}
	}
}

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

func randomPlan(r *rand.Rand) *plan.Plan {
	p := &plan.Plan{Name: pick(r, "a", "2.5", "true", "x-y_z"), Transport: pick(r, plan.Transports()...), Events: pick(r, plan.Transports()...), Balance: pick(r, plan.Balances()...),
		Bus: plan.Bus{Replicas: 1}}
	if r.IntN(3) == 0 {
		p.Pipeline = []string{"discovery", "forwarding"}
	}
	if r.IntN(3) == 0 {
		p.Bus = plan.Bus{URL: pick(r, "nats://h:1", "tls://[::1]:4222,nats://b"), Credentials: pick(r, "", "a b/#c", "~"), Replicas: 1 + 2*r.IntN(3)}
	}
	values := []string{"", "5", "-1", "0x1f", "true", "no", "~", "null", "a: b", "#c", " lead", "trail ", "it's", `"q"`, "\\", "tab\t", "line\nline", "\x00\x1b\x7f", "ünï", "\u2028\ufeff\u0085", "🙂", "[x]", "{", "*", "&a", "!t", "%", "@", "`", "-", "- x", "?", "<<", "1e3", ".inf", "2001-01-01", "12:30:00", "=", "a,b"}
	section := func(service string) plan.Section {
		text := ""
		for i := range 1 + r.IntN(3) {
			text += fmt.Sprintf("k%d: %s\n", i, pick(r, "1", "true", "word", "[1, a, \"b c\"]", "{a: {b: [{c: 1}]}}", "0010", "1.5", "500ms", "null", "[]", "{}", "[[1], []]"))
		}
		v, err := plan.Parse("x", []byte("workers: {a: {services: [x]}}\nconfig:\n  x:\n    "+strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ")))
		if err != nil {
			panic(err)
		}
		s := v.Config[0]
		s.Service = service
		return s
	}
	if r.IntN(2) == 0 {
		p.Config = []plan.Section{section("forwarding"), section("paths")}
	}
	if r.IntN(2) == 0 {
		at := flow.DPID(r.Uint64() >> 1)
		p.Partitions = []plan.Partition{{Name: "east", Switches: []flow.DPIDRange{{First: 0, Last: at}}}, {Name: "west", Rest: true}}
		if r.IntN(2) == 0 {
			p.Partitions[1] = plan.Partition{Name: "west", Switches: []flow.DPIDRange{{First: at + 1, Last: ^flow.DPID(0)}}}
		}
	}
	names := []string{"a", "b2", "c-d", "null", "true", "n"}
	for _, name := range names[:1+r.IntN(len(names))] {
		w := plan.Worker{Name: name, Services: []string{pick(r, "southbound", "paths", "on", "n")}, Replicas: 1 + r.IntN(3), Balance: pick(r, plan.Balances()...),
			Class: pick(r, "", "realtime", "latency", "compute"), Nice: r.IntN(40) - 20, CPUs: pick(r, "", "0", "0-3,7"), Memory: pick(r, 0, plan.Bytes(512<<20), 16<<20+1),
			Listen: pick(r, "127.0.0.1:0", ":0", "[::1]:0"), Machine: pick(r, "", "node-1", "5")}
		if len(p.Partitions) > 0 {
			w.Partition = pick(r, "", "east", "west")
		}
		for range r.IntN(3) {
			if w.Env == nil {
				w.Env = map[string]string{}
			}
			value := strings.ReplaceAll(pick(r, values...), "\x00", "")
			w.Env[pick(r, "A", "_b", "n", "NULL")] = value
		}
		if r.IntN(3) == 0 {
			w.Settings = []plan.Section{section(w.Services[0])}
		}
		p.Workers = append(p.Workers, w)
	}
	for i := range r.IntN(2) {
		p.Links = append(p.Links, plan.Link{From: "a", To: pick(r, "a", "*"), Transport: pick(r, plan.Transports()...)})
		_ = i
	}
	if shared := func(l plan.Link) bool { return l.Transport == plan.SHM }; p.Transport == plan.SHM || p.Events == plan.SHM || slices.ContainsFunc(p.Links, shared) {
		for i := range p.Workers { // one machine
			p.Workers[i].Machine = p.Workers[0].Machine
		}
	}
	return p
}

// FuzzParse reads arbitrary text: it must not panic, and what it takes must be
// the same after it was written and read.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{full, splitPlan, scalePlan, multiPlan, "", "workers: {a: {services: [x], env: {A: \"\\x00\"}}}",
		"workers: &a {a: *a}", "a: !!map {}\n<<: x", "? [a]\n: b", "workers: [", "{{{{", "workers:\n  a: {services: [x]}\nconfig: {x: {a: |\n  text\n}}", "---\n---\n", "\xff", "workers: {a: {services: [x]}}\nconfig: {x: {? a : 'b', c: >-\n folded\n}}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		late := time.AfterFunc(testwait.Limit, func() { panic(fmt.Sprintf("does not end: %q", text)) })
		defer late.Stop()
		p, err := plan.Parse("fuzz.yaml", text)
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if line == "" {
					t.Fatalf("an empty line in %q", err)
				}
			}
			return
		}
		again(t, p)
		p.Check(network())
		p.Text(network())
		p.SVG(network())
	})
}
