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
	s := &Service{Spec: &weft.Spec{Name: "forwarding"}, sent: newSent(&weft.Spec{})}
	return &Stages{
		owners: []*Service{s}, ended: make([]uint32, 1), seen: rand.Uint64(),
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
