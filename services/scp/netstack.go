package scp

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/channel"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"
)

// Bounds of the stack.
const (
	stackMTU       = 1500
	stackQueue     = 4096     // packets on their way out
	stackReceives  = 32 << 10 // octets of a connection that nobody has read
	stackSends     = 64 << 10 // octets of a connection that its peer has not confirmed
	stackLingers   = 256      // connections that have been closed, and not by both sides
	stackTries     = 3        // of a segment that opens a connection: seven seconds, and eight for the last
	stackRetries   = 8        // of any other
	stackIdle      = 30 * time.Second
	stackPause     = 5 * time.Second // between questions whether an idle peer is there
	stackQuestions = 4
	stackSilence   = 20 * time.Second // of a peer that confirms nothing
	stackLinger    = 5 * time.Second
	stackWait      = time.Second // of an address and port that have just been used
	dialTime       = 5 * time.Second
)

const stackNIC tcpip.NICID = 1

// netstack is a TCP stack in this process. It takes connections to any address,
// and makes some from its own.
type netstack struct {
	own    netip.Addr
	stack  *stack.Stack
	link   *channel.Endpoint
	admit  func(from netip.Addr, abort func()) (room, bool)
	calls  func(from netip.Addr) bool // who may connect to the stack's own address
	halves Counter                    // connections that their peers did not complete

	mu       sync.Mutex // guards the following
	accepted *stackListener
	lingers  [stackLingers]tcpip.Endpoint // closed last, a ring
	last     int
}

// newNetstack returns a stack with an address of its own. admit says whether
// somebody may have a connection more, and has room for it; abort ends it for
// another.
func newNetstack(own netip.Addr, admit func(from netip.Addr, abort func()) (room, bool), halves Counter) (*netstack, error) {
	n := &netstack{
		own: own, link: channel.New(stackQueue, stackMTU, ""), admit: admit, calls: func(netip.Addr) bool { return false }, halves: halves,
		stack: stack.New(stack.Options{
			NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, ipv6.NewProtocol},
			TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol},
		}),
	}
	sack, moderate := tcpip.TCPSACKEnabled(true), tcpip.TCPModerateReceiveBufferOption(false)
	tries, retries := tcpip.TCPSynRetriesOption(stackTries), tcpip.TCPMaxRetriesOption(stackRetries)
	linger, wait := tcpip.TCPLingerTimeoutOption(stackLinger), tcpip.TCPTimeWaitTimeoutOption(stackWait)
	for _, option := range []tcpip.SettableTransportProtocolOption{
		&sack, &moderate, &tries, &retries, &linger, &wait,
		&tcpip.TCPReceiveBufferSizeRangeOption{Min: tcp.MinBufferSize, Default: stackReceives, Max: stackReceives},
		&tcpip.TCPSendBufferSizeRangeOption{Min: tcp.MinBufferSize, Default: stackSends, Max: stackSends},
	} {
		if err := n.stack.SetTransportProtocolOption(tcp.ProtocolNumber, option); err != nil {
			return nil, errors.New(err.String())
		}
	}
	address := tcpip.AddrFromSlice(own.AsSlice())
	for _, step := range []func() tcpip.Error{
		func() tcpip.Error { return n.stack.CreateNIC(stackNIC, n.link) },
		func() tcpip.Error { return n.stack.SetPromiscuousMode(stackNIC, true) },
		func() tcpip.Error { return n.stack.SetSpoofing(stackNIC, true) },
		func() tcpip.Error {
			return n.stack.AddProtocolAddress(stackNIC, tcpip.ProtocolAddress{Protocol: protocolOf(own), AddressWithPrefix: address.WithPrefix()}, stack.AddressProperties{})
		},
	} {
		if err := step(); err != nil {
			return nil, errors.New(err.String())
		}
	}
	n.stack.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: stackNIC}, {Destination: header.IPv6EmptySubnet, NIC: stackNIC}})
	return n, nil
}

// close ends the stack and all its connections.
func (n *netstack) close() {
	n.stack.Destroy()
	n.link.Close()
}

func protocolOf(a netip.Addr) tcpip.NetworkProtocolNumber {
	if a.Is4() {
		return ipv4.ProtocolNumber
	}
	return ipv6.ProtocolNumber
}

// input takes an IP packet, which it copies.
func (n *netstack) input(family tcpip.NetworkProtocolNumber, ip []byte) {
	p := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(ip)})
	defer p.DecRef()
	n.link.InjectInbound(family, p)
}

// output returns the IP packet that is to be sent next, with its destination; nil if
// ctx ends first, or if there is none and wait is false.
func (n *netstack) output(ctx context.Context, wait bool) (ip []byte, to netip.Addr) {
	p := n.link.Read()
	if p == nil && wait {
		p = n.link.ReadContext(ctx)
	}
	if p == nil {
		return nil, to
	}
	defer p.DecRef()
	view := p.ToView()
	defer view.Release()
	ip = append([]byte(nil), view.AsSlice()...)
	if p.NetworkProtocolNumber == ipv4.ProtocolNumber {
		to, _ = netip.AddrFromSlice(header.IPv4(ip).DestinationAddressSlice())
	} else {
		to, _ = netip.AddrFromSlice(header.IPv6(ip).DestinationAddressSlice())
	}
	return ip, to
}

// dial connects to an address from the stack's own.
func (n *netstack) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	return n.dialFrom(ctx, n.own, to)
}

// dialFrom connects to an address from another.
func (n *netstack) dialFrom(ctx context.Context, from netip.Addr, to netip.AddrPort) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	return gonet.DialTCPWithBind(ctx, n.stack, tcpip.FullAddress{NIC: stackNIC, Addr: tcpip.AddrFromSlice(from.AsSlice())},
		tcpip.FullAddress{NIC: stackNIC, Addr: tcpip.AddrFromSlice(to.Addr().AsSlice()), Port: to.Port()}, protocolOf(to.Addr()))
}

// listen returns a listener of the connections to all addresses; those to the stack's own
// are reset unless calls admits them. At most so many are being made at once. Without a
// listener, all are reset.
func (n *netstack) listen(most int) net.Listener {
	l := &stackListener{stack: n, conns: make(chan net.Conn, most), ended: make(chan struct{})}
	n.mu.Lock()
	n.accepted = l
	n.mu.Unlock()
	n.stack.SetTransportProtocolHandler(tcp.ProtocolNumber, tcp.NewForwarder(n.stack, stackReceives, most, l.asked).HandlePacket)
	return l
}

// buried has a closed connection end by itself, unless too many others are closed
// meanwhile: then it is reset.
func (n *netstack) buried(e tcpip.Endpoint) {
	n.mu.Lock()
	old := n.lingers[n.last]
	n.lingers[n.last] = e
	n.last = (n.last + 1) % stackLingers
	n.mu.Unlock()
	if old == nil {
		return
	}
	switch tcp.EndpointState(old.State()) {
	case tcp.StateFinWait1, tcp.StateFinWait2, tcp.StateClosing, tcp.StateLastAck:
		old.Abort()
	}
}

// stackListener takes the connections of a stack.
type stackListener struct {
	stack *netstack
	conns chan net.Conn
	once  sync.Once
	ended chan struct{}
}

// asked makes a connection that somebody has asked for.
func (l *stackListener) asked(r *tcp.ForwarderRequest) {
	id := r.ID()
	from, _ := netip.AddrFromSlice(id.RemoteAddress.AsSlice())
	to, _ := netip.AddrFromSlice(id.LocalAddress.AsSlice())
	var made atomic.Pointer[tcpip.Endpoint] // nil while the peer has not completed it
	has, ok := room{}, false
	select {
	case <-l.ended:
	default:
		if to != l.stack.own || l.stack.calls(from) {
			has, ok = l.stack.admit(from, func() {
				if e := made.Load(); e != nil {
					(*e).Abort()
				}
			})
		}
	}
	if !ok {
		r.Complete(true)
		return
	}
	var queue waiter.Queue
	e, err := r.CreateEndpoint(&queue)
	r.Complete(false)
	if err != nil {
		l.stack.halves.Add(1)
		has.give()
		return
	}
	made.Store(&e)
	has.idle(true)
	e.SocketOptions().SetKeepAlive(true)
	idle, pause, silence := tcpip.KeepaliveIdleOption(stackIdle), tcpip.KeepaliveIntervalOption(stackPause), tcpip.TCPUserTimeoutOption(stackSilence)
	for _, option := range []tcpip.SettableSocketOption{&idle, &pause, &silence} {
		_ = e.SetSockOpt(option) // known to every TCP endpoint
	}
	_ = e.SetSockOptInt(tcpip.KeepaliveCountOption, stackQuestions)
	c := &stackConn{TCPConn: gonet.NewTCPConn(&queue, e), room: has, end: sync.OnceFunc(func() { has.give(); l.stack.buried(e) })}
	select {
	case <-l.ended:
		c.Close()
	case l.conns <- c: // has room for all that may be admitted
	}
}

// Accept returns the next connection (net.Listener).
func (l *stackListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.ended:
		return nil, net.ErrClosed
	}
}

// Close ends the listener and the connections that nobody has accepted
// (net.Listener).
func (l *stackListener) Close() error {
	l.once.Do(func() { close(l.ended) })
	for {
		select {
		case c := <-l.conns:
			c.Close()
		default:
			return nil
		}
	}
}

// Addr returns the stack's address (net.Listener).
func (l *stackListener) Addr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(l.stack.own, 0))
}

type stackConn struct {
	*gonet.TCPConn
	room room
	end  func()
}

// Close closes the connection (net.Conn).
func (c *stackConn) Close() error {
	err := c.TCPConn.Close()
	c.end()
	return err
}

func (c *stackConn) setIdle(idle bool) { c.room.idle(idle) }
