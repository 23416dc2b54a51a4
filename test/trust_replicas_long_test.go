//go:build long

package test

import (
	"bytes"
	"context"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
)

// TestTrustReplicas is the part of TestTrust about replicas of the store that
// takes a minute. Each of three servers is killed and wiped in turn; then the master
// of the switches is killed, and its standby takes over.
func TestTrustReplicas(t *testing.T) {
	f := newFaults(t)
	r := f.replicated(t)
	r.write()
	for _, s := range r.servers {
		r.wiped(s)
	}
	if err := syscall.Kill(r.pids()[r.master], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	other := map[string]string{"southbound": "southbound-standby", "southbound-standby": "southbound"}[r.master]
	r.role(other, "master")
	r.write()
	r.kept()
}

// TestTrustPartition stops servers of the store, which wake up later with what they
// knew, as after a partition of the network. With one away, writes go on. With two away, nothing can be written,
// health says so, switches keep their entries, and the master goes on by the
// promises of its standby; when they are back nothing is lost.
func TestTrustPartition(t *testing.T) {
	f := newFaults(t)
	r := f.replicated(t)
	r.write()
	cut := func(signal syscall.Signal, servers ...*natsServer) {
		t.Helper()
		for _, s := range servers {
			if err := syscall.Kill(s.process.PID(), signal); err != nil {
				t.Fatal(err)
			}
		}
	}
	cut(syscall.SIGSTOP, r.servers[0])
	r.write()
	cut(syscall.SIGCONT, r.servers[0])
	r.stored(3)
	majority := r.servers[1:]
	cut(syscall.SIGSTOP, majority...)
	eventually(t, "health fails for want of a majority", func() bool {
		out, err := exec.Command(r.weft, "get", "health", "--server", "http://"+r.north).Output()
		return err != nil && bytes.Contains(out, []byte("be changed"))
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	m, err := r.flows.AddFlows(ctx, &api.AddFlowsRequest{Flows: []*api.FlowEntry{{Dpid: r.sw, Priority: 19999}}})
	cancel()
	if err == nil {
		t.Errorf("an entry is taken without a majority: %v", m)
	}
	cut(syscall.SIGCONT, majority...)
	r.stored(3)
	r.write()
	r.stays()
	r.kept()
}
