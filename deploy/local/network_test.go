package local_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
)

// TestOnChange: a service that reads hosts is called with what is otherwise, never
// misses the last, and is called once for what comes while it is busy; services
// of one process read the same.
func TestOnChange(t *testing.T) {
	const total = 1000
	inBothModes(t, func(t *testing.T, encoded bool) {
		host := func(i int) *api.HostChanged {
			return &api.HostChanged{Host: &api.Host{Mac: flow.MACFrom(uint64(i % 10)).String(), Moves: uint32(i)}}
		}
		calls, waited := 0, false
		first, busy, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
		seen := map[nib.HostKey]uint32{}
		read := listener(func(ctx context.Context, env *weft.Env) error {
			weft.OnChange(env, nib.Hosts, func(c nib.Change) {
				calls++
				for _, s := range c.Hosts() {
					if s.Was != nil && seen[s.Is.Key] != s.Was.Is.Moves {
						t.Errorf("was %d, want %d", s.Was.Is.Moves, seen[s.Is.Key])
					}
					seen[s.Is.Key] = s.Is.Is.Moves
				}
				if began := len(seen) > 0; began && !waited {
					waited = true
					close(first)
					<-busy
				}
				for i := range 10 {
					if seen[nib.HostKey{MAC: flow.MACFrom(uint64(i))}] != uint32(total-10+i) {
						return
					}
				}
				if weft.NIB(env).Rev() != c.Is.Rev() {
					t.Errorf("revision %d, want %d", c.Is.Rev(), weft.NIB(env).Rev())
				}
				close(done)
			})
			return weft.Serve(ctx, env)
		})
		read.Subscribes, read.Reads = nil, nib.Hosts
		other := read
		other.Name = "other"
		other.Run = func(ctx context.Context, env *weft.Env) error {
			if weft.NIB(env).HostsLen(0) != 0 {
				return fmt.Errorf("there are hosts before anybody has published any")
			}
			return weft.Serve(ctx, env)
		}
		env, _ := publisher(t, local.Config{Encoded: encoded}, read, other)
		weft.Publish(env, api.HostChangedEvent, host(0))
		<-first
		for i := range total {
			weft.Publish(env, api.HostChangedEvent, host(i))
		}
		close(busy)
		<-done
		if calls > total/2 {
			t.Errorf("%d calls for %d events that came while it was busy", calls, total)
		}
	})
}

// TestReadsAreDeclared: what a Spec does not say is no way to the network.
func TestReadsAreDeclared(t *testing.T) {
	errs := make(chan error, 1)
	read := listener(func(ctx context.Context, env *weft.Env) error {
		weft.OnChange(env, nib.Hosts|nib.Links, func(nib.Change) {})
		errs <- weft.Ready(ctx, env)
		<-ctx.Done()
		return nil
	})
	read.Subscribes, read.Reads = nil, nib.Hosts
	worker, err := local.New(local.Config{Specs: []weft.Spec{{Name: "hosts", Publishes: weft.Subjects(api.HostChangedEvent, api.HostsSettledEvent), Run: func(ctx context.Context, env *weft.Env) error {
		return weft.Serve(ctx, env)
	}}, read}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	if err := <-errs; err == nil {
		t.Error("it reads links, which its Spec does not list")
	}
	cancel()
	<-ended
}
