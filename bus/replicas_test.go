package bus_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/bus"
	"github.com/weft-sdn/weft/internal/testwait"
)

// stateIs waits until the store says how it is kept.
func stateIs(t *testing.T, s *bus.Store, servers, replicas uint32, quorum bool) {
	t.Helper()
	var last *api.StoreState
	var err error
	for end := time.Now().Add(testwait.Limit); ; time.Sleep(100 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		last, err = s.State(ctx)
		cancel()
		if last.Servers == servers && last.Replicas == replicas && last.Quorum == quorum {
			return
		}
		if time.Now().After(end) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			t.Fatalf("state of the store: %v, %v; want %d servers, %d replicas, quorum %v; %s", last, err, servers, replicas, quorum, s.DescribeStreams(ctx))
		}
	}
}

// TestReplicasRaised checks that buckets get the copies that they lack, that a
// process which has opened them before goes on, and that the state tells so.
func TestReplicasRaised(t *testing.T) {
	t.Parallel()
	members, urls := cluster(t, 3)
	before := opened(t, bus.Config{URL: urls})
	stays, err := before.Bucket(t.Context(), "test.stays")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stays.Put(t.Context(), "k", []byte("1")); err != nil {
		t.Fatal(err)
	}
	if _, err := before.Bucket(t.Context(), "test.other"); err != nil {
		t.Fatal(err)
	}
	stateIs(t, before, 1, 1, true) // both are at one server, or each at another
	s := opened(t, bus.Config{URL: urls, Replicas: 3})
	s.Replicate(3)
	stateIs(t, s, 3, 3, true)
	if v, _, err := stays.Get(t.Context(), "k"); err != nil || string(v) != "1" {
		t.Fatalf("get by who has opened it before: %q, %v", v, err)
	}
	w := watching(t, stays)
	w.matches(t, stays, map[string]string{"k": "1"})
	for i, m := range members { // each in turn dies and loses its disk
		m.kill()
		stateIs(t, s, 2, 3, true)
		value := fmt.Sprint("while ", i, " is away")
		if _, err := stays.Put(t.Context(), "k", []byte(value)); err != nil {
			t.Fatal(err)
		}
		m.wipe(t)
		m.start(t)
		stateIs(t, s, 3, 3, true)
		w.matches(t, stays, map[string]string{"k": value})
	}
	members[0].kill()
	members[1].kill()
	testwait.Until(t, "no quorum", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		st, _ := s.State(ctx)
		return !st.Quorum
	})
}

// TestReplicasOfTooFewServers checks that a server that runs alone is refused by
// name, and that a cluster with a server missing is used until it is there.
func TestReplicasOfTooFewServers(t *testing.T) {
	t.Parallel()
	_, url := cluster(t, 1)
	if s, err := bus.Open(t.Context(), bus.Config{URL: url, Replicas: 3}); api.KindOf(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "bus.replicas: 1") {
		t.Errorf("three replicas on one server: %v, %v", s, err)
	}
	members, urls := cluster(t, 3)
	s := opened(t, bus.Config{URL: urls, Replicas: 3})
	s.Replicate(3)
	if _, err := s.Bucket(t.Context(), "test.three"); err != nil {
		t.Fatal(err)
	}
	stateIs(t, s, 3, 3, true)
	members[2].kill()
	b, err := s.Bucket(t.Context(), "test.two") // with a copy less
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Put(t.Context(), "k", []byte("1")); err != nil {
		t.Fatal(err)
	}
	members[2].start(t)
	stateIs(t, s, 3, 3, true)
}
