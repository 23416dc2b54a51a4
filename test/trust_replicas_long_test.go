//go:build long

package test

import (
	"syscall"
	"testing"
)

// TestTrustReplicas is the part of TestTrust about replicas of the store that
// takes a minute. Each of three servers is killed and wiped in turn; then the master
// of the switches is killed, and its standby takes over.
func TestTrustReplicas(t *testing.T) {
	f := &faults{dir: openDir(t)}
	f.weft = f.build(t, "weft", ".")
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
