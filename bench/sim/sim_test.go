package sim

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/openflow"
)

// listen returns a listener on the loopback.
func listen(t testing.TB) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln
}

// startFloor runs a floor and returns its address.
func startFloor(t testing.TB) string {
	t.Helper()
	ln := listen(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- Floor(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

// start runs a network.
func start(t testing.TB, cfg Config) *Network {
	t.Helper()
	n, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- n.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return n
}

// within returns a context for one step of a test.
func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func isolated(t testing.TB, n, hosts, ports int) *Topology {
	t.Helper()
	topo, err := Isolated(n, hosts, ports)
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

// TestOnePortSends: with one port all packets come from it, and are for the silent
// host at the other.
func TestOnePortSends(t *testing.T) {
	n := start(t, Config{Topology: isolated(t, 2, 8, 1), Version: openflow.V10, Address: startFloor(t)})
	ctx := within(t, testwait.Limit)
	if err := n.WaitUp(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if hosts, answered, err := n.Announce(ctx, 8, testwait.Limit); err != nil || hosts != 18 || answered != 18 {
		t.Fatalf("Announce: %d of %d answered, %v; want 18 of 18", answered, hosts, err)
	}
	if r, err := n.Measure(ctx, Load{Window: 64, Duration: 50 * time.Millisecond, Patience: testwait.Limit}); err != nil || r.Answered == 0 {
		t.Errorf("%+v, %v", r, err)
	}
	nd := n.nodes[1]
	for range 1000 {
		if src, dst := nd.gen.choose(nd); src.at&0xffff != 1 || dst.at&0xffff != 2 {
			t.Fatalf("a packet from port %d to port %d, want from 1 to 2", src.at&0xffff, dst.at&0xffff)
		}
	}
}

func TestFloorAnswersEverything(t *testing.T) {
	for _, v := range []openflow.Version{openflow.V10, openflow.V13} {
		t.Run(v.String(), func(t *testing.T) {
			n := start(t, Config{Topology: isolated(t, 4, 16, 4), Version: v, Address: startFloor(t)})
			ctx := within(t, testwait.Limit)
			if err := n.WaitUp(ctx, 0); err != nil {
				t.Fatal(err)
			}
			hosts, answered, err := n.Announce(ctx, 8, testwait.Limit)
			if err != nil || hosts != 64 || answered != 64 {
				t.Fatalf("Announce: %d of %d answered, %v", answered, hosts, err)
			}
			for _, conf := range []Load{
				{Window: 64, Warm: 20 * time.Millisecond, Duration: 100 * time.Millisecond, Patience: testwait.Limit},
				{Window: 1, Duration: 100 * time.Millisecond, Patience: testwait.Limit},
				{Window: 64, Rate: 20000, Duration: 100 * time.Millisecond, Patience: testwait.Limit},
			} {
				var asked []time.Time
				conf.Used = func() time.Duration {
					asked = append(asked, time.Now())
					return time.Duration(10 * len(asked))
				}
				r, err := n.Measure(ctx, conf)
				if len(asked) != 2 || asked[1].Sub(asked[0]) < conf.Duration/2 || r.Used != 10 {
					t.Errorf("asked for what is used at %v, which came to %d; want as the measured time begins and ends", asked, r.Used)
				}
				if err != nil {
					t.Fatal(err)
				}
				conf.Used = nil
				t.Logf("%+v: %.0f/s p50 %v p99 %v %+v", conf, r.AnswersPerSecond(),
					time.Duration(r.Latency.ValueAtPercentile(50)), time.Duration(r.Latency.ValueAtPercentile(99)), r.Counts)
				if r.Answered == 0 || r.Flooded != r.Answered || r.Lost+r.Wrong+r.Duplicates+r.Late+r.Unsent != 0 {
					t.Errorf("%+v: %+v", conf, r.Counts)
				}
				if got := uint64(r.Latency.TotalCount()); got != r.Answered {
					t.Errorf("%+v: %d latencies of %d answers", conf, got, r.Answered)
				}
				if conf.Rate > 0 && (r.Answered < 1950 || r.Answered > 2050) {
					t.Errorf("at %v/s: %d answers in 0.1 s, want about 2000", conf.Rate, r.Answered)
				}
			}
		})
	}
}
