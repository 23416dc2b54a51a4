// Package wefttest tests services: it runs one test body for a service in
// several ways, with the test in the place of all its peers.
//
//	func TestHosts(t *testing.T) {
//		wefttest.Run(t, hosts.Spec, func(t *testing.T, h *wefttest.Harness) {
//			h.Configure("port_limit: 1")
//			wefttest.Publish(h, api.PortChangedEvent, &api.PortChanged{…})
//			verdict, decision := h.Packet(1, 3, frame)
//			e := wefttest.Next(h, api.HostChangedEvent)
//			…
//		})
//	}
//
// Tests import it, nothing else does. It imports weft, flow, packet, api and
// deploy.
package wefttest

import (
	"testing"

	"github.com/weft-sdn/weft"
)

// Mode is a way of running a service.
type Mode int

// The modes.
const (
	Pointer Mode = iota // messages pass by pointer, as in one process
	Encoded             // messages cross a transport, encoded, as between processes
	Twice               // Encoded, and every call of the service is made twice
)

// String returns the name of the mode, that of the subtest.
func (m Mode) String() string { return [...]string{"pointer", "encoded", "twice"}[m] }

// Run runs a test body for a service once in each mode. The service starts
// when the body first needs it, or calls Start; what it needs from the
// beginning, such as Fakes and Configure, comes before.
//
// In every mode the test fails if the service does not end cleanly, or if a
// message is written to after it was sent; in mode Twice also if a call
// succeeds and then, made again, fails.
func Run(t *testing.T, spec weft.Spec, body func(*testing.T, *Harness)) {
	t.Helper()
	for _, mode := range []Mode{Pointer, Encoded, Twice} {
		RunIn(t, mode, spec, body)
	}
}

// RunIn is Run in one mode: for what is the same in all of them.
func RunIn(t *testing.T, mode Mode, spec weft.Spec, body func(*testing.T, *Harness)) {
	t.Helper()
	t.Run(mode.String(), func(t *testing.T) {
		h := newHarness(t, spec, mode)
		t.Cleanup(h.finish)
		body(t, h)
	})
}
