package flowrules

import (
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// entries returns n entries of the operator's and their messages.
func entries(n int) (list []flow.Entry, flows []*api.FlowEntry) {
	for i := range n {
		e := flow.Entry{
			Priority: 100, Cookie: flow.NewCookie(flow.OwnerOperator, 1, uint32(i)), Apply: []flow.Action{flow.Output(1)},
			Match: flow.Match{}.WithInPort(1).WithEthDst(flow.MACFrom(uint64(i))),
		}
		list = append(list, e)
		f := api.NewFlowEntry(1, &e)
		f.Duration = 100
		flows = append(flows, f)
	}
	return list, flows
}

// BenchmarkVerify is the comparison of 60 entries with what their switch has
// told. 1,000 switches take 17 a second.
func BenchmarkVerify(b *testing.B) {
	list, flows := entries(60)
	l := connected(list, newReading(flows))
	b.ReportAllocs()
	for b.Loop() {
		now := time.Now()
		l.read(newReading(flows), 0, now, now)
	}
	if len(l.todo) > 0 {
		b.Fatal("not all is right")
	}
}

// BenchmarkReconnect is the comparison of 10,000 entries after connecting.
func BenchmarkReconnect(b *testing.B) {
	list, flows := entries(10_000)
	l := connected(list, newReading(flows))
	b.ReportAllocs()
	for b.Loop() {
		now := time.Now()
		l.connect(&api.Switch{}, now)
		l.read(newReading(flows), 0, now, now)
		l.observed = nil
	}
	if l.tally.kept != 10_000 {
		b.Fatal("not all was kept")
	}
}

// BenchmarkDeclare is a service's set of 60 entries that are all there.
func BenchmarkDeclare(b *testing.B) {
	list, _ := entries(60)
	for i := range list {
		list[i].Cookie = flow.NewCookie(flow.OwnerForwarding, 0, uint32(i))
	}
	l := connected(nil, newReading(nil))
	now := time.Now()
	l.declare(flow.OwnerForwarding, list, nil, false, now)
	b.ReportAllocs()
	for b.Loop() {
		if d := l.declare(flow.OwnerForwarding, list, nil, false, now); d.kept != 60 {
			b.Fatalf("kept %d", d.kept)
		}
	}
}

func connected(list []flow.Entry, rd *reading) *ledger {
	t := &tallies{n: map[string]float64{}}
	l := newLedger(1, defaults(), newCounts(t.counter))
	now := time.Now()
	for _, e := range list {
		l.add(newRule(&e, now), now)
	}
	l.connect(&api.Switch{Openflow: "1.3"}, now)
	l.read(rd, 0, now, now)
	return l
}
