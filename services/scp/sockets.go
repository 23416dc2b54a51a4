package scp

import (
	"context"
	"errors"
	"net"
	"net/netip"

	"github.com/weft-sdn/weft/internal/netspace"
	"github.com/weft-sdn/weft/object"
)

// sockets is where the front has its sockets: in a host of the network, or in a
// TCP stack of its own.
type sockets interface {
	// listen returns what takes the connections of consumers.
	listen(context.Context) (net.Listener, error)
	// dial connects to the NRF, or a producer.
	dial(ctx context.Context, to netip.AddrPort) (net.Conn, error)
	// lost returns why the listener takes none any more, nil if it does.
	lost() error
}

// hostSockets are those of a host. Only the front's goroutine listens.
type hostSockets struct {
	namespace string
	at        netip.AddrPort
	places    *places
	locate    func(netip.Addr) (object.Station, bool)
	inode     uint64 // of the namespace in which it listens
}

func (s *hostSockets) listen(ctx context.Context) (net.Listener, error) {
	s.inode = netspace.Inode(s.namespace)
	l, err := netspace.Listen(ctx, s.namespace, s.at)
	if err != nil {
		return nil, err
	}
	return limited(l, s.places, s.locate), nil
}

func (s *hostSockets) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	return netspace.Dial(ctx, s.namespace, s.at.Addr(), to)
}

func (s *hostSockets) lost() error {
	if netspace.Inode(s.namespace) != s.inode {
		return errors.New("network namespace " + s.namespace + " is gone, or another one")
	}
	return nil
}
