package deploy_test

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// hostileCluster is one process with stages, subscribers and methods.
func hostileCluster(t testing.TB) *process {
	c := newCluster(t, []weft.Spec{
		{Name: "southbound", Pipeline: true, Publishes: weft.Subjects(api.SwitchChangedEvent)},
		{Name: "hosts", Stage: true, Serves: weft.Methods(api.FindHost), Subscribes: weft.Subjects(api.SwitchChangedEvent)},
	}, map[string]func(*actor){"hosts": func(p *actor) {
		findHost(p)
		weft.On(p.env, api.SwitchChangedEvent, func(context.Context, *api.SwitchChanged) {})
		weft.Stage(p.env, func(flow.DPID) weft.StageFunc {
			return func(*flow.PacketIn, *flow.Decision) flow.Verdict { return flow.Done }
		})
	}})
	c.apply("{name: a, events: grpc, workers: {a: {services: [southbound, hosts]}}}")
	c.startAll()
	return c.process("a")
}

var hostileMethods = []string{"deploy.Ping", "deploy.Metrics", "deploy.Events", "deploy.Packets", "deploy.Nothing", "hosts.FindHost", "", "."}

func text(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// hostileSeeds are requests that are right at their beginning.
func hostileSeeds() [][]byte {
	u64 := binary.LittleEndian.AppendUint64
	events := u64(u64(nil, 5), 1)
	events = text(text(append(events, 0), "southbound.SwitchChanged"), "hosts")
	events = text(u64(u64(events, 7), 8), "x")
	packets := slices.Clip(text(append(u64(nil, 5), 1), "hosts"))
	run := u64(u64(u64(packets, 1), 2), 3)
	many := append(slices.Clip(run), 0xff, 0xff, 0xff, 0xff) // packets announced
	one := append(slices.Clip(run), 1, 0, 0, 0)
	one = append(one, 0xff, 0, 0, 1, 0, 0, 0, 0xff, 0xff)
	return [][]byte{nil, {0}, events, packets, run, many, one, binary.AppendUvarint(u64(u64(nil, 1), 1), 1<<62)}
}

// TestHostileRequests sends what no process of ours sends.
func TestHostileRequests(t *testing.T) {
	p := hostileCluster(t)
	r := rand.New(rand.NewPCG(3, 4))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var sent uint64
	for range 4000 {
		seeds := hostileSeeds()
		b := seeds[r.IntN(len(seeds))]
		for range r.IntN(4) {
			if len(b) > 0 {
				b[r.IntN(len(b))] = byte(r.Uint32())
			}
		}
		for range r.IntN(20) {
			b = append(b, byte(r.Uint32()))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, _ = p.node.Call(ctx, hostileMethods[r.IntN(len(hostileMethods))], b) // an error or not, but no panic
		cancel()
		sent += uint64(len(b))
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 512<<20 {
		t.Errorf("%d MiB allocated for %d KiB", grown>>20, sent>>10)
	}
	if answer, err := p.node.Call(t.Context(), "deploy.Ping", nil); err != nil || answer[0] != 0 {
		t.Errorf("it does not answer any more: %v, %v", answer, err)
	}
}

// FuzzCall looks for a request that makes a process panic.
func FuzzCall(f *testing.F) {
	p := hostileCluster(f)
	for i := range hostileMethods {
		for _, b := range hostileSeeds() {
			f.Add(i, b)
		}
	}
	f.Fuzz(func(t *testing.T, method int, b []byte) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _ = p.node.Call(ctx, hostileMethods[uint(method)%uint(len(hostileMethods))], b) // an error or not, but no panic
	})
}
