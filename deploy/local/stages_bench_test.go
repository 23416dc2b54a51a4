package local

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/flow"
)

// countedStages returns a stage that does nothing, as Run runs it.
func countedStages() *Stages {
	s := &Service{registrations: registrations{Spec: &weft.Spec{Name: "forwarding"}}, sent: newSent(&weft.Spec{}, newCrossings())}
	t := &Tally{}
	t.sparse.Store(true)
	return &Stages{
		passed: []*Tally{t}, dense: t, owners: []*Service{s}, ended: make([]uint32, 1), seen: rand.Uint64(),
		funcs: []weft.StageFunc{func(*flow.PacketIn, *flow.Decision) flow.Verdict { return flow.Done }},
	}
}

// BenchmarkWork measures what counting costs a packet: a stage that does
// nothing, in batches, with live figures and with only a number of packets. The
// difference is to be at most 20 ns on average.
func BenchmarkWork(b *testing.B) {
	in, d := &flow.PacketIn{}, &flow.Decision{}
	at := time.Now().UnixNano()
	for _, batch := range []int{1, 4, 16} {
		name := fmt.Sprintf("batch=%d", batch)
		b.Run(name+"/counted", func(b *testing.B) {
			r := countedStages()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				in.Time = at + int64(i)*5000 // 200,000 packets a second
				r.Run(in, d)
				if i%batch == 0 {
					r.Settle()
				}
			}
		})
		b.Run(name+"/bare", func(b *testing.B) {
			r := countedStages()
			var all atomic.Uint64
			for i := 0; b.Loop(); i++ {
				in.Time = at + int64(i)*5000
				func() (v flow.Verdict) {
					defer r.dropOnPanic(d, &v)
					for r.at = range r.funcs {
						if v = r.funcs[r.at](in, d); v != flow.Next {
							return v
						}
					}
					return v
				}()
				if i%batch == 0 {
					all.Add(uint64(batch))
				}
			}
		})
	}
}

// BenchmarkCrossings measures what counting the packets from service to service
// adds to that: it is to be at most 2 % of a stage that takes a microsecond, in
// batches of 16.
func BenchmarkCrossings(b *testing.B) {
	in, d := &flow.PacketIn{}, &flow.Decision{}
	at := time.Now().UnixNano()
	var sink uint64
	for _, batch := range []int{1, 16} {
		for _, with := range []bool{true, false} {
			b.Run(fmt.Sprintf("batch=%d/with=%v", batch, with), func(b *testing.B) {
				r := countedStages()
				r.funcs[0] = func(*flow.PacketIn, *flow.Decision) flow.Verdict {
					for i := range uint64(1000) {
						sink = sink*0x9e3779b97f4a7c15 + i
					}
					return flow.Done
				}
				if !with {
					r.passed[0], r.dense = nil, nil
				}
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					in.Time = at + int64(i)*5000
					r.Run(in, d)
					if i%batch == 0 {
						r.Settle()
					}
				}
			})
		}
	}
}
