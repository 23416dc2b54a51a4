package verify

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/plan"
)

// specs are of three services: packet-ins go from southbound by hosts to
// forwarding.
func specs() []weft.Spec {
	return []weft.Spec{
		{Name: "southbound", Pipeline: true, Class: weft.RealTime, Scale: weft.PerPartition},
		{Name: "hosts", Stage: true, Class: weft.Latency},
		{Name: "forwarding", Stage: true, Class: weft.Latency, Scale: weft.Any},
	}
}

const twoWorkers = `
name: two
workers:
  edge: {services: [southbound, hosts]}
  routing: {services: [forwarding]}
`

const twoProfile = `
measured: {seconds: 30, switches: 10, packet_ins: 1000, changes: 0}
process: {cpu: 0.02, idle: 0.01, per_packet: 0s, per_change: 0s, memory: 20MiB}
services:
  southbound: {cpu: 0.03, idle: 0.01, per_packet: 20us, per_change: 0s, memory: 4MiB}
  hosts: {cpu: 0.03, idle: 0, per_packet: 30us, per_change: 0s, memory: 4MiB}
  forwarding: {cpu: 0.05, idle: 0, per_packet: 50us, per_change: 0s, memory: 8MiB}
delays:
  grpc: {local: 100us, remote: missing}
`

// fake is a controller of twoWorkers under 1,000 packet-ins a second of 10
// switches. Times are in seconds per second, or per packet.
type fake struct {
	southbound, hosts, forwarding float64 // shares of a processor
	process                       float64
	stage                         float64 // of forwarding
	measured                      int     // of its times
	astray                        uint64  // packets that go to forwarding within the process
	restarted                     bool
}

// asPredicted is a controller that does what twoProfile says.
func asPredicted() fake {
	return fake{southbound: 0.03, hosts: 0.03, forwarding: 0.05, process: 0.01, stage: 50e-6, measured: 1000}
}

// look measures the fake for 60 s.
func (f fake) look(t *testing.T) (*measured, error) {
	t.Helper()
	p, err := plan.Parse("two.yaml", []byte(twoWorkers))
	if err != nil {
		t.Fatal(err)
	}
	m := newMeasured(p)
	if err := m.instances(&api.ListWorkersResponse{Workers: []*api.Worker{{Process: "edge", Instance: "edge", State: "up"}, {Process: "r", Instance: "routing", State: "up"}}}); err != nil {
		t.Fatal(err)
	}
	m.stagesBefore(&api.GetWorkResponse{})
	for i := range uint64(11) {
		if i > 0 {
			noise := 1 + 0.01*float64(int(i%3)-1) + 0.0001
			one := func(process string, of map[string]float64) *api.ProcessProfile {
				p := &api.ProcessProfile{Process: process, Seconds: 6, Resident: 32 << 20}
				for _, name := range []string{"southbound", "hosts", "forwarding"} {
					if _, ok := of[name]; ok {
						p.Services = append(p.Services, name)
					}
				}
				whole := 0.0
				for _, share := range of {
					whole += share
				}
				p.CpuSeconds = whole * noise * 6
				p.Cpu = pprofOf(t, "cpu", of, 6*1e9)
				p.Heap = pprofOf(t, "inuse_space", map[string]float64{"southbound": 2, "hosts": 2, "forwarding": 4}, 1<<20)
				p.Delays = []*api.CrossingDelay{{To: map[string]string{"edge": "r", "r": "edge"}[process], Transport: "grpc", Local: true, Microseconds: 100 * noise}}
				return p
			}
			if err := m.profile(&api.TakeProfileResponse{Processes: []*api.ProcessProfile{
				one("edge", map[string]float64{"": f.process, "southbound": f.southbound, "hosts": f.hosts}),
				one("r", map[string]float64{"": f.process, "forwarding": f.forwarding}),
			}}); err != nil {
				t.Fatal(err)
			}
		}
		n := 500 + 6000*i
		if f.restarted && i == 5 {
			n = 7
		}
		list := &api.ListCrossingsResponse{Crossings: []*api.Crossing{
			{Kind: "packet", From: "southbound", To: "hosts", FromProcess: "edge", ToProcess: "edge", Transport: "inproc", Total: n},
			{Kind: "packet", From: "hosts", To: "forwarding", FromProcess: "edge", ToProcess: "r", Transport: "grpc", Total: n - f.astray*i, Latency: []*api.LatencyBucket{{ToUs: 163.84, Count: 900}, {ToUs: 327.68, Count: 100}}},
			{Kind: "packet", From: "hosts", To: "forwarding", FromProcess: "edge", ToProcess: "edge", Transport: "inproc", Total: f.astray * i},
		}}
		if err := m.messages(list, 6*float64(min(i, 1))); err != nil {
			return nil, err
		}
		m.latencies(list)
	}
	m.stages(&api.GetWorkResponse{Processes: []*api.ProcessWork{
		{Process: "edge", Work: []*api.Work{workOfTimes("hosts", 1000, 30e-6)}},
		{Process: "r", Work: []*api.Work{workOfTimes("forwarding", f.measured, f.stage)}},
	}})
	for i := range 10 {
		m.switches = append(m.switches, &api.Switch{Dpid: fmt.Sprintf("%016x", i+1), Connected: true})
	}
	m.switches = append(m.switches, &api.Switch{Dpid: "00000000000000ff"}) // away
	return m, nil
}

// workOfTimes is the work of a stage with times of a variation of a tenth.
func workOfTimes(service string, n int, mean float64) *api.Work {
	return &api.Work{Service: service, Work: "stage", Arrivals: 60000, Measured: uint64(n), Seconds: float64(n) * mean, SecondsSquares: float64(n) * mean * mean * 1.01}
}

// pprofOf is a profile in which services have what is of them, times a unit.
func pprofOf(t *testing.T, kind string, of map[string]float64, unit float64) []byte {
	t.Helper()
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: kind, Unit: "count"}}}
	for _, name := range []string{"", "southbound", "hosts", "forwarding"} {
		if of[name] == 0 {
			continue
		}
		function := &profile.Function{ID: uint64(len(p.Function) + 1), Name: "runtime.gc"}
		if name != "" {
			function.Name = "github.com/weft-sdn/weft/services/" + name + ".run"
		}
		location := &profile.Location{ID: uint64(len(p.Location) + 1), Line: []profile.Line{{Function: function}}}
		p.Function, p.Location = append(p.Function, function), append(p.Location, location)
		p.Sample = append(p.Sample, &profile.Sample{Location: []*profile.Location{location}, Value: []int64{int64(of[name] * unit)}})
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// verify compares what a fake does with what a profile says.
func (f fake) verify(t *testing.T, text string) *Report {
	t.Helper()
	profile, err := plan.ParseProfile("profile.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	m, err := f.look(t)
	if err != nil {
		t.Fatal(err)
	}
	load, err := m.load(specs())
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(load.PacketIns()-1000) > 1e-6 || load.Parts[""].Switches != 10 {
		t.Errorf("load %+v, want 1,000 packet-ins a second of 10 switches", load)
	}
	c := &comparison{specs: specs(), profile: profile, found: m, load: load, says: plan.Predict(m.plan, specs(), profile, load)}
	return c.report(Report{Plan: "two"})
}

// row returns the row of a report that is of something.
func (r *Report) row(t *testing.T, what string) Row {
	t.Helper()
	i := slices.IndexFunc(r.Rows, func(row Row) bool { return row.What == what })
	if i < 0 {
		t.Fatalf("no row %q in %+v", what, r.Rows)
	}
	return r.Rows[i]
}

func TestNothingDiffersWhereAllIsAsPredicted(t *testing.T) {
	r := asPredicted().verify(t, twoProfile)
	for _, what := range []string{
		"worker edge: processor", "worker routing: processor", "stage hosts in edge: processor", "stage forwarding in routing: processor",
		"stage hosts in edge: latency", "stage forwarding in routing: latency", "crossing southbound > hosts: per packet",
		"crossing hosts > forwarding: per packet", "packet-in: crossings", "crossing edge > routing over grpc: latency",
	} {
		row := r.row(t, what)
		if row.Verdict != within || row.Predicted == nil || row.Measured == nil || row.CI95 == nil || math.Abs(*row.Predicted-*row.Measured) > *row.CI95+1e-4 {
			t.Errorf("%s: %+v", what, row)
		}
	}
	if n := r.row(t, "packet-in: crossings"); *n.Predicted != 1 || *n.Measured != 1 {
		t.Errorf("crossings of a packet-in: %v and %v, want 1", *n.Predicted, *n.Measured)
	}
}

func TestWhatDiffersNamesTheFigure(t *testing.T) {
	slow := asPredicted()
	slow.forwarding, slow.stage = 0.1, 120e-6
	astray := asPredicted()
	astray.astray = 3000
	garbage := asPredicted()
	garbage.process = 0.2
	for _, c := range []struct {
		fake               fake
		what, figure, text string
	}{
		{slow, "worker routing: processor", "services.forwarding.per_packet", "50 us in the profile, 100 us by this"},
		{slow, "stage forwarding in routing: processor", "services.forwarding.per_packet", "50 us in the profile"},
		{slow, "stage forwarding in routing: latency", "services.forwarding.per_packet", "takes 120 us for a packet"},
		{astray, "crossing hosts > forwarding: per packet", "", "of 60000 packets 30000 crossed"},
		{garbage, "worker edge: processor", "process.per_packet", "garbage collection"},
		{asPredicted(), "worker edge: memory", "process.memory", "20 MiB in the profile, and the process itself takes 16 MiB here"},
	} {
		r := c.fake.verify(t, twoProfile)
		row := r.row(t, c.what)
		if row.Verdict != differs || !strings.HasPrefix(row.Figure, c.figure) || !strings.Contains(row.Why, c.text) {
			t.Errorf("%s: %+v, want that it differs by %q, because %q", c.what, row, c.figure, c.text)
		}
		if err := r.verdict(); err == nil || !strings.Contains(err.Error(), "differ from what was predicted") {
			t.Errorf("verdict %v", err)
		}
	}
	r := slow.verify(t, twoProfile)
	if row := r.row(t, "stage hosts in edge: latency"); row.Verdict != within {
		t.Errorf("of what does not differ: %+v", row)
	}
}

func TestTooFewAreSaid(t *testing.T) {
	rare := asPredicted()
	rare.measured = 3
	row := rare.verify(t, twoProfile).row(t, "stage forwarding in routing: latency")
	if row.Verdict != "too few: 3 of 30" || row.Measured == nil {
		t.Errorf("three measured: %+v", row)
	}
	rare.measured = 0
	row = rare.verify(t, twoProfile).row(t, "stage forwarding in routing: latency")
	if row.Verdict != "too few: 0 of 30" || row.Measured != nil || row.CI95 != nil {
		t.Errorf("none measured: %+v, want no figure", row)
	}
}

func TestWhatTheProfileLacksIsNotPredicted(t *testing.T) {
	r := asPredicted().verify(t, strings.ReplaceAll(twoProfile, "per_packet: 50us", "per_packet: missing"))
	for _, what := range []string{"worker routing: processor", "stage forwarding in routing: processor", "stage forwarding in routing: latency", "packet-in: latency"} {
		if row := r.row(t, what); row.Verdict != notPredicted || row.Predicted != nil || row.Figure != "services.forwarding.per_packet" {
			t.Errorf("%s: %+v", what, row)
		}
	}
	if row := r.row(t, "worker edge: processor"); row.Verdict != within {
		t.Errorf("of what the profile has: %+v", row)
	}
}

func TestAMarginWidensAnInterval(t *testing.T) {
	profile, err := plan.ParseProfile("profile.yaml", []byte(strings.ReplaceAll(twoProfile, "per_packet: 50us", "per_packet: 55us")))
	if err != nil {
		t.Fatal(err)
	}
	for margin, want := range map[float64]string{0: differs, 0.15: within} {
		m, err := asPredicted().look(t)
		if err != nil {
			t.Fatal(err)
		}
		load, err := m.load(specs())
		if err != nil {
			t.Fatal(err)
		}
		c := &comparison{specs: specs(), profile: profile, found: m, load: load, says: plan.Predict(m.plan, specs(), profile, load), margin: margin}
		if row := c.report(Report{}).row(t, "worker routing: processor"); row.Verdict != want {
			t.Errorf("margin %v: %+v", margin, row)
		}
	}
}

func TestARestartMeanwhileIsRefused(t *testing.T) {
	f := asPredicted()
	f.restarted = true
	if _, err := f.look(t); err == nil || !strings.Contains(err.Error(), "was started anew") {
		t.Errorf("a process that was restarted: %v", err)
	}
}

// TestLoadOfPartitions divides switches and packet-ins among partitions, by the
// processes from which packets come.
func TestLoadOfPartitions(t *testing.T) {
	p, err := plan.Parse("parts.yaml", []byte(`
name: parts
partitions: {east: {switches: ["1-4"]}, west: {switches: [rest]}}
workers:
  east: {partition: east, services: [southbound]}
  west: {partition: west, services: [southbound]}
  all: {services: [hosts, forwarding]}
`))
	if err != nil {
		t.Fatal(err)
	}
	m := newMeasured(p)
	for i := range 10 {
		m.switches = append(m.switches, &api.Switch{Dpid: fmt.Sprintf("%016x", i+1), Connected: true})
	}
	for _, total := range []uint64{100, 500} {
		if err := m.messages(&api.ListCrossingsResponse{Crossings: []*api.Crossing{
			{Kind: "packet", From: "southbound", To: "hosts", FromProcess: "east", ToProcess: "all", Transport: "grpc", Total: 3 * total},
			{Kind: "packet", From: "southbound", To: "hosts", FromProcess: "west", ToProcess: "all", Transport: "grpc", Total: total},
			{Kind: "packet", From: "hosts", To: "forwarding", FromProcess: "all", ToProcess: "all", Transport: "inproc", Total: 4 * total},
		}}, 4); err != nil {
			t.Fatal(err)
		}
	}
	load, err := m.load(specs())
	if err != nil || load.Parts["east"] != (plan.PartLoad{Switches: 4, PacketIns: 300}) || load.Parts["west"] != (plan.PartLoad{Switches: 6, PacketIns: 100}) {
		t.Errorf("%+v, %v", load, err)
	}
	profile, err := plan.ParseProfile("profile.yaml", []byte(twoProfile))
	if err != nil {
		t.Fatal(err)
	}
	c := &comparison{specs: specs(), profile: profile, found: m, load: load, says: plan.Predict(p, specs(), profile, load)}
	r := c.report(Report{})
	for what, want := range map[string]float64{"crossing southbound > hosts: per packet": 1, "crossing hosts > forwarding: per packet": 0, "packet-in: crossings": 1} {
		if row := r.row(t, what); row.Verdict != within || *row.Predicted != want {
			t.Errorf("%s: %+v, want %v", what, row, want)
		}
	}
}

func TestOneProcessWithoutAPlan(t *testing.T) {
	with := append(specs(), weft.Spec{Name: "intake", Beside: []string{"hosts"}})
	p := alone(with, &api.TakeProfileResponse{Processes: []*api.ProcessProfile{{Process: "all", Services: []string{"southbound", "intake", "hosts", "forwarding"}}}})
	if i := p.Instances(); len(i) != 1 || !slices.Equal(i[0].Services, []string{"southbound", "hosts", "forwarding"}) {
		t.Errorf("%+v", i)
	}
	if m := newMeasured(p); m.instanceOf("all") != "controller" || m.instanceOf("controller") != "controller" {
		t.Error("processes without a plan are not the one instance")
	}
}

func TestMedianOfBuckets(t *testing.T) {
	e := ofBuckets([]*api.LatencyBucket{{ToUs: 327.68, Count: 10}, {ToUs: 163.84, Count: 100}, {ToUs: 204.8, Count: 1}})
	if e.value < 143.36 || e.value > 163.84 || e.seen != 111 || e.value-e.ci > 143.361 {
		t.Errorf("%+v, want the bucket from 143.36 to 163.84", e)
	}
	if e := ofBuckets(nil); e.enough() || e.seen != 0 {
		t.Errorf("of nothing: %+v", e)
	}
}
