package nf

import (
	"math"
	"strconv"
	"testing"

	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/experiments/experimentstest"
	"github.com/weft-sdn/weft/bench/nf/ids"
	"github.com/weft-sdn/weft/lab/topology"
)

// made are samples of a way that are as the model has them: an instance takes 0.3 ms of a CPU and
// 0.25 ms idle, a further part 0.02 ms.
type madeDelays map[deployed][]float64

func (made madeDelays) rows(name string, round int) (rows [][]string) {
	for _, d := range ways() {
		if d.String() != name {
			continue
		}
		of := prediction{d: d, rate: 970, one: instance{delay: 2, work: 0.3, idle: 0.25, scv: 0.5}, two: instance{delay: 1.5, work: 0.32, idle: 0.25, scv: 0.6}}
		delays := made[d]
		if delays == nil {
			delays = of.delays(d.counts())
			made[d] = delays
		}
		for i, n := range d.counts() {
			p := of.parts(n)
			row := []string{strconv.Itoa(n), written(delays[i] + float64(round)/1000), "0.1", "3", "970", "0.55", written(p.scv), written(p.idle), written(p.work), "2.5", "0.16"}
			rows = append(rows, append(row, "3", "0.1", strconv.Itoa(30*n), "1", "0", written(97*p.work)))
		}
	}
	return rows
}

func TestTestbed(t *testing.T) {
	made := madeDelays{}
	s := experimentstest.Rehearse(t, delay(), made.rows)
	errors := 0
	for _, c := range s.Claims {
		if c.Unit == "%" && c.Mark != nil && *c.Mark.AtMost == 15 {
			if errors++; !(c.Ours < 1) {
				t.Errorf("%s: %v, want next to nothing: the samples are the model's", c.What, c.Ours)
			}
		}
	}
	if errors != 6 { // n = 4, 8, 16 as copies and in a chain; on two CPUs there is no more
		t.Logf("%d predictions on %d CPUs", errors, len(ownCPUs()))
	}
	experimentstest.Rehearse(t, utilisation(), made.rows)
	if rows, err := paperValues.Rows(); err != nil || len(rows) == 0 {
		t.Errorf("%d values of the paper, %v", len(rows), err)
	}
}

// What a chain costs grows with its parts; a way that is overloaded has no delay.
func TestPrediction(t *testing.T) {
	p := prediction{d: deployed{false, chain}, rate: 970, one: instance{delay: 2, work: 0.3, idle: 0.25, scv: 0.5}, two: instance{delay: 1.5, work: 0.34, idle: 0.25, scv: 0.7}}
	if of := p.parts(4); math.Abs(of.work-0.42) > 1e-9 || math.Abs(of.scv-1.1) > 1e-9 || of.idle != 0.25 {
		t.Errorf("%+v", of)
	}
	if d := p.delays([]int{1, 2}); d[0] != 2 || d[1] != 1.5 {
		t.Errorf("what was measured is predicted as %v", d)
	}
	p.two.work = 0.9
	if d := p.delays([]int{4}); !math.IsNaN(d[0]) {
		t.Errorf("an overloaded chain takes %v", d)
	}
}

// The labs of the testbed have a CPU for each function, or one for all.
func TestTopology(t *testing.T) {
	for _, d := range ways() {
		for _, n := range d.counts() {
			topo := d.topology(n)
			if err := topology.Check(topo); err != nil || len(topo.Hosts) != 2+n {
				t.Errorf("%v, %d: %d hosts, %v", d, n, len(topo.Hosts), err)
			}
			for i := range n {
				h, ok := topo.HostByName(functionHost(i))
				if !ok || h.Port != portOf(i) || h.Eth1.Port != h.Port+1 || len(h.CPUs) != 1 || h.CPUs[0] != ownCPUs()[map[bool]int{true: i}[d.own]] {
					t.Errorf("%v, %d: %+v", d, i, h)
				}
			}
		}
	}
}

// What functions report is added up for a packet.
func TestParts(t *testing.T) {
	var p parts
	a := ids.Report{Packets: 100, Alerts: 100, Service: 1, ServiceSCV: 0.5, Idle: 0.2, Alert: 0.1, CPU: 0.4}
	b := a
	b.Service, b.Alerts = 3, 300
	p.sum([]ids.Report{a, b}, 100)
	if p.service != 2 || p.idle != 0.4 || p.work != 0.8 || p.alerts != 4 || math.Abs(p.alert-0.1) > 1e-12 {
		t.Errorf("%+v", p)
	}
}

var _ experiments.Subject = &subject{}
