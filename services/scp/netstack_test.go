package scp

import (
	"context"
	"io"
	"net/netip"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/testwait"
)

// TestNetstack: two stacks connect and carry what is written, and a stack without a
// listener resets connections.
func TestNetstack(t *testing.T) {
	a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	stacks := map[netip.Addr]*netstack{}
	for _, at := range []netip.Addr{a, b} {
		s, err := newNetstack(at, admitAll, silent{})
		if err != nil {
			t.Fatal(err)
		}
		stacks[at] = s
	}
	far := netip.MustParseAddrPort("10.0.0.9:7777") // the listener takes what is for others, too
	for at, to := range map[netip.Addr]*netstack{a: stacks[b], b: stacks[a]} {
		from := stacks[at]
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for ip, _ := from.output(context.Background(), true); ip != nil; ip, _ = from.output(context.Background(), true) {
				to.input(protocolOf(at), ip)
			}
		}()
		defer func() { from.close(); <-ended }()
	}
	if c, err := stacks[a].dial(t.Context(), far); err == nil {
		t.Errorf("a connection to nobody: %v", c.RemoteAddr())
	}
	l := stacks[b].listen(10)
	defer l.Close()
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			_, _ = io.Copy(c, c)
			c.Close()
		}
	}()
	c, err := stacks[a].dial(t.Context(), far)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(testwait.Limit))
	text := make([]byte, 300_000) // more than the buffers hold
	go func() { _, _ = c.Write(text) }()
	if _, err := io.ReadFull(c, text); err != nil {
		t.Error(err)
	}
	if c.LocalAddr().String() == "" || c.RemoteAddr().String() != far.String() {
		t.Errorf("%v to %v", c.LocalAddr(), c.RemoteAddr())
	}
}
