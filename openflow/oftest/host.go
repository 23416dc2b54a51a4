package oftest

import (
	"slices"

	"github.com/weft-sdn/weft/flow"
)

// Host is whatever is attached to a port at the edge: it records what it
// receives, and sends.
type Host struct {
	net      *Network
	at       flow.Location
	received [][]byte
	answer   func(frame []byte) [][]byte
}

// Host attaches a host to a port, which must exist and be free. If answer is
// given, it is called with every frame that arrives, with the network's lock
// held, and what it returns is sent.
func (n *Network) Host(at flow.Location, answer func(frame []byte) [][]byte) *Host {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.free(at)
	h := &Host{net: n, at: at, answer: answer}
	n.hosts[at] = h
	return h
}

// Location returns where the host is attached.
func (h *Host) Location() flow.Location {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	return h.at
}

// Move attaches the host to another port, which must exist and be free.
func (h *Host) Move(to flow.Location) {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	h.net.free(to)
	delete(h.net.hosts, h.at)
	h.at = to
	h.net.hosts[to] = h
}

// Send sends a frame into the network and returns when it, and all that came
// of it without a controller's help, has arrived.
func (h *Host) Send(frame []byte) {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	h.net.pending = append(h.net.pending, arrival{h.at, slices.Clone(frame), nil})
	h.net.run()
}

// Received returns the frames received since the last call.
func (h *Host) Received() [][]byte {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	list := h.received
	h.received = nil
	return list
}

// hear takes a frame off the network.
func (h *Host) hear(frame []byte) {
	h.received = append(h.received, frame)
	if h.answer == nil {
		return
	}
	for _, f := range h.answer(slices.Clone(frame)) {
		h.net.pending = append(h.net.pending, arrival{h.at, f, nil})
	}
}
